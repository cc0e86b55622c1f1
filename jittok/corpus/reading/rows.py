"""Rows of sequences: their ids read from files and laid out, from one corpus or from a mix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.reading.kernels import COUNT, FACTS, NO_TARGET, NO_TOKEN, Rows
from jittok.corpus.reading.order import NearOrder, Order, name_of
from jittok.corpus.reading.packing import Split, Table
from jittok.corpus.reading.tokens import Tokens, Workspace

AT_ONCE = 1 << 23
"""Ids that are laid out at once."""
NOTHING = np.zeros(0, np.int64)
SEQUENCES = "sequences"


class Shape(NamedTuple):
    """Of every row. across: whether a target may be of the next document."""

    length: int
    pad: int
    targets: bool
    across: bool


class Source(Protocol):
    """Sequences, epoch after epoch: number n of them is sequence n % count of epoch n // count."""

    count: int
    tokens: Tokens
    far: bool

    def read(self, numbers: NDArray[np.int64], rows: Sequence[int], work: Gathering) -> None:
        """Read these sequences into rows of the work."""

    def ahead(self, numbers: NDArray[np.int64]) -> None:
        """Have the ids of these sequences fetched, where they are far."""


class Gathering:
    """Rows that are being read: `facts` as the kernel takes them."""

    def __init__(self, space: Workspace, count: int, length: int) -> None:
        self.space, self.length = space, length
        self.raw = space.room((count * (length + 2)) * 4)
        self.facts = [0] * (FACTS * count)
        self.origins: list[tuple[Tokens, int | list[tuple[int, int]]]] = [(EMPTY, 0)] * count
        self.used = self.marks = 0

    def run(self, tokens: Tokens, first: int, stop: int) -> tuple[int, int, int]:
        """Read the ids and marks of a run; where they begin, and between which marks."""
        width = tokens.dtype.itemsize
        begin, self.used = self.used, self.used + (stop - first) * width + 3 & ~3
        low, raw = self.marks, self.raw[begin : begin + (stop - first) * width]
        self.marks = tokens.read_marked(first, stop, raw, self.space, low)
        return begin // width, low, self.marks

    def pieces(self, tokens: Tokens, firsts: list[int], counts: list[int]) -> tuple[int, int, int, int]:
        """Read pieces of one row, one after the other; how many ids, where they begin, between which marks."""
        width, raw = tokens.dtype.itemsize, self.raw
        begin = at = self.used
        k, held, last, total = 0, self.space.held(self.marks + len(firsts), self.marks), len(firsts), 0
        starts = []
        while k < last:
            first = stop = firsts[k]
            while k < last and firsts[k] == stop:  # what lies together is read together
                starts.append(total)
                stop += counts[k]
                total += counts[k]
                k += 1
            tokens.read(first, stop - first, raw[at : at + (stop - first) * width])
            at += (stop - first) * width
        low, self.marks = self.marks, self.marks + last
        held[low : self.marks] = starts
        self.used = at + 3 & ~3
        return total, begin // width, low, self.marks


EMPTY = Tokens("nothing", [], 1)


class OneCorpus:
    """Sequences of tokens, in their order or shuffled by a seed."""

    def __init__(
        self, tokens: Tokens, packing: Split | Table, seed: int | None, name: str = "", within: int | None = None
    ) -> None:
        self.tokens, self.packing, self.seed, self.name, self.within = tokens, packing, seed, name, within
        self.count = packing.sequences()
        self.far = tokens.far
        self._order = lru_cache(4)(self._of_epoch)

    def __reduce__(self) -> tuple[Any, ...]:
        return OneCorpus, (self.tokens, self.packing, self.seed, self.name, self.within)

    def _of_epoch(self, epoch: int) -> Order | NearOrder:
        name = name_of(self.seed or 0, f"{self.name}{SEQUENCES}", epoch)
        return Order(self.count, name) if self.within is None else NearOrder(self.count, name, self.within)

    def ordered(self, numbers: NDArray[np.int64]) -> list[int]:
        """Which sequences these are."""
        if self.seed is None:
            return (numbers % self.count).tolist()  # type: ignore[no-any-return]
        epoch = int(numbers[0]) // self.count
        if epoch * self.count <= int(numbers.min()) and int(numbers.max()) < (epoch + 1) * self.count:
            return self._order(epoch)(numbers - epoch * self.count).tolist()  # type: ignore[no-any-return]
        return [self.ordered(numbers[k : k + 1])[0] for k in range(numbers.size)]

    def read(self, numbers: NDArray[np.int64], rows: Sequence[int], work: Gathering) -> None:
        """Read these sequences; those that follow each other at once."""
        sequences, packing = self.ordered(numbers), self.packing
        if isinstance(packing, Table):
            self._read_pieces(packing.rows(sequences), rows, work)
            return
        step, length, total, narrow = (
            packing.step,
            packing.length,
            self.tokens.total,
            int(self.tokens.dtype.itemsize == 2),
        )
        k, count, facts = 0, len(sequences), work.facts
        while k < count:
            begin, first = k, sequences[k] * step
            k += 1
            while k < count and sequences[k] == sequences[k - 1] + 1:
                k += 1
            place, low, high = work.run(self.tokens, first, min(first + (k - begin - 1) * step + length, total))
            for row in rows[begin:k]:
                at = FACTS * row
                facts[at : at + FACTS] = first, min(length, total - first), low, high, place, narrow
                work.origins[row] = self.tokens, first
                first += step
                place += step

    def ahead(self, numbers: NDArray[np.int64]) -> None:
        """Have the ids of these sequences fetched, where they are far."""
        if not self.tokens.far or not numbers.size:
            return
        packing, sequences = self.packing, self.ordered(numbers)
        if isinstance(packing, Split):
            for number in sequences:
                self.tokens.ahead(number * packing.step, packing.length)
            return
        for firsts, counts in packing.rows(sequences):
            for first, count in zip(firsts, counts, strict=True):
                self.tokens.ahead(first, count)

    def _read_pieces(self, pieces: list[tuple[list[int], list[int]]], rows: Sequence[int], work: Gathering) -> None:
        narrow = int(self.tokens.dtype.itemsize == 2)
        for row, (firsts, counts) in zip(rows, pieces, strict=True):
            total, place, low, high = work.pieces(self.tokens, firsts, counts)
            work.facts[FACTS * row : FACTS * (row + 1)] = 0, total, low, high, place, narrow
            work.origins[row] = self.tokens, [*zip(firsts, counts, strict=True)]


class Mix:
    """Sequences of several corpora in fixed shares, drawn by a seed. An epoch has as many as all of them together;
    each corpus goes through its own epochs, in which none of its sequences occurs twice."""

    def __init__(self, sources: Sequence[OneCorpus], shares: Sequence[int], seed: int) -> None:
        self.sources, self.shares, self.seed = sources, shares, seed
        self.tokens = sources[0].tokens
        self.count = sum(shares)
        self.far = any(source.far for source in sources)
        self._ends = np.cumsum(shares)
        self._order = lru_cache(4)(self._of_epoch)

    def __reduce__(self) -> tuple[Any, ...]:
        return Mix, (self.sources, self.shares, self.seed)

    def _of_epoch(self, epoch: int) -> Order:
        return Order(self.count, name_of(self.seed, "mix", epoch))

    def read(self, numbers: NDArray[np.int64], rows: Sequence[int], work: Gathering) -> None:
        """Read these sequences, corpus after corpus."""
        for k, within, some in self._shared(numbers):
            self.sources[k].read(within, [rows[at] for at in some], work)

    def ahead(self, numbers: NDArray[np.int64]) -> None:
        """Have the ids of these sequences fetched, where they are far."""
        for k, within, _ in self._shared(numbers):
            self.sources[k].ahead(within)

    def _shared(self, numbers: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64], list[int]]]:
        """Which corpus has which of these: its number, its sequences, their places among the numbers."""
        epochs = numbers // self.count
        places = np.empty(numbers.size, np.int64)
        for epoch in np.unique(epochs).tolist():
            some = epochs == epoch
            places[some] = self._order(epoch)(numbers[some] - epoch * self.count)
        which = np.searchsorted(self._ends, places, "right")
        within = places - (self._ends - self.shares)[which] + epochs * np.array(self.shares)[which]
        for k in np.unique(which).tolist():
            some = np.flatnonzero(which == k)
            yield k, within[some], some.tolist()


def learned(work: Gathering, count: int, length: int) -> NDArray[np.uint8]:
    """uint8[count, length + 1]: what is to be learned of the rows that were read, and of the id after each; 0 where
    there is none."""
    found = np.zeros((count, length + 1), np.uint8)
    raw = found.data.cast("B")
    for row in range(count):
        tokens, origin = work.origins[row]
        pieces = [(origin, work.facts[FACTS * row + COUNT])] if isinstance(origin, int) else origin
        at = row * (length + 1)
        for first, some in pieces:
            if tokens.learned is not None and some:
                tokens.learned.read(first, some, raw[at : at + some])
            at += some
    return found


def laid_out(source: Source, numbers: NDArray[np.int64], shape: Shape, space: Workspace) -> tuple[NDArray[Any], ...]:
    """int32[n, length] ids, segments, positions, and int64[n, length] targets, where they are wanted. Of corpora that
    say what is to be learned: other targets are NO_TARGET, and without targets the last is uint8[n, length], 1 for what
    is."""
    size, length = numbers.size, shape.length
    masked = source.tokens.learned is not None
    mask = np.empty((size if masked and not shape.targets else 0, length), np.uint8)
    ids, segments, positions = (np.empty(size * length, np.int32) for _ in range(3))
    targets = np.empty(size * length, np.int64) if shape.targets else NOTHING
    step = max(AT_ONCE // length, 1)
    for first in range(0, size, step):
        some = numbers[first : first + step]
        work = Gathering(space, some.size, length)
        source.read(some, range(some.size), work)
        space.facts(work.facts)
        low, high = first * length, (first + some.size) * length
        if some.size == size:
            rows = Rows(ids, segments, positions, targets)
        else:
            rows = Rows(ids[low:high], segments[low:high], positions[low:high], targets[low:high])
        if space.lay_out(some.size, length, source.tokens, shape.pad, shape.across, rows) == NO_TOKEN:
            space.refuse(*work.origins[int(space.report[0])])
        if masked:
            marks = learned(work, some.size, length)
            if shape.targets:
                targets[low:high][marks[:, 1:].ravel() == 0] = NO_TARGET
            else:
                mask[first : first + some.size] = marks[:, :length]
    arrays: list[NDArray[Any]] = [ids, segments, positions, *([targets] if shape.targets else [])]
    if masked and not shape.targets:
        arrays.append(mask)
    return tuple(array.reshape(size, length) for array in arrays)

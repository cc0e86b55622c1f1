"""Which ids make a sequence: every so many ids (`Split`), or a table of pieces.
`jittok/reference/corpus/sequences.py` defines all ways.

A table takes 12 bytes a piece and 8 a sequence: 0.5 % of ids of two bytes in sequences of 2,048. A large one is in a
file that has no name any more, so no one else can change it.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.reading.kernels import Rooms, best_fit, next_fit
from jittok.corpus.reading.tokens import Tokens

WINDOW = 1 << 14
"""Pieces that best fit packs together."""
AT_ONCE = 1 << 18
"""Pieces, or documents, in memory while a table is made."""
IN_MEMORY = 1 << 26
"""Bytes of a table that are kept in memory."""
PIECE = np.dtype([("first", "<i8"), ("count", "<i4")])
"""Ids of one document that lie together: in a sequence they are one segment."""


class Split(NamedTuple):
    """Sequence k is ids k * step ... of all documents."""

    tokens: int
    length: int
    step: int
    padded: bool  # whether the end, where it does not fill a sequence, is one

    def sequences(self) -> int:
        """How many sequences."""
        overlap, left = self.length - self.step, self.tokens
        full = max(left - overlap, 0) // self.step
        return full + int(self.padded and left - full * self.step > overlap)


class Table:
    """Sequences as rows of pieces: those of sequence k are firsts[k] to firsts[k + 1]."""

    def __init__(self, pieces: Kept, firsts: Kept) -> None:
        self.pieces, self.firsts = pieces, firsts

    def sequences(self) -> int:
        """How many sequences."""
        return self.firsts.size - 1

    def rows(self, numbers: list[int]) -> list[tuple[list[int], list[int]]]:
        """Of each sequence, the first ids of its pieces and how many they have."""
        found = []
        for number in numbers:
            low, high = self.firsts.part(number, number + 2).tolist()
            some = self.pieces.part(low, high)
            found.append((some["first"].tolist(), some["count"].tolist()))
        return found


class Kept:
    """Rows that were appended: in memory, or in a file without a name."""

    def __init__(self, dtype: Any) -> None:
        self.dtype, self.size = np.dtype(dtype), 0
        self._parts: list[NDArray[Any]] = []
        self._file: IO[bytes] | None = None

    def append(self, rows: NDArray[Any]) -> None:
        """More of them."""
        self.size += rows.size
        if self._file is None:
            self._parts.append(np.ascontiguousarray(rows, self.dtype))
            if self.size * self.dtype.itemsize > IN_MEMORY:
                self._file = tempfile.TemporaryFile(prefix="jittok-sequences-")  # noqa: SIM115  closed with this
                weakref.finalize(self, self._file.close)
                for part in self._parts:
                    self._file.write(part.data)
                self._parts = []
        else:
            self._file.write(np.ascontiguousarray(rows, self.dtype).data)

    def finish(self) -> Kept:
        """No more come."""
        if self._file is None:
            self._parts = [np.concatenate([np.zeros(0, self.dtype), *self._parts])]
        else:
            self._file.flush()
        return self

    def part(self, low: int, high: int) -> NDArray[Any]:
        """Rows low to high."""
        if self._file is None:
            return self._parts[0][low:high]
        from jittok.corpus.reading.files import read_at

        found = np.empty(high - low, self.dtype)
        if found.size:
            read_at(self._file.fileno(), found.view(np.uint8).data, low * self.dtype.itemsize)
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Another process that is not a fork of this one gets a file of its own."""
        state = dict(self.__dict__)
        if self._file is not None:
            state |= {"_file": None, "_parts": [self.part(0, self.size)]}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["dtype"])  # type: ignore[misc]
        for part in state["_parts"]:
            self.append(part)
        self.finish()


Documents = Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]
"""Some documents at a time: first ids and lengths, of those that have any."""


def in_order(tokens: Tokens) -> Documents:
    """The documents as they lie."""
    for offsets in tokens.offsets():
        for at in range(0, offsets.size - 1, AT_ONCE):
            some = offsets[at : at + AT_ONCE + 1]
            yield _not_empty(some[:-1], np.diff(some))


def drawn(tokens: Tokens, order: Callable[[int], Callable[[NDArray[np.int64]], NDArray[np.int64]]]) -> Documents:
    """The documents that are not empty, in the order that is made for so many. Takes 16 bytes a document meanwhile."""
    parts = [*in_order(tokens)]
    firsts = np.concatenate([np.zeros(0, np.int64), *(part[0] for part in parts)])
    counts = np.concatenate([np.zeros(0, np.int64), *(part[1] for part in parts)])
    parts.clear()
    if firsts.size:
        sent = order(firsts.size)
        for at in range(0, firsts.size, AT_ONCE):
            some = sent(np.arange(at, min(at + AT_ONCE, firsts.size), dtype=np.int64))
            yield firsts[some], counts[some]


def _not_empty(firsts: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    some = counts > 0
    return firsts[some], counts[some]


def _cut(documents: Documents, length: int) -> Iterator[NDArray[Any]]:
    """Pieces of at most `length` ids."""
    for firsts, counts in documents:
        for at in range(0, firsts.size, AT_ONCE):
            begin, size = firsts[at : at + AT_ONCE], counts[at : at + AT_ONCE]
            each = -(-size // length)
            ends = np.cumsum(each)
            number = np.arange(int(ends[-1]) if ends.size else 0) - np.repeat(ends - each, each)
            pieces = np.empty(number.size, PIECE)
            pieces["first"] = np.repeat(begin, each) + number * length
            pieces["count"] = np.minimum(np.repeat(size, each) - number * length, length)
            yield pieces


def best(documents: Documents, length: int) -> Table:
    """Best fit, in windows of pieces."""
    pieces, firsts, held = Kept(PIECE), Kept("<i8"), np.zeros(0, PIECE)
    firsts.append(np.zeros(1, np.int64))
    packer = _BestFit(length)

    def pack(some: NDArray[Any]) -> None:
        order, ends = packer(np.ascontiguousarray(some["count"]))
        firsts.append(ends + pieces.size)
        pieces.append(some[order])

    for more in _cut(documents, length):
        held = np.concatenate([held, more]) if held.size else more
        whole = held.size // WINDOW * WINDOW
        for at in range(0, whole, WINDOW):
            pack(held[at : at + WINDOW])
        held = held[whole:]
    if held.size:
        pack(held)
    return Table(pieces.finish(), firsts.finish())


class _BestFit:
    """The kernel with its scratch."""

    def __init__(self, length: int) -> None:
        words = (length >> 6) + 1
        self.length = length
        self.rooms = Rooms(
            np.zeros(length + 1, np.int32), np.zeros(WINDOW, np.int32), np.zeros(words, np.uint64),
            np.zeros((words >> 6) + 1, np.uint64),
        )  # fmt: skip
        self.counts = np.zeros(max(length, WINDOW) + 2, np.int32)

    def __call__(self, sizes: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Pieces by sequence, and where each sequence ends among them."""
        place = np.empty(sizes.size, np.int32)
        made = best_fit(sizes, self.length, self.rooms, self.counts, np.empty(sizes.size, np.int32), place)
        return np.argsort(place, kind="stable"), np.cumsum(np.bincount(place, minlength=made))


def whole(documents: Documents, length: int) -> Table:
    """Next fit."""
    pieces, firsts, room, number = Kept(PIECE), Kept("<i8"), 0, 0
    for some in _cut(documents, length):
        place = np.empty(some.size, np.int64)
        room = next_fit(np.ascontiguousarray(some["count"]), length, room, place)
        begins = np.flatnonzero(np.diff(place, prepend=0))
        firsts.append(begins + pieces.size)
        pieces.append(some)
        number += begins.size
    firsts.append(np.full(1, pieces.size, np.int64))
    return Table(pieces.finish(), firsts.finish())


def split(documents: Documents, shape: Split) -> Table:
    """Documents in a drawn order, one after the other, cut where a sequence is full."""
    pieces, firsts, number, count = Kept(PIECE), Kept("<i8"), 0, shape.sequences()
    firsts.append(np.zeros(1, np.int64))
    begin, size, base = np.zeros(0, np.int64), np.zeros(0, np.int64), 0  # base: ids before the first one held
    for more in _ended(documents):
        if more is not None:
            begin, size = np.concatenate([begin, more[0]]), np.concatenate([size, more[1]])
        ends = np.cumsum(size) + base
        there = int(ends[-1]) if ends.size else base
        full = max(there - shape.length + shape.step, 0) // shape.step  # all sequences that end by now
        upto = count if more is None else min(full, count)
        if upto > number:
            low = np.arange(number, upto, dtype=np.int64) * shape.step
            high = np.minimum(low + shape.length, there)
            left, right = np.searchsorted(ends, low, "right"), np.searchsorted(ends, high, "left")
            each = right - left + 1
            last = np.cumsum(each)
            document = np.arange(int(last[-1])) - np.repeat(last - each - left, each)
            start, stop = ends[document] - size[document], ends[document]
            low, high = np.maximum(np.repeat(low, each), start), np.minimum(np.repeat(high, each), stop)
            rows = np.empty(document.size, PIECE)
            rows["first"], rows["count"] = begin[document] + low - start, high - low
            firsts.append(last + pieces.size)
            pieces.append(rows)
            number = upto
        gone = int(np.searchsorted(ends, number * shape.step, "right"))  # of no later sequence
        if gone:
            base = int(ends[gone - 1])
            begin, size = begin[gone:], size[gone:]
    return Table(pieces.finish(), firsts.finish())


def _ended(documents: Documents) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]] | None]:
    yield from documents
    yield None

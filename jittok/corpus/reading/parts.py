"""What a shard is to a reader: ids that lie one after the other, and where documents begin among them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from jittok.common.locks import Lock
from jittok.corpus.formats.base import Block, Lazy
from jittok.corpus.reading import files
from jittok.corpus.reading.files import Files, Listed, Numbers, read_at
from jittok.errors import CorpusError, InWords

STRIDE = 128
"""Of so many borders one is kept in memory; the others of a row are read with it."""
AT_ONCE = 1 << 17
"""Borders that are checked at once."""


class Marks(NamedTuple):
    """A buffer of int64 and the same memory as bytes."""

    numbers: NDArray[np.int64]
    raw: memoryview


class Part(Protocol):
    """A run of documents: `tokens` ids, counted from 0."""

    tokens: int
    dtype: np.dtype[Any]
    far: bool

    def read(self, first: int, target: memoryview) -> None:
        """Fill the bytes of `target` with ids from `first` on."""

    def marks(self, low: int, high: int, marks: Marks, at: int) -> int:
        """Write the places between `low` and `high` where documents begin (and perhaps some around) to `marks` from
        `at` on; where they end. More than fit are a ValueError, with how many there are as its argument."""

    def ahead(self, first: int, count: int) -> None:
        """Have ids fetched that will be read, where they are far."""

    def offsets(self) -> NDArray[np.int64]:
        """Where documents begin, and where the last one ends; empty documents may be missing."""


class NoRoomError(ValueError):
    """So many numbers do not fit."""

    def __init__(self, needed: int) -> None:
        super().__init__(needed)
        self.needed = needed


class FilePart:
    """Ids and borders as numbers in files. A border is the start of a document (or its end, where starts are not
    written), in units of `unit`."""

    def __init__(self, opened: Files, ids: Numbers, borders: Numbers, unit: int = 1) -> None:
        self.files, self.ids, self.borders, self.unit = opened, ids, borders, unit
        self.tokens, self.dtype = ids.size, ids.dtype
        self._sample: memoryview | None = None
        self._all: NDArray[np.int64] | None = None
        self.far = ids.file.far is not None
        self._width, self._at, self._file = self.dtype.itemsize, ids.at, ids.file

    def __reduce__(self) -> tuple[Any, ...]:
        return FilePart, (self.files, self.ids, self.borders, self.unit)

    def read(self, first: int, target: memoryview) -> None:
        """Fill `target` with ids."""
        at, opened = self._at + first * self._width, self._file.opened
        if opened is None or read_at(opened.descriptor, target, at) != len(target):
            self.files.read_into(self._file, target, at)

    def marks(self, low: int, high: int, marks: Marks, at: int) -> int:
        """Borders from around `low` to around `high`, read from the file."""
        sample = self._sampled() if self._sample is None else self._sample
        if self._all is not None:  # then the sample has all of them
            first = bisect_right(sample, low)
            last = bisect_left(sample, high, first)
            end = at + last - first
            if end > marks.numbers.size:
                raise NoRoomError(end)
            marks.numbers[at:end] = self._all[first:last]
            return end
        block, numbers = bisect_right(sample, low) - 1, self.borders
        first, last = max(block, 0) * STRIDE, bisect_left(sample, high, max(block, 0)) * STRIDE
        end = at + min(last, numbers.size) - first
        if end > marks.numbers.size:
            raise NoRoomError(end)
        if end <= at:
            return at
        if numbers.dtype.itemsize == 8:
            target, place, opened = marks.raw[8 * at : 8 * end], numbers.at + 8 * first, numbers.file.opened
            if opened is None or read_at(opened.descriptor, target, place) != len(target):
                self.files.read_into(numbers.file, target, place)
            if self.unit != 1:
                marks.numbers[at:end] //= self.unit
        else:
            marks.numbers[at:end] = self.files.array(numbers, first, end - at)
        return end

    def ahead(self, first: int, count: int) -> None:
        """Have far ids fetched that will be read."""
        if self._file.far is not None:
            self._file.far.ahead(self._at + first * self._width, count * self._width)

    def offsets(self) -> NDArray[np.int64]:
        """All borders, checked."""
        found = self.files.array(self.borders).astype(np.int64)
        if self.unit != 1:
            found //= self.unit
        self._check(found, 0)
        return np.concatenate([np.zeros(1, np.int64), found, np.full(1, self.tokens, np.int64)])

    def _sampled(self) -> memoryview:
        """Every STRIDE-th border, or all while there is room, after all of them were checked: they grow from 0 to the
        number of tokens."""
        kept, before, size = [], 0, 8 * self.borders.size
        whole = self.files.kept + size <= files.KEPT_OFFSETS
        step = 1 if whole else STRIDE
        for first in range(0, self.borders.size, AT_ONCE):
            some = self.files.array(self.borders, first, min(AT_ONCE, self.borders.size - first)).astype(np.int64)
            some //= self.unit
            before = self._check(some, before)
            kept.append(some[::step].copy())
        found = np.concatenate([np.zeros(0, np.int64), *kept])
        if whole:
            self.files.kept += size
            self._all = found
        self._sample = memoryview(found)
        return self._sample

    def _check(self, some: NDArray[np.int64], before: int) -> int:
        if not some.size:
            return before
        if some[0] < before or some[-1] > self.tokens or bool((some[1:] < some[:-1]).any()):
            raise CorpusError(
                str(self.borders.file.path), InWords("places of documents that fall or lie outside"),
                f"places that grow from 0 to {self.tokens}: the file has been changed",
            )  # fmt: skip
        return int(some[-1])


class ListedPart(FilePart):
    """Ids in a file, and borders in memory."""

    def __init__(self, opened: Files, ids: Numbers, borders: NDArray[np.int64]) -> None:
        super().__init__(opened, ids, Numbers(ids.file, np.dtype("<i8"), 0, borders.size))
        self._check(borders, 0)
        self._all, self._sample = borders, borders.data

    def __reduce__(self) -> tuple[Any, ...]:
        return ListedPart, (self.files, self.ids, self._all)

    def offsets(self) -> NDArray[np.int64]:
        """All borders."""
        assert self._all is not None
        return np.concatenate([np.zeros(1, np.int64), self._all, np.full(1, self.tokens, np.int64)])


class LatePart:
    """A shard whose parts are found by reading it: one after the other, as far as they are needed.

    `make` gives its parts in order; `file` has their ids, and is fetched ahead where it is far.
    """

    def __init__(self, tokens: int, dtype: np.dtype[Any], file: Listed, make: Callable[[], Iterator[Part]]) -> None:
        self.tokens, self.dtype, self.file, self.make = tokens, dtype, file, make
        self.far = file.far is not None
        self._parts: list[Part] = []
        self._firsts = [0]
        self._left: Iterator[Part] | None = None
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return LatePart, (self.tokens, self.dtype, self.file, self.make)

    def read(self, first: int, target: memoryview) -> None:
        """Fill `target` with ids."""
        width, done, count = self.dtype.itemsize, 0, len(target) // self.dtype.itemsize
        while done < count:
            part, base = self._of(first + done)
            some = min(count - done, base + part.tokens - first - done)
            part.read(first + done - base, target[done * width : (done + some) * width])
            done += some

    def marks(self, low: int, high: int, marks: Marks, at: int) -> int:
        """Borders of all parts that these ids are of, where a part begins among them."""
        position = low
        while True:
            part, base = self._of(position)
            if base > low:
                if at == marks.numbers.size:
                    raise NoRoomError(at + 1)
                marks.numbers[at] = base
                at += 1
            end = part.marks(max(low - base, 0), min(high - base, part.tokens), marks, at)
            marks.numbers[at:end] += base
            at, position = end, base + part.tokens
            if position >= min(high, self.tokens):
                return at

    def ahead(self, first: int, count: int) -> None:
        """Have the bytes fetched that have these ids, or are about where they are: of parts that were not found yet,
        and of blocks, whose places in the file are not known here."""
        with self._lock:
            known = self._firsts[-1]
        part, base = self._of(first) if first < known else (None, 0)
        if part is not None and not isinstance(part, BlocksPart):
            part.ahead(first - base, min(count, part.tokens - first + base))
        elif self.file.far is not None:
            share = self.file.size / self.tokens
            self.file.far.ahead(int(first * share), max(int(count * share), 1))

    def offsets(self) -> NDArray[np.int64]:
        """All of them."""
        self._of(self.tokens - 1)
        found = [part.offsets() + base for part, base in zip(self._parts, self._firsts, strict=False)]
        return np.concatenate([np.zeros(1, np.int64), *found])

    def _of(self, position: int) -> tuple[Part, int]:
        """The part that has an id, and its first. CorpusError where they end before."""
        with self._lock:
            if self._left is None:
                self._left = self.make()
            while self._firsts[-1] <= position:
                part = next(self._left, None)
                if part is None or self._firsts[-1] + part.tokens > self.tokens:
                    found = InWords(f"{self._firsts[-1] + (part.tokens if part else 0)} ids")
                    raise CorpusError(str(self.file.path), found, f"{self.tokens}, as the manifest says")
                if part.tokens:
                    self._parts.append(part)
                    self._firsts.append(self._firsts[-1] + part.tokens)
            at = bisect_right(self._firsts, position) - 1
            return self._parts[at], self._firsts[at]


WIDE = np.dtype("<i4")


class MaskPart:
    """A byte for each id of a part, 1 for what is to be learned: as bytes of a file, or all of them where there is
    none. It is read where the ids of its part are."""

    dtype = np.dtype(np.uint8)

    def __init__(self, opened: Files | None, numbers: Numbers | None, tokens: int) -> None:
        self.files, self.numbers, self.tokens = opened, numbers, tokens
        self.far = numbers is not None and numbers.file.far is not None

    def __reduce__(self) -> tuple[Any, ...]:
        return MaskPart, (self.files, self.numbers, self.tokens)

    def read(self, first: int, target: memoryview) -> None:
        """Fill `target`."""
        if self.files is None or self.numbers is None:
            target[:] = b"\x01" * len(target)
        else:
            self.files.read_into(self.numbers.file, target, self.numbers.at + first)

    def ahead(self, first: int, count: int) -> None:
        """Have far bytes fetched that will be read."""
        if self.numbers is not None and self.numbers.file.far is not None:
            self.numbers.file.far.ahead(self.numbers.at + first, count)

    def marks(self, low: int, high: int, marks: Marks, at: int) -> int:  # noqa: ARG002
        """None: the part of the ids has them."""
        return at

    def offsets(self) -> NDArray[np.int64]:
        """As one document: the part of the ids has them."""
        return np.array([0, self.tokens], np.int64)


class BlocksPart:
    """Blocks that are read as a whole when they are first used, as row groups of Parquet; the last ones are kept.

    How many ids a block has is known when it was read: finding an id reads the blocks before it once.
    """

    far = False

    def __init__(
        self, blocks: Sequence[Lazy], keeper: Keeper, tokens: int | None = None, dtype: np.dtype[Any] = WIDE
    ) -> None:
        self.blocks, self.keeper, self.dtype = blocks, keeper, dtype
        self._firsts = [0]
        self.tokens = self._upto(None) if tokens is None else tokens

    def __reduce__(self) -> tuple[Any, ...]:
        return BlocksPart, (self.blocks, self.keeper, self.tokens, self.dtype)

    def read(self, first: int, target: memoryview) -> None:
        """Copy ids."""
        width = self.dtype.itemsize
        done, count = 0, len(target) // width
        while done < count:
            at = self._block_of(first + done)
            ids, offsets = self.keeper.loaded(self.blocks[at])
            base = int(offsets[0]) + first + done - self._firsts[at]
            upto = min(base + count - done, int(offsets[-1]))
            found = np.ascontiguousarray(ids[base:upto], self.dtype)
            if not found.size:
                raise CorpusError(
                    "blocks of a shard", InWords(f"their end before id {first + count}"), f"{self.tokens} ids"
                )
            target[width * done : width * (done + found.size)] = found.data.cast("B")
            done += found.size

    def marks(self, low: int, high: int, marks: Marks, at: int) -> int:
        """Copy borders."""
        for k in range(self._block_of(low), self._block_of(max(high - 1, low)) + 1):
            offsets = self.keeper.loaded(self.blocks[k]).offsets
            shift = int(offsets[0]) - self._firsts[k]
            first, last = np.searchsorted(offsets, (low + shift, high + shift))
            end = at + int(last - first)
            if end > marks.numbers.size:
                raise NoRoomError(end)
            np.subtract(offsets[first:last], shift, out=marks.numbers[at:end])
            at = end
        return at

    def ahead(self, first: int, count: int) -> None:
        """Nothing: blocks are local, or of a LatePart, which has their share of the file fetched."""

    def offsets(self) -> NDArray[np.int64]:
        """All of them."""
        parts, total = [np.zeros(1, np.int64)], 0
        for block in self.blocks:
            offsets = self.keeper.loaded(block).offsets
            parts.append(offsets[1:] - offsets[0] + total)
            total += int(offsets[-1] - offsets[0])
        return np.concatenate(parts)

    def _block_of(self, position: int) -> int:
        self._upto(position)
        return min(bisect_right(self._firsts, position), len(self.blocks)) - 1

    def _upto(self, position: int | None) -> int:
        """Find where blocks begin up to this id, or all."""
        firsts = self._firsts
        while len(firsts) <= len(self.blocks) and (position is None or firsts[-1] <= position):
            offsets = self.keeper.loaded(self.blocks[len(firsts) - 1]).offsets
            firsts.append(firsts[-1] + int(offsets[-1] - offsets[0]))
        if len(firsts) > len(self.blocks) and position is not None and firsts[-1] != self.tokens:
            raise CorpusError("blocks of a shard", InWords(f"{firsts[-1]} ids"), f"{self.tokens}, as the manifest says")
        return firsts[-1]


class Keeper:
    """Blocks that are in memory: at most `most`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._held: dict[int, tuple[Lazy, Block]] = {}
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Keeper, (self.most,)

    def loaded(self, block: Lazy) -> Block:
        """The block; it is checked where it is read."""
        with self._lock:
            held = self._held.pop(id(block), None)
            found = held[1] if held else _checked(block)
            self._held[id(block)] = block, found  # the latest last
            while len(self._held) > self.most:
                del self._held[next(iter(self._held))]
            return found


def _checked(block: Lazy) -> Block:
    found = block.load()
    offsets = found.offsets
    if offsets.size != block.documents + 1:
        raise CorpusError("a block", InWords(f"{offsets.size - 1} documents"), f"{block.documents}")
    if offsets[0] < 0 or offsets[-1] > found.ids.size or bool((offsets[1:] < offsets[:-1]).any()):
        raise CorpusError("a block", InWords("places of documents that fall or lie outside"), f"0 to {found.ids.size}")
    return found

"""The ids of several shards as one array on disk, of which rows are read."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.reading.kernels import Read, Rows, lay_out
from jittok.corpus.reading.parts import Marks, MaskPart, NoRoomError, Part
from jittok.errors import CorpusError, InWords


class Tokens:
    """Parts one after the other; all ids have one width. `learned`: a byte for each id, 1 for what is to be learned, of
    corpora that say so."""

    def __init__(
        self, name: str, parts: Sequence[Part], vocab_size: int, fingerprint: str = "", digest: str = "",
        learned: Tokens | None = None,
    ) -> None:  # fmt: skip
        self.learned = learned
        self.name, self.vocab_size, self.fingerprint, self.digest = name, vocab_size, fingerprint, digest
        self.parts = [part for part in parts if part.tokens]
        self.dtype = self.parts[0].dtype if self.parts else np.dtype("<i4")
        self.firsts = np.cumsum([0, *(part.tokens for part in self.parts)]).tolist()
        self.total = self.firsts[-1]
        self.far = any(part.far for part in self.parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokens, (self.name, self.parts, self.vocab_size, self.fingerprint, self.digest, self.learned)

    def read(self, first: int, count: int, raw: memoryview) -> None:
        """Fill `raw` with `count` ids from `first` on."""
        width, at, done = self.dtype.itemsize, bisect_right(self.firsts, first) - 1, 0
        while done < count:
            part, skip = self.parts[at], first + done - self.firsts[at]
            some = min(count - done, part.tokens - skip)
            part.read(skip, raw[done * width : (done + some) * width])
            done += some
            at += 1

    def read_marked(self, first: int, stop: int, raw: memoryview, space: Workspace, at: int) -> int:
        """Fill `raw` with ids of a run, write where documents begin in it from mark `at` on; where the marks end."""
        k = bisect_right(self.firsts, first) - 1
        base = self.firsts[k]
        if stop > self.firsts[k + 1]:
            self.read(first, stop - first, raw)
            return space.marked(self, first, stop, at)
        part = self.parts[k]
        part.read(first - base, raw)
        try:
            end = part.marks(first - base, stop - base, space.marks, at)
        except NoRoomError:
            return space.marked(self, first, stop, at)
        if base:
            space.marks.numbers[at:end] += base
        return end

    def learns_all(self) -> None:
        """Where nothing says what is to be learned, all is: beside corpora that say so."""
        if self.learned is None:
            parts = [MaskPart(None, None, part.tokens) for part in self.parts]
            self.learned = Tokens(self.name, parts, 2)

    def ahead(self, first: int, count: int) -> None:
        """Have ids fetched that will be read, where they are far."""
        if not self.far:
            return
        if self.learned is not None:
            self.learned.ahead(first, count)
        at = bisect_right(self.firsts, first) - 1
        while count > 0 and at < len(self.parts):
            some = min(count, self.firsts[at + 1] - first)
            self.parts[at].ahead(first - self.firsts[at], some)
            first, count, at = first + some, count - some, at + 1

    def marks(self, first: int, stop: int, marks: Marks, at: int) -> int:
        """Write where documents begin between `first` and `stop`; where the marks end. They never fall."""
        k = bisect_right(self.firsts, first) - 1
        while k < len(self.parts) and self.firsts[k] < stop:
            base, part = self.firsts[k], self.parts[k]
            if base > first:
                if at == marks.numbers.size:
                    raise NoRoomError(at + 1)
                marks.numbers[at] = base
                at += 1
            end = part.marks(max(first - base, 0), min(stop - base, part.tokens), marks, at)
            if base:
                marks.numbers[at:end] += base
            at = end
            k += 1
        return at

    def offsets(self) -> Iterator[NDArray[np.int64]]:
        """Of each part, where its documents begin and the last one ends, in ids of all parts."""
        for base, part in zip(self.firsts, self.parts, strict=False):
            yield part.offsets() + base

    def same_vocabulary(self, other: Tokens) -> None:
        """CorpusError unless both were made with one vocabulary."""
        if self.fingerprint != other.fingerprint:
            raise CorpusError(
                self.name,
                InWords(f"vocabulary {self.fingerprint[:12]}"),
                f"{other.fingerprint[:12]}, that of {other.name}",
            )

    def place(self, position: int) -> str:
        """Where an id is from, for messages."""
        at = bisect_right(self.firsts, position) - 1
        part = self.parts[min(at, len(self.parts) - 1)]
        file = getattr(part, "ids", None)
        return f"{file.file.path if file else self.name}, id {position - self.firsts[at]}"


class Workspace(threading.local):
    """The buffers that a thread reads with. They grow as needed."""

    def __init__(self) -> None:
        self.raw = np.zeros(0, np.uint8)
        self.rows = np.zeros(0, np.int64)
        self.report = np.zeros(3, np.int64)
        self.read: Read | None = None
        self.call: Any = None
        self._marks(1024)

    def __reduce__(self) -> tuple[Any, ...]:
        return Workspace, ()

    def _marks(self, count: int) -> None:
        numbers = np.zeros(count, np.int64)
        self.marks = Marks(numbers, numbers.data.cast("B"))
        self.read = None

    def marked(self, tokens: Tokens, first: int, stop: int, at: int) -> int:
        """Marks of a run of ids, in a larger buffer if need be."""
        try:
            return tokens.marks(first, stop, self.marks, at)
        except NoRoomError as error:
            self.held(error.needed, at)
        return self.marked(tokens, first, stop, at)

    def held(self, count: int, used: int) -> NDArray[np.int64]:
        """Room for `count` marks, of which the first `used` are kept."""
        if count > self.marks.numbers.size:
            before = self.marks.numbers
            self._marks(2 * count)
            self.marks.numbers[:used] = before[:used]
        return self.marks.numbers

    def room(self, size: int) -> memoryview:
        """So many bytes for ids."""
        if self.raw.size < size:
            self.raw = np.zeros(size + 4096 & ~4095, np.uint8)
            self.bytes = self.raw.data
            self.read = None
        return self.bytes

    def facts(self, numbers: list[int]) -> None:
        """What is known of the rows."""
        if self.rows.size < len(numbers):
            self.rows = np.zeros(2 * len(numbers), np.int64)
            self.read = None
        self.rows[: len(numbers)] = numbers

    def lay_out(self, count: int, length: int, tokens: Tokens, pad: int, across: bool, rows: Rows) -> int:
        """Run the kernel over what was read."""
        if self.read is None:
            self.read = Read(self.raw.view("<u2"), self.raw.view("<i4"), self.rows, self.marks.numbers)
        args = (self.read, count, length, tokens.vocab_size, pad, int(across), rows, self.report)
        if self.call is None:
            self.call = lay_out.call(*args)
            code = self.call()
        else:
            code = self.call.again(*args)
        self.call.release(6)
        return int(code)

    def refuse(self, tokens: Tokens, origin: int | list[tuple[int, int]]) -> None:
        """The CorpusError of an id that the kernel found; origin: where its row begins, or its pieces."""
        _, at, token = self.report.tolist()
        place = 0
        for first, count in [(origin, at + 1)] if isinstance(origin, int) else origin:
            place = first + at
            if at < count:
                break
            at -= count
        raise CorpusError(
            tokens.place(place), InWords(f"id {token & 0xFFFFFFFF}"),
            f"an id below {tokens.vocab_size}, the size of the vocabulary: the file has been changed",
        )  # fmt: skip

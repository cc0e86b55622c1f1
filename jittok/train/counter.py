"""The words of many documents with their counts, on several threads.

Each thread counts in a table of its own; at the end tables are added. Sums do not depend on who adds what first, so
neither threads nor the order of documents can change a count.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok._raw.objects import joined_texts, memory_at
from jittok.errors import EncodingFailed
from jittok.fragments import PAD
from jittok.inputs import Documents
from jittok.pretokenize.splitters.general import make_split_work
from jittok.pretokenize.splitters.gpt2 import MALFORMED
from jittok.train.cutter import Cutter, RegexCutter, special_pattern
from jittok.train.cutting import AT_BYTE, AT_TEXT, CHUNK, CHUNK_SIZE, NEED, NEED_WORK, PAUSE, CutWork, Texts
from jittok.train.pieces import PIECE, Pieces
from jittok.train.table import N_BLOB, Table, add_table, add_words, grown, make_table, table_bytes
from jittok.unicode.tables import LAST_CODE_POINT, code_points, utf8

WHOLE = 1 << 40
"""Longer than any text: the chunk of the general splitter."""
MARKS = (1 << 32) - 1
_ONE = np.ones(1, np.int64)
_NONE = np.zeros(0, np.int64)
Weights = NDArray[np.int64] | None


class Counter:
    """Counts words of any number of documents. Not for two threads at once."""

    def __init__(
        self,
        cutter: Cutter | RegexCutter,
        special: Sequence[str] = (),
        once: bool = False,
        stop: threading.Event | None = None,
    ) -> None:
        """special: texts that are no words; once: a word counts once a document; stop: when set, counting ends."""
        self.cutter, self.once, self._stop = cutter, once, stop
        self.special = special_pattern(special)
        self.table = make_table()
        self.documents = self.bytes = 0
        self.pieces = Pieces(cutter, special) if isinstance(cutter, Cutter) else None
        chunk = WHOLE if isinstance(cutter, Cutter) and cutter.whole else CHUNK
        self._work = _make_work(2 * CHUNK, chunk)
        self.grow: Callable[[Table, int, int], Table] = grown

    @property
    def table_bytes(self) -> int:
        """Bytes of the table."""
        return table_bytes(self.table)

    def clear(self) -> None:
        """Forget all words."""
        self.table = make_table()

    def add(self, docs: Documents, weights: Weights = None, continued: bool = False) -> None:
        """Count the words of documents. weights: int64[documents] what each word of one counts; continued: of the first
        one another part was counted before.

        Raises EncodingFailed for code points above U+10FFFF, as encoding does.
        """
        documents = np.arange(self.documents, self.documents + docs.starts.size) % MARKS + 1 if self.once else _NONE
        given = _ONE if weights is None else np.ascontiguousarray(weights, np.int64)
        self.documents += docs.starts.size - continued
        self.bytes += int((docs.stops - docs.starts).sum())
        if not given.all():  # words that count nothing would only take room
            rows = np.flatnonzero(np.broadcast_to(given, docs.starts.shape))
            docs = Documents(docs.data, docs.starts[rows], docs.stops[rows], docs.kept)
            given = given if given.size == 1 else given[rows]
            documents = documents[rows] if self.once else documents
        starts, stops = docs.starts, docs.stops
        if self.special is not None:
            starts, stops, rows = self._without_special(docs)
            if rows is not None:
                given = given if given.size == 1 else given[rows]
                documents = documents[rows] if self.once else documents
        if isinstance(self.cutter, RegexCutter):
            self._add_by_regex(docs, starts, stops, given, documents)
            return
        texts = Texts(docs.data, starts, stops, given, documents)
        texts = self._in_pieces(texts, docs.kept is not None)
        for part in _joined(texts) if docs.kept is not None else _readable(texts):
            self._check()
            self._add(part)

    def _check(self) -> None:
        """Stop if somebody asked for it."""
        if self._stop is not None and self._stop.is_set():
            raise CancelledError

    def _in_pieces(self, texts: Texts, in_place: bool) -> Texts:
        """The texts with long ones cut in pieces, where no word is."""
        sizes = texts.stops - texts.starts
        long = np.flatnonzero(sizes > 2 * PIECE)
        if not long.size or self.pieces is None:
            return texts
        places = []
        for k in long.tolist():
            start, size = int(texts.starts[k]), int(sizes[k])
            data = memory_at(texts.data.ctypes.data + start, size) if in_place else texts.data[start:]
            places.append(np.array(self.pieces.places(data, size), np.int64) + start)
        counts = np.ones(sizes.size, np.int64)
        counts[long] = [found.size for found in places]
        rows = np.repeat(np.arange(sizes.size), counts)
        starts = texts.starts[rows]
        first = np.cumsum(counts) - counts
        for k, found in zip(long.tolist(), places, strict=True):
            starts[first[k] : first[k] + found.size] = found
        stops = np.append(starts[1:], 0)
        stops[first + counts - 1] = texts.stops
        return Texts(texts.data, starts, stops, *_of_rows(texts, rows))

    def _add(self, texts: Texts) -> None:
        state = self._work.state
        state[:] = 0
        state[CHUNK_SIZE] = self._work.chunk
        assert isinstance(self.cutter, Cutter)
        while code := self.cutter.count(self.cutter.family, texts, self._work, self.table):
            if code == PAUSE:
                self._check()
                continue
            if code == NEED_WORK:
                need = int(state[NEED])
                self._work = _make_work(need + need // 2, self._work.chunk)._replace(state=state)
            elif code == MALFORMED:
                self._add_malformed(texts)
            else:
                self.table = self.grow(self.table, code, int(state[NEED]))

    def _add_malformed(self, texts: Texts) -> None:
        """What is left of a text that is no UTF-8, as `encode` reads it: U+FFFD for each byte that begins nothing. Or
        of one that a fast splitter leaves to the general one."""
        state = self._work.state
        k, at = int(state[AT_TEXT]), int(state[AT_BYTE])
        start = max(at, int(texts.starts[k]))
        assert isinstance(self.cutter, Cutter)
        raw = texts.data[start : texts.stops[k]].tobytes()
        if self.cutter.slow is None:
            points = code_points(raw)
            for c in points:
                if c > LAST_CODE_POINT:
                    raise EncodingFailed(k, start, f"U+{c:X}", f"no code point above U+{LAST_CODE_POINT:X}")
            raw = b"".join(map(utf8, points))
        else:
            raw = raw.decode("utf-8", "replace").encode()
        weights, documents = (
            array[k : k + 1] if array.size > 1 else array for array in (texts.weights, texts.documents)
        )
        kept = state.copy()
        part = np.frombuffer(raw + bytes(PAD), np.uint8)
        own, chunk = self.cutter, self._work.chunk
        if own.slow is not None:
            self.cutter, self._work = own.slow(), self._work._replace(chunk=WHOLE)
        self._add(Texts(part, np.zeros(1, np.int64), np.array([len(raw)]), weights, documents))
        self.cutter, self._work = own, self._work._replace(chunk=chunk)
        state[:] = kept
        state[AT_TEXT], state[AT_BYTE] = k + 1, 0

    def _without_special(
        self, docs: Documents
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None]:
        """(starts, stops, document of each) of what lies between the texts of special tokens."""
        assert self.special is not None
        raw = docs.data.data
        if self.special.search(raw) is None:
            return docs.starts, docs.stops, None
        starts: list[int] = []
        stops: list[int] = []
        rows: list[int] = []
        for row, (start, stop) in enumerate(zip(docs.starts.tolist(), docs.stops.tolist(), strict=True)):
            at = start
            for match in self.special.finditer(raw, start, stop):
                if match.start() > at:
                    starts.append(at)
                    stops.append(match.start())
                    rows.append(row)
                at = match.end()
            if at < stop:
                starts.append(at)
                stops.append(stop)
                rows.append(row)
        return np.array(starts, np.int64), np.array(stops, np.int64), np.array(rows, np.int64)

    def _add_by_regex(
        self, docs: Documents, starts: Any, stops: Any, weights: NDArray[np.int64], documents: NDArray[np.int64]
    ) -> None:
        assert isinstance(self.cutter, RegexCutter)
        sums: dict[str, int] = {}
        met: dict[str, int] = {}
        for k, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
            weight = int(weights[k if weights.size > 1 else 0])
            text = docs.data[start:stop].tobytes().decode("utf-8", "replace")
            for word, count in self.cutter.tally(text).items():
                if self.once:
                    if met.get(word) == documents[k]:
                        continue
                    met[word] = int(documents[k])
                sums[word] = sums.get(word, 0) + weight * (1 if self.once else count)
        parts = [word.encode("utf-8", "replace") for word in sums]
        self.add_words(*flat_words(parts), np.fromiter(sums.values(), np.int64, len(sums)))

    def add_words(self, words: NDArray[np.uint8], starts: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Words with counts: word k is words[starts[k]:starts[k + 1]]."""
        state, data = np.zeros(1, np.int64), np.concatenate([words, np.zeros(PAD, np.uint8)])
        while code := add_words(self.table, data, starts, counts, state):
            at = int(state[0])
            self.table = self.grow(self.table, code, int(starts[at + 1] - starts[at]))

    def add_table(self, other: Table) -> None:
        """The counts of another table."""
        state = np.zeros(2, np.int64)
        blob = other.blob
        while code := add_table(self.table, other.short, other.long, blob, state):
            self.table = self.grow(self.table, code, int(other.used[N_BLOB]))


def _make_work(longest: int, chunk: int) -> CutWork:
    """Scratch for chunks of up to `longest` bytes; pages that no text needs are never touched."""
    return CutWork(make_split_work(longest), np.empty(longest + 64, np.int32), np.zeros(5, np.int64), chunk)


def _of_rows(texts: Texts, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Weights and documents of some of the texts."""
    weights, documents = texts.weights, texts.documents
    return weights if weights.size == 1 else weights[rows], documents if documents.size == 0 else documents[rows]


def _picked(texts: Texts, rows: NDArray[np.int64]) -> Texts:
    """Some of the texts."""
    return Texts(texts.data, texts.starts[rows], texts.stops[rows], *_of_rows(texts, rows))


def _readable(texts: Texts) -> Iterator[Texts]:
    """The texts where they are; copied, where too few bytes follow them: the kernel reads PAD bytes behind each."""
    near = texts.stops + PAD > texts.data.size
    if not near.any():
        yield texts
        return
    if not near.all():
        yield _picked(texts, np.flatnonzero(~near))
    yield _padded(_picked(texts, np.flatnonzero(near)))


def _padded(texts: Texts) -> Texts:
    """The same texts, copied to where PAD bytes follow them."""
    data, starts, stops, *others = texts
    low, high = int(starts.min()), int(stops.max())
    if high - low > 2 * int((stops - starts).sum()) + PAD:  # they lie far apart
        parts = [data[i:j] for i, j in zip(starts.tolist(), stops.tolist(), strict=True)]
        ends = np.cumsum([0, *(part.size for part in parts)])
        return Texts(np.concatenate([*parts, np.zeros(PAD, np.uint8)]), ends[:-1], ends[1:], *others)
    copy = np.concatenate([data[low:high], np.zeros(PAD, np.uint8)])
    return Texts(copy, starts - low, stops - low, *others)


def _joined(texts: Texts) -> Iterator[Texts]:
    """Texts that lie where Python keeps them, copied behind each other; about PIECE bytes at a time, which stay in the
    cache until they are counted."""
    sizes = texts.stops - texts.starts
    ends = np.cumsum(sizes)
    marks = np.arange(PIECE, int(ends[-1]), PIECE) if ends.size else ends
    cuts = sorted({0, *np.searchsorted(ends, marks).tolist(), sizes.size})
    base = texts.data.ctypes.data
    for first, last in pairwise(cuts):
        part = slice(first, last)
        own = np.append(0, np.cumsum(sizes[part]))
        data = joined_texts(texts.starts[part] + base, sizes[part], PAD)
        yield Texts(data, own[:-1], own[1:], *_of_rows(texts, np.arange(first, last)))


def flat_words(parts: Iterable[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(bytes, starts: int64[n + 1]) of words behind each other."""
    parts = list(parts)
    starts = np.zeros(len(parts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=starts[1:])
    return np.frombuffer(b"".join(parts), np.uint8), starts


class Counters:
    """One Counter a thread: whoever counts takes one that nobody has, and gives it back."""

    def __init__(self, make: Callable[[], Counter]) -> None:
        self._make, self._lock = make, threading.Lock()
        self.all: list[Counter] = []
        self._free: list[Counter] = []

    def take(self) -> Counter:
        """A counter of one's own."""
        with self._lock:
            if self._free:
                return self._free.pop()
            self.all.append(self._make())
            return self.all[-1]

    def give(self, counter: Counter) -> None:
        """Give a counter back."""
        with self._lock:
            self._free.append(counter)

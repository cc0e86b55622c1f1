"""Counts the words of many documents on several threads.

Each thread counts in a table of its own; at the end the tables are added. Sums do not depend on the order of
addition, so neither threads nor the order of documents can change a count.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.tables import code_points, utf8
from jittok.kernels.fragments import PAD
from jittok.kernels.inputs import Documents
from jittok.kernels.inputs.texts import utf8_of
from jittok.kernels.jit import Call
from jittok.kernels.memory.python_objects.texts import memory_at
from jittok.kernels.pretokenize.splitters.general import make_split_work
from jittok.kernels.pretokenize.splitters.gpt2 import MALFORMED
from jittok.train.counting.kernels import AT_BYTE, AT_TEXT, CHUNK, NEED, NEED_WORK, PAUSE, CountedTexts, CutWork
from jittok.train.counting.splitters import (
    CHUNK_BYTES,
    DocumentChunks,
    RegexSplitter,
    WordSplitter,
    no_splitter,
    special_pattern,
)
from jittok.train.counting.table import WordTable, add_words, grown, make_table, table_bytes

NO_LIMIT = 1 << 40
"""Longer than any text: the chunk of the general splitter."""
ALL_MARKS = (1 << 32) - 1
LONG_TEXT, PAGE = 1 << 10, 1 << 12
"""A text of LONG bytes is read where it is, if all that kernels read after it lies in the same page."""
_ONE = np.ones(1, np.int64)
_NONE = np.zeros(0, np.int64)
Weights = NDArray[np.int64] | None


class Counter:
    """Counts words of any number of documents. Not thread-safe."""

    def __init__(
        self,
        cutter: WordSplitter | RegexSplitter | None = None,
        special: Sequence[str] = (),
        once: bool = False,
        stop: threading.Event | None = None,
    ) -> None:
        """cutter: None if words are only added; special: texts that are not words; once: count a word once a document;
        stop: when set, counting ends."""
        self.cutter, self.once, self._stop = cutter, once, stop
        self.special = special_pattern(special)
        self.table = make_table()
        self.documents = self.bytes = 0
        self.pieces = DocumentChunks(cutter, special) if isinstance(cutter, WordSplitter) else None
        chunk = NO_LIMIT if isinstance(cutter, WordSplitter) and cutter.whole else CHUNK
        self._work = _make_work(2 * CHUNK, cutter, chunk)
        self._call: Call | None = None
        self._capacity = np.empty(0, np.uint8)  # for copies of texts
        self.grow: Callable[[WordTable, int, int], WordTable] = grown

    @property
    def table_bytes(self) -> int:
        """Bytes of the table."""
        return table_bytes(self.table)

    def clear(self) -> None:
        """Forget all words."""
        self.table, self._call = make_table(), None

    def add(self, docs: Documents, weights: Weights = None, continued: bool = False) -> None:
        """Count the words of documents. weights: int64[documents] what each word of one counts; continued: of the first
        one another part was counted before.

        Raises EncodingFailed for a str with a lone surrogate, as encoding does.
        """
        documents = np.arange(self.documents, self.documents + docs.starts.size) % ALL_MARKS + 1 if self.once else _NONE
        given = _ONE if weights is None else np.ascontiguousarray(weights, np.int64)
        self.documents += docs.starts.size - continued
        if docs.kept is not None:
            self._add_kept(docs, CountedTexts(docs.data, docs.starts, docs.stops, given, documents))
            return
        self.bytes += int((docs.stops - docs.starts).sum())
        starts, stops = docs.starts, docs.stops
        if self.special is not None:
            starts, stops, rows = self._without_special(docs)
            if rows is not None:
                given = given if given.size == 1 else given[rows]
                documents = documents[rows] if self.once else documents
        if isinstance(self.cutter, RegexSplitter):
            self._add_by_regex(docs, starts, stops, given, documents)
            return
        texts = self._in_pieces(CountedTexts(docs.data, starts, stops, given, documents), in_place=False)
        for part in _readable(texts):
            self._check()
            self._add(part)

    def _add_kept(self, docs: Documents, texts: CountedTexts) -> None:
        """Texts that lie where Python keeps them. Long ones are counted there, others are copied one after the other,
        about PIECE bytes at a time, which stay in the cache until they are counted."""
        widths = docs.widths if docs.widths is not None else np.zeros(texts.starts.size, np.uint8)
        if not widths.any():  # those of other widths are no longer than LONGEST_TOGETHER
            texts = self._in_pieces(texts, in_place=True)
            widths = np.zeros(texts.starts.size, np.uint8)
        sizes, positions = texts.stops - texts.starts, texts.starts + texts.data.ctypes.data
        there = (widths == 0) & (sizes >= LONG_TEXT) & ((positions + sizes - 1) % PAGE + PAD < PAGE)
        self.bytes += int(sizes[there].sum())
        self._add(_picked(texts, np.flatnonzero(there)))
        others = np.flatnonzero(~there)
        ends = np.cumsum(sizes[others])
        total = int(ends[-1]) if ends.size else 0
        step = max(total // max(round(total / CHUNK_BYTES), 1), 1)
        cuts = np.searchsorted(ends, np.arange(step, total - step // 2, step)).tolist()
        for first, last in pairwise(sorted({0, *cuts, others.size})):
            self._check()
            rows = others[first:last]
            part = self._joined(positions[rows], sizes[rows], widths[rows], rows)
            self.bytes += int(part.stops[-1])
            weights, documents = _of_rows(texts, rows)
            self._add(part._replace(weights=weights, documents=documents))

    def _joined(
        self, positions: NDArray[np.int64], sizes: NDArray[np.int64], widths: NDArray[np.uint8], rows: NDArray[np.int64]
    ) -> CountedTexts:
        """Texts one after the other as UTF-8; EncodingFailed, which names its row, for one that has none."""
        self._capacity, ends = utf8_of(positions, sizes, widths, self._capacity, rows)
        return CountedTexts(self._capacity, ends[:-1], ends[1:], _ONE, _NONE)

    def _check(self) -> None:
        """CancelledError if counting was cancelled."""
        if self._stop is not None and self._stop.is_set():
            raise CancelledError

    def _in_pieces(self, texts: CountedTexts, in_place: bool) -> CountedTexts:
        """The texts with long ones cut in pieces, where no word is."""
        sizes = texts.stops - texts.starts
        long = np.flatnonzero(sizes > 2 * CHUNK_BYTES)
        if not long.size or self.pieces is None:
            return texts
        positions = []
        for k in long.tolist():
            start, size = int(texts.starts[k]), int(sizes[k])
            data = memory_at(texts.data.ctypes.data + start, size) if in_place else texts.data[start:]
            positions.append(np.array(self.pieces.positions(data, size), np.int64) + start)
        counts = np.ones(sizes.size, np.int64)
        counts[long] = [found.size for found in positions]
        rows = np.repeat(np.arange(sizes.size), counts)
        starts = texts.starts[rows]
        first = np.cumsum(counts) - counts
        for k, found in zip(long.tolist(), positions, strict=True):
            starts[first[k] : first[k] + found.size] = found
        stops = np.append(starts[1:], 0)
        stops[first + counts - 1] = texts.stops
        return CountedTexts(texts.data, starts, stops, *_of_rows(texts, rows))

    def _add(self, texts: CountedTexts) -> None:
        if not texts.weights.all():  # words that count nothing would only take slots
            texts = _picked(texts, np.flatnonzero(np.broadcast_to(texts.weights, texts.starts.shape)))
        state = self._work.state
        state[:] = 0
        while code := self._count(texts):
            if code == PAUSE:
                self._check()
                continue
            if code == NEED_WORK:
                need = int(state[NEED])
                self._work = _make_work(need + need // 2, self.cutter, self._work.chunk)._replace(state=state)
            elif code == MALFORMED:
                self._add_malformed(texts)
            else:
                self.table = self.grow(self.table, code, int(state[NEED]))

    def _count(self, texts: CountedTexts) -> int:
        """Run the kernel from where the state is. Only arguments that differ from the last call are laid out again."""
        assert isinstance(self.cutter, WordSplitter)
        if self._call is None:
            self._call = self.cutter.count.call(self.cutter.family, texts, self._work, self.table)
        return self._call.again(self.cutter.family, texts, self._work, self.table)  # type: ignore[no-any-return]

    def _add_malformed(self, texts: CountedTexts) -> None:
        """What is left of a text that is invalid UTF-8, as `encode` reads it: U+FFFD for each byte that begins nothing.
        Or of one that a fast splitter leaves to the general one."""
        state = self._work.state
        k, at = int(state[AT_TEXT]), int(state[AT_BYTE])
        start = max(at, int(texts.starts[k]))
        assert isinstance(self.cutter, WordSplitter)
        raw = memory_at(texts.data.ctypes.data + start, int(texts.stops[k]) - start).tobytes()  # may lie after `data`
        if self.cutter.slow is None:
            raw = b"".join(map(utf8, code_points(raw)))
        else:
            raw = raw.decode("utf-8", "replace").encode()
        weights, documents = (
            array[k : k + 1] if array.size > 1 else array for array in (texts.weights, texts.documents)
        )
        kept = state.copy()
        part = np.frombuffer(raw + bytes(PAD), np.uint8)
        own, chunk = self.cutter, self._work.chunk
        if own.slow is not None:
            self.cutter, self._work, self._call = own.slow(), self._work._replace(chunk=NO_LIMIT), None
            noted = [each.family.splitter.looks.noted for each in (own, self.cutter)]
            assert noted[1] <= noted[0], "the pattern of a family looks around, for which there is no scratch"
        self._add(CountedTexts(part, np.zeros(1, np.int64), np.array([len(raw)]), weights, documents))
        if own.slow is not None:
            self.cutter, self._work, self._call = own, self._work._replace(chunk=chunk), None
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
        assert isinstance(self.cutter, RegexSplitter)
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


def _make_work(longest: int, cutter: WordSplitter | RegexSplitter | None, chunk: int) -> CutWork:
    """Scratch buffers for chunks of up to `longest` bytes; pages that no text needs are never touched."""
    splitter = cutter.family.splitter if isinstance(cutter, WordSplitter) else no_splitter()
    return CutWork(make_split_work(longest, splitter), np.empty(longest + 64, np.int32), np.zeros(4, np.int64), chunk)


def _of_rows(texts: CountedTexts, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Weights and documents of some of the texts."""
    weights, documents = texts.weights, texts.documents
    return weights if weights.size == 1 else weights[rows], documents if documents.size == 0 else documents[rows]


def _picked(texts: CountedTexts, rows: NDArray[np.int64]) -> CountedTexts:
    """Some of the texts."""
    return CountedTexts(texts.data, texts.starts[rows], texts.stops[rows], *_of_rows(texts, rows))


def _readable(texts: CountedTexts) -> Iterator[CountedTexts]:
    """The texts in place; copied if too few bytes follow them, as the kernel reads PAD bytes after each."""
    near = texts.stops + PAD > texts.data.size
    if not near.any():
        yield texts
        return
    if not near.all():
        yield _picked(texts, np.flatnonzero(~near))
    yield _padded(_picked(texts, np.flatnonzero(near)))


def _padded(texts: CountedTexts) -> CountedTexts:
    """The same texts, copied to where PAD bytes follow them."""
    data, starts, stops, *others = texts
    low, high = int(starts.min()), int(stops.max())
    if high - low > 2 * int((stops - starts).sum()) + PAD:  # they lie far apart
        parts = [data[i:j] for i, j in zip(starts.tolist(), stops.tolist(), strict=True)]
        ends = np.cumsum([0, *(part.size for part in parts)])
        return CountedTexts(np.concatenate([*parts, np.zeros(PAD, np.uint8)]), ends[:-1], ends[1:], *others)
    copy = np.concatenate([data[low:high], np.zeros(PAD, np.uint8)])
    return CountedTexts(copy, starts - low, stops - low, *others)


def flat_words(parts: Iterable[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(bytes, starts: int64[n + 1]) of words one after the other."""
    parts = list(parts)
    starts = np.zeros(len(parts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=starts[1:])
    return np.frombuffer(b"".join(parts), np.uint8), starts


class Counters:
    """A pool of one Counter a thread: a thread takes a free one, its last one if possible, and returns it."""

    def __init__(self, make: Callable[[], Counter]) -> None:
        self._make, self._lock = make, threading.Lock()
        self.all: list[Counter] = []
        self._free: dict[int, Counter] = {}  # by the thread that had it

    def take(self) -> Counter:
        """A counter of one's own."""
        with self._lock:
            if self._free:
                own = threading.get_ident()
                return self._free.pop(own if own in self._free else next(iter(self._free)))
            self.all.append(self._make())
            return self.all[-1]

    def give(self, counter: Counter) -> None:
        """Give a counter back."""
        with self._lock:
            self._free[threading.get_ident()] = counter

"""Words of texts or files with their counts: threads, a bound of memory, and going on after a crash.

When a thread's table has grown past its share of the memory, it is written as a run (see `runs`) and emptied; at the
end runs are added slice by slice. Sums are sums, so neither memory nor threads change a count.
"""

from __future__ import annotations

import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.display.progress import EVERY, Bar, Show, count_of
from jittok.common.writers.atomic_files import naming
from jittok.encode.limits import STRETCH_BYTES
from jittok.encode.threads.stretches import stretches_of, thread_count
from jittok.errors import CorpusError, EncodingFailed
from jittok.kernels.fragments import PAD
from jittok.kernels.inputs import Documents
from jittok.kernels.jit.pool import Cancellation, Pool, stoppable_pool
from jittok.train.counting.counter import Counter, Counters
from jittok.train.counting.counts import UNIT, Counts, changed, check_number, made_counts, of_table
from jittok.train.counting.lines import IDENTITY, Lines, Tail, charsmap_of, lines_of
from jittok.train.counting.splitters import (
    DEFAULT_PRE,
    REGEX,
    RegexSplitter,
    WordSplitter,
    cutter_of,
    hf_cutter,
    named_pre,
    regex_cutter,
    runs_cutter,
    special_texts,
)
from jittok.train.counting.table import NEED_SHORT, make_table, table_bytes

if TYPE_CHECKING:
    from jittok.kernels.inputs import Texts

SHARE = 8
"""A table that has had this part of a thread's memory is written: it is twice as large by then, growing it takes as
much again, and texts are there too."""
LEAST_MEMORY, MOST_MEMORY = 1 << 20, 1 << 128
MOST_SEED = 1 << 128
EMPTY_BYTES = table_bytes(make_table())
"""Below this a table is never written: it would be as large as before."""
SAMPLED = 1 << 32
SHARED_BYTES = 1 << 20
"""About what a thread takes at once at the end, when others wait for it. Before they take more: a thread begins with
half of its share, then half of what is left."""
SAMPLED_TEXTS = 1 << 10
"""The lengths of about so many texts are read before threads begin; all texts are too far apart in memory."""


@dataclass(frozen=True)
class How:
    """What decides the counts, beside the documents; and how much memory may be taken."""

    pre: str = DEFAULT_PRE
    pre_regex: str | None = None
    runs: str | None = None  # in place of both: a pattern of the wide engine, such as `[^ ]+`
    lines: int | None = None  # documents are cut into lines, those of more bytes are left out
    normalization: str = IDENTITY  # of lines: a map of sentencepiece's
    like: str = "jittok"  # or "hf": letters and numbers are what tokenizers takes for such
    special: tuple[str, ...] = ()  # texts that are cut out of documents first
    by: str = "occurrences"  # or "documents": a word counts once in each
    sample: float = 1.0
    seed: int = 0
    threads: int | None = None
    memory: int | None = None  # bytes

    def __post_init__(self) -> None:
        if self.by not in ("occurrences", "documents"):
            raise CorpusError("--by", self.by, "occurrences or documents")
        if self.like not in ("jittok", "hf"):
            raise CorpusError("--like", self.like, "jittok or hf")
        if not isinstance(self.sample, float | int | np.floating) or not 0 < self.sample <= 1:
            raise CorpusError("--sample", self.sample, "a share above 0, at most 1")
        check_number("--seed", self.seed, MOST_SEED, -MOST_SEED)
        if self.memory is not None:
            check_number("--memory", self.memory, MOST_MEMORY, LEAST_MEMORY, f"{LEAST_MEMORY} bytes or more")
        for option, value in (("--pre", self.pre), ("--pre-regex", self.pre_regex)):
            if value is not None and not isinstance(value, str):
                raise CorpusError(option, value, "a text")
        object.__setattr__(self, "special", special_texts(self.special))

    @property
    def name(self) -> str:
        """The pre type, or the pattern."""
        if self.runs is not None:
            return f"runs:{self.runs}" + (f" {self.normalization}" if self.normalization != IDENTITY else "")
        return self.pre if self.pre_regex is None else REGEX + self.pre_regex

    @property
    def only_kernels_read(self) -> bool:
        """Whether documents may stay where Python keeps them: nothing but kernels and `pieces` reads them."""
        return self.pre_regex is None and self.lines is None and not self.special and self.sample == 1

    @property
    def in_pieces(self) -> bool:
        """Whether a document may be read and counted chunk by chunk: nothing needs all of it."""
        return self.pre_regex is None and self.by == "occurrences" and self.sample == 1

    def cutter(self) -> WordSplitter | RegexSplitter:
        """What cuts words."""
        if self.runs is not None:
            return runs_cutter(self.name, self.runs)
        if self.pre_regex is not None:
            return regex_cutter(self.pre_regex)
        return hf_cutter(self.pre) if self.like == "hf" else cutter_of(self.pre)


class CountRun:
    """Counters of all threads, and the runs they have written."""

    def __init__(self, how: How, folder: Path | None = None, unit: int = 1) -> None:
        self.how, self.unit = how, unit
        cutter, once = how.cutter(), how.by == "documents"
        self.stop = stop = Cancellation()
        self.make: Callable[[], Counter] = lambda: Counter(cutter, how.special, once, stop)
        self.counters = Counters(self.make)  # no cycle: tables go at once
        self.threads = thread_count(how.threads)
        self.budget = None if how.memory is None else how.memory // (SHARE * self.threads)
        self.runs: list[Path] = []
        self._folder, self._lock = folder, threading.Lock()
        self._own: Any = None  # a folder that is made for the first run
        self.documents = self.bytes = 0
        self.tail = Tail()

    def pool(self) -> AbstractContextManager[Pool]:
        """Threads. Any exception in the caller while they work, Ctrl-C above all, stops them where they are."""
        self._make_ready()
        return stoppable_pool(self.threads, self.stop, wait=True)

    def _make_ready(self) -> None:
        """Count a text that is forgotten: kernels are compiled here, as Ctrl-C has to wait for threads that compile."""
        text = Documents(np.frombuffer(b"a b" + bytes(PAD), np.uint8), np.zeros(1, np.int64), np.array([3]))
        if self.how.lines is not None:
            text = lines_of(text, None, self.how.lines, charsmap_of(self.how.normalization)).docs
        counter = self.make()
        counter.add(text)
        counter.grow(counter.table, NEED_SHORT, 0)

    def new_run(self) -> Path:
        """A name for one more run."""
        with self._lock:
            if self._folder is None:
                import tempfile

                self._own = tempfile.TemporaryDirectory(prefix="jittok-")
                self._folder = Path(self._own.name)
            path = self._folder / f"part-{len(self.runs):06d}.words"
            self.runs.append(path)
        return path

    def add(self, docs: Documents, weights: NDArray[np.int64] | None, continued: bool = False) -> Counter:
        """Count documents (see `Counter.add`); the counter that did it, which the caller gives back."""
        counter = self.counters.take()
        counter.add(docs, weights, continued)
        return counter

    def add_and_give_back(self, docs: Documents, weights: NDArray[np.int64] | None, continued: bool = False) -> None:
        """Count documents, and write a run where the table has grown too large."""
        counter = self.add(docs, weights, continued)
        self.write_if_full(counter)
        self.counters.give(counter)

    def write_if_full(self, counter: Counter) -> None:
        """Write a run where the table has grown too large."""
        if self.is_full(counter):
            self._write(counter)

    def cut(self, docs: Documents, weights: NDArray[np.int64] | None) -> tuple[Documents, Any, Lines | None]:
        """What is counted of documents: themselves or their lines, which the caller adds to `tail` in their order."""
        docs, weights = self._sampled(docs, weights)
        if self.how.lines is None:
            return docs, weights, None
        found = lines_of(docs, weights, self.how.lines, charsmap_of(self.how.normalization))
        return found.docs, found.weights, found

    def is_full(self, counter: Counter) -> bool:
        """Whether a counter's table has had its share of the memory."""
        return self.budget is not None and counter.table_bytes > max(self.budget, EMPTY_BYTES)

    def _sampled(self, docs: Documents, weights: Any) -> tuple[Documents, Any]:
        """The documents of the sample: those whose CRC, begun with the seed, is low enough."""
        if self.how.sample == 1:
            return docs, weights
        positions = zip(docs.starts.tolist(), docs.stops.tolist(), strict=True)
        limit = int(self.how.sample * SAMPLED)
        kept = np.array([zlib.crc32(docs.data[i:j], self.how.seed) < limit for i, j in positions], np.bool_)
        if weights is not None and weights.size > 1:
            weights = weights[kept]
        return Documents(docs.data, docs.starts[kept], docs.stops[kept]), weights

    def finish(self) -> Counts:
        """The counts of everything."""
        counters = self.counters.all or [self.counters.take()]
        for counter in counters:
            self.documents += counter.documents
            self.bytes += counter.bytes
        if self.runs:
            for counter in counters:
                if counter.table.used.any():
                    self._write(counter)
            found = self._from_runs()
        else:
            found = of_table(*(counter.table for counter in counters), threads=self.threads)
        how = self.how
        return changed(
            found, pre=how.name, unit=self.unit, documents=self.documents, text_bytes=self.bytes, special=how.special,
            once=how.by == "documents", last=self.tail.last_run(), like=how.like, left_out=self.tail.long,
        )  # fmt: skip

    def _write(self, counter: Counter) -> None:
        """What a counter holds becomes a run."""
        from jittok.train.counting.runs import write_run

        path = self.new_run()
        with naming(path):
            write_run(path, counter.table)
        counter.clear()

    def _from_runs(self) -> Counts:
        from jittok.train.counting.runs import slices_of

        parts = []
        for listed in slices_of(self.runs):
            counter = Counter()
            for words in listed:
                counter.add_words(*words)
            parts.append(of_table(counter.table))
        lengths = np.concatenate([part.lengths for part in parts])
        starts = np.zeros(lengths.size + 1, np.int64)
        np.cumsum(lengths, out=starts[1:])
        words = np.concatenate([part.words for part in parts])
        return made_counts(words, starts, np.concatenate([part.counts for part in parts]))

    def close(self) -> None:
        """Remove runs, unless their folder was given."""
        if self._own is not None:
            self._own.cleanup()


def scaled(weights: Any) -> NDArray[np.int64]:
    """Weights of documents in units of 1 / UNIT. CorpusError for anything else."""
    try:
        found = np.asarray(weights, np.float64).reshape(-1)
    except (TypeError, ValueError, OverflowError):
        raise CorpusError("weights", weights, "numbers from 0 to 2^20") from None
    right = np.isfinite(found) & (found >= 0) & (found <= 1 << 20) & ~np.any(getattr(weights, "mask", False))
    if not right.all():
        raise CorpusError("weights", weights, "numbers from 0 to 2^20")
    return np.round(found * UNIT).astype(np.int64)


def in_turn(pool: Pool, threads: int, jobs: Iterator[Callable[[], Any]]) -> Iterator[Any]:
    """Results of jobs in their order, a few jobs ahead."""
    pending: deque[Future[Any]] = deque()
    try:
        for job in jobs:
            pending.append(pool.submit(job))
            while len(pending) > 2 * threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()


def count(
    texts: Texts, weights: Sequence[float] | None = None, how: How | None = None, progress: Show = False, **options: Any
) -> Counts:
    """Words of texts (any that `encode_batch` takes; each is a document) with their counts.

    weights: a number a document. progress: True, "auto" or a function shows how far it is. options: fields of `How`.
    """
    if "pre" in options:
        options["pre"] = named_pre(options["pre"])
    if isinstance(texts, list):  # which another thread may change
        texts = tuple(texts)
    how = replace(how or How(), **options)
    given = None if weights is None else scaled(weights)
    tally = CountRun(how, unit=1 if given is None else UNIT)
    shares = (
        shares_of(texts, tally.threads) if how.lines is None else []
    )  # their order decides which line is the last one
    if shares and given is not None and given.size != len(texts):
        shares = []  # fails there
    bar = Bar("count", count_of(texts), "documents", progress)
    try:
        if not shares:
            _count_in_order(tally, texts, given, bar)
        else:
            try:
                _count_shares(tally, shares, given, bar)
            except (EncodingFailed, TypeError):
                with closing(CountRun(replace(how, threads=1))) as again:
                    _count_in_order(again, texts, given, bar)  # fails at the first document that is bad
                raise
        return tally.finish()
    finally:
        tally.close()
        bar.close()


def _stretches(
    tally: CountRun, texts: Texts, given: NDArray[np.int64] | None, first_text: int = 0, threads: int = 1
) -> Iterator[tuple[int, Documents, Any]]:
    """(number of the first, documents, their weights) in order, for so many threads."""
    kept = tally.how.only_kernels_read
    whole = threads == 1 and tally.how.lines is None  # lines take several times the memory of their text
    for docs, base, first, last, _ in stretches_of(texts, False, threads, whole, kept, STRETCH_BYTES, kept):
        if isinstance(docs, BaseException):
            raise docs
        number = first_text + base
        its = None if given is None else given[number + first : number + last]
        if its is not None and its.size != last - first:
            raise CorpusError("weights", given.size, "one a document")  # type: ignore[union-attr]
        if docs.theirs:  # kernels read a text several times
            yield from _copies(docs, first, last, number, its)
            continue
        widths = None if docs.widths is None else docs.widths[first:last]
        yield (
            number + first,
            Documents(docs.data, docs.starts[first:last], docs.stops[first:last], docs.kept, widths=widths),
            its,
        )


def _copies(
    docs: Documents, first: int, last: int, number: int, given: NDArray[np.int64] | None
) -> Iterator[tuple[int, Documents, Any]]:
    """The same of documents first .. last - 1, which somebody else may write to: a few are copied at a time."""
    ends = np.cumsum(docs.sizes(first, last))
    marks = np.arange(STRETCH_BYTES, int(ends[-1]), STRETCH_BYTES)
    cuts = sorted({0, *np.searchsorted(ends, marks, "right").tolist(), last - first})
    for a, b in pairwise(cuts):
        yield number + first + a, docs.own(first + a, first + b), None if given is None else given[a:b]


def _count_in_order(tally: CountRun, texts: Texts, given: NDArray[np.int64] | None, bar: Bar) -> None:
    """Count texts of any kind. The caller's thread reads them."""

    def add(number: int, docs: Documents, its: Any) -> Lines | None:
        docs, its, lines = tally.cut(docs, its)
        try:
            tally.add_and_give_back(docs, its)
        except EncodingFailed as error:
            document = number + error.document
            raise EncodingFailed(document, error.offset, error.found, error.expected) from None
        return lines

    def each() -> Iterator[Callable[[], Lines | None]]:
        end = 0
        for number, docs, its in _stretches(tally, texts, given, threads=tally.threads):
            bar.reach(end)
            end = number + docs.starts.size
            yield partial(add, number, docs, its)
        if given is not None and given.size != end:
            raise CorpusError("weights", given.size, f"{end}, one a document")

    jobs = each()
    if tally.threads == 1:
        for job in jobs:
            tally.tail.add(job())
    else:
        with tally.pool() as pool:
            for lines in in_turn(pool, tally.threads, jobs):
                tally.tail.add(lines)


def _count_shares(
    tally: CountRun, shares: list[list[tuple[int, Any]]], given: NDArray[np.int64] | None, bar: Bar
) -> None:
    """Count shares of texts, each by a thread of its own; one that is done helps another."""
    sources = [
        chain.from_iterable(_stretches(tally, texts, given, first) for first, texts in share) for share in shares
    ]
    locks, done = [threading.Lock() for _ in sources], [0] * len(sources)

    def work(own: int) -> None:
        counter = tally.counters.take()
        for k in (*range(own, len(sources)), *range(own)):
            while True:
                with locks[k]:
                    found = next(sources[k], None)
                if found is None:
                    break
                docs, its, _ = tally.cut(*found[1:])
                counter.add(docs, its)
                tally.write_if_full(counter)
                done[own] += docs.starts.size
        tally.counters.give(counter)

    with tally.pool() as pool:
        for future in [pool.submit(work, k) for k in range(len(sources))]:
            while not wait([future], EVERY).done:  # only the caller's thread shows how far it is
                bar.reach(sum(done))
            future.result()
    bar.reach(sum(done))


def shares_of(texts: Any, threads: int) -> list[list[tuple[int, Any]]]:
    """For each thread, (number of its first text, texts) of what it takes one after the other: neighbors, which have
    more words in common than others. None where there is one thread, or texts that come one by one."""
    if threads == 1 or not isinstance(texts, list | tuple) or len(texts) < threads:
        return []
    step = -(-len(texts) // SAMPLED_TEXTS)
    try:
        ends = step * np.cumsum(np.fromiter(map(len, texts[::step]), np.int64))
    except TypeError:
        return []
    share = int(ends[-1]) // threads
    cuts = step * np.searchsorted(ends, np.arange(1, threads) * share, "right")
    halvings = (share // SHARED_BYTES).bit_length()
    return [_halves(texts, first, last, halvings) for first, last in pairwise(sorted({0, *cuts.tolist(), len(texts)}))]


def _halves(texts: Any, first: int, last: int, times: int) -> list[tuple[int, Any]]:
    """(number of the first, texts) of the first half, the next quarter and so on."""
    cuts = {first, *(last - (last - first >> k) for k in range(1, times + 1)), last}
    return [(a, texts[a:b]) for a, b in pairwise(sorted(cuts))]

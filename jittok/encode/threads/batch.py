"""Many texts to ids, on several threads.

For each stretch of documents a thread acquires a `Workspace`: arrays that are kept between calls. Fragments do not
influence each other, so neither the stretches nor the number of threads can change an id.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.rows.token_array import TokenArray, joined
from jittok.encode import limits
from jittok.encode.buffers import BufferPool, Workspace
from jittok.encode.cutters import EncodeOptions
from jittok.encode.encoder import SPARE_IDS, Encoder, failure_of
from jittok.encode.threads.long_document import InOrder, align_in_chunks, part_fragments
from jittok.encode.threads.stretches import (
    DOCUMENT_WEIGHT,
    Stretch,
    finished,
    progress_bar,
    stretches_of,
    thread_count,
)
from jittok.errors import EncodingFailed, JittokError
from jittok.kernels.inputs import Documents, reads_wide
from jittok.kernels.jit import interruptible_if_long

if TYPE_CHECKING:
    from concurrent.futures import Future

    from jittok.common.display.progress import Show
    from jittok.kernels.jit.pool import Pool

UNKNOWN_TIMES = 4
"""The guess of an iterator's size, as a multiple of its first block. Capacity that is not used costs nothing."""
LEAST_DETACHED_IDS = 1 << 15
"""From this many ids on the array is given to the caller; fewer are copied, and the workspace keeps its array."""
CAPACITY_MARGIN = 1.2
"""Capacity for ids, as a multiple of the estimate by the first texts. The rest is returned to the system."""


def encode_batch(encoder: Encoder, texts: Any, rule: EncodeOptions, threads: int | None, progress: Show) -> TokenArray:
    """One row per text, with the ids of `Encoder.one`. Raises EncodingFailed for the first text that has no ids."""
    parts: list[NDArray[np.int32]] = []
    ends: list[NDArray[np.int64]] = []
    for ids, row_ends in stretches(encoder, texts, rule, threads, progress, together=True):
        parts.append(ids)
        ends.append(row_ends)
    return TokenArray(*joined(parts, ends))


def encode_one(encoder: Encoder, text: bytes, rule: EncodeOptions, threads: int | None) -> NDArray[np.int32]:
    """`Encoder.one`, on several threads if the text is long and the model has safe cuts. Raises EncodingFailed."""
    if thread_count(threads) == 1 or len(text) < limits.LEAST_BYTES or not encoder.can_split_at_spaces(len(text)):
        return encoder.one(text, rule)
    ((ids, _),) = stretches(encoder, [text], rule, threads, together=True)
    return ids  # type: ignore[no-any-return]


def count_one(encoder: Encoder, text: bytes, rule: EncodeOptions, threads: int | None = None) -> int:
    """The number of ids of a text, which are not kept. Raises EncodingFailed."""
    return sum(int(ends[-1]) for _, ends in stretches(encoder, [text], rule, threads, keep_ids=False))


def stretches(
    encoder: Encoder, texts: Any, rule: EncodeOptions, threads: int | None, progress: Show = False,
    keep_ids: bool = True, extra_results: Callable[..., Any] | None = None, together: bool = False,
    chunked: bool = False,
) -> Iterator[tuple[Any, ...]]:  # fmt: skip
    """Yields ids (int32) and ends of rows (int64) of one stretch of documents after another, in order.

    Without `keep_ids` there are only ends. The next texts are read while threads work. Errors are raised in the order
    of the documents, for any number of threads.

    extra_results(documents, first, last, document_ends, starts, stops, tokens, ends, ids): called for each stretch, in
    its thread, with its fragments (see `partition.cut_documents`) and their ids. Its result is the third item.
    together: the work of several threads may be yielded as one stretch.
    chunked: `extra_results` may be called with a part of a document's fragments.
    """
    threads = 1 if _in_python(encoder, extra_results) else thread_count(threads)
    bar = progress_bar("encode", texts, progress) if progress else None
    pending: deque[Future[Any]] = deque()
    pool: Pool | None = None
    wait = True
    try:
        whole = threads == 1 and keep_ids
        most = limits.PART_BYTES if together else limits.STRETCH_BYTES
        most = most if extra_results is None else limits.EXTRA_STRETCH_BYTES
        wide = limits.LEAST_WIDE_BYTES if extra_results is None and not rule.replace and reads_wide() else 0
        source = stretches_of(texts, rule.replace, threads, whole, extra_results is None, most, wide)
        for stretch in source:
            if isinstance(stretch.docs, BaseException):  # documents before it may have failed earlier
                yield from finished(pending, 0, bar)
                raise stretch.docs
            first = stretch.alone and not pending
            if first and threads > 1 and extra_results is None and _is_long(encoder, stretch):
                pool = pool or _threads(threads)
                yield _in_parts(encoder, stretch, rule, threads, pool, keep_ids)
                _advance(bar, 1)
            elif threads == 1 and keep_ids and together:
                yield _one_by_one(encoder, chain([stretch], source), _times(texts, stretch.docs), rule, bar)
            elif threads == 1 or first:
                yield _stretch(encoder, stretch, rule, keep_ids, extra_results, chunked)
                _advance(bar, stretch.number)
            elif together:
                pool = pool or _threads(threads)
                expected = stretch.docs.size(0, stretch.docs.starts.size) * _times(texts, stretch.docs)
                yield _in_order(encoder, chain([stretch], source), expected, rule, threads, pool, bar)
            else:
                pool = pool or _threads(threads)
                pending.append(pool.submit(_stretch, encoder, stretch, rule, keep_ids, extra_results, chunked))
                yield from finished(pending, (2 if extra_results else 4) * threads, bar)
        yield from finished(pending, 0, bar)
    except (JittokError, GeneratorExit):
        raise
    except BaseException:  # most likely an interrupt: threads finish their stretch, and no one waits for them
        wait = False
        raise
    finally:
        if pool is not None:
            pool.shutdown(wait, cancel_futures=True)
        if bar is not None:
            bar.close()


def _in_python(encoder: Encoder, extra_results: Callable[..., Any] | None) -> bool:
    """Whether the work is plain Python. Then several threads are no faster than one, and it is done in the caller's,
    which Ctrl-C interrupts at once. Any other thread would finish its documents, and the process would wait for it."""
    return encoder.in_python or bool(getattr(getattr(extra_results, "__self__", None), "in_python", False))


def _is_long(encoder: Encoder, stretch: Stretch) -> bool:
    """Whether this is one document that several threads encode faster than one."""
    size = stretch.size
    return stretch.number == 1 and size >= limits.LEAST_BYTES and encoder.can_split_at_spaces(size)


def _advance(bar: Any, documents: int) -> None:
    if bar is not None:
        bar.update(documents)


Result = tuple[NDArray[np.int32], NDArray[np.int64]]
"""Ids, and the ends of the rows in them."""


def _in_parts(
    encoder: Encoder, stretch: Stretch, rule: EncodeOptions, threads: int, pool: Pool, keep: bool
) -> Result:  # fmt: skip
    """The ids of one document (none without `keep`) and their number, by several threads."""
    docs, base, document, last, _ = own(stretch) if stretch.docs.to_copy else stretch
    size = docs.size(document, last)
    with encoder.workspace() as workspace:
        workspace.expect(docs, size)
        count = encoder.cut(workspace, docs, document, last, rule)
        fragments = workspace.detach_fragments(count)
    cut, first = part_fragments(docs, fragments, max(size // limits.PART_BYTES, 4 * threads))

    def encode(workspace: Workspace, part: int, at: int) -> int:
        its = slice(first[part], first[part + 1])
        starts, stops, tokens = cut[0][its], cut[1][its], cut[2][its]
        if workspace.ends.size < starts.size:
            workspace.grow_fragments(starts.size)
        part_size = int((stops - starts).sum())
        done = encoder.encode_fragments(workspace, docs, starts, stops, tokens, starts.size, part_size, rule, at)
        if not isinstance(done, int):
            raise failure_of(docs, base, document, done)
        return done

    if len(first) == 2:  # nowhere to cut: these are the ids, and nothing is copied
        with encoder.workspace() as workspace:
            workspace.expect(docs, size)
            workspace.counting = not keep
            count = encode(workspace, 0, 0)
            return _taken(workspace, count) if keep else np.empty(0, np.int32), np.array([count])
    capacity = (lambda: int(1.1 * encoder.ids_per_byte * size) + count + SPARE_IDS) if keep else None
    line = InOrder(capacity, BufferPool(encoder.kept))
    ids = line.run(pool, threads, range(len(first) - 1), encode, encoder.acquire, encoder.release)
    return ids, np.array([line.count])


def parts_of_one(encoder: Encoder, text: bytes, rule: EncodeOptions) -> Iterator[NDArray[np.int32]]:
    """Yields the ids of one text in parts, encoded one at a time; in a single part if the model has no safe cuts.

    Raises EncodingFailed at the part that fails; the ids of the parts before it have been yielded by then.
    """
    if len(text) < limits.PART_BYTES or not encoder.can_split_at_spaces(len(text)):
        yield encoder.one(text, rule)
        return
    start, stop = (np.array([position]) for position in (0, len(text)))
    for position in (start, stop):
        position.flags.writeable = False
    docs = Documents(np.frombuffer(text, np.uint8), start, stop)
    workspace = encoder.acquire()
    try:
        count = encoder.cut(workspace, docs, 0, 1, rule)
        fragments = workspace.detach_fragments(count)
    finally:
        encoder.release(workspace)
    (starts, stops, tokens), first = part_fragments(docs, fragments, -(-len(text) // limits.PART_BYTES))
    for i, j in pairwise(first):
        workspace = encoder.acquire()  # not held while the caller has the ids
        try:
            if workspace.ends.size < j - i:
                workspace.grow_fragments(j - i)
            some = slice(i, j)
            size = int((stops[some] - starts[some]).sum())
            done = encoder.encode_fragments(workspace, docs, starts[some], stops[some], tokens[some], j - i, size, rule)
            if not isinstance(done, int):
                raise failure_of(docs, 0, 0, done)
            ids = workspace.ids[:done].copy()
        finally:
            encoder.release(workspace)
        yield ids


def _in_order(
    encoder: Encoder, source: Iterable[Stretch], expected: float, rule: EncodeOptions, threads: int, pool: Pool,
    bar: Any,
) -> Result:  # fmt: skip
    """The ids of many stretches, by several threads, and the ends of their rows. expected: a guess of all bytes."""
    rows: list[NDArray[np.int64]] = []
    sizes: list[int] = []

    def jobs() -> Iterator[tuple[Stretch, int]]:
        for stretch in source:
            stretch.checked()
            rows.append(np.zeros(0, np.int64))
            sizes.append(0)
            yield stretch, len(rows) - 1
            _advance(bar, sum(row.size for row in rows) - (0 if bar is None else bar.n))

    def encode(workspace: Workspace, job: tuple[Stretch, int], at: int) -> int:
        stretch, number = job
        done = _run(encoder, workspace, copied(encoder, workspace, stretch, rule), rule, at)
        rows[number], sizes[number] = _row_ends(workspace, stretch.number, at), done - at
        return done

    line = InOrder(lambda: int(1.25 * encoder.ids_per_byte * expected) + SPARE_IDS, BufferPool(encoder.kept))
    ids = line.run(pool, threads, jobs(), encode, encoder.acquire, encoder.release)
    _advance(bar, sum(row.size for row in rows) - (0 if bar is None else bar.n))
    ends = np.concatenate(rows)
    ends += np.repeat(np.cumsum([0, *sizes[:-1]]), [row.size for row in rows])
    return ids, ends


def _one_by_one(
    encoder: Encoder, source: Iterable[Stretch], times: float, rule: EncodeOptions, bar: Any
) -> Result:  # fmt: skip
    """The ids of many stretches in one array, and the ends of their rows. times: a guess of all bytes, as a multiple of
    those of the first stretch."""
    count, rows = 0, list[NDArray[np.int64]]()
    with encoder.workspace() as workspace:
        for stretch in source:
            docs, _, first, last, _ = stretch.checked()
            size, number = docs.size(first, last), last - first
            capacity = int(CAPACITY_MARGIN * encoder.ids_per_byte * size * times) + SPARE_IDS
            if not rows and times > 1 and workspace.ids.size < capacity:
                workspace.grow_ids(capacity, 0)
            workspace.expect(docs, size + DOCUMENT_WEIGHT * number)
            count, row_ends = _encoded(encoder, workspace, stretch, rule, count)
            rows.append(row_ends)
            if bar is not None:
                bar.update(number)
        return _taken(workspace, count), rows[0] if len(rows) == 1 else np.concatenate(rows)


def _taken(workspace: Workspace, count: int) -> NDArray[np.int32]:
    """The workspace's first `count` ids: a copy if they are few, else its array itself."""
    if count < LEAST_DETACHED_IDS:
        return workspace.ids[:count].copy()
    return workspace.detach_ids(count)


def _stretch(
    encoder: Encoder, stretch: Stretch, rule: EncodeOptions, keep_ids: bool,
    extra_results: Callable[..., Any] | None, chunked: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """The ids of a stretch, the ends of its rows, and the result of `extra_results`."""
    if stretch.docs.to_copy and extra_results is not None:
        stretch = own(stretch)
    with encoder.workspace() as workspace:
        workspace.expect(stretch.docs, stretch.weight)
        workspace.counting = not keep_ids
        if extra_results is None:
            count, row_ends = _encoded(encoder, workspace, stretch, rule, 0)
            return _taken(workspace, count) if keep_ids else np.empty(0, np.int32), row_ends
        docs, base, first, last, _ = stretch
        fragments = encoder.cut(workspace, docs, first, last, rule)
        if chunked and stretch.number == 1 and fragments > limits.LEAST_FRAGMENTS:
            call = partial(interruptible_if_long(stretch.weight), extra_results)
            count, spans = align_in_chunks(encoder, workspace, docs, base, first, fragments, rule, call)
            return _taken(workspace, count), np.array([count]), spans
        count = encoder.encode(workspace, docs, first, last, fragments, rule, base)
        row_ends = _row_ends(workspace, stretch.number)
        fragments = int(workspace.document_ends[stretch.number - 1])
        encoder.tidy(workspace, limits.LEAST_BYTES)
        ends = workspace.document_ends[: stretch.number]
        cut = (array[:fragments] for array in (workspace.starts, workspace.stops, workspace.tokens, workspace.ends))
        run = interruptible_if_long(0 if _in_python(encoder, extra_results) else stretch.weight)
        extra = run(extra_results, docs, first, last, ends, *cut, workspace.ids[:count])
        return _taken(workspace, count) if keep_ids else np.empty(0, np.int32), row_ends, extra


def _run(encoder: Encoder, workspace: Workspace, stretch: Stretch, rule: EncodeOptions, at: int) -> int:
    """Write the ids of a stretch after the workspace's first `at`. Returns the number of its ids now."""
    docs, base, first, last, _ = stretch
    fragments = encoder.cut(workspace, docs, first, last, rule)
    return encoder.encode(workspace, docs, first, last, fragments, rule, base, at)


def _encoded(
    encoder: Encoder, workspace: Workspace, stretch: Stretch, rule: EncodeOptions, at: int
) -> tuple[int, NDArray[np.int64]]:  # fmt: skip
    """The same; returns the ends of the rows in the ids, too. Documents in memory that others may write to are copied
    first, a few at a time."""
    if not stretch.docs.to_copy:
        count = _run(encoder, workspace, stretch, rule, at)
        return count, _row_ends(workspace, stretch.number, at) + at
    ends = np.cumsum(stretch.docs.sizes(stretch.first, stretch.last))
    marks = np.arange(limits.BYTES_PER_COPY, int(ends[-1]), limits.BYTES_PER_COPY)
    cuts = sorted({0, *np.searchsorted(ends, marks, "right").tolist(), stretch.number})
    capacity = at + int(encoder.ids_per_byte * int(ends[-1])) + stretch.number + 2 * SPARE_IDS
    if len(cuts) > 2 and workspace.ids.size < capacity:
        workspace.grow_ids(capacity + at, at)
    count, rows = at, []
    for start, stop in pairwise(cuts):
        part = stretch._replace(first=stretch.first + start, last=stretch.first + stop)
        done = _run(encoder, workspace, copied(encoder, workspace, part, rule), rule, count)
        rows.append(_row_ends(workspace, part.number, count) + count)
        count = done
    return count, np.concatenate(rows)


def _row_ends(workspace: Workspace, documents: int, at: int = 0) -> NDArray[np.int64]:
    """The offsets where the ids of the workspace's documents end, relative to `at`, where the first document begins."""
    ends = workspace.document_ends[:documents]
    row_ends = workspace.ends[ends - 1] - at
    row_ends[ends == 0] = 0
    return row_ends


def _times(texts: Any, docs: Documents) -> float:
    """All text as a multiple of this part, which is not empty; a guess where `texts` has no length."""
    if isinstance(texts, list | tuple):
        with contextlib.suppress(TypeError):  # not a text: an error that is raised when its turn comes
            here = sum(map(len, texts[: docs.starts.size]))
            return sum(map(len, texts)) / here if here else 1
    return max(1, len(texts) / docs.starts.size) if hasattr(texts, "__len__") else UNKNOWN_TIMES


def _threads(count: int) -> Pool:
    from jittok.kernels.jit.pool import Pool

    return Pool(count)


# ---- documents in memory that others may write to, or `str` with lone surrogates: kernels read copies


def own(stretch: Stretch) -> Stretch:
    """The stretch in memory of its own."""
    try:
        return stretch.replaced(stretch.docs.own(stretch.first, stretch.last), stretch.first, stretch.last)
    except EncodingFailed as error:
        raise _numbered(error, stretch.base) from None


def copied(encoder: Encoder, workspace: Workspace, stretch: Stretch, rule: EncodeOptions) -> Stretch:
    """The stretch where kernels can read it: if it has to be copied, in the workspace's memory, until the next copy. If
    several documents cannot be encoded, the error names the first."""
    docs, base, first, last, _ = stretch
    if not docs.to_copy:
        return stretch
    try:
        return stretch.replaced(workspace.copy(docs, first, last), first, last)
    except EncodingFailed as error:
        bad = error
    if bad.document > first:
        before = stretch.replaced(workspace.copy(docs, first, bad.document), first, bad.document)
        _run(encoder, workspace, before, rule, 0)
    raise _numbered(bad, base)


def _numbered(error: EncodingFailed, base: int) -> EncodingFailed:
    return EncodingFailed(base + error.document, error.offset, error.found, error.expected)

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
from jittok.encode import chunked_alignment as few
from jittok.encode.buffer_pool import BufferPool
from jittok.encode.copies import copied, own
from jittok.encode.encoder import SPARE_IDS, Encoder
from jittok.encode.failures import failure_of
from jittok.encode.long_document import LEAST_BYTES, PART_BYTES, InOrder, part_fragments
from jittok.encode.options import EncodeOptions
from jittok.encode.stretches import DOCUMENT_WEIGHT, STRETCH_BYTES, finished, progress_bar, stretches_of, thread_count
from jittok.encode.workspace import BYTES_PER_COPY, Workspace
from jittok.errors import JittokError
from jittok.kernels.inputs import Documents, reads_wide
from jittok.kernels.jit import interruptible_if_long

if TYPE_CHECKING:
    from concurrent.futures import Future

    from jittok.kernels.jit.pool import Pool

UNKNOWN_TIMES = 4
"""The guess of an iterator's size, as a multiple of its first block. Capacity that is not used costs nothing."""
LEAST_DETACHED_IDS = 1 << 15
"""From this many ids on the array is given to the caller; fewer are copied, and the workspace keeps its array."""
EXTRA_STRETCH_BYTES = 1 << 18
"""Bytes of a stretch with extra results, which take much more memory than its ids."""
LEAST_WIDE_BYTES = 1 << 17
"""Bytes of `str` that are not ASCII, which kernels read faster than `str.encode` does, with all that is around them."""
CAPACITY_MARGIN = 1.2
"""Capacity for ids, as a multiple of the estimate by the first texts. The rest is returned to the system."""


def encode_batch(encoder: Encoder, texts: Any, rule: EncodeOptions, threads: int | None, progress: bool) -> TokenArray:
    """One row per text, with the ids of `Encoder.one`. Raises EncodingFailed for the first text that has no ids."""
    parts: list[NDArray[np.int32]] = []
    ends: list[NDArray[np.int64]] = []
    for ids, row_ends in stretches(encoder, texts, rule, threads, progress, together=True):
        parts.append(ids)
        ends.append(row_ends)
    return TokenArray(*joined(parts, ends))


def encode_one(encoder: Encoder, text: bytes, rule: EncodeOptions, threads: int | None) -> NDArray[np.int32]:
    """`Encoder.one`, on several threads if the text is long and the model has safe cuts. Raises EncodingFailed."""
    if thread_count(threads) == 1 or len(text) < LEAST_BYTES or not encoder.can_split_at_spaces(len(text)):
        return encoder.one(text, rule)
    ((ids, _),) = stretches(encoder, [text], rule, threads, together=True)
    return ids  # type: ignore[no-any-return]


def count_one(encoder: Encoder, text: bytes, rule: EncodeOptions, threads: int | None = None) -> int:
    """The number of ids of a text, which are not kept. Raises EncodingFailed."""
    return sum(int(ends[-1]) for _, ends in stretches(encoder, [text], rule, threads, keep_ids=False))


def stretches(
    encoder: Encoder,
    texts: Any,
    rule: EncodeOptions,
    threads: int | None,
    progress: bool = False,
    keep_ids: bool = True,
    extra_results: Callable[..., Any] | None = None,
    together: bool = False,
    chunked: bool = False,
) -> Iterator[tuple[Any, ...]]:
    """Yields ids (int32) and ends of rows (int64) of one stretch of documents after another, in order.

    Without `keep_ids` there are only ends. The next texts are read while threads work. Errors are raised in the order
    of the documents, for any number of threads.

    extra_results(documents, first, last, document_ends, starts, stops, tokens, ends, ids): called for each stretch, in
    its thread, with its fragments (see `partition.cut_documents`) and their ids. Its result is the third item.
    together: the work of several threads may be yielded as one stretch.
    chunked: `extra_results` may be called with a part of a document's fragments.
    """
    threads = 1 if _in_python(encoder, extra_results) else thread_count(threads)
    bar = progress_bar(texts) if progress else None
    pending: deque[Future[Any]] = deque()
    pool: Pool | None = None
    wait = True
    try:
        whole = threads == 1 and keep_ids
        most = EXTRA_STRETCH_BYTES if extra_results is not None else PART_BYTES if together else STRETCH_BYTES
        wide = LEAST_WIDE_BYTES if extra_results is None and not rule.replace and reads_wide() else 0
        source = stretches_of(texts, rule.replace, threads, whole, extra_results is None, most, wide)
        for docs, base, first, last, alone in source:
            if isinstance(docs, BaseException):  # reading failed: documents before it may have failed earlier
                yield from finished(pending, 0, bar)
                raise docs
            if (
                alone
                and not pending
                and threads > 1
                and extra_results is None
                and _worth_parting(encoder, docs, first, last)
            ):
                pool = pool or _threads(threads)
                result = _in_parts(encoder, docs, base, first, rule, threads, pool, keep_ids)
                if bar is not None:
                    bar.update(1)
                yield result
            elif threads == 1 and keep_ids and together:
                jobs = chain([(docs, base, first, last, alone)], source)
                yield _one_by_one(encoder, jobs, _times(texts, docs), rule, bar)
            elif threads == 1 or (alone and not pending):
                yield _stretch(encoder, docs, base, first, last, rule, keep_ids, extra_results, chunked)
                if bar is not None:
                    bar.update(last - first)
            elif together:
                pool = pool or _threads(threads)
                jobs = chain([(docs, base, first, last, alone)], source)
                expected = docs.size(0, docs.starts.size) * _times(texts, docs)
                yield _in_order(encoder, jobs, expected, rule, threads, pool, bar)
            else:
                pool = pool or _threads(threads)
                pending.append(
                    pool.submit(_stretch, encoder, docs, base, first, last, rule, keep_ids, extra_results, chunked)
                )
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


def _worth_parting(encoder: Encoder, docs: Documents, first: int, last: int) -> bool:
    size = docs.size(first, last)
    return last - first == 1 and size >= LEAST_BYTES and encoder.can_split_at_spaces(size)


def _in_parts(
    encoder: Encoder,
    docs: Documents,
    base: int,
    document: int,
    rule: EncodeOptions,
    threads: int,
    pool: Pool,
    keep: bool,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The ids of one document (none without `keep`) and their number, by several threads."""
    if docs.to_copy:
        docs, base, document = own(docs, base, document, document + 1), base + document, 0
    size = docs.size(document, document + 1)
    with encoder.workspace() as workspace:
        workspace.expect(docs, size)
        count = encoder.cut(workspace, docs, document, document + 1, rule)
        fragments = workspace.detach_fragments(count)
    cut, first = part_fragments(docs, fragments, max(size // PART_BYTES, 4 * threads))

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
    if len(text) < PART_BYTES or not encoder.can_split_at_spaces(len(text)):
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
    (starts, stops, tokens), first = part_fragments(docs, fragments, -(-len(text) // PART_BYTES))
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
    encoder: Encoder,
    source: Iterable[tuple[Any, int, int, int, bool]],
    expected: float,
    rule: EncodeOptions,
    threads: int,
    pool: Pool,
    bar: Any,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The ids of many stretches, by several threads, and the ends of their rows. expected: a guess of all bytes."""
    rows: list[NDArray[np.int64]] = []
    sizes: list[int] = []

    def jobs() -> Iterator[tuple[Documents, int, int, int, int]]:
        for docs, base, first, last, _ in source:
            if isinstance(docs, BaseException):
                raise docs
            rows.append(np.zeros(0, np.int64))
            sizes.append(0)
            yield docs, base, first, last, len(rows) - 1
            if bar is not None:
                bar.update(sum(row.size for row in rows) - bar.n)

    def encode(workspace: Workspace, job: tuple[Documents, int, int, int, int], at: int) -> int:
        docs, base, first, last, number = job
        if docs.to_copy:
            docs = copied(encoder, workspace, docs, base, first, last, rule)
            base, first, last = base + first, 0, last - first
        fragments = encoder.cut(workspace, docs, first, last, rule)
        done = encoder.encode(workspace, docs, first, last, fragments, rule, base, at)
        rows[number], sizes[number] = _row_ends(workspace, last - first, at), done - at
        return done

    line = InOrder(lambda: int(1.25 * encoder.ids_per_byte * expected) + SPARE_IDS, BufferPool(encoder.kept))
    ids = line.run(pool, threads, jobs(), encode, encoder.acquire, encoder.release)
    if bar is not None:
        bar.update(sum(row.size for row in rows) - bar.n)
    ends = np.concatenate(rows)
    ends += np.repeat(np.cumsum([0, *sizes[:-1]]), [row.size for row in rows])
    return ids, ends


def _one_by_one(
    encoder: Encoder, source: Iterable[tuple[Any, int, int, int, bool]], times: float, rule: EncodeOptions, bar: Any
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The ids of many stretches in one array, and the ends of their rows. times: a guess of all bytes, as a multiple of
    those of the first stretch."""
    count, rows = 0, list[NDArray[np.int64]]()
    with encoder.workspace() as workspace:
        for docs, base, first, last, _ in source:
            if isinstance(docs, BaseException):
                raise docs
            size = docs.size(first, last)
            capacity = int(CAPACITY_MARGIN * encoder.ids_per_byte * size * times) + SPARE_IDS
            if not rows and times > 1 and workspace.ids.size < capacity:
                workspace.grow_ids(capacity, 0)
            workspace.expect(docs, size + DOCUMENT_WEIGHT * (last - first))
            count, row_ends = _encoded(encoder, workspace, docs, base, first, last, rule, count)
            rows.append(row_ends)
            if bar is not None:
                bar.update(last - first)
        return _taken(workspace, count), rows[0] if len(rows) == 1 else np.concatenate(rows)


def _taken(workspace: Workspace, count: int) -> NDArray[np.int32]:
    """The workspace's first `count` ids: a copy if they are few, else its array itself."""
    if count < LEAST_DETACHED_IDS:
        return workspace.ids[:count].copy()
    return workspace.detach_ids(count)


def _stretch(
    encoder: Encoder,
    docs: Documents,
    base: int,
    first: int,
    last: int,
    rule: EncodeOptions,
    keep_ids: bool,
    extra_results: Callable[..., Any] | None,
    chunked: bool,
) -> tuple[Any, ...]:
    """The ids of documents first .. last - 1, the ends of their rows, and the result of `extra_results`. base: the
    number of document 0."""
    if docs.to_copy and extra_results is not None:
        docs, base, first, last = own(docs, base, first, last), base + first, 0, last - first
    with encoder.workspace() as workspace:
        size = docs.size(first, last) + DOCUMENT_WEIGHT * (last - first)
        workspace.expect(docs, size)
        workspace.counting = not keep_ids
        if chunked and last - first == 1 and extra_results is not None:
            fragments = encoder.cut(workspace, docs, first, last, rule)
            if fragments > few.LEAST_FRAGMENTS:
                asked = partial(interruptible_if_long(size), extra_results)
                count, spans = few.align_in_chunks(encoder, workspace, docs, base, first, fragments, rule, asked)
                return _taken(workspace, count), np.array([count]), spans
            count = encoder.encode(workspace, docs, first, last, fragments, rule, base)
            row_ends = _row_ends(workspace, 1)
        else:
            count, row_ends = _encoded(encoder, workspace, docs, base, first, last, rule, 0)
        extra: tuple[Any, ...] = ()
        if extra_results is not None:
            fragments = int(workspace.document_ends[last - first - 1])
            encoder.tidy(workspace, LEAST_BYTES)
            ends = workspace.document_ends[: last - first]
            cut = (array[:fragments] for array in (workspace.starts, workspace.stops, workspace.tokens, workspace.ends))
            call = interruptible_if_long(0 if _in_python(encoder, extra_results) else size)
            extra = (call(extra_results, docs, first, last, ends, *cut, workspace.ids[:count]),)
        ids = _taken(workspace, count) if keep_ids else np.empty(0, np.int32)
        return ids, row_ends, *extra


def _encoded(
    encoder: Encoder,
    workspace: Workspace,
    docs: Documents,
    base: int,
    first: int,
    last: int,
    rule: EncodeOptions,
    at: int,
) -> tuple[int, NDArray[np.int64]]:
    """Encode documents first .. last - 1 after the workspace's first `at` ids. Returns the number of its ids now, and
    the ends of the rows in them."""
    if docs.to_copy:
        return _copied(encoder, workspace, docs, base, first, last, rule, at)
    fragments = encoder.cut(workspace, docs, first, last, rule)
    count = encoder.encode(workspace, docs, first, last, fragments, rule, base, at)
    return count, _row_ends(workspace, last - first, at) + at


def _copied(
    encoder: Encoder,
    workspace: Workspace,
    docs: Documents,
    base: int,
    first: int,
    last: int,
    rule: EncodeOptions,
    at: int,
) -> tuple[int, NDArray[np.int64]]:
    """The same for documents in memory that others may write to: a few at a time are copied first."""
    ends = np.cumsum(docs.sizes(first, last))
    marks = np.arange(BYTES_PER_COPY, int(ends[-1]), BYTES_PER_COPY)
    cuts = sorted({0, *np.searchsorted(ends, marks, "right").tolist(), last - first})
    capacity = at + int(encoder.ids_per_byte * int(ends[-1])) + last - first + 2 * SPARE_IDS
    if len(cuts) > 2 and workspace.ids.size < capacity:
        workspace.grow_ids(capacity + at, at)
    count, rows = at, []
    for start, stop in pairwise(cuts):
        part = copied(encoder, workspace, docs, base, first + start, first + stop, rule)
        fragments = encoder.cut(workspace, part, 0, stop - start, rule)
        done = encoder.encode(workspace, part, 0, stop - start, fragments, rule, base + first + start, count)
        rows.append(_row_ends(workspace, stop - start, count) + count)
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

"""Scratch memory and pre-token cache of one thread, and how a pre-token that the cache lacks is encoded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jittok.kernels.fragments import OUT_OF_WORK
from jittok.kernels.jit import I32, OutI32, OutI64, OutU8, OutU64, helper, inlined
from jittok.kernels.memory import PAD, Window, get_i32, put_i32, window
from jittok.kernels.merging.left_to_right import Merger, MergerWork, make_merger_work, open_merger
from jittok.kernels.models.bpe.arrays import BpeArrays
from jittok.kernels.models.bpe.words.batched_words import (
    DeferredWindow,
    DeferredWork,
    defer_bytes,
    discard_words,
    flush_words,
    has_free_lane,
    make_deferred_work,
    open_deferred,
)
from jittok.kernels.models.bpe.words.merge_boundaries import MergeBoundaryWindow, open_merge_boundaries
from jittok.kernels.models.bpe.words.single_token_words import (
    LONGEST_KEY,
    NOT_FOUND,
    SingleTokenWindow,
    find_word,
    open_single_token_words,
    prefetch_word,
)
from jittok.kernels.models.bpe.words.word import BpeWordWindow, encode_word, merge_word, open_words, whole_word
from jittok.kernels.pretoken_cache.lookup import DEFERRED, make_look_up, make_resolve
from jittok.kernels.pretoken_cache.records import BARRED, RUN_STATE, RunWindow, make_records
from jittok.kernels.pretoken_cache.tables import CacheWindow, Key, PretokenCache, make_cache, open_cache
from jittok.kernels.pretokenize.splitters.general import SplitWindow, SplitWork, make_split_work, open_split
from jittok.kernels.structures.pages import scratch

BYTES_PER_BYTE = 3
"""The most bytes that one byte of text is rewritten to: three for a space, an invalid byte or a lower-case letter. One
more with `BpeArrays.begin_lines`: every second byte may be a line that gets U+2581."""
CHUNK = 16384
"""Bytes that are split before their pre-tokens are looked up: their offsets fit into the first-level cache."""


class BpeWork(NamedTuple):
    """One thread's memory, for fragments of any length with pre-tokens of up to `longest` bytes (see `make_work`)."""

    text: OutU8  # [BYTES_PER_BYTE * longest + 16 + PAD] a rewritten fragment, or a copy that PAD bytes follow
    rewritten: OutU8  # [BYTES_PER_BYTE * longest + 16 + PAD] a span of a line rewritten
    split: SplitWork  # for the general splitter
    run: OutI64  # [RUN_STATE] see RunWindow
    positions: OutI32  # [2 * CHUNK + longest + 64] where the pre-tokens of a chunk begin
    of_one: OutI32  # [2 * CHUNK + longest + 64] the same for one fragment of a run
    records: OutU64  # one batch of look-ups
    merge: MergerWork
    deferred: DeferredWork
    cache: PretokenCache
    chunk: int  # bytes a chunk


class WorkWindow(NamedTuple):
    """The same as windows, with those that new pre-tokens need."""

    text: Window
    rewritten: Window
    split: SplitWindow
    joints: MergeBoundaryWindow
    positions: Window
    places_size: int
    of_one: Window
    records: Window
    run: RunWindow
    cache: CacheWindow
    chunk: int
    words: BpeWordWindow
    merge: Merger
    deferred: DeferredWindow
    seeds: SingleTokenWindow
    longest: int  # symbols that `merge` has capacity for


def make_work(
    arrays: BpeArrays, longest: int, cache_bytes: int = 64 << 20, chunk: int = CHUNK, queued: int | None = None
) -> BpeWork:
    """Memory of one thread for pre-tokens of up to `longest` bytes. Pages that no text needs are not touched. queued:
    symbols that are merged without a chain (see `make_merge_work`)."""
    capacity = BYTES_PER_BYTE * longest + 16
    return BpeWork(
        scratch(capacity + PAD, np.uint8),
        scratch(capacity + PAD, np.uint8),
        make_split_work(capacity, arrays.splitter),
        np.zeros(RUN_STATE, np.int64),
        scratch(2 * CHUNK + longest + 64, np.int32),
        scratch(2 * CHUNK + longest + 64, np.int32),
        make_records(),
        make_merger_work(capacity, queued),
        make_deferred_work(),
        make_cache(cache_bytes, arrays.tokens),
        chunk,
    )


def regrow(arrays: BpeArrays, work: BpeWork, longest: int, queued: int | None = None) -> BpeWork:
    """The same memory for longer pre-tokens, with the same cache."""
    return make_work(arrays, longest, 1 << 10, work.chunk, queued)._replace(cache=work.cache)


@helper
def open_work(model: BpeArrays, work: BpeWork, tokens: I32, ends: OutI64) -> WorkWindow:
    """Windows onto the arrays. tokens, ends: those of the fragments (see jittok.kernels.fragments)."""
    work.run[BARRED] = -1
    return WorkWindow(
        window(work.text),
        window(work.rewritten),
        open_split(work.split),
        open_merge_boundaries(model.joints),
        window(work.positions),
        work.positions.size,
        window(work.of_one),
        window(work.records),
        RunWindow(window(work.rewritten), 0, window(tokens), window(ends), window(work.run)),
        open_cache(work.cache),
        work.chunk,
        open_words(model),
        open_merger(work.merge, model.pairs, model.chain),
        open_deferred(work.deferred, model.pairs),
        open_single_token_words(model.seeds),
        work.merge.queue.symbols.size - 1,
    )


@helper
def _encode_new_piece(
    work: WorkWindow, text: Window, start: int, stop: int, low: Any, high: Any, ids: Window, count: int
) -> int:
    """Ids of a pre-token that the cache does not hold; OUT_OF_WORK if it is too long for the scratch."""
    if stop - start > work.longest:
        return OUT_OF_WORK
    if stop - start <= LONGEST_KEY:
        token = find_word(work.seeds, low, high)
        if token != NOT_FOUND:
            put_i32(ids, count, token)
            return count + 1
        if work.words.byte_encode != 0:  # byte-level: the table has every whole-word token of this length
            return merge_word(work.words, work.merge, text, start, stop, ids, count)
    return encode_word(work.words, work.merge, text, start, stop, ids, count)


@inlined
def _encode_or_defer(work: WorkWindow, text: Window, start: int, stop: int, key: Key, ids: Window, count: int) -> int:
    """The same for a pre-token of up to 31 bytes: if it must be merged, it is deferred and merged in a batch."""
    if work.words.byte_encode == 0 or stop - start < 2:
        return _encode_new_piece(work, text, start, stop, key[0], key[1], ids, count)
    if stop - start <= LONGEST_KEY:
        token = find_word(work.seeds, key[0], key[1])
    else:
        token = whole_word(work.words, text, start, stop)
    if token >= 0:
        put_i32(ids, count, token)
        return count + 1
    return DEFERRED + defer_bytes(work.deferred, work.words, work.run, text, start, stop, key, count)


@helper
def free_lanes(work: WorkWindow, ids: Window, count: int) -> int:
    """Finish the batch of deferred words if it is full; the new count."""
    return count if has_free_lane(work.deferred) else flush(work, ids, count)


@helper
def flush(work: WorkWindow, ids: Window, count: int) -> int:
    """Finish all deferred words (see `flush_words`); the new count."""
    return flush_words(work.deferred, work.words, work.cache, work.run, ids, count)


@helper
def discard(work: WorkWindow) -> int:
    """See `discard_words`."""
    return discard_words(work.deferred)


@helper
def prefetch(work: WorkWindow, low: Any, high: Any) -> None:
    """Prefetch the slot of a new pre-token in the table of single-token words."""
    prefetch_word(work.seeds, low, high)


@helper
def encode_pieces(work: WorkWindow, text: Window, begin: int, number: int, ids: Window, count: int) -> int:
    """Ids of the pre-tokens at the offsets in work.positions, without the cache."""
    for k in range(number):
        start, stop = begin + get_i32(work.positions, k), begin + get_i32(work.positions, k + 1)
        if stop - start > work.longest:
            return OUT_OF_WORK
        count = encode_word(work.words, work.merge, text, start, stop, ids, count)
        if count < 0:
            return count
    return count


resolve = make_resolve(_encode_new_piece, prefetch, deferred=(_encode_or_defer, free_lanes))
_resolve_text = make_resolve(_encode_new_piece, prefetch, in_runs=False, deferred=(_encode_or_defer, free_lanes))
look_up = make_look_up(_resolve_text, flush)
"""look_up(work.cache, work.records, work, text, begin, places, number, 0, ids, count); see `make_look_up`. A
separate loop: the one for runs would be slower for new text."""

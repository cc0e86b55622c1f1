"""Scratch memory and pre-token cache of one thread, and how a pre-token that the cache lacks is encoded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jittok._jit import I32, OutI32, OutI64, OutU8, OutU64, helper, inlined
from jittok._raw import PAD, Window, get_i32, put_i32, window
from jittok.fragments import OUT_OF_WORK
from jittok.merging.chain import Merger, MergerWork, make_merger_work, open_merger
from jittok.models.bpe.arrays import Arrays
from jittok.models.bpe.deferred import (
    DeferredWindow,
    DeferredWork,
    defer_bytes,
    drop_words,
    finish_words,
    has_room,
    make_deferred_work,
    open_deferred,
)
from jittok.models.bpe.joints import JointWindow, open_joints
from jittok.models.bpe.seeds import LONGEST, NOT_FOUND, SeedWindow, expect_seed, find_seed, open_seeds
from jittok.models.bpe.words import WordWindow, encode_word, merge_word, open_words, whole_word
from jittok.piece_cache.lookup import DEFERRED, make_look_up, make_resolve
from jittok.piece_cache.records import BARRED, RUN_STATE, RunWindow, make_records
from jittok.piece_cache.tables import CacheWindow, Key, PieceCache, make_cache, open_cache
from jittok.pretokenize.splitters.general import SplitWindow, SplitWork, make_split_work, open_split
from jittok.structures.pages import scratch

GROWTH = 3
"""The most bytes that one byte of text is rewritten to: three for a space, an invalid byte or a lower-case letter. One
more with `Arrays.begin_lines`: every second byte may be a line that gets U+2581."""
CHUNK = 16384
"""Bytes that are split before their pre-tokens are looked up: their offsets fit into the first-level cache."""


class Work(NamedTuple):
    """One thread's memory, for fragments of any length with pre-tokens of up to `longest` bytes (see `make_work`)."""

    text: OutU8  # [GROWTH * longest + 16 + PAD] a rewritten fragment, or a copy that PAD bytes follow
    rewritten: OutU8  # [GROWTH * longest + 16 + PAD] a span of a line rewritten
    split: SplitWork  # for the general splitter
    run: OutI64  # [RUN_STATE] see RunWindow
    places: OutI32  # [2 * CHUNK + longest + 64] where the pre-tokens of a chunk begin
    of_one: OutI32  # [2 * CHUNK + longest + 64] the same for one fragment of a run
    records: OutU64  # one batch of look-ups
    merge: MergerWork
    deferred: DeferredWork
    cache: PieceCache
    chunk: int  # bytes a chunk


class WorkWindow(NamedTuple):
    """The same as windows, with those that new pre-tokens need."""

    text: Window
    rewritten: Window
    split: SplitWindow
    joints: JointWindow
    places: Window
    places_size: int
    of_one: Window
    records: Window
    run: RunWindow
    cache: CacheWindow
    chunk: int
    words: WordWindow
    merge: Merger
    deferred: DeferredWindow
    seeds: SeedWindow
    longest: int  # symbols that `merge` has capacity for


def make_work(arrays: Arrays, longest: int, cache_bytes: int = 64 << 20, chunk: int = CHUNK) -> Work:
    """Memory of one thread for pre-tokens of up to `longest` bytes. Pages that no text needs are not touched."""
    room = GROWTH * longest + 16
    return Work(
        scratch(room + PAD, np.uint8),
        scratch(room + PAD, np.uint8),
        make_split_work(room, arrays.splitter),
        np.zeros(RUN_STATE, np.int64),
        scratch(2 * CHUNK + longest + 64, np.int32),
        scratch(2 * CHUNK + longest + 64, np.int32),
        make_records(),
        make_merger_work(room),
        make_deferred_work(),
        make_cache(cache_bytes, arrays.tokens),
        chunk,
    )


def regrow(arrays: Arrays, work: Work, longest: int) -> Work:
    """The same memory for longer pre-tokens, with the same cache."""
    return make_work(arrays, longest, 1 << 10, work.chunk)._replace(cache=work.cache)


@helper
def open_work(model: Arrays, work: Work, tokens: I32, ends: OutI64) -> WorkWindow:
    """Windows onto the arrays. tokens, ends: those of the fragments (see jittok.fragments)."""
    work.run[BARRED] = -1
    return WorkWindow(
        window(work.text),
        window(work.rewritten),
        open_split(work.split),
        open_joints(model.joints),
        window(work.places),
        work.places.size,
        window(work.of_one),
        window(work.records),
        RunWindow(window(work.rewritten), 0, window(tokens), window(ends), window(work.run)),
        open_cache(work.cache),
        work.chunk,
        open_words(model),
        open_merger(work.merge, model.pairs, model.chain),
        open_deferred(work.deferred, model.pairs),
        open_seeds(model.seeds),
        work.merge.queue.symbols.size - 1,
    )


@helper
def _encode_new_piece(
    work: WorkWindow, text: Window, start: int, stop: int, low: Any, high: Any, ids: Window, count: int
) -> int:
    """Ids of a pre-token that the cache does not hold; OUT_OF_WORK if it is too long for the scratch."""
    if stop - start > work.longest:
        return OUT_OF_WORK
    if stop - start <= LONGEST:
        token = find_seed(work.seeds, low, high)
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
    if stop - start <= LONGEST:
        token = find_seed(work.seeds, key[0], key[1])
    else:
        token = whole_word(work.words, text, start, stop)
    if token >= 0:
        put_i32(ids, count, token)
        return count + 1
    return DEFERRED + defer_bytes(work.deferred, work.words, work.run, text, start, stop, key, count)


@helper
def make_room(work: WorkWindow, ids: Window, count: int) -> int:
    """Finish the batch of deferred words if it is full; the new count."""
    return count if has_room(work.deferred) else finish(work, ids, count)


@helper
def finish(work: WorkWindow, ids: Window, count: int) -> int:
    """Finish all deferred words (see `finish_words`); the new count."""
    return finish_words(work.deferred, work.words, work.cache, work.run, ids, count)


@helper
def drop(work: WorkWindow) -> int:
    """See `drop_words`."""
    return drop_words(work.deferred)


@helper
def expect(work: WorkWindow, low: Any, high: Any) -> None:
    """Prefetch the slot of `seeds` for a new pre-token."""
    expect_seed(work.seeds, low, high)


@helper
def encode_pieces(work: WorkWindow, text: Window, begin: int, number: int, ids: Window, count: int) -> int:
    """Ids of the pre-tokens at the offsets in work.places, without the cache."""
    for k in range(number):
        start, stop = begin + get_i32(work.places, k), begin + get_i32(work.places, k + 1)
        if stop - start > work.longest:
            return OUT_OF_WORK
        count = encode_word(work.words, work.merge, text, start, stop, ids, count)
        if count < 0:
            return count
    return count


resolve = make_resolve(_encode_new_piece, expect, deferred=(_encode_or_defer, make_room))
_resolve_text = make_resolve(_encode_new_piece, expect, in_runs=False, deferred=(_encode_or_defer, make_room))
look_up = make_look_up(_resolve_text, finish)
"""look_up(work.cache, work.records, work, text, begin, places, number, 0, ids, count); see `make_look_up`. A
separate loop: the one for runs would be slower for new text."""

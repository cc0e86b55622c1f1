"""The loop over a text's pre-tokens: key, cache line, ids. A miss is encoded by the model that the loop was made for.

Pre-tokens are looked up in batches of 128: first the records of all (`records`), with a prefetch of the cache line that
each needs, then the comparisons. So the processor's cache misses overlap. A batch is a list of records; `run_loop`
makes records for several fragments.

A model has two helpers. `model` is any NamedTuple of windows:

- encode_piece(model, text, start, stop, low, high, ids, count) -> the new count, or a negative code: encodes one
  pre-token. low, high: the key of a pre-token of at most 15 bytes, else 0.
- prefetch(model, low, high): prefetches the memory which encode_piece reads first for this key. After the first miss of
  a batch it is called for all further records, so that their cache misses overlap.

What `make_resolve` makes of them is resolve(cache, records, model, text, end, run, ids, count) -> the new count, or a
negative code. It writes the ids of the records before `end` to ids[count:]. run: a RunWindow. The caller guarantees
capacity for all ids and SLACK more. After a code, everything before the pre-token that failed is written, except for
what is deferred.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jittok.kernels.jit import helper, inlined
from jittok.kernels.memory import (
    NO_MATCH,
    Window,
    copy_four,
    copy_ids,
    copy_narrow,
    get_i32,
    get_i64,
    get_u64,
    get_word,
    match_pair,
    prefetch,
    put_i64,
    put_u64,
)
from jittok.kernels.pretoken_cache.growth import grow_tables
from jittok.kernels.pretoken_cache.long_table import find_long, keep_long
from jittok.kernels.pretoken_cache.records import (
    BATCH,
    HEADED,
    KIND_END,
    KIND_LONG,
    KIND_MIDDLE,
    KIND_SHORT,
    KINDS,
    LINE,
    RECORD,
    end_fragments,
    put_head,
    put_record,
)
from jittok.kernels.pretoken_cache.tables import (
    EPOCH,
    LONGEST_KEPT,
    MIDDLE_BITS,
    MISSES,
    SHORT_BITS,
    CacheWindow,
    middle_home,
    put_middle_key,
    read_ids,
    short_home,
    write_ids,
)

ALL_WHOLE = 1 << 62
"""The result of `drop` if no fragment has a deferred pre-token."""
DEFERRED = 1 << 48
"""Added to the count by an `encode_soon` (see `make_resolve`) that leaves capacity for a piece's ids, which come
later."""
Deferring = tuple[Callable[..., Any], Callable[..., Any]]
"""Two helpers of a model that defers pre-tokens, (encode_soon, make_room). encode_soon(model, text, start, stop, key,
ids, count), key being a Key, replaces encode_piece for pre-tokens of up to 31 bytes, and may defer them (see DEFERRED).
make_room(model, ids, count) -> the new count, is called before encode_piece. It may write the ids of all deferred
pre-tokens, and move what is after them."""
IDS_AHEAD = 128
"""Distance of the prefetch after the last id."""
_IDS_A_LINE, _RECORDS_A_LINE = 16, 8
_0, _16, _24, _32, _48, _56 = (np.uint64(k) for k in (0, 16, 24, 32, 48, 56))
_FF, _LOW16 = np.uint64(0xFF), np.uint64(0xFFFF)


def _hits_of(count_word: int, count_shift: np.uint64, copy: Callable[..., Any]) -> Callable[..., Any]:
    """The loop over hits, for narrow or wide caches: the position of the number of ids in a slot, and the helper that
    copies them."""

    @inlined
    def hits(
        table: Window, pairs: Window, records: Window, record: int, end: int, ids: Window, count: int
    ) -> tuple[int, int]:
        """Write the ids of short pre-tokens that are in their line. Returns (the first record that is anything else,
        the new count)."""
        while record < end:
            head = np.int64(get_u64(records, record))
            if head & KINDS != KIND_SHORT:
                break
            at = match_pair(table, head >> LINE, records, record + 1, pairs)
            hit = (head >> LINE) + at
            k = np.int64(get_u64(table, hit + count_word) >> count_shift & _FF)
            if (at == NO_MATCH) | (k == 0):
                break
            copy(ids, count, table, hit + 2)
            count += k - 1
            record += RECORD
        return record, count

    return hits


_wide_hits, _narrow_hits = _hits_of(2, _24, copy_ids), _hits_of(3, _48, copy_narrow)


@inlined
def _copy_stored(store: Window, head: np.uint64, tail: np.uint64, ids: Window, count: int) -> int:
    """Copy the ids in the store that two words of a slot refer to. Returns the new count."""
    number, position = np.int64(tail & _LOW16), np.int64(head >> _32)
    for step in range(0, number, 4):
        copy_four(ids, count + step, store, position + step)
    return count + number


@inlined
def _prefetch_ids(ids: Window, count: int, end: int) -> None:
    """Prefetch the memory for the ids of the next batch, two ids a record."""
    for k in range(end // RECORD // _RECORDS_A_LINE):
        prefetch(ids, count + IDS_AHEAD + _IDS_A_LINE * k, 4)


@helper
def _prefetch_nothing(_model: Any, _low: Any, _high: Any) -> None:
    pass


@helper
def flush_nothing(_model: Any, _ids: Any, count: int) -> int:
    """The `finish` of a model that defers nothing."""
    return count


@helper
def discard_nothing(_model: Any) -> int:
    """The `drop` of such a model."""
    return ALL_WHOLE


class _New(NamedTuple):
    """Helpers for pre-tokens that are new, or not in the slots that are compared first."""

    short: Callable[..., Any]
    middle: Callable[..., Any]
    long: Callable[..., Any]
    look_ahead: Callable[..., Any]


@inlined
def _stored_hit(
    cache: CacheWindow, records: Window, record: int, line: int, epoch: int, ids: Window, count: int
) -> int:
    """Write the ids of a pre-token of up to 15 bytes that is in its line, with more ids than fit a slot: every tenth of
    GPT-2 (white space, other scripts). Returns the new count, or -1 if it is not there."""
    at = match_pair(cache.short, line, records, record + 1, cache.pairs)
    tail = get_u64(cache.short, line + at + 3)
    if (at != NO_MATCH) & (np.int64(tail >> _16) == epoch):
        return _copy_stored(cache.ids, get_u64(cache.short, line + at + 2), tail, ids, count)
    return -1


@inlined
def _middle_hit(cache: CacheWindow, slot: int, key: Any, epoch: int, ids: Window, count: int) -> int:
    """Write the ids of a pre-token of 16 to 31 bytes that is in the slot it is compared with first. Returns the new
    count, or -1 if it is not there."""
    differ = (get_u64(cache.middle, slot) ^ key[0]) | (get_u64(cache.middle, slot + 1) ^ key[1])
    differ |= (get_u64(cache.middle, slot + 2) ^ key[2]) | (get_u64(cache.middle, slot + 3) ^ key[3])
    if differ != _0:
        return -1
    head, tail = get_u64(cache.middle, slot + 4), get_u64(cache.middle, slot + 5)
    k = np.int64(head >> _24 & _FF)
    if k != 0:
        copy_ids(ids, count, cache.middle, slot + 4)
        copy_ids(ids, count + 4, cache.middle, slot + 6)
        return count + k - 1
    return _copy_stored(cache.ids, head, tail, ids, count) if np.int64(tail >> _16) == epoch else -1


def _make_new_short(deferred: Deferring | None, encode_piece: Callable[..., Any]) -> Callable[..., Any]:
    defers = deferred is not None
    encode_soon, make_room = deferred or (encode_piece, flush_nothing)

    @inlined
    def new_short(
        cache: CacheWindow, model: Any, text: Window, i: int, low: Any, high: Any, line: int, ids: Window, count: int
    ) -> int:
        """A pre-token of up to 15 bytes that the main loop did not find complete in its line."""
        if defers:
            count = make_room(model, ids, count)
        at, kept = short_home(cache, low, high, line)
        if kept:
            done = read_ids(cache, at + 2, 2, ids, count)
            if done >= 0:
                return done
        put_i64(cache.state, MISSES, get_i64(cache.state, MISSES) + 1)
        stop = i + np.int64(high >> _56)
        if defers:
            done = encode_soon(model, text, i, stop, (low, high, _0, _0), ids, count)
        else:
            done = encode_piece(model, text, i, stop, low, high, ids, count)
        if done < 0:
            if not kept:
                put_u64(cache.short, at + 1, _0)
            return done
        put_u64(cache.short, at, low)
        put_u64(cache.short, at + 1, high)
        if defers and done >= DEFERRED:
            put_u64(cache.short, at + 2, _0)  # as if its ids had been in a store of long ago
            put_u64(cache.short, at + 3, _0)
            return done - DEFERRED
        write_ids(cache, cache.short, at + 2, 2, ids, count, done)
        return done

    return new_short


def _make_new_middle(deferred: Deferring | None, encode_piece: Callable[..., Any]) -> Callable[..., Any]:
    defers = deferred is not None
    encode_soon, make_room = deferred or (encode_piece, flush_nothing)

    @helper
    def new_middle(
        cache: CacheWindow,
        model: Any,
        text: Window,
        i: int,
        a: Any,
        b: Any,
        c: Any,
        d: Any,
        own: int,
        ids: Window,
        count: int,
    ) -> int:
        """A pre-token of 16 to 31 bytes that is not in the slot it was compared with."""
        if defers:
            count = make_room(model, ids, count)
        at, kept = middle_home(cache, a, b, c, d, own)
        if kept:
            done = read_ids(cache, at + 4, 4, ids, count)
            if done >= 0:
                return done
        put_i64(cache.state, MISSES, get_i64(cache.state, MISSES) + 1)
        stop = i + np.int64(d >> _56)
        if defers:
            done = encode_soon(model, text, i, stop, (a, b, c, d), ids, count)
        else:
            done = encode_piece(model, text, i, stop, _0, _0, ids, count)
        if done < 0:
            if not kept:
                put_u64(cache.middle, at + 3, _0)
            return done
        put_middle_key(cache, at, a, b, c, d)
        if defers and done >= DEFERRED:
            put_u64(cache.middle, at + 4, _0)
            put_u64(cache.middle, at + 5, _0)
            return done - DEFERRED
        write_ids(cache, cache.middle, at + 4, 4, ids, count, done)
        return done

    return new_middle


def _make_any_long(defers: bool, encode_piece: Callable[..., Any]) -> Callable[..., Any]:
    @helper
    def any_long(cache: CacheWindow, model: Any, text: Window, i: int, n: int, h: Any, ids: Window, count: int) -> int:
        """A pre-token of 32 bytes or more."""
        if n <= LONGEST_KEPT:
            done = find_long(cache, text, i, n, h, ids, count)
            if done >= 0:
                return done
        put_i64(cache.state, MISSES, get_i64(cache.state, MISSES) + 1)
        done = encode_piece(model, text, i, i + n, _0, _0, ids, count)
        if defers and done >= DEFERRED:
            return done - DEFERRED
        if done >= 0:
            keep_long(cache, text, i, n, h, ids, count, done)
        return done

    return any_long


def _make_look_ahead(prefetch: Callable[..., Any]) -> Callable[..., Any]:
    foresees = prefetch is not _prefetch_nothing

    @helper
    def look_ahead(cache: CacheWindow, records: Window, model: Any, record: int, end: int) -> int:
        """Prefetch the model's memory for the short pre-tokens from `record` on that are not in their lines. For one
        that is elsewhere in its group this is not needed, but harmless."""
        if foresees:
            while record < end:
                head = np.int64(get_u64(records, record))
                if (head & KINDS == KIND_SHORT) & (
                    match_pair(cache.short, head >> LINE, records, record + 1, cache.pairs) == NO_MATCH
                ):
                    prefetch(model, get_u64(records, record + 1), get_u64(records, record + 2))
                record += RECORD
        return end

    return look_ahead


@functools.cache  # two loops of one model share them
def _make_new(
    encode_piece: Callable[..., Any],
    prefetch: Callable[..., Any],
    deferred: Deferring | None,
) -> _New:
    """The helpers that the loop calls on a miss, see `make_resolve`."""
    return _New(
        _make_new_short(deferred, encode_piece),
        _make_new_middle(deferred, encode_piece),
        _make_any_long(deferred is not None, encode_piece),
        _make_look_ahead(prefetch),
    )


def make_resolve(
    encode_piece: Callable[..., Any],
    prefetch: Callable[..., Any] = _prefetch_nothing,
    in_runs: bool = True,
    deferred: Deferring | None = None,
) -> Callable[..., Any]:
    """The step after the records are made, for one model, as a helper.

    encode_piece, prefetch: see the module's docstring; deferred: of a model that defers pre-tokens; in_runs: whether
    there are HEADED records and ENDs, else `run` may be anything
    """
    new_short, new_middle, any_long, look_ahead = _make_new(encode_piece, prefetch, deferred)

    @(helper if in_runs else inlined)
    def resolve(
        cache: CacheWindow, records: Window, model: Any, text: Window, end: int, run: Any, ids: Window, count: int
    ) -> int:
        _prefetch_ids(ids, count, end)
        record, ahead, epoch = 0, 0, get_i64(cache.state, EPOCH)
        while True:
            if cache.narrow != 0:
                record, count = _narrow_hits(cache.short, cache.pairs, records, record, end, ids, count)
            else:
                record, count = _wide_hits(cache.short, cache.pairs, records, record, end, ids, count)
            if record == end:
                break
            head = np.int64(get_u64(records, record))
            x, y = get_u64(records, record + 1), get_u64(records, record + 2)
            source, i = text, np.int64(get_u64(records, record + 3))
            if in_runs:
                if head & KINDS == KIND_END:
                    count = end_fragments(run, np.int64(x), np.int64(x + y), ids, count)
                    record += RECORD
                    continue
                if head & HEADED:
                    n = np.int64(y) if head & KINDS == KIND_LONG else np.int64(y >> _56)
                    put_head(run.head, run.first, text, i, i + n - 1)
                    source, i = run.head, np.int64(0)
            if head & KINDS == KIND_SHORT:
                done = _stored_hit(cache, records, record, head >> LINE, epoch, ids, count)
                if done < 0:
                    if ahead == 0:
                        ahead = look_ahead(cache, records, model, record, end)
                    done = new_short(cache, model, source, i, x, y, head >> LINE, ids, count)
                count = done
            elif head & KINDS == KIND_MIDDLE:
                slot, a, b = head >> LINE, get_word(source, i), get_word(source, i + 8)
                done = _middle_hit(cache, slot, (a, b, x, y), epoch, ids, count)
                if done < 0:
                    done = new_middle(cache, model, source, i, a, b, x, y, slot, ids, count)
                count = done
            else:
                count = any_long(cache, model, source, i, np.int64(y), x, ids, count)
            if count < 0:
                return count
            record, epoch = record + RECORD, get_i64(cache.state, EPOCH)
        grow_tables(cache)
        return count

    return resolve


def make_look_up(resolve: Callable[..., Any], finish: Callable[..., Any] = flush_nothing) -> Callable[..., Any]:
    """The loop over the pre-tokens of one text, as a helper; resolve: made by `make_resolve`.

    finish(model, ids, count) -> the new count: a helper that writes the ids of all deferred pre-tokens. After a
    negative code they are still pending; a kernel discards them when it starts.

    look_up(cache, records, model, text, begin, positions, number, run, ids, count) -> the new count, or a negative
    code. It writes the ids of the pre-tokens text[begin + positions[k]:begin + positions[k + 1]], k < number, to
    ids[count:], as `resolve` does.
    """

    @helper
    def look_up(
        cache: CacheWindow,
        records: Window,
        model: Any,
        text: Window,
        begin: int,
        positions: Window,
        number: int,
        run: Any,
        ids: Window,
        count: int,
    ) -> int:
        piece = 0
        start = begin + get_i32(positions, 0)
        while piece < number:
            short, middle = get_i64(cache.state, SHORT_BITS), get_i64(cache.state, MIDDLE_BITS)
            batch = min(piece + BATCH, number)
            record = 0
            while piece < batch:
                piece += 1
                stop = begin + get_i32(positions, piece)
                put_record(cache, records, record, text, start, stop, short, middle)
                record += RECORD
                start = stop
            count = resolve(cache, records, model, text, record, run, ids, count)
            if count < 0:
                return count
        return finish(model, ids, count)

    return look_up

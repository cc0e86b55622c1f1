"""Runs of short fragments, as in a text with many special tokens: their spans are looked up in common batches.

Such a *run* is split once, as if nothing was between its fragments. Whether a cut is safe depends on its neighbors
alone, and fewer cuts give the same ids, so the cuts inside a fragment are valid; its borders are cuts anyway. Only a
border inside a character, and malformed text, are left to the loop over single fragments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jittok.common.unicode.characters import SPACE_BYTE
from jittok.kernels.fragments import NEED, OUT_OF_CAPACITY, TEXT_PREFIXED
from jittok.kernels.jit import helper, inlined
from jittok.kernels.memory import PAD, Window, get_i32, get_i64, get_u8, put_i32, put_i64, put_u64, readable_behind
from jittok.kernels.pretoken_cache.lookup import discard_nothing, flush_nothing
from jittok.kernels.pretoken_cache.records import (
    BARRED,
    BATCH,
    DONE,
    KIND_END,
    RECORD,
    RunWindow,
    put_headed_record,
    put_record,
)
from jittok.kernels.pretoken_cache.tables import MIDDLE_BITS, SHORT_BITS, SPARE_IDS, CacheWindow

NO_BLANK, ONE_BLANK, SEPARATE = 0, SPACE_BYTE, 0xFF
"""What is before the first span of a fragment when it is looked up: nothing; a blank; a byte that no
well-formed text holds, so that the model knows such a span and the cache keeps it apart."""


class Fragments(NamedTuple):
    """Windows onto the fragments, see `jittok.kernels.fragments`."""

    starts: Window
    stops: Window
    tokens: Window


@helper
def head_size(run: RunWindow, text: Window, start: int, stop: int) -> int:
    """The least number of bytes of the first span of text[start:stop]. The space of the fragment may be written before
    the first byte that is not a space, so a separate span ends after that byte."""
    i = start
    if run.first == SEPARATE:
        while i < stop and get_u8(text, i) == SPACE_BYTE:
            i += 1
    return i + 1 - start


@helper
def _inside_character(text: Window, i: int) -> bool:
    return get_u8(text, i) & 0xC0 == 0x80


@helper
def _prefetch(fragments: Fragments, k: int) -> bool:
    """Whether fragment k + 1 begins where fragment k ends."""
    return get_i64(fragments.starts, k + 1) == get_i64(fragments.stops, k)


@helper
def _prefetch_more(fragments: Fragments, k: int, last: int, most: int) -> int:
    """The last fragment, below `last`, of a run of up to `most` bytes from fragment k on. Four at a time, which nearly
    always all touch: a branch for each would take longer than the test."""
    end = get_i64(fragments.starts, k) + most
    while (
        k + 4 < last
        and _prefetch(fragments, k)
        & _prefetch(fragments, k + 1)
        & _prefetch(fragments, k + 2)
        & _prefetch(fragments, k + 3)
        and get_i64(fragments.stops, k + 4) <= end
    ):
        k += 4
    while k + 1 < last and _prefetch(fragments, k) and get_i64(fragments.stops, k + 1) <= end:
        k += 1
    return k


@inlined
def _first_span(
    run: RunWindow, text: Window, begin: int, positions: Window, piece: int, start: int, stop: int
) -> tuple[int, int]:
    """(the end of the first span of text[start:stop], which has `run.first` before it; the next position)."""
    end = start
    if start < stop:
        least = min(start + head_size(run, text, start, stop), stop)
        end = min(begin + get_i32(positions, piece), stop)
        while end < least:
            piece += 1
            end = min(begin + get_i32(positions, piece), stop)
        piece += begin + get_i32(positions, piece) == end
    return end, piece


@helper
def _fill(
    cache: CacheWindow,
    records: Window,
    run: RunWindow,
    fragments: Fragments,
    text: Window,
    begin: int,
    positions: Window,
    piece: int,
    k: int,
    last: int,
    start: int,
) -> tuple[int, int, int, int]:
    """Fill a batch of records. Returns (its end, the next position and fragment, the start of the next span in it or
    -1).

    Spans may begin at text[begin + positions[...]]; the last of these is the end of the run. A fragment whose border is
    inside a character ends the batch: then fragment and position stay as they are.
    """
    short, middle = get_i64(cache.state, SHORT_BITS), get_i64(cache.state, MIDDLE_BITS)
    record, most = 0, RECORD * (BATCH - 1)
    while k <= last and record < most:
        token, stop = get_i32(fragments.tokens, k), get_i64(fragments.stops, k)
        if token < 0:
            if start < 0:
                start = get_i64(fragments.starts, k)
                if start < stop and (_inside_character(text, start) or _inside_character(text, stop)):
                    return record, piece, k, -1
                while begin + get_i32(positions, piece) <= start < stop:
                    piece += 1
                if run.first != 0 and token == TEXT_PREFIXED and (start < stop or run.first == SPACE_BYTE):
                    end, piece = _first_span(run, text, begin, positions, piece, start, stop)
                    put_headed_record(cache, records, record, run, text, start, end, short, middle)
                    record += RECORD
                    start = end
            position = begin + get_i32(positions, piece)
            while start < position <= stop and record < most:
                put_record(cache, records, record, text, start, position, short, middle)
                record += RECORD
                piece += 1
                start, position = position, begin + get_i32(positions, piece)
            if start < stop < position and record < most:
                put_record(cache, records, record, text, start, stop, short, middle)
                record += RECORD
                start = stop
            if start < stop:
                break
        put_u64(records, record, np.uint64(KIND_END))
        put_u64(records, record + 1, np.uint64(k))
        ended = 1
        while k + ended <= last and get_i32(fragments.tokens, k + ended) >= 0:
            ended += 1
        put_u64(records, record + 2, np.uint64(ended))
        record += RECORD
        k, start = k + ended, -1
    return record, piece, k, start


def make_encode_run(
    split: Callable[..., Any],
    resolve: Callable[..., Any],
    finish: Callable[..., Any] = flush_nothing,
    drop: Callable[..., Any] = discard_nothing,
) -> Callable[..., Any]:
    """The loop for one model, as a helper; resolve: made by `make_resolve`; finish: see `make_look_up`.

    drop(model) -> the first fragment with a deferred pre-token, or ALL_WHOLE: a helper that discards all of these

    split(rules, text, begin, end, fragments, k, last, positions) -> the number of offsets, relative to `begin`, where
    spans of fragments k .. last begin. Negative: the loop over single fragments is needed.

    encode_run(rules, cache, records, positions, run, model, ids_per_byte, most, text, size, fragments, k, last, ids,
    count, capacity, report) -> (the first fragment that is not done, the new count or a code). It encodes a run of up
    to `most` bytes from fragment k on, and does nothing if the run has only one fragment. size: readable bytes of
    `text`; model: the `model` argument of its encode_piece.
    """

    @helper
    def encode_run(
        rules: Any, cache: CacheWindow, records: Window, positions: Window, run: RunWindow, model: Any,
        ids_per_byte: int, most: int, text: Window, size: int, fragments: Fragments, k: int, last: int, ids: Window,
        count: int, capacity: int, report: Window,
    ) -> tuple[int, int]:  # fmt: skip
        if k <= get_i64(run.state, BARRED):
            return k, count
        run_last = _prefetch_more(fragments, k, last, most)
        begin, end = get_i64(fragments.starts, k), get_i64(fragments.stops, run_last)
        if run_last == k or begin == end or (end + PAD > size and not readable_behind(text, end, PAD)):
            return k, count
        need = ids_per_byte * (end - begin + run_last - k + 1) + (run_last - k + 1) + SPARE_IDS
        if count + need > capacity:
            put_i64(report, NEED, need)
            return k, OUT_OF_CAPACITY
        number = split(rules, text, begin, end, fragments, k, run_last, positions)
        if number < 0:
            put_i64(run.state, BARRED, run_last)
            return k, count
        put_i32(positions, number, end - begin)
        piece, start = 0, -1
        put_i64(run.state, DONE, k - 1)
        begun, next_ = count, k
        while next_ <= run_last:
            filled, piece, next_, start = _fill(
                cache, records, run, fragments, text, begin, positions, piece, next_, run_last, start
            )
            count = resolve(cache, records, model, text, filled, run, ids, count)
            if count < 0 or filled == 0:  # a span that only the whole fragment can tell, or a border in a character
                put_i64(run.state, BARRED, run_last)
                next_ = min(get_i64(run.state, DONE) + 1, drop(model))
                return next_, begun if next_ == k else get_i64(run.ends, next_ - 1)
        return next_, finish(model, ids, count)

    return encode_run

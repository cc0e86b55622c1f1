"""From the fragments of a batch to ids, span by span: the loop that all types with safe cuts share.

A fragment is done in chunks whose places stay in the first-level cache. A chunk ends where the last span that began in
it begins, and the next chunk starts there. What the cuts cannot judge (malformed UTF-8, a span that only the whole text
can tell) sends the fragment to the model's slow way, which encodes it as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jittok._jit import OutI32, OutU8, OutU64, helper
from jittok._raw import (
    PAD,
    Window,
    get_i32,
    get_u8,
    get_word,
    put_i32,
    put_i64,
    put_u8,
    put_word,
    readable_behind,
    window,
)
from jittok.fragments import NEED, OUT_OF_ROOM, OUT_OF_WORK
from jittok.structures.cuts import SpanRules, SpanWindow, open_rules
from jittok.structures.piece_cache import SLACK, CacheWindow, PieceCache, make_cache, open_cache
from jittok.structures.piece_lookup import make_records

CHUNK = 16384
"""Bytes split before their spans are looked up: their places stay in the first-level cache."""
WHOLE = -101
"""A fragment, or a span, that only the slow way can encode; apart from the codes of `jittok.fragments`."""
BLANK = 0x20
NO_BLANK, ONE_BLANK, SEPARATE = 0, 1, 2
"""The first span of a fragment: like any other; like one with a blank in front; by a way of its own, without the
cache."""


class SpanWork(NamedTuple):
    """One thread's memory for fragments of up to `longest` bytes."""

    text: OutU8  # [longest + 8 + PAD] a fragment copied to where PAD bytes follow it, or a span with a blank in front
    places: OutI32  # [2 * CHUNK + longest + 64] where the spans of a chunk begin
    records: OutU64  # one batch of look-ups
    cache: PieceCache
    chunk: int  # bytes a chunk


class SpanWorkWindow(NamedTuple):
    """The same as windows, with the rules."""

    rules: SpanWindow
    text: Window
    text_size: int
    places: Window
    places_size: int
    records: Window
    cache: CacheWindow
    chunk: int


def make_span_work(longest: int, cache_bytes: int, chunk: int) -> SpanWork:
    """Memory of one thread. Pages that no text needs are never touched."""
    return SpanWork(
        np.zeros(longest + 8 + PAD, np.uint8),
        np.empty(2 * CHUNK + longest + 64, np.int32),
        make_records(),
        make_cache(cache_bytes),
        chunk,
    )


def regrow_span_work(work: SpanWork, longest: int) -> SpanWork:
    """The same for longer fragments: what the cache holds stays."""
    return make_span_work(longest, 1 << 10, work.chunk)._replace(cache=work.cache)


@helper
def open_span_work(work: SpanWork, rules: SpanRules) -> SpanWorkWindow:
    """Windows onto the arrays."""
    return SpanWorkWindow(
        open_rules(rules),
        window(work.text),
        work.text.size - PAD - 8,
        window(work.places),
        work.places.size,
        window(work.records),
        open_cache(work.cache),
        work.chunk,
    )


@helper
def copy_bytes(text: Window, start: int, stop: int, out: Window, at: int) -> None:
    """text[start:stop] to out[at:]; nothing behind it is touched."""
    while start + 8 <= stop:
        put_word(out, at, get_word(text, start))
        start += 8
        at += 8
    while start < stop:
        put_u8(out, at, get_u8(text, start))
        start += 1
        at += 1


@helper
def _no_way_of_its_own(_model: Any, _text: Window, _start: int, _stop: int, _ids: Window, _count: int) -> int:
    return WHOLE


def make_encode_spans(
    split: Callable[..., Any], look_up: Callable[..., Any], encode_first: Callable[..., Any] = _no_way_of_its_own
) -> Callable[..., Any]:
    """The loop for one model, as a helper.

    split(rules, text, begin, end, stop, places) -> number of spans, or a negative number when only the slow way will do
    look_up: made by `make_look_up`
    encode_first(model, text, start, stop, ids, count) -> the new count, or a negative code: for SEPARATE

    encode_spans(work, model, room_per_byte, first, text, size, start, stop, ids, count, room, report) -> the new
    count, WHOLE or a code: ids of the fragment text[start:stop] to ids[count:room]. size: readable bytes of `text`.
    first: NO_BLANK, ONE_BLANK or SEPARATE. `work`: a SpanWorkWindow; `model`: what the model's encode_piece takes.
    """

    @helper
    def first_span(work: SpanWorkWindow, text: Window, start: int, stop: int) -> int:
        """Where the first span ends; a negative number when only the slow way will do."""
        size = 64
        while True:
            end = min(start + size, stop)
            number = split(work.rules, text, start, end, stop, work.places)
            if number < 0:
                return number
            if number > 1:
                return start + get_i32(work.places, 1)
            if end == stop:
                return stop
            size *= 2

    @helper
    def encode_spans(
        work: SpanWorkWindow,
        model: Any,
        room_per_byte: int,
        first: int,
        text: Window,
        size: int,
        start: int,
        stop: int,
        ids: Window,
        count: int,
        room: int,
        report: Window,
    ) -> int:
        if stop - start > work.text_size:
            put_i64(report, NEED, stop - start)
            return OUT_OF_WORK
        if start == stop and first != ONE_BLANK:
            return count
        prefix = 1 if first == ONE_BLANK else 0
        if stop + PAD > size and not readable_behind(text, stop, PAD):
            # the end of the text, or a short one: to where it can be read as a whole, with its blank in front
            put_u8(work.text, 0, BLANK)
            copy_bytes(text, start, stop, work.text, prefix)
            return encode_padded(
                work, model, room_per_byte, first, work.text, 0, stop - start + prefix, ids, count, room, report
            )
        if prefix != 0:
            end = first_span(work, text, start, stop)
            if end < 0:
                return WHOLE
            put_u8(work.text, 0, BLANK)
            copy_bytes(text, start, end, work.text, 1)
            count = encode_one(work, model, room_per_byte, end - start + 1, ids, count, room, report)
            if count < 0:
                return count
            start = end
        return encode_padded(work, model, room_per_byte, first, text, start, stop, ids, count, room, report)

    @helper
    def encode_one(
        work: SpanWorkWindow,
        model: Any,
        room_per_byte: int,
        length: int,
        ids: Window,
        count: int,
        room: int,
        report: Window,
    ) -> int:
        """Ids of the one span that work.text begins with."""
        if count + room_per_byte * length + SLACK > room:
            put_i64(report, NEED, room_per_byte * length + SLACK)
            return OUT_OF_ROOM
        put_i32(work.places, 0, 0)
        put_i32(work.places, 1, length)
        return look_up(work.cache, work.records, model, work.text, 0, work.places, 1, ids, count)

    @helper
    def encode_padded(
        work: SpanWorkWindow,
        model: Any,
        room_per_byte: int,
        first: int,
        text: Window,
        start: int,
        stop: int,
        ids: Window,
        count: int,
        room: int,
        report: Window,
    ) -> int:
        """Ids of text[start:stop], behind which PAD bytes are readable."""
        chunk = max(2 * work.chunk // max(room_per_byte, 2), 64)  # so that little room need be left for it
        if first == SEPARATE:
            cut = first_span(work, text, start, stop)
            if cut < 0:
                return WHOLE
            if count + room_per_byte * (cut - start + 1) + SLACK > room:
                put_i64(report, NEED, room_per_byte * (stop - start + 1) + SLACK)
                return OUT_OF_ROOM
            count = encode_first(model, text, start, cut, ids, count)
            if count < 0:
                return count
            start = cut
        begin, size = start, chunk
        while begin < stop:
            end = min(begin + size, stop)
            number = split(work.rules, text, begin, end, stop, work.places)
            if number < 0:
                return WHOLE
            cut = stop
            if end < stop:
                number -= 1
                if number == 0:  # one span fills the chunk: it needs a longer one
                    size *= 2
                    continue
                cut = begin + get_i32(work.places, number)
            put_i32(work.places, number, cut - begin)
            if count + room_per_byte * (cut - begin) + SLACK > room:
                put_i64(report, NEED, room_per_byte * (stop - start + 1) + SLACK)
                return OUT_OF_ROOM
            count = look_up(work.cache, work.records, model, text, begin, work.places, number, ids, count)
            if count < 0:
                return count
            begin, size = cut, chunk
        return count

    return encode_spans

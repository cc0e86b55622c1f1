"""From the fragments of a batch to ids, span by span: the loop that all vocabulary types with safe cuts share.

A fragment is encoded chunk by chunk (see `chunks`). If the cuts are not known (malformed UTF-8, a span that depends on
the whole text), the model's fallback encodes the fragment as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jittok.kernels.fragments import NEED, OUT_OF_CAPACITY, OUT_OF_WORK
from jittok.kernels.jit import I32, OutI32, OutI64, OutU8, OutU64, helper
from jittok.kernels.memory import (
    PAD,
    Window,
    get_i32,
    get_i64,
    get_u8,
    get_word,
    put_i64,
    put_u8,
    put_word,
    readable_behind,
    window,
)
from jittok.kernels.pretoken_cache.chunks import make_next_chunk
from jittok.kernels.pretoken_cache.lookup import discard_nothing, flush_nothing, make_look_up
from jittok.kernels.pretoken_cache.records import (
    BARRED,
    RECORD,
    RUN_STATE,
    RunWindow,
    make_records,
    put_headed_record,
)
from jittok.kernels.pretoken_cache.run_loop import NO_BLANK, ONE_BLANK, Fragments, head_size, make_encode_run
from jittok.kernels.pretoken_cache.tables import (
    MIDDLE_BITS,
    SHORT_BITS,
    SPARE_IDS,
    CacheWindow,
    PretokenCache,
    make_cache,
    open_cache,
)
from jittok.kernels.safe_cuts.cuts import SpanRules, open_rules
from jittok.kernels.structures.pages import scratch

CHUNK = 16384
"""Bytes split before their spans are looked up: their offsets fit the first-level cache."""
NO_LIMIT = 1 << 62
WHOLE = -101
"""A fragment, or a span, that only the fallback can encode; distinct from the codes of `jittok.kernels.fragments`."""


class SpanWork(NamedTuple):
    """One thread's memory for fragments of up to `longest` bytes."""

    text: OutU8  # [longest + PAD] a copy of a fragment, with PAD bytes after it
    head: OutU8  # [longest + 1 + PAD] a first span after the byte before it
    positions: OutI32  # [2 * CHUNK + longest + 64] the starts of the spans of a chunk, or of a run
    run: OutI64  # [RUN_STATE] see RunWindow
    records: OutU64  # one batch of look-ups
    cache: PretokenCache
    chunk: int  # bytes a chunk


class SpanWorkWindow(NamedTuple):
    """The same as windows, with the splitter's rules."""

    rules: Any
    text: Window
    text_size: int
    positions: Window
    run: RunWindow
    records: Window
    cache: CacheWindow
    chunk: int
    longest_run: int  # bytes, besides what a chunk may have


def make_span_work(longest: int, tokens: int, cache_bytes: int, chunk: int) -> SpanWork:
    """Memory of one thread for a vocabulary of `tokens` tokens. Pages that no text needs are never touched."""
    return SpanWork(
        np.zeros(longest + PAD, np.uint8),
        np.zeros(longest + 1 + PAD, np.uint8),
        scratch(2 * CHUNK + longest + 64, np.int32),
        np.zeros(RUN_STATE, np.int64),
        make_records(),
        make_cache(cache_bytes, tokens),
        chunk,
    )


def regrow_span_work(work: SpanWork, longest: int) -> SpanWork:
    """The same for longer fragments; the content of the cache is kept."""
    return make_span_work(longest, 0, 1 << 10, work.chunk)._replace(cache=work.cache)


@helper
def open_span_work(
    work: SpanWork, rules: SpanRules, first: int, tokens: I32, ends: OutI64, limit: int
) -> SpanWorkWindow:
    """Windows onto the arrays. first: NO_BLANK, ONE_BLANK or SEPARATE; tokens, ends: of the fragments; limit: bytes of
    the longest fragment for which the rules hold."""
    return _open_work(work, open_rules(rules), first, tokens, ends, limit)


@helper
def open_word_work(work: SpanWork, marks_at: int, tokens: I32, ends: OutI64) -> SpanWorkWindow:
    """The same for marked words: the bitmap of word starts begins at data[marks_at] (see `splitters.word_bitmap`)."""
    return _open_work(work, marks_at, NO_BLANK, tokens, ends, NO_LIMIT)


@helper
def _open_work(work: SpanWork, rules: Any, first: int, tokens: I32, ends: OutI64, limit: int) -> SpanWorkWindow:
    work.run[BARRED] = -1
    return SpanWorkWindow(
        rules,
        window(work.text),
        work.text.size - PAD,
        window(work.positions),
        RunWindow(window(work.head), first, window(tokens), window(ends), window(work.run)),
        window(work.records),
        open_cache(work.cache),
        work.chunk,
        min(work.text.size - PAD, limit),
    )


@helper
def copy_bytes(text: Window, start: int, stop: int, out: Window, at: int) -> None:
    """Copy text[start:stop] to out[at:]; nothing after it is touched."""
    while start + 8 <= stop:
        put_word(out, at, get_word(text, start))
        start += 8
        at += 8
    while start < stop:
        put_u8(out, at, get_u8(text, start))
        start += 1
        at += 1


@helper
def _chunk_bytes(work: SpanWorkWindow, ids_per_byte: int) -> int:
    """Bytes of a chunk: fewer if a byte may give many ids, so that little spare capacity is needed."""
    return max(2 * work.chunk // max(ids_per_byte, 2), 64)


def _make_encode_run(encode_touching: Callable[..., Any]) -> Callable[..., Any]:
    """Runs of fragments; encode_touching: made by `run_loop.make_encode_run`."""

    @helper
    def encode_run(
        work: SpanWorkWindow,
        model: Any,
        ids_per_byte: int,
        text: Window,
        size: int,
        fragments: Fragments,
        k: int,
        last: int,
        ids: Window,
        count: int,
        capacity: int,
        report: Window,
    ) -> tuple[int, int]:
        most = min(_chunk_bytes(work, ids_per_byte), work.longest_run)
        return encode_touching(
            work.rules, work.cache, work.records, work.positions, work.run, model, ids_per_byte, most, text, size,
            fragments, k, last, ids, count, capacity, report,
        )  # fmt: skip

    return encode_run


def _make_encode_head(
    split: Callable[..., Any], resolve: Callable[..., Any], finish: Callable[..., Any]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The first span of a fragment that something is put before."""

    @helper
    def first_span(work: SpanWorkWindow, text: Window, start: int, stop: int) -> int:
        """The end of the first span; negative if the fallback is needed."""
        least = head_size(work.run, text, start, stop)
        size = least + 64
        while True:
            end = min(start + size, stop)
            number = split(work.rules, text, start, end, stop, work.positions)
            if number < 0:
                return number
            for k in range(1, number):
                if get_i32(work.positions, k) >= least:
                    return start + get_i32(work.positions, k)
            if end == stop:
                return stop
            size *= 2

    @helper
    def encode_head(
        work: SpanWorkWindow,
        model: Any,
        ids_per_byte: int,
        text: Window,
        start: int,
        stop: int,
        ids: Window,
        count: int,
        capacity: int,
        report: Window,
    ) -> int:
        """Ids of the first span of a fragment, text[start:stop]."""
        need = ids_per_byte * (stop - start + 1) + SPARE_IDS
        if count + need > capacity:
            put_i64(report, NEED, need)
            return OUT_OF_CAPACITY
        short, middle = get_i64(work.cache.state, SHORT_BITS), get_i64(work.cache.state, MIDDLE_BITS)
        put_headed_record(work.cache, work.records, 0, work.run, text, start, stop, short, middle)
        count = resolve(work.cache, work.records, model, text, RECORD, work.run, ids, count)
        return finish(model, ids, count) if count >= 0 else count

    return first_span, encode_head


def _make_encode_padded(
    split: Callable[..., Any], resolve: Callable[..., Any], finish: Callable[..., Any]
) -> Callable[..., Any]:
    next_chunk, look_up = make_next_chunk(split), make_look_up(resolve, finish)
    first_span, encode_head = _make_encode_head(split, resolve, finish)

    @helper
    def encode_padded(
        work: SpanWorkWindow,
        model: Any,
        ids_per_byte: int,
        headed: bool,
        text: Window,
        start: int,
        stop: int,
        ids: Window,
        count: int,
        capacity: int,
        report: Window,
    ) -> int:
        """Ids of text[start:stop], after which PAD bytes are readable."""
        chunk = _chunk_bytes(work, ids_per_byte)
        if headed and work.run.first != NO_BLANK:
            cut = first_span(work, text, start, stop)
            if cut < 0:
                return WHOLE
            count = encode_head(work, model, ids_per_byte, text, start, cut, ids, count, capacity, report)
            if count < 0:
                return count
            start = cut
        begin = start
        while begin < stop:
            number, cut = next_chunk(work.rules, text, begin, stop, chunk, work.positions, NO_LIMIT)
            if number < 0:
                return WHOLE
            if count + ids_per_byte * (cut - begin) + SPARE_IDS > capacity:
                put_i64(report, NEED, ids_per_byte * (stop - start + 1) + SPARE_IDS)
                return OUT_OF_CAPACITY
            count = look_up(work.cache, work.records, model, text, begin, work.positions, number, work.run, ids, count)
            if count < 0:
                return count
            begin = cut
        return count

    return encode_padded


def _make_split_run(split: Callable[..., Any]) -> Callable[..., Any]:
    @helper
    def split_run(
        rules: Any,
        text: Window,
        begin: int,
        end: int,
        _fragments: Fragments,
        _k: int,
        _last: int,
        positions: Window,
    ) -> int:
        """Split as if nothing was between the fragments: fewer cuts give the same ids."""
        return split(rules, text, begin, end, end, positions)

    return split_run


def make_encode_spans(
    split: Callable[..., Any],
    resolve: Callable[..., Any],
    finish: Callable[..., Any] = flush_nothing,
    drop: Callable[..., Any] = discard_nothing,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The loops for one model, as helpers.

    split(rules, text, begin, end, stop, positions) -> the number of spans; negative if the fallback is needed
    resolve: made by `make_resolve`; finish, drop: see `make_encode_run`

    encode_run(work, model, ids_per_byte, text, size, fragments, k, last, ids, count, capacity, report) -> (the first
    fragment that is not done, the new count or a code). It writes the ids of some of the fragments k .. last - 1 to
    ids[count:capacity], and their ends; none if these fragments are no run.

    encode_spans(work, model, ids_per_byte, headed, text, size, start, stop, ids, count, capacity, report) -> the new
    count, WHOLE or a code. It writes the ids of the fragment text[start:stop]. headed: whether work.run.first is
    before it.

    size: readable bytes of `text`. work: a SpanWorkWindow; model: the `model` argument of its encode_piece.
    """
    encode_padded = _make_encode_padded(split, resolve, finish)

    @helper
    def encode_spans(
        work: SpanWorkWindow,
        model: Any,
        ids_per_byte: int,
        headed: bool,
        text: Window,
        size: int,
        start: int,
        stop: int,
        ids: Window,
        count: int,
        capacity: int,
        report: Window,
    ) -> int:
        if stop - start > work.text_size:
            put_i64(report, NEED, stop - start)
            return OUT_OF_WORK
        if start == stop and not (headed and work.run.first == ONE_BLANK):
            return count
        if stop + PAD > size and not readable_behind(text, stop, PAD):
            copy_bytes(text, start, stop, work.text, 0)
            return encode_padded(
                work, model, ids_per_byte, headed, work.text, 0, stop - start, ids, count, capacity, report
            )
        return encode_padded(work, model, ids_per_byte, headed, text, start, stop, ids, count, capacity, report)

    encode_run = _make_encode_run(make_encode_run(_make_split_run(split), resolve, finish, drop))
    return encode_run, encode_spans

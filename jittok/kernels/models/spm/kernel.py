"""SPM, span by span: ids of cached spans are copied, new spans are merged.

Every merge makes a token. So two characters that are adjacent in no token are never joined, and merges on their left do
not influence merges on their right. A text is cut between them: each part is merged in the same order as within the
whole. `compile` finds these pairs of characters. A fragment without cuts is one span.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2
from jittok.kernels.fragments import FOUND, NEED, NO_BYTE_TOKEN, OFFSET, OUT_OF_CAPACITY, OUT_OF_WORK
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, OutU8, helper, kernel
from jittok.kernels.memory import Window, get_i32, get_u8, get_word, put_i32, put_u8, window
from jittok.kernels.merging.left_to_right import (
    LongWordTables,
    Merger,
    MergerWork,
    make_merger_work,
    merge_list,
    open_merger,
)
from jittok.kernels.pretoken_cache.fragment_loop import Spans, make_encode_by_spans
from jittok.kernels.pretoken_cache.lookup import make_resolve
from jittok.kernels.pretoken_cache.run_loop import NO_BLANK, ONE_BLANK
from jittok.kernels.pretoken_cache.span_loop import (
    CHUNK,
    NO_LIMIT,
    WHOLE,
    SpanWork,
    make_span_work,
    open_span_work,
    regrow_span_work,
)
from jittok.kernels.pretokenize.splitters.spans import split_spans
from jittok.kernels.safe_cuts.cuts import SpanRules
from jittok.kernels.structures.bytes_table import BytesTable, BytesWindow, find_bytes, open_bytes_table
from jittok.kernels.structures.char_table import CharTable, CharWindow, find_character, open_char_table
from jittok.kernels.structures.pages import scratch
from jittok.kernels.structures.pair_table import PairTable
from jittok.kernels.structures.utf8 import lead_length

BYTES_PER_BYTE = 3
"""A space becomes the three bytes of U+2581."""
_1 = np.uint64(1)


class SpmArrays(NamedTuple):
    """A compiled SPM vocabulary: everything that its kernels read."""

    pairs: PairTable  # symbols are token ids, and from `tokens` on characters that only occur inside tokens
    tokens: int
    texts: BytesTable  # texts of the tokens, then of those characters
    ascii: I32  # [128] the symbol of each ASCII character, or -1; a space has that of U+2581
    byte_ids: I32  # [256] byte fallback: the id of each byte of a character without a symbol, or -1
    reachable: U8  # [tokens] whether merging can make the token (a single character counts as made)
    add_space_prefix: int
    rules: SpanRules
    characters: CharTable  # characters beyond ASCII -> symbols
    span_byte_ids: I32  # [256] `byte_ids` as in the file; in those, a caller may replace -1 by another id
    chain: LongWordTables  # for long spans
    ids_per_byte: int  # the most ids of one byte of text


class SpmWork(NamedTuple):
    """Memory of one thread, for fragments of up to `longest` bytes."""

    escaped: OutU8  # [3 * longest + 16] a whole fragment with U+2581 for its spaces
    merge: MergerWork
    spans: SpanWork


def make_work(
    arrays: SpmArrays, longest: int, cache_bytes: int = 64 << 20, chunk: int = CHUNK, queued: int | None = None
) -> SpmWork:
    """Memory of one thread for fragments of up to `longest` bytes. Pages that no text needs are not touched. queued:
    symbols that are merged without a chain (see `make_merge_work`)."""
    capacity = BYTES_PER_BYTE * longest + 16
    spans = make_span_work(longest, arrays.tokens, cache_bytes, chunk)
    return SpmWork(scratch(capacity, np.uint8), make_merger_work(capacity, queued), spans)


def regrow(arrays: SpmArrays, work: SpmWork, longest: int, queued: int | None = None) -> SpmWork:
    """The same memory for longer fragments, with the same cache."""
    made = make_work(arrays, longest, 1 << 10, work.spans.chunk, queued)
    return made._replace(spans=regrow_span_work(work.spans, longest))


class SpmSpanModel(NamedTuple):
    """The arrays that encoding a span reads, as windows."""

    merge: Merger
    characters: CharWindow
    texts: BytesWindow
    ascii: Window
    byte_ids: Window
    tokens: int


@helper
def _open_model(arrays: SpmArrays, work: SpmWork, byte_ids: I32) -> SpmSpanModel:
    return SpmSpanModel(
        open_merger(work.merge, arrays.pairs, arrays.chain),
        open_char_table(arrays.characters),
        open_bytes_table(arrays.texts),
        window(arrays.ascii),
        window(byte_ids),
        arrays.tokens,
    )


@helper
def _encode_span(
    model: SpmSpanModel, text: Window, start: int, stop: int, _low: np.uint64, _high: np.uint64, ids: Window, count: int
) -> int:
    """Ids of a span; the new count, LONG_WORD, or WHOLE if it contains a byte without a token."""
    symbols = _merge(model, text, start, stop)
    return symbols if symbols < 0 else _write(model, text, start, symbols, ids, count)[0]


@helper
def _merge(model: SpmSpanModel, text: Window, start: int, stop: int) -> int:
    """Merge the characters of text[start:stop]; the number of symbols in the merger's queue, or LONG_WORD. In invalid
    UTF-8, a character has the length that its first byte requires, as in llama.cpp's unicode_len_utf8."""
    merge = model.merge
    symbols, i = 0, start
    while i < stop:
        byte = get_u8(text, i)
        put_i32(merge.queue.positions, symbols, i - start)
        if byte < 0x80:
            put_i32(merge.queue.symbols, symbols, get_i32(model.ascii, byte))
            i += 1
        else:
            size = lead_length(byte)
            if i + size <= stop:
                key = get_word(text, i) & ((_1 << np.uint64(8 * size)) - _1)
                put_i32(merge.queue.symbols, symbols, find_character(model.characters, key))
            else:
                size = stop - i
                put_i32(merge.queue.symbols, symbols, find_bytes(model.texts, text, i, stop))
            i += size
        symbols += 1
    put_i32(merge.queue.positions, symbols, stop - start)
    return merge_list(merge, symbols)


@helper
def _write(model: SpmSpanModel, text: Window, start: int, symbols: int, ids: Window, count: int) -> tuple[int, int]:
    """Write the ids of merged symbols, with byte fallback; (the new count, 0), or (WHOLE, the offset of a byte without
    a token)."""
    merge = model.merge
    for k in range(symbols):
        symbol = get_i32(merge.queue.symbols, k)
        if 0 <= symbol < model.tokens:
            put_i32(ids, count, symbol)
            count += 1
            continue
        at, end = start + get_i32(merge.queue.positions, k), start + get_i32(merge.queue.positions, k + 1)
        if get_u8(text, at) == SPACE_BYTE:
            count = _byte_ids_of_space(model.byte_ids, ids, count)
            if count < 0:
                return WHOLE, at
            continue
        while at < end:
            token = get_i32(model.byte_ids, get_u8(text, at))
            if token < 0:
                return WHOLE, at
            put_i32(ids, count, token)
            count += 1
            at += 1
    return count, 0


@helper
def _byte_ids_of_space(byte_ids: Window, ids: Window, count: int) -> int:
    """Write the three ids of U+2581, for vocabularies where it is no token; the new count, or -1 if one is missing."""
    a, b, c = get_i32(byte_ids, SPACE_MARK_0), get_i32(byte_ids, SPACE_MARK_1), get_i32(byte_ids, SPACE_MARK_2)
    put_i32(ids, count, a)
    put_i32(ids, count + 1, b)
    put_i32(ids, count + 2, c)
    return -1 if min(a, b, c) < 0 else count + 3


@helper
def _open(model: SpmArrays, work: SpmWork, tokens: I32, ends: OutI64) -> Spans:
    first_span = ONE_BLANK if model.add_space_prefix else NO_BLANK
    spans = open_span_work(work.spans, model.rules, first_span, tokens, ends, NO_LIMIT)
    return Spans(spans, _open_model(model, work, model.span_byte_ids), model.ids_per_byte, NO_LIMIT)


@helper
def _whole(
    model: SpmArrays,
    work: SpmWork,
    _own: Spans,
    data: U8,
    start: int,
    stop: int,
    prefixed: bool,
    ids: OutI32,
    count: int,
    report: OutI64,
) -> int:
    """Ids of a fragment without cuts, as one span of its text with U+2581: in invalid UTF-8, the bytes of U+2581 may
    belong to the character before it. Here a caller may have given bytes without a token the unknown id."""
    if BYTES_PER_BYTE * (stop - start) + 16 > work.escaped.size:
        report[NEED] = stop - start
        return OUT_OF_WORK
    text, escaped = window(data), window(work.escaped)
    prefix = model.add_space_prefix if prefixed else 0
    length, _ = _escape(text, start, stop, prefix, escaped, NO_LIMIT)
    if count + length > ids.size:
        report[NEED] = length
        return OUT_OF_CAPACITY
    own = _open_model(model, work, model.byte_ids)
    symbols = _merge(own, escaped, 0, length)
    if symbols < 0:
        return symbols
    count, position = _write(own, escaped, 0, symbols, window(ids), count)
    if count == WHOLE:
        report[FOUND] = get_u8(escaped, position)
        _, report[OFFSET] = _escape(text, start, stop, prefix, escaped, position)
        return NO_BYTE_TOKEN
    return count


@helper
def _escape(text: Window, start: int, stop: int, prefix: int, out: Window, position: int) -> tuple[int, int]:
    """Write text[start:stop] with U+2581 for each space, and one more before if `prefix`; (the length, the offset in
    `text` of what is written to out[position], or `stop`)."""
    at, source = 0, stop
    for i in range(start - prefix, stop):
        byte = SPACE_BYTE
        if i >= start:
            byte = get_u8(text, i)
        if byte == SPACE_BYTE:
            put_u8(out, at, SPACE_MARK_0)
            put_u8(out, at + 1, SPACE_MARK_1)
            put_u8(out, at + 2, SPACE_MARK_2)
            at += 3
        else:
            put_u8(out, at, byte)
            at += 1
        if at > position:
            source = min(source, max(i, start))
    return at, source


_encode_fragments = make_encode_by_spans(_open, split_spans, make_resolve(_encode_span), _whole)


@kernel
def encode_fragments(
    model: SpmArrays,
    work: SpmWork,
    data: U8,
    starts: I64,
    stops: I64,
    tokens: I32,
    first: int,
    last: int,
    count: int,
    ids: OutI32,
    ends: OutI64,
    report: OutI64,
) -> int:
    """Ids of fragments first .. last - 1; the protocol is in `jittok.kernels.fragments`.

    Codes: OUT_OF_CAPACITY, OUT_OF_WORK, LONG_WORD, NO_BYTE_TOKEN. Linear in bytes; without left-to-right BPE, n log n
    in the bytes of a span.
    """
    return _encode_fragments(model, work, data, starts, stops, tokens, first, last, count, ids, ends, report)

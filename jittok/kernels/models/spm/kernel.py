"""SPM, span by span: ids of cached spans are copied, new spans are merged.

Every merge makes a token. So two characters that are adjacent in no token are never joined, and merges on their left do
not influence merges on their right. A text is cut between them: each part is merged in the same order as within the
whole. `compile` finds these pairs of characters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, helper, kernel
from jittok.kernels.memory import Window, get_i32, get_u8, get_word, put_i32, window
from jittok.kernels.merging.left_to_right import Merger, merge_list, open_merger
from jittok.kernels.models.spm.arrays import SpmArrays, SpmWork
from jittok.kernels.models.spm.whole_fragment import character_length, encode_whole
from jittok.kernels.pretoken_cache.fragment_loop import Spans, make_encode_by_spans
from jittok.kernels.pretoken_cache.lookup import make_resolve
from jittok.kernels.pretoken_cache.run_loop import NO_BLANK, ONE_BLANK
from jittok.kernels.pretoken_cache.span_loop import NO_LIMIT, WHOLE, open_span_work
from jittok.kernels.pretokenize.splitters.spans import split_spans
from jittok.kernels.structures.char_table import CharWindow, find_character, open_char_table

_1 = np.uint64(1)


class SpmSpanModel(NamedTuple):
    """The arrays that encoding a span reads, as windows."""

    merge: Merger
    characters: CharWindow
    ascii: Window
    byte_ids: Window
    tokens: int


@helper
def _encode_span(
    model: SpmSpanModel, text: Window, start: int, stop: int, _low: np.uint64, _high: np.uint64, ids: Window, count: int
) -> int:
    """Ids of a span of valid UTF-8; the new count, LONG_WORD, or WHOLE if it contains a byte without a token."""
    merge = model.merge
    symbols, i = 0, start
    while i < stop:
        byte = get_u8(text, i)
        put_i32(merge.queue.positions, symbols, i - start)
        if byte < 0x80:
            put_i32(merge.queue.symbols, symbols, get_i32(model.ascii, byte))
            i += 1
        else:
            size = character_length(byte)
            key = get_word(text, i) & ((_1 << np.uint64(8 * size)) - _1)
            put_i32(merge.queue.symbols, symbols, find_character(model.characters, key))
            i += size
        symbols += 1
    put_i32(merge.queue.positions, symbols, stop - start)
    symbols = merge_list(merge, symbols)
    if symbols < 0:
        return symbols
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
                return WHOLE
            continue
        while at < end:
            token = get_i32(model.byte_ids, get_u8(text, at))
            if token < 0:
                return WHOLE
            put_i32(ids, count, token)
            count += 1
            at += 1
    return count


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
    own = SpmSpanModel(
        open_merger(work.merge, model.pairs, model.chain),
        open_char_table(model.characters),
        window(model.span_ascii),
        window(model.span_byte_ids),
        model.tokens,
    )
    return Spans(spans, own, model.ids_per_byte, NO_LIMIT)


@helper
def _whole(
    model: SpmArrays,
    work: SpmWork,
    own: Spans,
    data: U8,
    start: int,
    stop: int,
    prefixed: bool,
    ids: OutI32,
    count: int,
    report: OutI64,
) -> int:
    prefix = model.add_space_prefix if prefixed else 0
    return encode_whole(model, work, own.model.merge, data, start, stop, prefix, count, ids, report)


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

"""WordPiece, span by span: ids of cached spans are copied; of new spans, the characters are translated to the
vocabulary's alphabet, then the longest token is matched repeatedly.

Blanks, punctuation and ideographs end a word whatever is around them, so no word crosses the border of a span. A
fragment without cuts (a GGUF's text that is invalid UTF-8) is one span.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2
from jittok.common.unicode.tables import LAST_CODE_POINT
from jittok.kernels.fragments import BEYOND_UNICODE, FOUND, NEED, NOT_UTF8, OFFSET, OUT_OF_CAPACITY, OUT_OF_WORK
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, helper, kernel
from jittok.kernels.memory import Window, get_i32, get_u8, get_u64, put_i32, put_u8, window
from jittok.kernels.models.wpm.alphabet import CODE, ENDS, LENGTH_BIT, NODE_BITS, ODD, SEVERAL, UNKNOWN, Alphabet
from jittok.kernels.models.wpm.compile import CODED, WpmArrays, WpmWork
from jittok.kernels.pretoken_cache.fragment_loop import Spans, make_encode_by_spans
from jittok.kernels.pretoken_cache.lookup import make_resolve
from jittok.kernels.pretoken_cache.run_loop import NO_BLANK
from jittok.kernels.pretoken_cache.span_loop import open_span_work
from jittok.kernels.pretoken_cache.tables import LONGEST_SHORT
from jittok.kernels.pretokenize.splitters.spans import split_spans
from jittok.kernels.structures.double_array import NO_NODE, ROOT
from jittok.kernels.structures.long_keys import LONG, NONE, LongWindow, find_long, long_value, open_long
from jittok.kernels.structures.utf8 import decode

ODD_TEXT = -17
"""Kernel code: Python has to encode this fragment."""
NODE, VALUE = np.uint64((1 << NODE_BITS) - 1), np.uint64(2 * NODE_BITS)
_PARENT = np.uint64(NODE_BITS)
_0, _HIGH = np.uint64(0), np.uint64(0x8080808080808080)


class WpmSpanModel(NamedTuple):
    """The windows and numbers of the Alphabet, and scratch for a word."""

    units: Window
    pages: Window
    codes: Window
    first: int
    marker_node: int
    marker_value: int
    unk_id: int
    longest: int
    word: Window
    several: Window
    long: LongWindow
    found: Window
    shortest: int  # Vocab.shortest_utf8


@helper
def open_span_model(own: Alphabet, unk_id: int, longest: int, shortest: int, work: WpmWork) -> WpmSpanModel:
    """Windows onto the arrays."""
    return WpmSpanModel(
        window(own.units),
        window(own.pages),
        window(own.codes),
        own.first,
        own.marker_node,
        own.marker_value,
        unk_id,
        longest,
        window(work.word),
        window(own.several),
        open_long(own.long),
        window(work.found),
        shortest,
    )


@helper
def _put_ascii(model: WpmSpanModel, text: Window, start: int, stop: int) -> int:
    """Write the word of a short ASCII span, with or without a space before it; its length, or 0 for any other span.

    Always takes LONGEST_SHORT steps: a loop with an unpredictable end costs as much as all of them.
    """
    first = start + (get_u8(text, start) == SPACE_BYTE)
    own, others = get_i32(model.pages, 0) << 8, 0
    for k in range(LONGEST_SHORT):
        entry = get_i32(model.codes, own + (get_u8(text, first + k) & 0x7F))
        put_u8(model.word, k, entry & 0xFF)
        others |= (entry >> LENGTH_BIT != 1) << k
    size = stop - first
    return size if others & ((1 << size) - 1) == 0 else 0


@helper
def wide_code_point(text: Window, i: int, lead: int) -> tuple[int, int]:
    """(code point, length) of the non-ASCII character at i.

    `cuts.wide_character` decodes in the same way between its look-ups; calling this function there is slower.
    """
    second = get_u8(text, i + 1) & 0x3F
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | second, 2
    third = get_u8(text, i + 2) & 0x3F
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | second << 6 | third, 3
    return (lead & 0x07) << 18 | second << 12 | third << 6 | get_u8(text, i + 3) & 0x3F, 4


@helper
def becomes(model: WpmSpanModel, code: int) -> int:
    """The entry of a code point (see `alphabet`)."""
    return get_i32(model.codes, get_i32(model.pages, code >> 8) << 8 | code & 0xFF)


@helper
def put_code(model: WpmSpanModel, at: int, entry: int) -> int:
    """Append the code of an entry to the word; the offset after it."""
    put_u8(model.word, at, entry & 0xFF)
    put_u8(model.word, at + 1, entry >> 8 & 0xFF)
    put_u8(model.word, at + 2, entry >> 16 & 0xFF)
    return at + (entry >> LENGTH_BIT & 3)


@helper
def _put_several(model: WpmSpanModel, at: int, characters: int, position: int) -> tuple[int, int]:
    size = get_u8(model.several, position)
    for k in range(size):
        put_u8(model.word, at + k, get_u8(model.several, position + 2 + k))
    return at + size, characters + get_u8(model.several, position + 1)


@helper
def encode_known(model: WpmSpanModel, size: int, unknown: int, ids: Window, count: int) -> int:
    """Ids of the word, or the unknown token if `unknown` is not 0; the new count."""
    if unknown != 0:
        put_i32(ids, count, model.unk_id)
        return count + 1
    if model.long.count != 0 and size > LONG:
        return _encode_apart(model, size, ids, count)
    return _encode_word(model, size, ids, count)


@helper
def _encode_word(model: WpmSpanModel, size: int, ids: Window, count: int) -> int:
    """Ids of word[:size], after U+2581 if it does not begin with it, by longest match, or the unknown token; the new
    count."""
    at, found, end, j = count, model.marker_value + 1, 0, 0
    node = max(model.marker_node, ROOT)
    if model.marker_node == NO_NODE:  # no token begins with U+2581
        j = size
    unit = get_u64(model.units, node)
    while True:
        while j < size:
            position = np.int64(unit & NODE) ^ get_u8(model.word, j)
            next_ = get_u64(model.units, position)
            if np.int64(next_ >> _PARENT & NODE) != node:
                break
            node, unit = position, next_
            j += 1
            value = np.int64(unit >> VALUE)
            found, end = value if value != 0 else found, j if value != 0 else end
        if found == 0:
            put_i32(ids, count, model.unk_id)
            return count + 1
        put_i32(ids, at, found - 1)
        at += 1
        if end == size:
            return at
        node, found, j = ROOT, 0, end
        unit = get_u64(model.units, ROOT)


@helper
def _encode_apart(model: WpmSpanModel, size: int, ids: Window, count: int) -> int:
    """The same with long tokens looked up first: walks end after LONG bytes, except for the word's first token."""
    find_long(model.long, model.word, 0, size, model.found, 0)
    at, node, found, end, j, stop = count, max(model.marker_node, ROOT), model.marker_value + 1, 0, 0, size
    if model.marker_node == NO_NODE:  # no token begins with U+2581
        j = size
    while True:
        unit = get_u64(model.units, node)
        while j < stop:
            position = np.int64(unit & NODE) ^ get_u8(model.word, j)
            next_ = get_u64(model.units, position)
            if np.int64(next_ >> _PARENT & NODE) != node:
                break
            node, unit = position, next_
            j += 1
            value = np.int64(unit >> VALUE)
            found, end = value if value != 0 else found, j if value != 0 else end
        if found == 0:
            put_i32(ids, count, model.unk_id)
            return count + 1
        put_i32(ids, at, found - 1)
        at += 1
        if end == size:
            return at
        node, found, j, stop = ROOT, 0, end, min(end + LONG, size)
        long = get_i32(model.found, end)
        if long != NONE:
            token, length = long_value(model.long, long)
            found, end, stop = token + 1, end + length, j


@helper
def _encode_span(
    model: WpmSpanModel, text: Window, start: int, stop: int, low: np.uint64, high: np.uint64, ids: Window, count: int
) -> int:
    """Ids of a span of valid UTF-8 to ids[count:]; the new count or ODD_TEXT."""
    if stop - start <= LONGEST_SHORT and (low | high) & _HIGH == _0 and model.first == 0:
        size = _put_ascii(model, text, start, stop)
        if size > 0:
            return _encode_word(model, size, ids, count)
    return _encode_words(model, text, start, stop, ids, count)


@helper
def _known_character(_model: WpmSpanModel, text: Window, i: int, _stop: int) -> tuple[int, int]:
    """(code point, bytes) of the character at i in valid UTF-8."""
    code = get_u8(text, i)
    return (code, 1) if code < 0x80 else wide_code_point(text, i, code)


@helper
def _any_character(model: WpmSpanModel, text: U8, i: int, stop: int) -> tuple[int, int]:
    """(code point, bytes) of the character at i as llama.cpp reads any bytes."""
    return decode(text, i, stop, model.shortest)


def _make_encode_words(character: Callable[..., Any]) -> Callable[..., int]:
    """encode_words(model, text, start, stop, ids, count): ids of the words of text[start:stop], where no word crosses
    either end, to ids[count:]; the new count or ODD_TEXT.

    character(model, text, i, stop) -> (code point, bytes): a helper that reads one character, up to U+10FFFF
    """

    @helper
    def encode_words(model: WpmSpanModel, text: Any, start: int, stop: int, ids: Window, count: int) -> int:
        first = model.first
        i, size, unknown, characters, odd, disorder = start, first, 0, 0, 0, 0
        if first != 0:
            put_u8(model.word, 0, SPACE_MARK_0)
            put_u8(model.word, 1, SPACE_MARK_1)
            put_u8(model.word, 2, SPACE_MARK_2)
        while i <= stop:
            entry, length = ENDS, 1  # after the span: ends the last word
            if i < stop:
                code, length = character(model, text, i, stop)
                entry = becomes(model, code)
            if entry & ENDS:
                if size > first or unknown != 0:
                    unknown |= characters > model.longest
                    if disorder != 0 and unknown == 0:  # an unknown word is so in any order
                        return ODD_TEXT
                    count = encode_known(model, size, unknown, ids, count)
                if entry & SEVERAL:
                    size, _ = _put_several(model, first, 0, entry & CODE)
                    count = encode_known(model, size, 0, ids, count)
                elif entry != ENDS:
                    count = encode_known(model, put_code(model, first, entry), entry & UNKNOWN, ids, count)
                unknown = characters = odd = disorder = 0
                size = first
            elif entry >= SEVERAL:
                disorder |= odd & entry
                if entry & SEVERAL:
                    size, characters = _put_several(model, size, characters, entry & CODE)
                else:
                    size, characters = put_code(model, size, entry), characters + 1
                    unknown |= entry & UNKNOWN
                odd = entry & ODD
            else:
                size = put_code(model, size, entry)
                unknown |= entry & UNKNOWN
                characters += entry != 0  # a dropped character does not count
                odd = odd if entry == 0 else 0
            i += length
        return count

    return encode_words


_encode_words, _encode_any_words = _make_encode_words(_known_character), _make_encode_words(_any_character)


@helper
def _open(model: WpmArrays, work: WpmWork, tokens: I32, ends: OutI64) -> Spans:
    spans = open_span_work(work.spans, model.rules, NO_BLANK, tokens, ends, model.cut_limit)
    own = open_span_model(model.alphabet, model.unk_id, model.longest, model.shortest, work)
    return Spans(spans, own, model.ids_per_byte, model.cut_limit)


@helper
def _whole(
    model: WpmArrays,
    work: WpmWork,
    own: Spans,
    data: U8,
    start: int,
    stop: int,
    _prefixed: bool,
    ids: OutI32,
    count: int,
    report: OutI64,
) -> int:
    if model.lenient == 0:  # then only invalid UTF-8 cannot be cut
        return NOT_UTF8
    if model.cut_limit < 0:
        return ODD_TEXT
    i = start
    while i < stop:
        code, length = decode(data, i, stop, model.shortest)
        if code > LAST_CODE_POINT:
            report[OFFSET], report[FOUND] = i, code
            return BEYOND_UNICODE
        i += length
    if CODED * (stop - start) + 16 > work.word.size:
        report[NEED] = stop - start
        return OUT_OF_WORK
    if count + model.ids_per_byte * (stop - start) > ids.size:
        report[NEED] = model.ids_per_byte * (stop - start)
        return OUT_OF_CAPACITY
    return _encode_any_words(own.model, data, start, stop, window(ids), count)


_encode_fragments = make_encode_by_spans(_open, split_spans, make_resolve(_encode_span), _whole)


@kernel
def encode_fragments(
    model: WpmArrays,
    work: WpmWork,
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
    """See jittok.kernels.fragments. Codes: OUT_OF_CAPACITY, OUT_OF_WORK, ODD_TEXT; of a GGUF BEYOND_UNICODE, of other
    files NOT_UTF8. Time: linear in bytes (`long_keys`)."""
    return _encode_fragments(model, work, data, starts, stops, tokens, first, last, count, ids, ends, report)

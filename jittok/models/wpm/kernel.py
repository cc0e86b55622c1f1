"""WordPiece, span by span: what the cache holds is copied, what is new is normalized and matched.

Blanks, punctuation and ideographs end a word whatever stands around them, so the words of a span are its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok._jit import I32, I64, U8, OutI32, OutI64, helper, kernel
from jittok._raw import Window, get_i32, get_u8, put_i32, put_u8, window
from jittok.fragments import FRAGMENT, NEED, OUT_OF_ROOM
from jittok.models.wpm.compile import ALONE, DROPPED, IMAGE, KIND, LETTER, Arrays, Work
from jittok.models.wpm.whole import encode_whole
from jittok.pretokenize.splitters.spans import split_spans
from jittok.structures.double_array import BASE, NO_NODE, NO_VALUE, PARENT, ROOT, UNIT, VALUE
from jittok.structures.piece_lookup import make_settle
from jittok.structures.run_loop import Fragments
from jittok.structures.span_loop import NO_BLANK, NO_LIMIT, WHOLE, make_encode_spans, open_span_work
from jittok.structures.utf8 import encoded_byte, encoded_length, lead_length


class SpanModel(NamedTuple):
    """What encoding a span needs, as windows."""

    units: Window
    pages: Window
    entries: Window
    word: Window
    marker_node: int
    marker_value: int
    marker_length: int
    unk_id: int


@helper
def _encode_span(
    model: SpanModel, text: Window, start: int, stop: int, _low: np.uint64, _high: np.uint64, ids: Window, count: int
) -> int:
    """Ids of a span of well-formed text."""
    i, size = start, 3
    while i <= stop:
        kind, code, length = ALONE, 0, 1  # what ends the last word
        if i < stop:
            code = get_u8(text, i)
            if code >= 0x80:
                length = lead_length(code)
                code &= 0x7F >> length
                for k in range(1, length):
                    code = code << 6 | get_u8(text, i + k) & 0x3F
            entry = get_i32(model.entries, get_i32(model.pages, code >> 8) << 8 | code & 0xFF)
            kind, code = entry >> KIND, code ^ entry & IMAGE
        if kind == LETTER:
            size = _put_code_point(model.word, size, code)
        elif kind != DROPPED:
            if size > 3:
                count = _encode_word(model, size, ids, count)
            if kind == ALONE and i < stop:
                count = _encode_word(model, _put_code_point(model.word, 3, code), ids, count)
            size = 3
        i += length
    return count


@helper
def _put_code_point(word: Window, at: int, code: int) -> int:
    if code < 0x80:
        put_u8(word, at, code)
        return at + 1
    size = encoded_length(code)
    for k in range(size):
        put_u8(word, at + k, encoded_byte(code, size, k))
    return at + size


@helper
def _encode_word(model: SpanModel, size: int, ids: Window, count: int) -> int:
    """Ids of the marked word word[:size] by longest match, or the unknown token; the new count."""
    at = count
    node, found, end, j = model.marker_node, model.marker_value, model.marker_length, 3
    if node == NO_NODE:  # no token goes on behind U+2581
        j = size
    while True:
        while j < size:
            place = get_i32(model.units, UNIT * node + BASE) ^ get_u8(model.word, j)
            if get_i32(model.units, UNIT * place + PARENT) != node:
                break
            node = place
            j += 1
            value = get_i32(model.units, UNIT * node + VALUE)
            if value != NO_VALUE:
                found, end = value, j
        if found == NO_VALUE:
            put_i32(ids, count, model.unk_id)
            return count + 1
        put_i32(ids, at, found)
        at += 1
        if end == size:
            return at
        node, found, j = ROOT, NO_VALUE, end


_encode_run, _encode_spans = make_encode_spans(split_spans, make_settle(_encode_span))


@kernel
def encode_fragments(
    model: Arrays,
    work: Work,
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
    """See jittok.fragments. Codes: OUT_OF_ROOM, OUT_OF_WORK, BEYOND_UNICODE. Cost: bytes times the longest match."""
    text, out, notes = window(data), window(ids), window(report)
    fragments = Fragments(window(starts), window(stops), window(tokens))
    spans = open_span_work(work.spans, model.rules, NO_BLANK, tokens, ends, NO_LIMIT)
    own = SpanModel(
        window(model.trie.units),
        window(model.pages),
        window(model.entries),
        window(work.word),
        model.marker_node,
        model.marker_value,
        model.marker_length,
        model.unk_id,
    )
    k = first
    while k < last:
        report[FRAGMENT] = k
        k, count = _encode_run(
            spans, own, model.room_per_byte, text, data.size, fragments, k, last, out, count, ids.size, notes
        )
        if count < 0:
            return count
        if k > report[FRAGMENT]:
            continue
        if tokens[k] >= 0:
            if count + 1 > ids.size:
                report[NEED] = 1
                return OUT_OF_ROOM
            ids[count] = tokens[k]
            count += 1
        else:
            start, stop = starts[k], stops[k]
            done = _encode_spans(
                spans, own, model.room_per_byte, False, text, data.size, start, stop, out, count, ids.size, notes
            )
            if done == WHOLE:
                done = encode_whole(model, work.word, data, start, stop, ids, count, report)
            if done < 0:
                return done
            count = done
        ends[k] = count
        k += 1
    return count

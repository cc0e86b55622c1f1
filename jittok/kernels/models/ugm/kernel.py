"""Unigram of a GGUF, span by span: ids of cached spans are copied; new spans are normalized, and their best path is
found.

`rules` describes where texts may be cut into spans, and why the ids of spans are those of the whole text. A fragment
without cuts is one span. If some link of the character map leads outside of it, every fragment is left to the
reference, which checks each link that a text uses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2
from jittok.kernels.fragments import NEED, OUT_OF_CAPACITY, OUT_OF_WORK
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, helper, kernel
from jittok.kernels.memory import Window, get_f32, get_f64, get_u8, put_f64, put_u8, window
from jittok.kernels.models.ugm.compile import UgmArrays, UgmWork
from jittok.kernels.models.ugm.lattice import (
    EXACT,
    LOWEST,
    MOST_CHARACTER,
    NO_LITERAL,
    Lattice,
    is_unknown,
    make_lattice,
    move,
    token_before,
)
from jittok.kernels.normalize.charsmap.keys import BEGINS_USER, PLAIN, TIED
from jittok.kernels.normalize.charsmap.lookup import longest_known_key, user_path
from jittok.kernels.normalize.spaces import INSIDE, OUTSIDE, PREPENDED, SpaceRules
from jittok.kernels.pretoken_cache.fragment_loop import Spans, make_encode_by_spans
from jittok.kernels.pretoken_cache.lookup import make_resolve
from jittok.kernels.pretoken_cache.run_loop import SEPARATE
from jittok.kernels.pretoken_cache.span_loop import WHOLE, open_span_work
from jittok.kernels.pretokenize.splitters.spans import split_spans
from jittok.kernels.structures.double_array import SCORE, UNIT
from jittok.kernels.structures.long_keys import open_long
from jittok.kernels.structures.utf8 import well_formed

ODD_TEXT = -17
"""Kernel code: the reference has to encode this fragment."""
CHUNK_BYTES = 1 << 15
"""Bytes of normalized text in a chunk, unless too little is decided in one."""
STEP = 64
"""The capacity that `_normalize` leaves: more than it writes before capacity is checked again."""


class UgmSpanModel(NamedTuple):
    """The arrays that encoding a span reads and writes, as windows."""

    lattice: Lattice
    user: Window
    kinds: Window
    map_units: Window
    map_size: int
    map_root: int
    replacements: Window
    spaces: SpaceRules
    shortest: int
    text: Window
    text_size: int


@helper
def _score(own: Lattice, _token: int, node: int) -> float:
    """The score at a node, -inf without a token."""
    return get_f32(own.scores, UNIT * node + SCORE)


_, extend, _write_path = make_lattice(_score, rounds=False, marked=False, scored=True)


@helper
def open_lattice(arrays: UgmArrays, work: Any) -> Lattice:
    """Windows onto the arrays. work: text, sums, arcs and found as in UgmWork."""
    return Lattice(
        window(arrays.trie.units),
        window(arrays.trie_scores),
        window(work.found),
        0,
        NO_LITERAL,
        arrays.unk_id,
        arrays.unk_score,
        0,
        arrays.clears,
        max(arrays.longest, MOST_CHARACTER),
        open_long(arrays.long),
        window(work.text),
        window(work.sums),
        window(work.arcs),
        window(work.found),
        window(work.found),
        0,
    )


@helper
def _open_model(arrays: UgmArrays, work: UgmWork) -> UgmSpanModel:
    return UgmSpanModel(
        open_lattice(arrays, work),
        window(arrays.user.units),
        window(arrays.kinds),
        window(arrays.charsmap.units),
        arrays.charsmap.units.size,
        arrays.map_root,
        window(arrays.charsmap.replacements),
        arrays.spaces,
        arrays.shortest,
        window(work.text),
        work.text.size,
    )


@helper
def _encode_span(
    model: UgmSpanModel, text: Window, start: int, stop: int, _low: np.uint64, _high: np.uint64, ids: Window, count: int
) -> int:
    """Ids of a span; the new count, or WHOLE if it is too long, or if it is the first of its fragment (marked by the
    byte SEPARATE before it) and does not determine where the prepended space goes."""
    first = get_u8(text, start) == SEPARATE
    count, state = _encode(model, text, start + first, stop, OUTSIDE if first else INSIDE | PREPENDED, ids, count)
    is_open = first and model.spaces.merge == 0 and model.spaces.prepend != 0 and state & PREPENDED == 0
    return WHOLE if is_open else count


@helper
def _encode(
    model: UgmSpanModel, text: Window, i: int, stop: int, state: int, ids: Window, count: int
) -> tuple[int, int]:
    """Ids of text[i:stop], to ids[count:]; (the new count, or WHOLE if the scratch is too small for it; the state of
    the spaces after it). A long text is normalized in chunks; what is decided in one is written."""
    own, begun, size, begin, p, known_to = model.lattice, count, 0, 0, 0, 0
    most, joined, last = model.text_size - STEP, False, False
    limit = min(CHUNK_BYTES, most // 2)  # the last replacement of a chunk may exceed the limit
    put_f64(own.sums, 0, 0.0)
    while not last:
        i, size, state = _normalize(model, text, i, stop, state, size, limit)
        if i < 0:
            return WHOLE, state
        last = i == stop
        if last and model.spaces.append != 0:
            size = _put_space(model, size)
        decided, begin, p, known_to = extend(own, own.text, 0, begin, p, known_to, size, last, EXACT)
        if last and get_f64(own.sums, 0) == LOWEST:  # no path reaches the end: the whole text is one unknown token
            count, joined = begun, False
        if decided > 0:
            count = _write_path(own, own.text, 0, 0, decided, True, joined, ids, count)
        if not last:
            if decided > 0:
                joined = is_unknown(own, token_before(own, decided))
            move(own, decided, size, known_to)
            begin, p, known_to, size = begin - decided, p - decided, known_to - decided, size - decided
            if 2 * size > limit:  # little was decided: double the chunk, so that bytes are not moved again and again
                if limit == most:
                    return WHOLE, state
                limit = min(2 * limit, most)
    return count, state


@helper
def _normalize(
    model: UgmSpanModel, text: Window, i: int, stop: int, state: int, at: int, limit: int
) -> tuple[int, int, int]:
    """Write the normalized bytes of text[i:stop] to model.text[at:], as many as fit below `limit`; (offset in the text,
    end of the normalized bytes, state after them). The offset is WHOLE if a replacement does not fit."""
    out = model.text
    while i < stop and at < limit:
        byte = get_u8(text, i)
        kind = get_u8(model.kinds, byte)
        if byte != SPACE_BYTE and (kind == PLAIN or (kind == TIED and (i + 1 >= stop or get_u8(text, i + 1) < 0x80))):
            if state & INSIDE == 0:
                at, state = _begin_word(model, at, state)
            put_u8(out, at, byte)
            at += 1
            i += 1
            continue
        end = user_path(model.user, text, i, stop)[0] if kind & BEGINS_USER else i
        if end == i:
            length, position = longest_known_key(model.map_units, model.map_size, model.map_root, text, i, stop)
            if length > 0:
                i += length
                byte = get_u8(model.replacements, position)
                while byte != 0:
                    if at + STEP > model.text_size:
                        return WHOLE, at, state
                    at, state = _put(model, byte, at, state)
                    position += 1
                    byte = get_u8(model.replacements, position)
                continue
            end = i + well_formed(text, i, stop, model.shortest)
            if end == i:  # an invalid byte, or the rest of a character that a user-defined path has split
                at, state = _put(model, 0xEF, at, state)
                at, state = _put(model, 0xBF, at, state)
                at, state = _put(model, 0xBD, at, state)
                i += 1
                continue
        while i < end:
            if at + STEP > model.text_size:
                return WHOLE, at, state
            at, state = _put(model, get_u8(text, i), at, state)
            i += 1
    return i, at, state


@helper
def _put(model: UgmSpanModel, byte: int, at: int, state: int) -> tuple[int, int]:
    """Write one normalized byte, and the space that belongs before it; (offset after it, state)."""
    if byte == SPACE_BYTE:
        if model.spaces.merge == 0:
            at = _put_space(model, at)
        return at, state & ~INSIDE
    if state & INSIDE == 0:
        at, state = _begin_word(model, at, state)
    put_u8(model.text, at, byte)
    return at + 1, state


@helper
def _begin_word(model: UgmSpanModel, at: int, state: int) -> tuple[int, int]:
    if model.spaces.merge != 0 or (model.spaces.prepend != 0 and state & PREPENDED == 0):
        at = _put_space(model, at)
        state |= PREPENDED
    return at, state | INSIDE


@helper
def _put_space(model: UgmSpanModel, at: int) -> int:
    if model.spaces.escape == 0:
        put_u8(model.text, at, SPACE_BYTE)
        return at + 1
    put_u8(model.text, at, SPACE_MARK_0)
    put_u8(model.text, at + 1, SPACE_MARK_1)
    put_u8(model.text, at + 2, SPACE_MARK_2)
    return at + 3


@helper
def _open(arrays: UgmArrays, work: UgmWork, tokens: I32, ends: OutI64) -> Spans:
    spans = open_span_work(work.spans, arrays.rules, arrays.first_span, tokens, ends, arrays.cut_limit)
    return Spans(spans, _open_model(arrays, work), arrays.ids_per_byte, arrays.cut_limit)


@helper
def _whole(
    arrays: UgmArrays,
    _work: UgmWork,
    own: Spans,
    data: U8,
    start: int,
    stop: int,
    _prefixed: bool,
    ids: OutI32,
    count: int,
    report: OutI64,
) -> int:
    """Ids of a fragment without cuts: it is one span, which may be invalid UTF-8."""
    if arrays.readable == 0:
        return ODD_TEXT
    need = arrays.ids_per_byte * (stop - start + 2)  # with a space before the text, and one after it
    if count + need > ids.size:
        report[NEED] = need
        return OUT_OF_CAPACITY
    done, _ = _encode(own.model, window(data), start, stop, OUTSIDE, window(ids), count)
    if done == WHOLE:
        report[NEED] = own.model.text_size  # BYTES_PER_BYTE times as much
        return OUT_OF_WORK
    return done


_encode_fragments = make_encode_by_spans(_open, split_spans, make_resolve(_encode_span), _whole)


@kernel
def encode_fragments(
    arrays: UgmArrays,
    work: UgmWork,
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
    """See jittok.kernels.fragments. Codes: OUT_OF_CAPACITY, OUT_OF_WORK, ODD_TEXT."""
    return _encode_fragments(arrays, work, data, starts, stops, tokens, first, last, count, ids, ends, report)

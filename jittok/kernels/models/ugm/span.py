"""Encode one span of a Unigram text: normalize it by the same steps as a whole fragment, then find its best path."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2
from jittok.kernels.jit import helper, inlined
from jittok.kernels.memory import (
    Window,
    get_f32,
    get_f64,
    get_i32,
    get_u8,
    get_u64,
    put_f64,
    put_i32,
    put_u8,
    put_u64,
    window,
)
from jittok.kernels.models.ugm.compile import UgmArrays, UgmWork
from jittok.kernels.models.ugm.decided_prefix import LOWEST, PLACE, decided_offset
from jittok.kernels.models.ugm.whole_fragment import CHUNK_BYTES, MOST_CHARACTER, SUMS_KEPT
from jittok.kernels.normalize.charsmap_steps import longest_known_key, user_path
from jittok.kernels.normalize.charsmap_table import BEGINS_USER, PLAIN, TIED
from jittok.kernels.normalize.spaces import INSIDE, OUTSIDE, PREPENDED
from jittok.kernels.pretoken_cache.run_loop import SEPARATE
from jittok.kernels.pretoken_cache.span_loop import WHOLE
from jittok.kernels.structures.double_array import BASE, NO_VALUE, PARENT, ROOT, SCORE, UNIT
from jittok.kernels.structures.double_array import VALUE as TOKEN
from jittok.kernels.structures.long_keys import (
    LONG,
    NONE,
    LongWindow,
    find_long,
    long_score,
    long_value,
    next_long,
    open_long,
)
from jittok.kernels.structures.utf8 import lead_length

STEP = 64
"""The most bytes that one step of `_normalize` writes before capacity is checked again."""
_32 = np.uint64(32)


class UgmSpanModel(NamedTuple):
    """The arrays that encoding a span reads and writes, as windows."""

    units: Window
    scores: Window
    user: Window
    kinds: Window
    map_units: Window
    map_size: int
    map_root: int
    replacements: Window
    replacements_end: int
    merge: int
    prepend: int
    unk_id: int
    unk_score: float
    text: Window
    text_size: int
    sums: Window
    arcs: Window
    longest: int
    long: LongWindow
    found: Window


@helper
def open_span_model(arrays: UgmArrays, work: UgmWork) -> UgmSpanModel:
    """Windows onto the arrays."""
    return UgmSpanModel(
        window(arrays.trie.units),
        window(arrays.trie_scores),
        window(arrays.user.units),
        window(arrays.kinds),
        window(arrays.charsmap.units),
        arrays.charsmap.units.size,
        arrays.map_root,
        window(arrays.charsmap.replacements),
        arrays.charsmap.replacements_end,
        arrays.spaces.merge,
        arrays.spaces.prepend,
        arrays.unk_id,
        arrays.unk_score,
        window(work.text),
        work.text.size,
        window(work.sums),
        window(work.arcs),
        arrays.longest,
        open_long(arrays.long),
        window(work.found),
    )


@helper
def encode_span(
    model: UgmSpanModel, text: Window, start: int, stop: int, _low: np.uint64, _high: np.uint64, ids: Window, count: int
) -> int:
    """Ids of a span; the new count, or WHOLE if it is too long, or if it is the first of its fragment (marked by the
    byte SEPARATE before it) and does not determine where the prepended space goes."""
    if stop - start <= CHUNK_BYTES:
        first = get_u8(text, start) == SEPARATE
        i, size, state = _normalize(
            model, text, start + first, stop, OUTSIDE if first else INSIDE | PREPENDED, 0, model.text_size
        )
        if i == stop:
            return WHOLE if _is_open(model, first, state) else _best_path(model, size, ids, count)
    return _encode_long(model, text, start, stop, ids, count)


@helper
def _is_open(model: UgmSpanModel, first: bool, state: int) -> bool:
    """Whether the span does not determine where the prepended space goes."""
    return first and model.merge == 0 and model.prepend != 0 and state & PREPENDED == 0


@helper
def _encode_long(model: UgmSpanModel, text: Window, start: int, stop: int, ids: Window, count: int) -> int:
    """The same for a long span, in chunks as in `encode_whole`."""
    first = get_u8(text, start) == SEPARATE
    i, size, state = start + first, 0, OUTSIDE if first else INSIDE | PREPENDED
    limit, joined, last = min(CHUNK_BYTES, model.text_size), False, False
    base = 0.0
    while not last:
        i, size, state = _normalize(model, text, i, stop, state, size, limit)
        if i < 0:
            return WHOLE
        last = i == stop
        put_f64(model.sums, 0, base)
        decided, total = _find_path(model, size, last)
        if decided > 0:
            count = _write_path(model, decided, ids, count, joined)
            joined = get_u64(model.arcs, decided) >> _32 == np.uint64(model.unk_id & 0xFFFFFFFF)
            for k in range(decided, size):
                put_u8(model.text, k - decided, get_u8(model.text, k))
            base = total
            size -= decided
        if (
            2 * size > limit - STEP and not last
        ):  # little was decided: double the chunk, so that bytes are not read again and again
            if limit == model.text_size:
                return WHOLE
            limit = min(2 * limit, model.text_size)
    return WHOLE if _is_open(model, first, state) else count


@helper
def _normalize(
    model: UgmSpanModel, text: Window, i: int, stop: int, state: int, at: int, limit: int
) -> tuple[int, int, int]:
    """Write the normalized bytes of text[i:stop] to model.text[at:], as many as fit below `limit`; (offset in the text,
    end of the normalized bytes, state after them). The offset is WHOLE if a replacement does not fit."""
    out = model.text
    while i < stop:
        if at + STEP > limit:
            return i, at, state
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
            end = i + lead_length(byte)
            if byte & 0xC0 == 0x80:  # the rest of a character that a user-defined path has split
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
        if model.merge == 0:
            at = _put_mark(model.text, at)
        return at, state & ~INSIDE
    if state & INSIDE == 0:
        at, state = _begin_word(model, at, state)
    put_u8(model.text, at, byte)
    return at + 1, state


@helper
def _begin_word(model: UgmSpanModel, at: int, state: int) -> tuple[int, int]:
    if model.merge != 0 or (model.prepend != 0 and state & PREPENDED == 0):
        at = _put_mark(model.text, at)
        state |= PREPENDED
    return at, state | INSIDE


@helper
def _put_mark(out: Window, at: int) -> int:
    put_u8(out, at, SPACE_MARK_0)
    put_u8(out, at + 1, SPACE_MARK_1)
    put_u8(out, at + 2, SPACE_MARK_2)
    return at + 3


@helper
def _best_path(model: UgmSpanModel, size: int, ids: Window, count: int) -> int:
    """Ids of the best path through model.text[:size], with one id for a run of unknown tokens; the new count."""
    put_f64(model.sums, 0, 0.0)
    size, _ = _find_path(model, size, True)
    return _write_path(model, size, ids, count, False)


@helper
def _find_path(model: UgmSpanModel, size: int, last: bool) -> tuple[int, float]:
    """Fill the arcs of model.text[:size]; offset 0 has its sum already. Returns (how many bytes are decided, the sum
    after them), as `whole_fragment.find_path`.

    Only the sums from offset `begin` on are kept, as tokens can still reach these; earlier offsets need only their
    arcs.
    """
    begin, known_to, p, decided, total = 0, 0, 0, 0, 0.0
    reach = max(model.longest, MOST_CHARACTER)
    stop, most = size if last else size - reach, max(SUMS_KEPT, reach)
    apart = model.long.count != 0 and size > LONG
    if apart:
        find_long(model.long, model.text, 0, size, model.found, 0)
    while p < stop:
        until = min(begin + most, stop)
        for k in range(known_to + 1, min(until + reach, size) + 1):
            put_f64(model.sums, k - begin, LOWEST)
        known_to = min(until + reach, size)
        p = _walk_apart(model, size, begin, p, until) if apart else _walk(model, size, begin, p, until)
        if not last:
            common = decided_offset(model.sums, model.arcs, begin, p, known_to)
            if common > 0:
                decided, total = common, get_f64(model.sums, common - begin)
        for k in range(p, known_to + 1):  # few, or the last round
            put_f64(model.sums, k - p, get_f64(model.sums, k - begin))
        begin = p
    return (size, total) if last else (decided, total)


@helper
def _walk(model: UgmSpanModel, size: int, begin: int, p: int, until: int) -> int:
    """Extend paths from the offsets p .. until - 1; the next offset. sums[0] is the sum at offset `begin`."""
    while p < until:
        p = _go_on(model, size, size, begin, p)
    return p


@helper
def _walk_apart(model: UgmSpanModel, size: int, begin: int, p: int, until: int) -> int:
    """The same with long tokens looked up first: walks end after LONG bytes."""
    while p < until:
        node, here = get_i32(model.found, p), get_f64(model.sums, p - begin)
        while node != NONE:
            token, length = long_value(model.long, node)
            total, end = here + long_score(model.long, node), p + length
            if total > get_f64(model.sums, end - begin):
                put_f64(model.sums, end - begin, total)
                put_u64(model.arcs, end, np.uint64(token & 0xFFFFFFFF) << _32 | np.uint64(p))
            node = next_long(model.long, node)
        p = _go_on(model, size, min(p + LONG, size), begin, p)
    return p


@inlined
def _go_on(model: UgmSpanModel, size: int, stop: int, begin: int, p: int) -> int:
    """Extend paths from offset p by the tokens that end at `stop` or before; the next offset. A node without a token
    has the score -inf, so the comparison needs no extra branch."""
    text, sums, arcs = model.text, model.sums, model.arcs
    after = min(p + lead_length(get_u8(text, p)), size)
    here, known, node, end = get_f64(sums, p - begin), NO_VALUE, ROOT, p
    while end < stop:
        position = get_i32(model.units, UNIT * node + BASE) ^ get_u8(text, end)
        if get_i32(model.units, UNIT * position + PARENT) != node:
            break
        node = position
        end += 1
        token = get_i32(model.units, UNIT * node + TOKEN)
        total, old = here + get_f32(model.scores, UNIT * node + SCORE), get_f64(sums, end - begin)
        better = total > old
        arc = np.uint64(token & 0xFFFFFFFF) << _32 | np.uint64(p)
        put_f64(sums, end - begin, total if better else old)
        put_u64(arcs, end, arc if better else get_u64(arcs, end))
        known = token if end == after else known
    if known == NO_VALUE:
        total = here + model.unk_score
        if total > get_f64(sums, after - begin):
            put_f64(sums, after - begin, total)
            put_u64(arcs, after, np.uint64(model.unk_id & 0xFFFFFFFF) << _32 | np.uint64(p))
    return after


@helper
def _write_path(model: UgmSpanModel, size: int, ids: Window, count: int, joined: bool) -> int:
    """Write the ids of the best path, which is followed from its end: once to count them, once to write. joined: an
    unknown token at the beginning belongs to the id before."""
    found, end, unknown = 0, size, False
    unk = np.uint64(model.unk_id & 0xFFFFFFFF)
    while end > 0:
        arc = get_u64(model.arcs, end)
        token = arc >> _32
        found += 0 if unknown and token == unk else 1
        unknown = token == unk
        end = np.int64(arc & PLACE)
    found -= 1 if joined and unknown else 0
    at, end, unknown = count + found, size, False
    while end > 0:
        arc = get_u64(model.arcs, end)
        token = arc >> _32
        if not (unknown and token == unk):
            at -= 1
            if at >= count:
                put_i32(ids, at, np.int64(token))
        unknown = token == unk
        end = np.int64(arc & PLACE)
    return count + found

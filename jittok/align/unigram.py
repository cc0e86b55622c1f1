"""Spans of Unigram: walk the ids over the text itself, most of which normalization does not change.

In inert text (see `unigram_normalizer`) a token covers as many bytes as its text has, and U+2581 before it covers the
blanks there; if spaces are not merged, each U+2581 covers one blank. Around characters that are not inert, a few bytes
are normalized, only as many as the tokens there need.

The unknown token covers a run of unknown characters of any length. A character that is a token is never unknown, so the
run ends at the first such character, or where the text of the next id begins. If that text begins with a character that
may also be unknown, the best path of the fragment is found again (`path_spans`), as it is for fragments unlike any
natural text and for unusual vocabularies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.align.by_lengths import first_id
from jittok.align.lengths import Lengths
from jittok.align.unigram_normalizer import (
    BEGINS,
    BLANK,
    BLANK_BIT,
    KNOWN,
    ODD,
    UNKNOWN,
    Inert,
    InertWindow,
    Normal,
    NormalizerCursor,
    StepWindow,
    UnigramRules,
    flags_at,
    inert_end,
    is_character,
    normalize,
    open_inert,
    open_steps,
    put_space,
)
from jittok.common.unicode.characters import SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2, SPACE_MARK_BYTES
from jittok.kernels.fragments import FRAGMENT, OUT_OF_WORK
from jittok.kernels.jit import I32, I64, U8, OutF64, OutI32, OutI64, OutU8, OutU64, as_int64, helper, kernel
from jittok.kernels.memory import (
    Window,
    equal_mask,
    get_f64,
    get_i32,
    get_i64,
    get_u8,
    get_u16,
    put_f64,
    put_i64,
    span_masks,
    trailing_zeros,
    window,
)
from jittok.kernels.models.ugm.compile import UgmArrays
from jittok.kernels.models.ugm.kernel import extend, open_lattice
from jittok.kernels.models.ugm.lattice import EXACT, LOWEST, START, move
from jittok.kernels.structures.utf8 import lead_length

BROKEN = -3
"""Code: the ids are not those of the text."""
PATH_CHUNK_BYTES = 1 << 15
"""Bytes of normalized text in which a path is searched for at a time, unless too little is decided in one chunk."""
_32 = np.uint64(32)
CHUNK_BYTES = 4096
"""Bytes that are tested for being inert before their tokens are walked."""
BUFFER_BYTES = 1 << 14
"""Capacity for normalized bytes around characters that are not inert."""
LONGEST_TOKEN = 1 << 16
"""The longest run of unknown characters. It is read again with each stretch until its end is known."""


class UnigramWork(NamedTuple):
    """Scratch for a number of normalized bytes. The last three are as in `ugm.UgmWork`, and empty if no path is
    searched for."""

    text: OutU8
    starts: OutI64  # byte k comes from data[starts[k]:stops[k]]
    stops: OutI64
    sums: OutF64
    arcs: OutU64
    found: OutI32


def make_unigram_work(capacity: int, arrays: UgmArrays | None) -> UnigramWork:
    """Scratch for `capacity` normalized bytes; with `arrays` also for paths."""
    cells = capacity + 1 if arrays else 0
    return UnigramWork(
        np.empty(capacity, np.uint8), np.empty(capacity, np.int64), np.empty(capacity, np.int64),
        np.empty(cells, np.float64), np.zeros(cells, np.uint64),
        np.empty(cells if arrays and arrays.long.count else 0, np.int32),
    )  # fmt: skip


class TextWalk(NamedTuple):
    """The text, the ids and the tables of a walk, as windows."""

    text: Window
    sizes: Window
    ids: Window
    spans: Window
    origin: int
    start: int  # of the fragment
    stop: int  # its end
    end: int  # and that of its ids
    steps: StepWindow
    texts: Window  # of tokens
    offsets: Window
    unk_id: int


@kernel
def text_spans(
    lengths: Lengths, rules: UnigramRules, inert: Inert, arrays: UgmArrays, work: UnigramWork, data: U8, starts: I64,
    stops: I64, ends: I64, ids: I32, spans: OutI64, left: OutI64, count: int,
) -> int:  # fmt: skip
    """Write the spans of the tokens of the fragments left[:2 * count], a list made by `direct_spans`.

    work: for BUFFER_BYTES, without paths; arrays: the vocabulary, compiled for encoding
    The other arrays are those of `direct_spans`. Fragments that are not decided here stay in `left`; returns their
    number. Linear in bytes.
    """
    out = Normal(window(work.text), window(work.starts), window(work.stops), work.text.size)
    marks, steps, kept = open_inert(inert), open_steps(rules, arrays), 0
    for item in range(count):
        fragment, origin = left[2 * item], left[2 * item + 1]
        walk = TextWalk(
            window(data), window(lengths.output), window(ids), window(spans), origin, starts[fragment],
            stops[fragment], ends[fragment], steps, window(rules.texts), window(rules.offsets), arrays.unk_id,
        )  # fmt: skip
        inside = arrays.spaces.merge == 0 and arrays.spaces.prepend == 0
        if not _walk(walk, marks, out, walk.start, first_id(window(ends), fragment), inside):
            left[2 * kept], left[2 * kept + 1] = fragment, origin
            kept += 1
    return kept


@helper
def _put_span(w: TextWalk, k: int, start: int, stop: int) -> None:
    put_i64(w.spans, 2 * k, start - w.origin)
    put_i64(w.spans, 2 * k + 1, stop - w.origin)


@helper
def _walk(w: TextWalk, inert: InertWindow, out: Normal, i: int, k: int, inside: bool) -> bool:
    """Write the spans of ids k .. w.end - 1, which cover the text from i on; False if the ids do not determine them.

    inside: see `NormalizerCursor`. In the loop, `safe` is the end of the inert text, and `whole` is set if a character
    that is not inert is there.
    """
    safe, whole = i, False
    if w.steps.merge == 0 and not inside:  # the prepended space is not in the text
        i, k, inside = _walk_odd(w, inert, out, i, k, inside)
        if k < 0 or (i == w.stop and k == w.end):
            return k >= 0
        safe = i
    while True:
        begin = k
        i, k = _walk_inert(w, inert, i, safe, k, inside)
        if k < 0:
            return False
        inside = inside or k > begin
        if safe - i > LONGEST_TOKEN:
            return False
        if not whole and safe < w.stop:
            safe, whole = inert_end(inert, w.text, safe, CHUNK_BYTES, w.stop)
            continue
        i, k, inside = _walk_odd(w, inert, out, i, k, inside)
        if k < 0 or (i == w.stop and k == w.end):
            return k >= 0
        safe, whole = i, False


@helper
def _walk_inert(w: TextWalk, inert: InertWindow, i: int, safe: int, k: int, inside: bool) -> tuple[int, int]:
    """Write the spans of the ids from k on that end in the inert text[i:safe]; (offset after the last one, next id), or
    -1 for the id if ids do not determine the spans."""
    while k < w.end:
        if w.steps.merge == 0:
            i, k = _stride_evenly(inert.steps, w.ids, w.spans, w.origin, i, safe, k, w.end)
            if k == w.end:
                break
        elif inside:
            i, k = _stride(w.text, inert.ascii, inert.steps, w.ids, w.spans, w.origin, i, safe, k, w.end)
            if k == w.end:
                break
        step = get_u16(inert.steps, get_i32(w.ids, k) + 1)
        if step < ODD:
            at = _skip_blanks(w, inert, i, safe) if step & BEGINS else i
            after = at + (step >> 1)
            if after > safe or at >= safe or not (inside or step & BEGINS):
                break
        else:
            after = _unknown_end(w, inert, i, safe, k) if step == UNKNOWN and inside else i
            if after < 0:
                return i, -1
            if after == i:
                break
        _put_span(w, k, i, after)
        i, k, inside = after, k + 1, True
    return i, k


@helper
def _stride(
    text: Window, kinds: Window, steps: Window, ids: Window, spans: Window, origin: int, i: int, safe: int, k: int,
    end: int,
) -> tuple[int, int]:  # fmt: skip
    """Write the spans of the ids from k on as long as each ends in the inert text[i:safe] and begins inside a word or
    after one blank. A separate loop, so that its variables stay in registers."""
    while k < end:
        step = get_u16(steps, get_i32(ids, k) + 1)
        at = i + (step & BEGINS)  # a blank is there, as inert text has no U+2581
        after = at + (step >> 1)
        if step >= ODD or after > safe or at >= safe or step & get_u8(kinds, get_u8(text, at)) >> BLANK_BIT & BEGINS:
            break
        put_i64(spans, 2 * k, i - origin)
        put_i64(spans, 2 * k + 1, after - origin)
        i, k = after, k + 1
    return i, k


@helper
def _stride_evenly(
    steps: Window, ids: Window, spans: Window, origin: int, i: int, safe: int, k: int, end: int
) -> tuple[int, int]:
    """The same if spaces are not merged: each token covers its length."""
    while k < end:
        step = get_u16(steps, get_i32(ids, k) + 1)
        after = i + (step >> 1)
        if step >= ODD or after > safe:
            break
        put_i64(spans, 2 * k, i - origin)
        put_i64(spans, 2 * k + 1, after - origin)
        i, k = after, k + 1
    return i, k


@helper
def _skip_blanks(w: TextWalk, inert: InertWindow, at: int, safe: int) -> int:
    """The offset of the first byte from `at` on that is not a blank, or `safe`."""
    newline = 10 if get_u8(inert.ascii, 10) & BLANK else 0x20
    while at + 64 <= safe:
        _, _, _, _, space = span_masks(w.text, at)
        others = ~(space | equal_mask(w.text, at, newline))
        if others != np.uint64(0):
            at += trailing_zeros(others)
            break
        at += 64
    while at < safe and get_u8(inert.ascii, get_u8(w.text, at)) & BLANK:
        at += 1
    return at


@helper
def _unknown_end(w: TextWalk, inert: InertWindow, i: int, safe: int, k: int) -> int:
    """The end of the run of unknown characters that begins at i; i if text[i:safe] does not show it, -1 if the next id
    may begin inside the run."""
    at, after = i, -1
    if k + 1 < w.end:
        after = get_i32(w.ids, k + 1)
        if get_u16(inert.steps, after + 1) == ODD:
            return i
        if get_u16(inert.steps, after + 1) & BEGINS:  # no blank comes; another unknown token would have been joined
            after = -1
    while at < safe:
        flags, size = flags_at(inert, w.text, at, safe)
        if flags & (KNOWN | BLANK):
            return at
        if at > i and after >= 0:
            begin, same = get_i64(w.offsets, after), 0
            end = get_i64(w.offsets, after + 1)
            while begin < end and at + same < safe:
                byte = get_u8(w.texts, begin)
                if get_u8(inert.ascii, get_u8(w.text, at + same)) & BLANK:  # a blank must be U+2581 in the token
                    if (
                        byte != SPACE_MARK_0
                        or get_u8(w.texts, begin + 1) != SPACE_MARK_1
                        or get_u8(w.texts, begin + 2) != SPACE_MARK_2
                    ):
                        break
                    begin += len(SPACE_MARK_BYTES) - 1
                elif byte != get_u8(w.text, at + same):
                    break
                begin += 1
                same += 1
            if begin == end:
                return -1
            if at + same == safe:
                return i
        at += size
    return at if at == w.stop else i


@helper
def _token_matches_at(w: TextWalk, out: Normal, at: int, size: int, token: int) -> bool:
    """Whether the text of a token is at offset `at` of the normalized text."""
    begin = get_i64(w.offsets, token)
    length = get_i64(w.offsets, token + 1) - begin
    if at + length > size:
        return False
    for k in range(length):
        if get_u8(out.text, at + k) != get_u8(w.texts, begin + k):
            return False
    return True


@helper
def _normalize(w: TextWalk, inert: InertWindow, out: Normal, cursor: NormalizerCursor, need: int) -> NormalizerCursor:
    return normalize(w.steps, inert, True, out, w.text, w.start, w.stop, cursor, need)


@helper
def _walk_odd(w: TextWalk, inert: InertWindow, out: Normal, i: int, k: int, inside: bool) -> tuple[int, int, bool]:
    """Write the spans of ids from k on, at least one if there is one, until a token ends together with a normalization
    step inside a word. Returns (next offset, next id, inside a word); the id is -1 if ids do not determine the
    spans."""
    cursor, at = NormalizerCursor(i, 0, inside, -1, -1), 0
    while k < w.end:
        token, following = get_i32(w.ids, k), at
        if token == w.unk_id:
            while True:
                cursor = _normalize(w, inert, out, cursor, following + 1)
                if cursor.i < 0 or cursor.size <= following:
                    break
                length = lead_length(get_u8(out.text, following))
                cursor = _normalize(w, inert, out, cursor, following + length)
                if cursor.i < 0 or is_character(w.steps, out, following, min(following + length, cursor.size)):
                    break
                if following > at and k + 1 < w.end:
                    after = get_i32(w.ids, k + 1)
                    if after >= 0 and get_u8(out.text, following) == get_u8(w.texts, get_i64(w.offsets, after)):
                        need = following + get_i64(w.offsets, after + 1) - get_i64(w.offsets, after)
                        cursor = _normalize(w, inert, out, cursor, need)
                        if cursor.i < 0 or _token_matches_at(w, out, following, cursor.size, after):
                            return i, -1, False
                following = min(following + length, cursor.size)
        else:
            following += get_i32(w.sizes, token + 1)
            cursor = _normalize(w, inert, out, cursor, following)
        if cursor.i < 0 or following == at or following > cursor.size:
            return i, -1, False
        _put_span(w, k, get_i64(out.starts, at), get_i64(out.stops, following - 1))
        at, k = following, k + 1
        if at == cursor.size and cursor.inside and cursor.gap_start < 0:
            return cursor.i, k, True
    cursor = _normalize(w, inert, out, cursor, out.capacity + 1)
    return cursor.i, k if cursor.i == w.stop and cursor.size == at else -1, False


# ---- the best path


class PathWalk(NamedTuple):
    """The ids of a fragment and their spans."""

    ids: Window
    spans: Window
    origin: int
    end: int  # of the fragment's ids
    unk_id: int


@kernel
def path_spans(
    rules: UnigramRules, inert: Inert, arrays: UgmArrays, work: UnigramWork, data: U8, starts: I64, stops: I64,
    ends: I64, ids: I32, spans: OutI64, left: OutI64, item: int, count: int, report: OutI64,
) -> int:  # fmt: skip
    """Write the spans of the tokens of the fragments left[2 * item : 2 * count] along the best path, which is found
    again.

    report: int64[REPORT_SIZE]; the other arguments are those of `text_spans`. Returns 0, or OUT_OF_WORK: number
    report[FRAGMENT] of the list needs more normalized bytes at once. BROKEN: its ids are not those of the text. Linear
    in bytes, times the longest match.
    """
    out = Normal(window(work.text), window(work.starts), window(work.stops), work.text.size)
    marks, steps = open_inert(inert), open_steps(rules, arrays)
    for number in range(item, count):
        fragment, origin = left[2 * number], left[2 * number + 1]
        report[FRAGMENT] = number
        walk = PathWalk(window(ids), window(spans), origin, ends[fragment], arrays.unk_id)
        first, inside = first_id(window(ends), fragment), arrays.spaces.merge == 0 and arrays.spaces.prepend == 0
        cursor = NormalizerCursor(starts[fragment], 0, inside, -1, -1)
        k = _walk_path(
            walk, steps, marks, arrays, work, out, window(data), starts[fragment], stops[fragment], cursor, first
        )
        if k < 0:
            return k
        if k != walk.end:
            return BROKEN
    return 0


@helper
def _walk_path(
    w: PathWalk, steps: StepWindow, inert: InertWindow, arrays: UgmArrays, work: UnigramWork, out: Normal, text: Window,
    start: int, stop: int, cursor: NormalizerCursor, first: int,
) -> int:  # fmt: skip
    """Write the spans of the ids from `first` on of the fragment text[start:stop]; the next id, BROKEN or OUT_OF_WORK.

    The fragment is normalized in chunks, of which the decided part is written, as in `ugm.kernel`.
    """
    k, limit, begin = first, min(PATH_CHUNK_BYTES, out.capacity // 2), start
    own, since, p, known_to = open_lattice(arrays, work), 0, 0, 0
    put_f64(own.sums, 0, 0.0)
    while True:
        cursor = normalize(steps, inert, False, out, text, start, stop, cursor, limit)
        if cursor.i < 0 or cursor.size + len(SPACE_MARK_BYTES) > out.capacity:
            return OUT_OF_WORK
        size, last = cursor.size, cursor.i == stop
        if last and arrays.spaces.append:
            size = put_space(steps, out, size, stop, stop)
        if k == first and size > 0:
            begin = get_i64(out.starts, 0)
        decided, since, p, known_to = extend(own, own.text, 0, since, p, known_to, size, last, EXACT)
        lost = last and get_f64(own.sums, 0) == LOWEST
        if lost:  # no path reaches the end: the whole fragment is one unknown token
            k = first
        joined = k > first and get_i32(w.ids, k - 1) == w.unk_id
        k = _write_path(w, work, out, decided, k, joined)
        if k < 0 or last:
            if lost and k == first + 1:
                put_i64(w.spans, 2 * first, begin - w.origin)
            return k
        move(own, decided, size, known_to)
        for j in range(decided, size):
            put_i64(out.starts, j - decided, get_i64(out.starts, j))
            put_i64(out.stops, j - decided, get_i64(out.stops, j))
        since, p, known_to, size = since - decided, p - decided, known_to - decided, size - decided
        if 2 * size > limit:  # little was decided: double the chunk, so that bytes are not read again and again
            if 2 * limit >= out.capacity:
                return OUT_OF_WORK
            limit *= 2
        cursor = NormalizerCursor(cursor.i, size, cursor.inside, cursor.gap_start, cursor.gap_stop)


@helper
def _write_path(w: PathWalk, work: UnigramWork, out: Normal, size: int, k: int, joined: bool) -> int:
    """Write the spans of the ids from k on along the best path to offset `size`; the next id, or BROKEN. joined: a run
    of unknown tokens at the beginning belongs to the id before."""
    after, p, unknown = k, size, False
    while p > 0:
        behind_unknown = unknown
        unknown = _token(work, p) == w.unk_id
        after += 0 if unknown and behind_unknown else 1
        p = as_int64(work.arcs[p] & START)
    if joined and unknown:
        after -= 1
    at, p, last, unknown = after, size, size, False
    while p > 0:
        behind_unknown, token = unknown, _token(work, p)
        unknown = token == w.unk_id
        if not (unknown and behind_unknown):
            at, last = at - 1, p
            if at < k - joined or after > w.end or get_i32(w.ids, at) != token:
                return BROKEN
            put_i64(w.spans, 2 * at + 1, get_i64(out.stops, last - 1) - w.origin)
        p = as_int64(work.arcs[p] & START)
        if at >= k:
            put_i64(w.spans, 2 * at, get_i64(out.starts, p) - w.origin)
    return after


@helper
def _token(work: UnigramWork, p: int) -> int:
    """The last token on the best path to offset p; it may be -1."""
    return as_int64(np.int32(work.arcs[p] >> _32))

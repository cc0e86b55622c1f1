"""Unigram over words with a bitmap of their starts: ids of cached words are copied, new words get their best path."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, helper, inlined, kernel
from jittok.kernels.memory import Window, get_f64, get_i32, get_u8, get_u64, put_f64, put_i32, put_u64, window
from jittok.kernels.models.ugm.decided_prefix import LOWEST
from jittok.kernels.models.ugm.words.compile import SUMS_KEPT, UnigramWordArrays, UnigramWordWork
from jittok.kernels.pretoken_cache.fragment_loop import Spans, make_encode_by_spans, no_whole
from jittok.kernels.pretoken_cache.lookup import make_resolve
from jittok.kernels.pretoken_cache.span_loop import NO_LIMIT, open_word_work
from jittok.kernels.pretokenize.splitters.bitmap_starts import split_at_bitmap
from jittok.kernels.structures.double_array import BASE, PARENT, ROOT, UNIT
from jittok.kernels.structures.double_array import VALUE as TOKEN
from jittok.kernels.structures.long_keys import LONG, NONE, LongWindow, find_long, long_value, next_long, open_long
from jittok.kernels.structures.utf8 import lead_length

_32, _PLACE = np.uint64(32), np.uint64(0xFFFFFFFF)


class WordLattice(NamedTuple):
    """The arrays that finding a path reads and writes, as windows."""

    units: Window
    scores: Window
    byte_ids: Window
    bytes: int  # 1 where unknown characters become bytes
    literal: int
    unk_id: int
    unk_score: float
    longest: int
    long: LongWindow
    sums: Window
    arcs: Window
    found: Window


@helper
def _open_lattice(arrays: UnigramWordArrays, work: UnigramWordWork) -> WordLattice:
    return WordLattice(
        window(arrays.trie.units),
        window(arrays.scores),
        window(arrays.byte_ids),
        1 if arrays.byte_ids[0] >= 0 else 0,
        arrays.tokens,
        arrays.unk_id,
        arrays.unk_score,
        arrays.longest,
        open_long(arrays.long),
        window(work.sums),
        window(work.arcs),
        window(work.found),
    )


@helper
def _encode_word(
    own: WordLattice, text: Window, start: int, stop: int, _low: np.uint64, _high: np.uint64, ids: Window, count: int
) -> int:
    size = stop - start
    _find_path(own, text, start, size)
    return _write_path(own, text, start, size, ids, count)


@helper
def _find_path(own: WordLattice, text: Window, start: int, size: int) -> None:
    """Fill the arcs of text[start:start + size]. Only the sums that tokens can still reach are kept."""
    begin = known_to = p = 0
    put_f64(own.sums, 0, 0.0)
    apart, most = own.long.count != 0 and size > LONG, max(SUMS_KEPT, own.longest)
    if apart:
        find_long(own.long, text, start, start + size, own.found, 0)
    while p < size:
        until = min(begin + most, size)
        reach = min(until + own.longest, size)
        for k in range(known_to + 1, reach + 1):
            put_f64(own.sums, k - begin, LOWEST)
        known_to = reach
        if apart:
            p = _walk_apart(own, text, start, size, begin, p, until)
        else:
            p = _walk(own, text, start, size, begin, p, until)
        for k in range(p, known_to + 1):  # few, or the last round
            put_f64(own.sums, k - p, get_f64(own.sums, k - begin))
        begin = p


@helper
def _walk(own: WordLattice, text: Window, start: int, size: int, begin: int, p: int, until: int) -> int:
    """Extend paths from the offsets p .. until - 1; the next offset. sums[0] is the sum at offset `begin`."""
    while p < until:
        p = _go_on(own, text, start, size, size, begin, p)
    return p


@helper
def _walk_apart(own: WordLattice, text: Window, start: int, size: int, begin: int, p: int, until: int) -> int:
    """The same with long tokens looked up first: walks end after LONG bytes."""
    while p < until:
        node, here = get_i32(own.found, p), get_f64(own.sums, p - begin)
        while node != NONE:
            token, length = long_value(own.long, node)
            _challenge(own, token, p, p + length, begin, here + get_f64(own.scores, token))
            node = next_long(own.long, node)
        p = _go_on(own, text, start, size, min(p + LONG, size), begin, p)
    return p


@inlined
def _go_on(own: WordLattice, text: Window, start: int, size: int, stop: int, begin: int, p: int) -> int:
    """Extend paths from offset p by the tokens that end at `stop` or before; the next offset."""
    after = min(p + lead_length(get_u8(text, start + p)), size)
    here, known, node, end = get_f64(own.sums, p - begin), False, ROOT, p
    while end < stop:
        position = get_i32(own.units, UNIT * node + BASE) ^ get_u8(text, start + end)
        if get_i32(own.units, UNIT * position + PARENT) != node:
            break
        node = position
        end += 1
        token = get_i32(own.units, UNIT * node + TOKEN)
        if token >= 0:
            _challenge(own, token, p, end, begin, here + get_f64(own.scores, token))
            known = known or end == after
    if not known:
        _challenge(own, own.unk_id, p, after, begin, here + own.unk_score)
    return after


@helper
def _challenge(own: WordLattice, token: int, p: int, end: int, begin: int, total: float) -> None:
    """Record an arc if its sum is strictly higher: of equal sums the first stays."""
    if total > get_f64(own.sums, end - begin):
        put_f64(own.sums, end - begin, total)
        put_u64(own.arcs, end, np.uint64(token) << _32 | np.uint64(p))


@helper
def _is_unknown(own: WordLattice, token: int) -> bool:
    return token == own.unk_id or token == own.literal  # noqa: PLR1714  kernels have no tuples to look in


@helper
def _write_path(own: WordLattice, text: Window, start: int, size: int, ids: Window, count: int) -> int:
    """Write the ids of the best path, which is followed from its end: once to count them, once to write."""
    found, end = 0, size
    while end > 0:
        begin, _, in_bytes = _step(own, end)
        found += end - begin if in_bytes else 1
        end = begin
    at, end = count + found, size
    while end > 0:
        begin, token, in_bytes = _step(own, end)
        if in_bytes:
            at -= end - begin
            for k in range(end - begin):
                put_i32(ids, at + k, get_i32(own.byte_ids, get_u8(text, start + begin + k)))
        else:
            at -= 1
            put_i32(ids, at, token)
        end = begin
    return count + found


@helper
def _step(own: WordLattice, end: int) -> tuple[int, int, bool]:
    """(begin, id, whether it becomes byte tokens) of the last token of the path to `end`. A run of unknown characters
    is one token. The unknown token's own text, if not in such a run, is that token even with byte fallback."""
    arc = get_u64(own.arcs, end)
    token, begin = np.int64(arc >> _32), np.int64(arc & _PLACE)
    if not _is_unknown(own, token):
        return begin, token, False
    alone = token == own.literal
    while begin > 0:
        arc = get_u64(own.arcs, begin)
        if not _is_unknown(own, np.int64(arc >> _32)):
            break
        begin, alone = np.int64(arc & _PLACE), False
    return begin, own.unk_id, own.bytes != 0 and not alone


@helper
def _open(model: UnigramWordArrays, work: UnigramWordWork, tokens: I32, ends: OutI64) -> Spans:
    return Spans(open_word_work(work.spans, model.marks, tokens, ends), _open_lattice(model, work), 1, NO_LIMIT)


_encode_fragments = make_encode_by_spans(_open, split_at_bitmap, make_resolve(_encode_word), no_whole)


@kernel
def encode_fragments(
    model: UnigramWordArrays,
    work: UnigramWordWork,
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
    """See jittok.kernels.fragments. Codes: OUT_OF_CAPACITY, OUT_OF_WORK. Linear in bytes (see `long_keys`)."""
    return _encode_fragments(model, work, data, starts, stops, tokens, first, last, count, ids, ends, report)

"""The best path through normalized text, as the file's own library finds it, including rounding.

Sums start at the actual sum of the text at that offset, which is 0 where a word begins (tokenizer.json) or a text
(sentencepiece). A span for the cache is always computed from 0. That is correct if at each offset of its path the best
sum exceeds all others by more than rounding can change (`near`); otherwise the result is ROUNDING_SENSITIVE.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2
from jittok.kernels.jit import helper
from jittok.kernels.memory import (
    Window,
    get_f64,
    get_i32,
    get_i64,
    get_u8,
    get_u64,
    put_f64,
    put_i32,
    put_i64,
    put_u64,
    trailing_zeros,
    window,
)
from jittok.kernels.models.ugm.decided_prefix import LOWEST
from jittok.kernels.models.ugm.files.arrays import LARGEST, SETTLED, SUM, UnigramFileArrays, UnigramFileWork
from jittok.kernels.models.ugm.files.token_matches import DEPTH, MASK, NODE, TOKENS, find_tokens
from jittok.kernels.pretoken_cache.span_loop import WHOLE
from jittok.kernels.structures.double_array import BASE, PARENT, ROOT, SCORE, UNIT
from jittok.kernels.structures.double_array import VALUE as TOKEN
from jittok.kernels.structures.long_keys import LONG, NONE, LongWindow, find_long, long_value, next_long, open_long
from jittok.kernels.structures.utf8 import lead_length

ROUNDING_SENSITIVE = -103
"""Code: rounding may change the path. Different from the codes of `jittok.kernels.fragments`."""
EXACT = -1.0
"""`near` for sums that start at the actual sum of the text."""
SUMS_KEPT = 1 << 14
"""Offsets whose sums are kept at a time."""
OUT_OF_CACHE = 1 << 20
"""The size of a trie (in int32, 4 MB) that does not fit into the near caches."""
MOST_CHARACTER = 4
MOST_OF_SPAN = float(2**12)
"""The largest sum of a span for the cache."""
RESET = 1e5
"""If the best sum at an offset is further from 0, sentencepiece resets it to 0 and subtracts it from all later ones."""
_32, _PLACE, _NEAR = np.uint64(32), np.uint64(0x7FFFFFFF), np.uint64(0x80000000)
_NONE, _ONE = np.uint64(0), np.uint64(1)


class FileLattice(NamedTuple):
    """The arrays that finding a path reads and writes, as windows."""

    units: Window
    scores: Window
    steps: Window
    begins: Window
    byte_ids: Window
    bytes: int  # whether unknown characters become byte tokens
    literal: int
    unk_id: int
    unk_score: float
    single: int
    text: Window
    sums: Window
    arcs: Window
    state: Window
    positions: Window
    longest: int
    near: float
    most_sum: float
    doubts: Window
    doubt_ids: Window
    found: Window
    large: int  # whether trie walks are interleaved, see OUT_OF_CACHE
    long: LongWindow
    long_at: Window  # which long tokens begin at each offset of `text`


@helper
def open_lattice(arrays: UnigramFileArrays, work: UnigramFileWork) -> FileLattice:
    """Windows onto the arrays."""
    return FileLattice(
        window(arrays.trie.units),
        window(arrays.scores),
        window(arrays.steps),
        window(arrays.begins),
        window(arrays.byte_ids),
        1 if arrays.byte_ids[0] >= 0 else 0,
        arrays.literal,
        arrays.unk_id,
        arrays.unk_score,
        arrays.single,
        window(work.text),
        window(work.sums),
        window(work.arcs),
        window(work.state),
        window(work.positions),
        max(arrays.longest, MOST_CHARACTER),
        arrays.near,
        arrays.most_sum,
        window(work.doubts),
        window(work.doubt_ids),
        window(work.found),
        1 if arrays.trie.units.size > OUT_OF_CACHE else 0,
        open_long(arrays.long),
        window(work.long),
    )


@helper
def best_paths(own: FileLattice, size: int, base: float, near: float, whole: bool, ids: Window, count: int) -> int:
    """Ids of own.text[:size], for a tokenizer.json word by word; the new count, ROUNDING_SENSITIVE or WHOLE."""
    begin = 0
    while begin < size:
        end = size
        if own.single == 0:
            if get_u8(own.text, begin) == SPACE_BYTE:
                base, near = 0.0, EXACT
            end = begin + 1
            while end < size and get_u8(own.text, end) != SPACE_BYTE:
                end += 1
        total = _find_path(own, begin, end, base, near)
        if near != EXACT and abs(total) >= MOST_OF_SPAN:
            return ROUNDING_SENSITIVE
        count = write_path(own, begin, end, whole, False, ids, count)
        if count < 0:
            return count
        if whole and own.single != 0:
            go_back(own, total, count)
        begin = end
    return count


@helper
def _find_path(own: FileLattice, first: int, size: int, base: float, near: float) -> float:
    """Fill the arcs of text[first:size]; returns the sum at its end. Only the sums that tokens can still reach are
    kept."""
    begin, known_to, p = first, first, first
    put_f64(own.sums, 0, base)
    know_long(own, first, size)
    while p < size:
        until = min(begin + max(SUMS_KEPT, own.longest), size)
        reach = min(until + own.longest, size)
        for k in range(known_to + 1, reach + 1):
            put_f64(own.sums, k - begin, LOWEST)
        known_to = reach
        p = walk(own, size, begin, p, until, near)
        for k in range(p, known_to + 1):  # few, or the last round
            put_f64(own.sums, k - p, get_f64(own.sums, k - begin))
        begin = p
    return get_f64(own.sums, 0)


@helper
def _rounded(own: FileLattice, total: float) -> float:
    return np.float64(np.float32(total)) if own.single != 0 else total


@helper
def walk(own: FileLattice, size: int, begin: int, p: int, until: int, near: float) -> int:
    """Extend paths from the offsets p .. until - 1; the next offset. sums[0] is the sum at offset `begin`."""
    while p < until:
        if own.long.count != 0 and size - p > LONG:
            p = _step_apart(own, size, begin, p, near)
        elif own.large == 0:
            p = _step(own, size, begin, p, near)
        else:
            for k in range(find_tokens(own.units, own.text, own.found, p, until, size)):
                p = _step_found(own, size, begin, p, k, near)
    return p


@helper
def _step(own: FileLattice, size: int, begin: int, p: int, near: float) -> int:
    """Extend paths from offset p; the next offset."""
    after, here = min(p + lead_length(get_u8(own.text, p)), size), _sum_at(own, size, begin, p)
    known = _longer(own, size, begin, p, here, ROOT, p, after, near)
    if not known:
        _challenge(own, own.unk_id, p, after, begin, _rounded(own, here + own.unk_score), near)
    return after


@helper
def know_long(own: FileLattice, first: int, size: int) -> None:
    """Find the long tokens that begin at each offset of text[first:size], for `walk`."""
    if own.long.count != 0 and size - first > LONG:
        find_long(own.long, own.text, first, size, own.long_at, first)


@helper
def _step_apart(own: FileLattice, size: int, begin: int, p: int, near: float) -> int:
    """The same as `_step` with long tokens from `know_long`: the walk ends after LONG bytes."""
    after, here = min(p + lead_length(get_u8(own.text, p)), size), _sum_at(own, size, begin, p)
    known, node = _longer(own, p + LONG, begin, p, here, ROOT, p, after, near), get_i32(own.long_at, p)
    while node != NONE:
        token, length = long_value(own.long, node)
        score = _rounded(own, get_f64(own.scores, token + 1))
        _challenge(own, token, p, p + length, begin, _rounded(own, here + score), near)
        node = next_long(own.long, node)
    if not known:
        _challenge(own, own.unk_id, p, after, begin, _rounded(own, here + own.unk_score), near)
    return after


@helper
def _step_found(own: FileLattice, size: int, begin: int, p: int, k: int, near: float) -> int:
    """The same with the tokens that `find_tokens` has found at its k-th offset."""
    after, here = min(p + lead_length(get_u8(own.text, p)), size), _sum_at(own, size, begin, p)
    ways = get_i32(own.found, MASK + k)
    if size - p < DEPTH:
        ways &= (1 << (size - p)) - 1
    known = ways >> (after - p - 1) & 1 != 0
    todo = np.uint64(ways & ((1 << DEPTH) - 1))
    while todo != _NONE:
        length = trailing_zeros(todo)
        todo &= todo - _ONE
        row = TOKENS + 2 * (DEPTH * k + length)
        token = get_i32(own.found, row)
        score = _score(own, token, get_i32(own.found, row + 1))
        _challenge(own, token, p, p + length + 1, begin, _rounded(own, here + score), near)
    if ways >> DEPTH != 0:
        _longer(own, size, begin, p, here, get_i32(own.found, NODE + k), p + DEPTH, after, near)
    if not known:
        _challenge(own, own.unk_id, p, after, begin, _rounded(own, here + own.unk_score), near)
    return after


@helper
def _sum_at(own: FileLattice, size: int, begin: int, p: int) -> float:
    """The best sum at p, after sentencepiece's reset (see RESET)."""
    here = get_f64(own.sums, p - begin)
    if own.single != 0 and abs(here) > RESET:
        for k in range(p + 1, min(p + own.longest, size) + 1):
            if get_f64(own.sums, k - begin) > LOWEST:
                put_f64(own.sums, k - begin, _rounded(own, get_f64(own.sums, k - begin) - here))
        here = 0.0
    return here


@helper
def _score(own: FileLattice, token: int, bits: int) -> float:
    """The score of a token. bits: the score as a float, which sentencepiece models use."""
    return np.float64(np.int32(bits).view(np.float32)) if own.single != 0 else get_f64(own.scores, token + 1)


@helper
def _longer(
    own: FileLattice, size: int, begin: int, p: int, here: float, node: int, end: int, after: int, near: float
) -> bool:
    """Extend paths by the tokens from p on that end after `end`, where a walk has reached `node`; whether one ends at
    `after`."""
    known = False
    while end < size:
        position = get_i32(own.units, UNIT * node + BASE) ^ get_u8(own.text, end)
        if get_i32(own.units, UNIT * position + PARENT) != node:
            break
        node = position
        end += 1
        token = get_i32(own.units, UNIT * node + TOKEN)
        if token >= 0:
            score = _score(own, token, get_i32(own.units, UNIT * node + SCORE))
            _challenge(own, token, p, end, begin, _rounded(own, here + score), near)
            known = known or end == after
    return known


@helper
def _challenge(own: FileLattice, token: int, p: int, end: int, begin: int, total: float, near: float) -> None:
    """Record an arc if its sum is strictly higher: of equal sums the first stays. Mark arcs whose sums are near."""
    old = get_f64(own.sums, end - begin)
    mark = _NEAR if abs(total - old) <= near else _NONE
    if total > old:
        put_f64(own.sums, end - begin, total)
        put_u64(own.arcs, end, np.uint64(token) << _32 | np.uint64(p) | mark)
    elif mark != _NONE:
        put_u64(own.arcs, end, get_u64(own.arcs, end) | mark)


@helper
def is_unknown(own: FileLattice, token: int) -> bool:
    """Whether a token is the unknown one: for an unknown character, or for its own text in the input."""
    return token == own.unk_id or token == own.literal  # noqa: PLR1714  kernels have no tuples to look in


@helper
def _unknown_before(own: FileLattice, start: int, first: int, joined: bool) -> bool:
    return is_unknown(own, np.int64(get_u64(own.arcs, start) >> _32)) if start > first else joined


@helper
def _in_bytes(own: FileLattice, token: int, start: int, after: bool, first: int, joined: bool) -> bool:
    """Whether a token of the path becomes byte tokens. The unknown token's own text does not, unless an unknown
    character is next to it. after: the next token is unknown."""
    if own.bytes == 0 or not is_unknown(own, token):
        return False
    return token != own.literal or after or _unknown_before(own, start, first, joined)


@helper
def write_path(own: FileLattice, first: int, size: int, whole: bool, joined: bool, ids: Window, count: int) -> int:
    """Write the ids of the best path, which is followed from its end: once to count them, once to write. joined: an
    unknown token is before the path, and one at its beginning belongs to it."""
    found, end, after = 0, size, False
    while end > first:
        arc = get_u64(own.arcs, end)
        token, start = np.int64(arc >> _32), np.int64(arc & _PLACE)
        if arc & _NEAR != _NONE:
            return ROUNDING_SENSITIVE
        if token == own.literal and not whole:
            return WHOLE  # an unknown character next to it may be in another span
        unknown = is_unknown(own, token)
        if _in_bytes(own, token, start, after, first, joined):
            found += _size_in_bytes(own, start, end)
        elif not (unknown and after and own.single == 0):
            found += 1
        end, after = start, unknown
    if joined and after and own.single == 0 and own.bytes == 0:
        found -= 1
    at, end, after = count + found, size, False
    while end > first:
        arc = get_u64(own.arcs, end)
        token, start = np.int64(arc >> _32), np.int64(arc & _PLACE)
        unknown = is_unknown(own, token)
        if _in_bytes(own, token, start, after, first, joined):
            at -= _size_in_bytes(own, start, end)
            _put_bytes(own, start, end, ids, at)
        elif not (unknown and after and own.single == 0):
            at -= 1
            if at >= count:
                put_i32(ids, at, own.unk_id if unknown else token)
        end, after = start, unknown
    return count + found


@helper
def _size_in_bytes(own: FileLattice, start: int, end: int) -> int:
    found = 0
    for i in range(start, end):
        found += 3 if get_u8(own.text, i) == SPACE_BYTE else 1
    return found


@helper
def _put_bytes(own: FileLattice, start: int, end: int, ids: Window, at: int) -> None:
    """Write the ids of the bytes of text[start:end]."""
    for i in range(start, end):
        byte = get_u8(own.text, i)
        if byte == SPACE_BYTE:
            put_i32(ids, at, get_i32(own.byte_ids, SPACE_MARK_0))
            put_i32(ids, at + 1, get_i32(own.byte_ids, SPACE_MARK_1))
            put_i32(ids, at + 2, get_i32(own.byte_ids, SPACE_MARK_2))
            at += 3
        else:
            put_i32(ids, at, get_i32(own.byte_ids, byte))
            at += 1


# ---- sums of the ids written so far


@helper
def sum_here(own: FileLattice, ids: Window, count: int) -> float:
    """The sum of the text after ids[:count]; NaN if ids do not determine it."""
    return settle(own, ids, count) if own.single != 0 else _sum_of_word(own, ids, count)


@helper
def _sum_of_word(own: FileLattice, ids: Window, count: int) -> float:
    k = count - 1
    while k >= 0 and (get_i32(ids, k) >= own.literal or get_u8(own.begins, get_i32(ids, k)) == 0):
        k -= 1
    if k < 0:
        return np.nan
    total = 0.0
    while k < count:
        token = get_i32(ids, k)
        total += get_f64(own.steps, token) if token < own.literal else np.nan
        k += 1
    return total


@helper
def begin_text(own: FileLattice, count: int) -> None:
    """Begin a text, whose first id is written to ids[count]."""
    go_back(own, 0.0, count)


@helper
def go_back(own: FileLattice, total: float, count: int) -> None:
    """Discard the ids after ids[:count], where the sum is `total`."""
    put_f64(own.state, SUM, total)
    put_f64(own.state, LARGEST, abs(total))
    put_i64(own.positions, SETTLED, count)


@helper
def total_here(own: FileLattice) -> float:
    """The sum of the settled ids."""
    return get_f64(own.state, SUM)


@helper
def settle(own: FileLattice, ids: Window, count: int) -> float:
    """The sum after ids[:count], added as sentencepiece adds; NaN if it was too large on the way."""
    # adding as doubles and rounding gives the same floats, but takes three times as long in this serial chain
    total, largest = np.float32(get_f64(own.state, SUM)), np.float32(get_f64(own.state, LARGEST))
    for k in range(get_i64(own.positions, SETTLED), count):
        total = np.float32(total + np.float32(get_f64(own.steps, get_i32(ids, k))))
        largest = max(largest, abs(total))
    put_f64(own.state, SUM, np.float64(total))
    put_f64(own.state, LARGEST, np.float64(largest))
    put_i64(own.positions, SETTLED, count)
    return np.float64(total) if largest < own.most_sum else np.nan


@helper
def join_unknown(own: FileLattice, ids: Window, begin: int, count: int) -> int:
    """Join runs of unknown ids in ids[begin:count]; the new count."""
    at, before = begin, -1
    for k in range(begin, count):
        token = get_i32(ids, k)
        if token != own.unk_id or before != own.unk_id:
            put_i32(ids, at, token)
            at += 1
        before = token
    return at

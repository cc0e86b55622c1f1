"""The best path through normalized text (Viterbi's algorithm), one lattice for every Unigram.

An offset of the text has the best sum of scores of the tokens before it, and an arc: the last of these tokens, and
where it begins. From each character's offset on, the trie is walked; each token found *challenges* the best sum where
it ends. If no token is just the character itself, the unknown token is tried for it. The arcs, followed back from the
end, are the path. For example "aab" with the tokens a (-1), aa (-1.5), ab (-3), an unknown character costing -10:

    offset                0    1     2      3
    tokens from 0              a -1  aa -1.5
    tokens from 1                    a -2, lost to -1.5      ab -1 - 3 = -4
    unknown from 2, since "b" is no token                    -1.5 - 10 = -11.5, lost
    best sum              0    -1    -1.5   -4
    arc                        a, 0  aa, 0  ab, 1            read back: ab, then a

A token wins only by a strictly higher sum: of equal sums the first stays, the one that begins first.

`make_lattice` makes the helpers of one kind of file. Kinds differ in what a score is, and in rounding: `rounds` is for
files whose own library decides by how sums round (see `rounding`). Whether unknown runs become one id or byte tokens is
data of the Lattice.

A long text is processed in parts. Any path into the rest of the text passes through one of the offsets that tokens
reach from the part known so far. Their arcs, followed back, soon meet in nearly every text, even if every offset is
inside some token. What is before that offset is decided: it is written, and its memory is reused (`decided_offset`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2
from jittok.kernels.jit import helper, inlined
from jittok.kernels.memory import (
    Window,
    get_f64,
    get_i32,
    get_u8,
    get_u64,
    prefetch,
    put_f64,
    put_i32,
    put_u8,
    put_u64,
    trailing_zeros,
)
from jittok.kernels.pretoken_cache.span_loop import WHOLE
from jittok.kernels.structures.double_array import BASE, PARENT, ROOT, SCORE, UNIT, VALUE
from jittok.kernels.structures.long_keys import (
    LONG,
    NONE,
    LongWindow,
    find_long,
    long_score,
    long_value,
    next_long,
)
from jittok.kernels.structures.utf8 import lead_length

HIGHEST = 16.0
"""Files with a higher score are encoded without spans. Up to it, sums mostly fall from left to right."""
LOWEST = -float(np.finfo(np.float64).max)
"""The sum of an offset that no path reaches. Adding any float32 to it has no effect, so no path continues there."""
NO_LITERAL = -1
"""`Lattice.literal` where the unknown token's own text is no token of the trie."""
ROUNDING_SENSITIVE = -103
"""Code: rounding may change the path. Different from the codes of `jittok.kernels.fragments`."""
EXACT = -1.0
"""`near` for sums that start at the actual sum of the text: no other sum counts as near."""
SUMS_KEPT = 1 << 14
"""Offsets whose sums are kept at a time."""
MOST_CHARACTER = 4
RESET = 1e5
"""If the best sum at an offset is further from 0, sentencepiece resets it to 0 and subtracts it from all later ones."""
MARK = np.uint64(1 << 30)
"""A bit of an arc that is only set while `decided_offset` runs, on offsets below it."""
NEAR = np.uint64(1 << 31)
"""A bit of an arc: another sum was as near as rounding could change."""
MOST_OFFSETS = 1 << 30
"""The most offsets that `decided_offset` can handle."""
_LOW = 0xFFFFFFFF
START = np.uint64((1 << 31) - 1)
"""The bits of an arc that hold the offset where its token begins."""
_32, _NONE, _ONE, _UNMARKED = np.uint64(32), np.uint64(0), np.uint64(1), np.uint64((1 << 30) - 1)


class Lattice(NamedTuple):
    """The arrays that finding a path reads and writes, as windows."""

    units: Window  # the trie of the tokens
    scores: Window  # what the `score` of its kind reads
    byte_ids: Window
    bytes: int  # 1: unknown characters become byte tokens
    literal: int  # the trie's value of the unknown token's own text, or NO_LITERAL
    unk_id: int  # may be -1
    unk_score: float
    single: int  # 1: sums are floats, and unknown ids of a run are not joined here (sentencepiece)
    clears: int  # 1: scores may be infinite, so a path may leave from an offset that none reaches
    longest: int  # bytes of the longest token, or of a character
    long: LongWindow
    text: Window  # normalized text, where it is not elsewhere
    sums: Window  # float64: the best sum from the offset `begin` on
    arcs: Window  # uint64 of each offset: last token << 32 | where it begins, and NEAR
    long_at: Window  # which long tokens begin at each offset
    found: Window  # for `find_tokens`
    large: int  # 1: trie walks are interleaved, see OUT_OF_CACHE


# ---- interleaved trie walks

OUT_OF_CACHE = 1 << 20
"""The size of a trie (in int32, 4 MB) that does not fit into the near caches: walks through it are interleaved. Which
tokens match does not depend on sums. A step waits for memory, and the end of a walk is unpredictable. So the walks from
OFFSETS offsets take turns, and their cache misses overlap."""
OFFSETS = 64
"""Offsets whose walks are interleaved."""
DEPTH = 16
"""Steps of each walk; a longer one is left to the caller."""
MASK, NODE, NEXT, AT, TURN = (k * OFFSETS for k in range(5))
"""The parts of `found`, indexed by the number k of an offset. MASK: bit r for a token of r + 1 bytes, bit DEPTH if the
walk continues; NODE: the node reached; NEXT: the node to test; AT: the offset; TURN: the active walks."""
TOKENS = 5 * OFFSETS
"""From here on: the token of r + 1 bytes at the k-th offset and the bits of its score, at 2 * (DEPTH * k + r)."""
BUFFER_SIZE = TOKENS + 2 * DEPTH * OFFSETS
_UNIT_BYTES = 4 * UNIT


@helper
def find_tokens(units: Window, text: Window, found: Window, p: int, until: int, size: int) -> int:
    """Find the tokens that begin at the characters from offset p up to `until`, at most OFFSETS; returns their number.

    found: int32[BUFFER_SIZE]. DEPTH bytes after text[:size] are readable; the caller ignores tokens that end there.
    """
    positions, depth, first = 0, 0, get_i32(units, UNIT * ROOT + BASE)
    while positions < OFFSETS and p < until:
        position = first ^ get_u8(text, p)
        prefetch(units, position, _UNIT_BYTES)
        put_i32(found, MASK + positions, 0)
        put_i32(found, NODE + positions, ROOT)
        put_i32(found, NEXT + positions, position)
        put_i32(found, AT + positions, p)
        put_i32(found, TURN + positions, positions)
        p = min(p + lead_length(get_u8(text, p)), size)
        positions += 1
    active = positions
    while active > 0 and depth < DEPTH:
        kept = 0
        for j in range(active):
            k = get_i32(found, TURN + j)
            node = get_i32(found, NEXT + k)
            there = get_i32(units, UNIT * node + PARENT) == get_i32(found, NODE + k)
            token = get_i32(units, UNIT * node + VALUE)
            row = TOKENS + 2 * (DEPTH * k + depth)
            put_i32(found, row, token)
            put_i32(found, row + 1, get_i32(units, UNIT * node + SCORE))
            put_i32(found, MASK + k, get_i32(found, MASK + k) | np.int64(there & (token >= 0)) << depth)
            position = get_i32(units, UNIT * node + BASE) ^ get_u8(text, get_i32(found, AT + k) + depth + 1)
            prefetch(units, position, _UNIT_BYTES)
            put_i32(found, NODE + k, node)
            put_i32(found, NEXT + k, position)
            put_i32(found, TURN + kept, k)
            kept += np.int64(there)
        active = kept
        depth += 1
    for j in range(active):
        k = get_i32(found, TURN + j)
        put_i32(found, MASK + k, get_i32(found, MASK + k) | 1 << DEPTH)
    return positions


# ---- paths


class LatticeHelpers(NamedTuple):
    """The helpers of one kind of Unigram, see `make_lattice`."""

    find_path: Callable[..., Any]
    extend: Callable[..., Any]
    write_path: Callable[..., Any]


@helper
def _add(_own: Lattice, a: float, b: float) -> float:
    return a + b


@helper
def add_rounded(own: Lattice, a: float, b: float) -> float:
    """The sum in the precision of the file's own library."""
    return np.float64(np.float32(a + b)) if own.single != 0 else a + b


@helper
def _sum_at(own: Lattice, _size: int, begin: int, p: int) -> float:
    return get_f64(own.sums, p - begin)


@helper
def _sum_after_reset(own: Lattice, size: int, begin: int, p: int) -> float:
    """The best sum at p, after sentencepiece's reset (see RESET)."""
    here = get_f64(own.sums, p - begin)
    if own.single != 0 and abs(here) > RESET:
        for k in range(p + 1, min(p + own.longest, size) + 1):
            if get_f64(own.sums, k - begin) > LOWEST:
                put_f64(own.sums, k - begin, add_rounded(own, get_f64(own.sums, k - begin), -here))
        here = 0.0
    return here


@helper
def _challenge(own: Lattice, token: int, p: int, end: int, begin: int, total: float, _near: float) -> None:
    """Record an arc if its sum is strictly higher: NaN never wins."""
    if total > get_f64(own.sums, end - begin):
        put_f64(own.sums, end - begin, total)
        put_u64(own.arcs, end, np.uint64(token & _LOW) << _32 | np.uint64(p))


@helper
def _challenge_near(own: Lattice, token: int, p: int, end: int, begin: int, total: float, near: float) -> None:
    """The same, and mark arcs whose sums are near."""
    old = get_f64(own.sums, end - begin)
    mark = NEAR if abs(total - old) <= near else _NONE
    if total > old:
        put_f64(own.sums, end - begin, total)
        put_u64(own.arcs, end, np.uint64(token & _LOW) << _32 | np.uint64(p) | mark)
    elif mark != _NONE:
        put_u64(own.arcs, end, get_u64(own.arcs, end) | mark)


class _Sums(NamedTuple):
    """How one kind of file adds scores: helpers."""

    score: Callable[..., Any]
    scored: bool  # see `make_lattice`
    add: Callable[..., Any]
    at: Callable[..., Any]
    challenge: Callable[..., Any]


def _make_longer(sums: _Sums) -> Callable[..., Any]:
    score, scored, add, challenge = sums.score, sums.scored, sums.add, sums.challenge

    @inlined
    def longer(
        own: Lattice, text: Window, at: int, stop: int, begin: int, p: int, here: float, node: int, end: int,
        after: int, near: float,
    ) -> bool:  # fmt: skip
        """Extend paths by the tokens from p on that end after `end`, where a walk has reached `node`, and up to `stop`;
        whether one ends at `after`."""
        known = False
        while end < stop:
            position = get_i32(own.units, UNIT * node + BASE) ^ get_u8(text, at + end)
            if get_i32(own.units, UNIT * position + PARENT) != node:
                break
            node = position
            end += 1
            token = get_i32(own.units, UNIT * node + VALUE)
            if scored:  # no branch on whether a token ends here or wins: neither is predictable
                total, best = float(here) + float(score(own, token, node)), get_f64(own.sums, end - begin)
                arc, better = np.uint64(token & _LOW) << _32 | np.uint64(p), total > best
                put_f64(own.sums, end - begin, total if better else best)
                put_u64(own.arcs, end, arc if better else get_u64(own.arcs, end))
            elif token >= 0:
                challenge(own, token, p, end, begin, add(own, here, score(own, token, node)), near)
            known = known or (token >= 0) & (end == after)
        return known

    return longer


def _make_step(sums: _Sums, longer: Callable[..., Any]) -> Callable[..., Any]:
    sum_at, add, challenge = sums.at, sums.add, sums.challenge

    @inlined
    def step(own: Lattice, text: Window, at: int, size: int, begin: int, p: int, near: float) -> int:
        """Extend paths from offset p; the next offset. With long tokens, which `know_long` has found, the walk ends
        after LONG bytes."""
        after, here = min(p + lead_length(get_u8(text, at + p)), size), sum_at(own, size, begin, p)
        stop, node = size, NONE
        if own.long.count != 0 and size - p > LONG:
            stop, node = p + LONG, get_i32(own.long_at, p)
        known = longer(own, text, at, stop, begin, p, here, ROOT, p, after, near)
        while node != NONE:
            token, length = long_value(own.long, node)
            challenge(own, token, p, p + length, begin, add(own, here, long_score(own.long, node)), near)
            node = next_long(own.long, node)
        if not known:
            challenge(own, own.unk_id, p, after, begin, add(own, here, own.unk_score), near)
        return after

    return step


def _make_step_found(sums: _Sums, longer: Callable[..., Any]) -> Callable[..., Any]:
    sum_at, add, challenge = sums.at, sums.add, sums.challenge

    @helper
    def step_found(own: Lattice, text: Window, at: int, size: int, begin: int, p: int, k: int, near: float) -> int:
        """Extend paths from offset p by the tokens that `find_tokens` has found at its k-th offset."""
        after, here = min(p + lead_length(get_u8(text, at + p)), size), sum_at(own, size, begin, p)
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
            total = add(own, here, file_score(own, token, get_i32(own.found, row + 1)))
            challenge(own, token, p, p + length + 1, begin, total, near)
        if ways >> DEPTH != 0:
            longer(own, text, at, size, begin, p, here, get_i32(own.found, NODE + k), p + DEPTH, after, near)
        if not known:
            challenge(own, own.unk_id, p, after, begin, add(own, here, own.unk_score), near)
        return after

    return step_found


def _make_walk(sums: _Sums, interleaved: bool) -> Callable[..., Any]:
    longer = _make_longer(sums)
    step, step_found = _make_step(sums, longer), _make_step_found(sums, longer)

    @helper
    def walk_each(own: Lattice, text: Window, at: int, size: int, begin: int, p: int, until: int, near: float) -> int:
        """Extend paths from the offsets p .. until - 1; the next offset."""
        while p < until:
            p = step(own, text, at, size, begin, p, near)
        return p

    @helper
    def walk_interleaved(
        own: Lattice, text: Window, at: int, size: int, begin: int, p: int, until: int, near: float
    ) -> int:
        """The same, for a large trie by interleaved walks."""
        while p < until:
            if own.large == 0 or (own.long.count != 0 and size - p > LONG):
                p = step(own, text, at, size, begin, p, near)
            else:
                for k in range(find_tokens(own.units, text, own.found, p, until, size)):
                    p = step_found(own, text, at, size, begin, p, k, near)
        return p

    return walk_interleaved if interleaved else walk_each


def _make_extend(walk: Callable[..., Any]) -> Callable[..., Any]:
    @helper
    def extend(
        own: Lattice, text: Window, at: int, begin: int, p: int, known_to: int, end: int, closed: bool, near: float
    ) -> tuple[int, int, int, int]:
        decided, stop = 0, end if closed else end - own.longest
        if own.long.count != 0 and end - p > LONG:
            find_long(own.long, text, at + p, at + end, own.long_at, p)
        while p < stop:
            until = min(begin + max(SUMS_KEPT, own.longest), stop)
            reach = min(until + own.longest, end)
            for k in range(known_to + 1, reach + 1):
                put_f64(own.sums, k - begin, LOWEST)
            if own.clears != 0 or not closed:
                for k in range(known_to + 1, reach + 1):
                    put_u64(own.arcs, k, np.uint64(own.unk_id & _LOW) << _32)
            known_to = max(known_to, reach)
            p = walk(own, text, at, end, begin, p, until, near)
            if not closed:
                common = decided_offset(own.sums, own.arcs, begin, p, known_to)
                # whether the unknown token's own text becomes byte tokens depends on the text after it
                if common > 0 and token_before(own, common) != own.literal:
                    decided = common
            for k in range(p, known_to + 1):  # few, or the last round
                put_f64(own.sums, k - p, get_f64(own.sums, k - begin))
            begin = p
        return end if closed else decided, begin, p, known_to

    return extend


def _make_write_bytes(marked: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    @helper
    def size_in_bytes(text: Window, start: int, stop: int) -> int:
        found = stop - start
        if marked:
            for i in range(start, stop):
                found += 2 if get_u8(text, i) == SPACE_BYTE else 0
        return found

    @helper
    def put_bytes(own: Lattice, text: Window, start: int, stop: int, ids: Window, k: int) -> None:
        """Write the ids of the bytes of text[start:stop]."""
        for i in range(start, stop):
            byte = get_u8(text, i)
            if marked and byte == SPACE_BYTE:
                put_i32(ids, k, get_i32(own.byte_ids, SPACE_MARK_0))
                put_i32(ids, k + 1, get_i32(own.byte_ids, SPACE_MARK_1))
                put_i32(ids, k + 2, get_i32(own.byte_ids, SPACE_MARK_2))
                k += 3
            else:
                put_i32(ids, k, get_i32(own.byte_ids, byte))
                k += 1

    return size_in_bytes, put_bytes


def _make_write_path(rounds: bool, marked: bool) -> Callable[..., Any]:
    size_in_bytes, put_bytes = _make_write_bytes(marked)

    @helper
    def write_path(
        own: Lattice, text: Window, at: int, first: int, size: int, whole: bool, joined: bool, ids: Window, count: int
    ) -> int:
        found, end, after = 0, size, False
        while end > first:  # the path is followed from its end: once to count the ids, once to write them
            arc = get_u64(own.arcs, end)
            token, start = np.int64(arc >> _32), np.int64(arc & START)
            if rounds and arc & NEAR != _NONE:
                return ROUNDING_SENSITIVE
            if token == own.literal and not whole:
                return WHOLE
            unknown = is_unknown(own, token)
            if in_bytes(own, token, start, after, first, joined):
                found += size_in_bytes(text, at + start, at + end)
            elif not (unknown and after and own.single == 0):
                found += 1
            end, after = start, unknown
        if joined and after and own.single == 0 and own.bytes == 0:
            found -= 1
        k, end, after = count + found, size, False
        while end > first:
            arc = get_u64(own.arcs, end)
            token, start = np.int64(arc >> _32), np.int64(arc & START)
            unknown = is_unknown(own, token)
            if in_bytes(own, token, start, after, first, joined):
                k -= size_in_bytes(text, at + start, at + end)
                put_bytes(own, text, at + start, at + end, ids, k)
            elif not (unknown and after and own.single == 0):
                k -= 1
                if k >= count:
                    put_i32(ids, k, own.unk_id if unknown else token)
            end, after = start, unknown
        return count + found

    return write_path


def make_lattice(score: Callable[..., Any], *, rounds: bool, marked: bool, scored: bool = False) -> LatticeHelpers:
    """The helpers of one kind of Unigram.

    score(own, token, node) -> the score of a token, at its node in the trie: a helper
    rounds: sums may round, in float32 if own.single; a path that rounding may change is found (`near`)
    marked: a space of the text is U+2581 where it becomes byte tokens
    scored: `score` is -inf at a node without a token, and may be asked there

    find_path(own, text, at, first, size, base, near) -> the sum at the end: fill the arcs of text[at + first : at +
    size], where all offsets count from `at`; base: the sum at `first`; near: how far another sum may be from the best
    one to be as good (EXACT: none is)

    extend(own, text, at, begin, p, known_to, end, closed, near) -> (the offset up to which the path is decided or 0,
    begin, p, known_to): the same from the state (begin, p, known_to) on, up to `end`; closed: the text ends there. If
    it is not closed, more text follows, and only what no later token can change is decided. own.sums[0] is the sum at
    `begin`; sums are known up to `known_to`, and all tokens that begin before p were tried.

    write_path(own, text, at, first, size, whole, joined, ids, count) -> the new count, ROUNDING_SENSITIVE or WHOLE:
    write the ids of the best path. whole: the text is not a span; else the unknown token's own text gives WHOLE, as an
    unknown character next to it may be in another span. joined: an unknown token is before the path, and one at its
    beginning belongs to it.
    """
    challenge, add = (_challenge_near, add_rounded) if rounds else (_challenge, _add)
    sums = _Sums(score, scored, add, _sum_after_reset if rounds else _sum_at, challenge)
    extend = _make_extend(_make_walk(sums, interleaved=rounds))

    @helper
    def find_path(own: Lattice, text: Window, at: int, first: int, size: int, base: float, near: float) -> float:
        put_f64(own.sums, 0, base)
        extend(own, text, at, first, first, first, size, True, near)
        return get_f64(own.sums, 0)

    return LatticeHelpers(find_path, extend, _make_write_path(rounds, marked))


@helper
def file_score(own: Lattice, token: int, bits: int) -> float:
    """The score of a file's token. bits: the score as a float, which sentencepiece models use."""
    return np.float64(np.int32(bits).view(np.float32)) if own.single != 0 else get_f64(own.scores, token + 1)


@helper
def token_before(own: Lattice, end: int) -> int:
    """The last token of the best path to an offset, as a uint32."""
    return np.int64(get_u64(own.arcs, end) >> _32)


@helper
def is_unknown(own: Lattice, token: int) -> bool:
    """Whether a token is the unknown one: for an unknown character, or for its own text in the input."""
    return token == own.unk_id & _LOW or token == own.literal


@helper
def in_bytes(own: Lattice, token: int, start: int, after: bool, first: int, joined: bool) -> bool:
    """Whether a token of the path becomes byte tokens. The unknown token's own text does not, unless an unknown
    character is next to it. after: the next token is unknown."""
    if own.bytes == 0 or not is_unknown(own, token):
        return False
    before = is_unknown(own, token_before(own, start)) if start > first else joined
    return token != own.literal or after or before


# ---- long texts, in parts


@helper
def decided_offset(sums: Window, arcs: Window, begin: int, p: int, size: int) -> int:
    """The last offset after `begin` that is on the best paths to all reached offsets from p to `size`; 0: none.

    sums: from the offset `begin` on. All tokens that begin before p were tried, and none that begins at p or later. No
    arc has a MARK, before and after the call. Offset 0 has no arc, and its memory may hold anything.
    """
    put_u64(arcs, 0, _NONE)
    ways, low, found = 0, p, 0
    for k in range(p, size + 1):
        if get_f64(sums, k - begin) > LOWEST:
            start = p if k == p else np.int64(get_u64(arcs, k) & _UNMARKED)
            low = min(low, start)
            ways += _open_way(arcs, start)
    k = p
    while k > begin and found == 0:
        arc = get_u64(arcs, k)
        if arc & MARK != _NONE:
            put_u64(arcs, k, arc & ~MARK)
            if ways == 1:
                found = k
            else:
                start = np.int64(arc & _UNMARKED)
                low = min(low, start)
                ways += _open_way(arcs, start) - 1
        k -= 1
    if found == 0:
        for k in range(low, begin + 1):
            put_u64(arcs, k, get_u64(arcs, k) & ~MARK)
    return found


@helper
def _open_way(arcs: Window, k: int) -> int:
    """Mark an offset; 1 if it was not marked before."""
    arc = get_u64(arcs, k)
    put_u64(arcs, k, arc | MARK)
    return 1 if arc & MARK == _NONE else 0


@helper
def move(own: Lattice, done: int, size: int, known_to: int) -> None:
    """Move everything after `done` to the front: text up to `size`, arcs up to `known_to`. An arc that begins before
    `done` is on no best path any more."""
    if done > 0:
        for k in range(done, size):
            put_u8(own.text, k - done, get_u8(own.text, k))
        for k in range(done + 1, known_to + 1):
            arc = get_u64(own.arcs, k)
            start = max(np.int64(arc & START) - done, 0)
            put_u64(own.arcs, k - done, arc & ~START | np.uint64(start))

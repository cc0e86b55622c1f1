"""One merge after the other: the kernel.

A merge goes over the offsets of its pair in rising order, so in each word from the left, and writes the new id.
Meanwhile counts of neighbors are summed by neighbor in dense arrays, and (neighbor, offset) is noted. So the table of
pairs is searched twice for each distinct neighbor and not for each offset. Then the noted offsets go to the lists of
the new pairs, again rising.

Counts of a pair never rise after the merge that made one of its symbols. So a queue with counts that were right once is
exact, and a pair that is below the threshold when it is made need not be known at all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jittok.kernels.jit import OutI32, OutI64, helper, kernel
from jittok.kernels.memory import Window, get_i32, get_i64, prefetch, put_i32, put_i64, put_u64, window
from jittok.train.pairs import (
    BELOW,
    DONE,
    GONE,
    LOW,
    NEED_PAIRS,
    NEED_POOL,
    NEED_QUEUE,
    NEED_TABLE,
    PAIR_SHIFT,
    PAUSE,
    WATCH,
    PairCountsWindow,
    Rules,
    Training,
    allowed_as_piece,
    allowed_by_length,
    before_by_id,
    before_by_text,
    find,
    hash_of,
    joined_kind,
    key_of,
    known_slot,
    level_of,
    make_queue,
    open_pairs,
    rank_at,
)

PREFETCH_DISTANCE = 16
WORK = 1 << 21
"""Offsets after which the kernel returns: some 50 ms."""
MERGE_COST = 32
NEXT, USED, PAIRS, IN_QUEUE, NEED, MERGES, BEST, ID = range(8)
"""Indices of the state: ids so far, what is used of the pool, pairs, entries of the queue, capacity that is needed,
merges; the pair and the id of WATCH."""


class Made(NamedTuple):
    """The merges so far."""

    pairs: OutI32  # [2 * merges] left, right
    counts: OutI64  # [merges] what the pair counted when it was chosen
    done: OutI64  # [merges] how often it was merged, by counts of words: less than the count where it overlaps itself
    ids: OutI32  # [merges]


class NeighborSums(NamedTuple):
    """Scratch for the neighbors of one merge."""

    lefts: OutI64  # [2 * ids] by left neighbor: sum of counts, number of offsets; zero between merges
    rights: OutI64  # [2 * ids]
    left_ids: OutI32  # [ids] the distinct ones
    right_ids: OutI32  # [ids]
    symbols: OutI32  # [2 * offsets of a pair + 2] left ones from the front, right ones from the middle
    positions: OutI32  # [2 * offsets of a pair + 2]


class NeighborSumsWindow(NamedTuple):
    """The same as windows."""

    lefts: Window
    rights: Window
    left_ids: Window
    right_ids: Window
    symbols: Window
    positions: Window
    middle: int


@helper
def _open_near(near: NeighborSums) -> NeighborSumsWindow:
    return NeighborSumsWindow(
        window(near.lefts),
        window(near.rights),
        window(near.left_ids),
        window(near.right_ids),
        window(near.symbols),
        window(near.positions),
        near.symbols.size // 2,
    )


@helper
def _note(sums: Window, ids: Window, number: int, symbol: int, weight: int) -> int:
    """One more offset with this neighbor; returns how many distinct ones there are."""
    positions = get_i64(sums, 2 * symbol + 1)
    if positions == 0:
        put_i32(ids, number, symbol)
        number += 1
    put_i64(sums, 2 * symbol, get_i64(sums, 2 * symbol) + weight)
    put_i64(sums, 2 * symbol + 1, positions + 1)
    return number


class Replaced(NamedTuple):
    """What `_replace` has found around the offsets of a pair."""

    lefts: int  # distinct left neighbors
    rights: int
    left_notes: int  # offsets noted before and after the middle
    right_notes: int
    twins: int  # offsets whose left neighbor is the new id itself
    twin_count: int
    done: int


@helper
def _replace(own: PairCountsWindow, near: NeighborSumsWindow, pair: int, c: int) -> Replaced:
    """Writes id c at every offset where the pair still is."""
    key, begin = get_i64(own.keys, pair), get_i64(own.at, pair)
    a, b = key >> PAIR_SHIFT, key & LOW
    cut, size = get_i32(own.lengths, a), get_i32(own.lengths, a) + get_i32(own.lengths, b)
    end = begin + get_i64(own.size, pair)
    level = lefts = rights = left_notes = twins = 0
    right_notes = near.middle
    twin_count = done = np.int64(0)
    for k in range(begin, end):
        if k + PREFETCH_DISTANCE < end:
            prefetch(own.symbols, get_i32(own.pool, k + PREFETCH_DISTANCE), 4)
        p = get_i32(own.pool, k)
        if get_i32(own.symbols, p) != a or get_i32(own.symbols, p + cut) != b:
            continue
        level = level_of(own, level, p)
        weight = get_i64(own.level_count, level)
        done += weight
        q = p + size
        x, y = get_i32(own.symbols, p - 1), get_i32(own.symbols, q)
        put_i32(own.symbols, p + cut - 1, GONE)
        put_i32(own.symbols, p + cut, GONE)
        put_i32(own.symbols, p, c)
        put_i32(own.symbols, q - 1, c)
        if x >= 0:
            put_i32(near.symbols, left_notes, x)
            if x == c:
                twin_count += weight
                twins += 1
                put_i32(near.positions, left_notes, p - size)
            else:
                lefts = _note(near.lefts, near.left_ids, lefts, x, weight)
                put_i32(near.positions, left_notes, p - get_i32(own.lengths, x))
            left_notes += 1
        if y >= 0:
            rights = _note(near.rights, near.right_ids, rights, y, weight)
            put_i32(near.symbols, right_notes, y)
            put_i32(near.positions, right_notes, p)
            right_notes += 1
    return Replaced(lefts, rights, left_notes, right_notes, twins, twin_count, done)


@helper
def _lower(own: PairCountsWindow, key: int, by: int) -> None:
    """A pair counts less."""
    e = find(own, key)
    if e >= 0:
        put_i64(own.counts, e, get_i64(own.counts, e) - by)


@helper
def _enter(own: PairCountsWindow, key: int, pair: int, count: int, used: int) -> None:
    """A new pair, whose list begins at `used` of the pool."""
    put_i32(own.table, -1 - find(own, key), pair)
    put_i64(own.keys, pair, key)
    put_i64(own.counts, pair, count)
    put_i64(own.at, pair, used)
    put_i64(own.size, pair, 0)


@helper
def _append(own: PairCountsWindow, pair: int, position: int) -> None:
    size = get_i64(own.size, pair)
    put_i32(own.pool, get_i64(own.at, pair) + size, position)
    put_i64(own.size, pair, size + 1)


@helper
def _hand_out(own: PairCountsWindow, near: NeighborSumsWindow, found: Replaced, c: int, twin: int) -> None:
    """The noted offsets to the lists of the new pairs: sums[2 * x + 1] is -1 - the pair, or 0 for none."""
    for k in range(found.left_notes):
        x = get_i32(near.symbols, k)
        e = twin if x == c else -1 - get_i64(near.lefts, 2 * x + 1)
        if e >= 0:
            _append(own, e, get_i32(near.positions, k))
    for k in range(near.middle, found.right_notes):
        e = -1 - get_i64(near.rights, 2 * get_i32(near.symbols, k) + 1)
        if e >= 0:
            _append(own, e, get_i32(near.positions, k))
    for k in range(found.lefts):
        put_i64(near.lefts, 2 * get_i32(near.left_ids, k) + 1, 0)
    for k in range(found.rights):
        put_i64(near.rights, 2 * get_i32(near.right_ids, k) + 1, 0)


@helper
def _learn_text(own: PairCountsWindow, a: int, b: int, c: int) -> None:
    """The text, hash and kind of a new id."""
    h = hash_of(own, a, b)
    slot = known_slot(own, h, a, b)
    start, cut = get_i64(own.text_at, c), get_i32(own.lengths, a)
    size = cut + get_i32(own.lengths, b)
    for k in range(size):
        put_i32(own.ranks, start + k, rank_at(own, a, b, cut, k))
    put_i64(own.text_at, c + 1, start + size)
    put_u64(own.hashes, c, h)
    put_i32(own.known, -1 - slot, c)
    put_i32(own.kinds, c, joined_kind(get_i32(own.kinds, a), get_i32(own.kinds, b)))


@helper
def _drop(own: PairCountsWindow, pair: int) -> None:
    """A pair is merged, or never will be."""
    put_i64(own.counts, pair, 0)
    put_i64(own.size, pair, 0)


@helper
def _missing(arrays: Training, positions: int, state: OutI64) -> int:
    """DONE if there is capacity for what merging so many offsets makes; else a code, with state[NEED]."""
    if state[USED] + 2 * positions > arrays.pairs.pool.size:
        state[NEED] = 2 * positions
        return NEED_POOL
    most = min(2 * positions, 2 * state[NEXT]) + 1
    state[NEED] = most
    if state[PAIRS] + most > arrays.pairs.keys.size:
        return NEED_PAIRS
    if 2 * (state[PAIRS] + most) > arrays.pairs.table.size:
        return NEED_TABLE
    return NEED_QUEUE if state[IN_QUEUE] + most > arrays.queue.counts.size else DONE


def _make_next_pair(sink: Any) -> Any:
    @helper
    def top_pair(own: PairCountsWindow, size: int, least: int) -> tuple[int, int]:
        """(the best pair, or -1; the size of the queue)."""
        while size > 0:
            pair = get_i32(own.heap_pairs, 0)
            count = get_i64(own.counts, pair)
            if get_i64(own.heap_counts, 0) == count:
                if count > 0:
                    return pair, size
            elif count >= least and count > 0:
                sink(own, size, count, pair)
                continue
            size -= 1
            if size > 0:
                sink(own, size, get_i64(own.heap_counts, size), get_i32(own.heap_pairs, size))
        return -1, 0

    @helper
    def next_pair(own: PairCountsWindow, rules: Rules, state: OutI64) -> tuple[int, int, int]:
        """(left, right, number) of the pair to be merged. The number is -1 for a forced pair that does not occur; left
        is -1 if no pair reaches the threshold."""
        n = state[MERGES]
        if 2 * n < rules.forced.size:
            a, b = np.int64(rules.forced[2 * n]), np.int64(rules.forced[2 * n + 1])
            pair = find(own, key_of(a, b))
            return a, b, -1 if pair >= 0 and get_i64(own.counts, pair) <= 0 else max(pair, -1)
        pair, size = top_pair(own, state[IN_QUEUE], rules.least)
        state[IN_QUEUE] = size
        if pair < 0:
            return -1, -1, -1
        key = get_i64(own.keys, pair)
        return key >> PAIR_SHIFT, key & LOW, pair

    return next_pair


def _make_make_pairs(push: Any, allowed: Any) -> Any:
    @helper
    def make_pairs(
        own: PairCountsWindow,
        near: NeighborSumsWindow,
        found: Replaced,
        a: int,
        b: int,
        c: int,
        rules: Rules,
        state: OutI64,
    ) -> None:
        """Lowers what the neighbors had, enters what they have now."""
        pairs, used, size = state[PAIRS], state[USED], state[IN_QUEUE]
        for k in range(found.lefts):
            x = get_i32(near.left_ids, k)
            count = get_i64(near.lefts, 2 * x)
            _lower(own, key_of(x, a), count)
            positions = get_i64(near.lefts, 2 * x + 1)
            put_i64(near.lefts, 2 * x, 0)
            put_i64(near.lefts, 2 * x + 1, 0)
            if count >= rules.least and allowed(own, x, c):
                _enter(own, key_of(x, c), pairs, count, used)
                used += positions
                put_i64(near.lefts, 2 * x + 1, -1 - pairs)
                size = push(own, size, count, pairs)
                pairs += 1
        for k in range(found.rights):
            y = get_i32(near.right_ids, k)
            count = get_i64(near.rights, 2 * y)
            _lower(own, key_of(b, y), count)
            if y == a:  # the right one was merged as well: (c, c) is there
                count -= found.twin_count
            positions = get_i64(near.rights, 2 * y + 1)
            put_i64(near.rights, 2 * y, 0)
            put_i64(near.rights, 2 * y + 1, 0)
            if count >= rules.least and allowed(own, c, y):
                _enter(own, key_of(c, y), pairs, count, used)
                used += positions
                put_i64(near.rights, 2 * y + 1, -1 - pairs)
                size = push(own, size, count, pairs)
                pairs += 1
        twin = -1
        if found.twins > 0 and found.twin_count >= rules.least and allowed(own, c, c):
            twin = pairs
            _enter(own, key_of(c, c), pairs, found.twin_count, used)
            used += found.twins
            size = push(own, size, found.twin_count, pairs)
            pairs += 1
        _hand_out(own, near, found, c, twin)
        state[PAIRS], state[USED], state[IN_QUEUE] = pairs, used, size

    return make_pairs


def _make_merge(before: Any, allowed: Any, pieces: bool) -> Any:
    push, sink = make_queue(before)
    next_pair, make_pairs = _make_next_pair(sink), _make_make_pairs(push, allowed)

    @helper
    def merge(arrays: Training, near: NeighborSums, made: Made, state: OutI64) -> int:
        own, beside, rules = open_pairs(arrays), _open_near(near), arrays.rules
        work = 0
        while state[NEXT] < rules.target and state[MERGES] < made.counts.size:
            n, ids = state[MERGES], state[NEXT]
            a, b, best = next_pair(own, rules, state)
            if a < 0:
                return BELOW
            if pieces and known_slot(own, hash_of(own, a, b), a, b) >= 0:
                _drop(own, best)  # another pair made this text
                continue
            positions = get_i64(own.size, best) if best >= 0 else 0
            code = _missing(arrays, positions, state)
            if code != DONE:
                return code
            length = get_i32(own.lengths, a) + get_i32(own.lengths, b)
            c = ids
            if length < rules.watched.size and rules.watched[length] != 0:
                if state[BEST] != key_of(a, b):
                    state[BEST] = key_of(a, b)
                    return WATCH
                c = state[ID]
                state[BEST] = -1
                if c < 0:
                    _drop(own, best)
                    continue
            arrays.line.lengths[c] = length
            made.pairs[2 * n], made.pairs[2 * n + 1] = a, b
            made.counts[n] = get_i64(own.counts, best) if best >= 0 else 0
            made.ids[n], made.done[n] = c, 0
            state[MERGES] = n + 1
            if c == ids:
                state[NEXT] = ids + 1
            if pieces:
                _learn_text(own, a, b, c)
            if best >= 0:
                found = _replace(own, beside, best, c)
                made.done[n] = found.done
                _drop(own, best)
                make_pairs(own, beside, found, a, b, c, rules, state)
            work += positions + MERGE_COST
            if work > WORK:
                return PAUSE
        return DONE

    return merge


_merge_bpe = _make_merge(before_by_id, allowed_by_length, False)
_merge_pieces = _make_merge(before_by_text, allowed_as_piece, True)


@kernel
def merge_bpe(arrays: Training, near: NeighborSums, made: Made, state: OutI64) -> int:
    """Merges until there are `rules.target` ids, or returns another code; ties by ids. Linear in the offsets merged
    plus the logarithm of the queue for each pair."""
    return _merge_bpe(arrays, near, made, state)


@kernel
def merge_pieces(arrays: Training, near: NeighborSums, made: Made, state: OutI64) -> int:
    """The same by sentencepiece's rule: valid pieces only, ties by text, no text twice."""
    return _merge_pieces(arrays, near, made, state)

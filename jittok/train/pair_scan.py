"""The line of words, and its pairs: laying out, counting, listing places. Every kernel is linear in the places it sees.

Kernels over the whole line take a stretch of it at a time (STEP places), so that Python can look after signals.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok._jit import I32, I64, U8, OutI32, OutI64, as_int64, helper, kernel
from jittok._raw import get_i32, get_i64, put_i32, put_i64
from jittok.train.pairs import (
    ABSENT,
    LOW,
    PAIR_SHIFT,
    SEPARATOR,
    Line,
    PairCounts,
    PairCountsWindow,
    Queue,
    Rules,
    SymbolTexts,
    allowed_as_piece,
    allowed_by_length,
    before_by_id,
    before_by_text,
    find,
    key_of,
    level_of,
    make_queue,
    open_pairs,
    slot_of,
)

STEP = 8 << 20
DENSE = 256
"""First symbols that are this many ids or fewer are counted by pairs in a table of DENSE * DENSE."""
NEED_PAIRS, NEED_TABLE = -2, -3


@kernel
def weigh_bytes(words: U8, starts: I64, counts: I64, sums: OutI64, first: int, end: int) -> int:
    """Adds to sums (int64[256]) how often each byte occurs in words first .. end - 1; how many words there were."""
    for k in range(first, end):
        for i in range(starts[k], starts[k + 1]):
            sums[words[i]] += counts[k]
    return end - first


@kernel
def lay_out(
    words: U8, ids: I32, symbols: I32, starts: I64, order: I64, counts: I64, out: OutI32, level_at: OutI64,
    level_count: OutI64,
) -> int:  # fmt: skip
    """Words in `order` (counts fall) to the line `out`; the number of levels.

    Word k is starts[k]:starts[k + 1] of `words`, bytes whose symbols are ids[byte], or, where `ids` is empty, of
    `symbols`. A negative symbol separates.
    out: int32[symbols + words + 1]; level_at, level_count: [distinct counts + 1], [distinct counts]
    """
    at, levels, last = 1, 0, np.int64(-1)
    out[0] = SEPARATOR
    for n in range(order.size):
        k = order[n]
        if counts[k] != last:
            last = counts[k]
            level_at[levels], level_count[levels] = at, last
            levels += 1
        for i in range(starts[k], starts[k + 1]):
            symbol = as_int64(ids[words[i]]) if ids.size > 0 else as_int64(symbols[i])
            out[at] = max(symbol, SEPARATOR)
            at += 1
        out[at] = SEPARATOR
        at += 1
    level_at[levels] = at + 1
    return levels


@kernel
def count_dense(line: Line, low: int, sums: OutI64, numbers: OutI64, begin: int, end: int) -> int:
    """Counts and numbers of places of pairs of first symbols low .. low + DENSE - 1 that begin at begin .. end - 1.

    sums, numbers: int64[DENSE * DENSE], by (left - low) * DENSE + right - low. The next place to continue from.
    """
    end = min(end, line.symbols.size - 1)
    level = 0
    while level < line.level_count.size and line.level_at[level + 1] <= begin:
        level += 1
    last = np.int64(line.symbols[begin])
    at = begin + 1
    while at <= end:
        while line.level_at[level + 1] < at:
            level += 1
        stop = min(end + 1, line.level_at[level + 1])
        weight = line.level_count[level]
        while at < stop:
            symbol = np.int64(line.symbols[at])
            if symbol >= 0 and last >= 0:
                k = (last - low) * DENSE + symbol - low
                sums[k] += weight
                numbers[k] += 1
            last = symbol
            at += 1
        level = min(level + 1, line.level_count.size - 1)
    return end


@kernel
def list_dense(line: Line, low: int, positions: OutI64, pool: OutI32, begin: int, end: int) -> int:
    """Places of pairs to the pool: those of pair k from places[k] on, which moves; a pair with -1 is left out."""
    end = min(end, line.symbols.size - 1)
    last = np.int64(line.symbols[begin])
    for at in range(begin + 1, end + 1):
        symbol = np.int64(line.symbols[at])
        if symbol >= 0 and last >= 0:
            k = (last - low) * DENSE + symbol - low
            if positions[k] >= 0:
                pool[positions[k]] = at - 1
                positions[k] += 1
        last = symbol
    return end


@helper
def pair_at(own: PairCountsWindow, p: int) -> tuple[int, int, int]:
    """(left, right, place of the right one) of the pair whose left symbol is at place p; left or right is negative
    where there is no pair. The place to continue from, in any case."""
    a = get_i32(own.symbols, p)
    if a < 0:
        return a, a, p + 1
    q = p + get_i32(own.lengths, a)
    return a, get_i32(own.symbols, q), q


def _make_sum(allowed: Any) -> Any:
    @helper
    def add(own: PairCountsWindow, sums: OutI64, positions: int, state: OutI64) -> int:
        p, level, mask = state[0], 0, np.uint64(sums.size - 1)
        end = min(p + STEP, positions - 1)
        while p < end:
            a, b, q = pair_at(own, p)
            if b >= 0 and allowed(own, a, b):
                level = level_of(own, level, p)
                sums[slot_of(key_of(a, b), mask)] += get_i64(own.level_count, level)
            p = q
        state[0] = p
        return 0

    return add


_sum_bpe, _sum_pieces = _make_sum(allowed_by_length), _make_sum(allowed_as_piece)


@kernel
def sum_pairs(
    line: Line,
    pairs: PairCounts,
    queue: Queue,
    texts: SymbolTexts,
    rules: Rules,
    pieces: int,
    sums: OutI64,
    state: OutI64,
) -> int:
    """Adds the counts of all pairs by their hash, one stretch of the line a call: no pair counts more than its sum.

    sums: int64[a power of two], 0 at first; pieces, state: see `count_pairs`
    """
    own = open_pairs(line, pairs, queue, texts, rules)
    if pieces != 0:
        return _sum_pieces(own, sums, line.symbols.size, state)
    return _sum_bpe(own, sums, line.symbols.size, state)


def _make_count(allowed: Any) -> Any:
    @helper
    def count(
        own: PairCountsWindow,
        capacity: int,
        slots: int,
        numbers: OutI64,
        sums: I64,
        least: int,
        positions: int,
        state: OutI64,
    ) -> int:
        p, pairs, level, mask = state[0], state[1], 0, np.uint64(sums.size - 1)
        end = min(p + STEP, positions - 1)
        while p < end:
            a, b, q = pair_at(own, p)
            if b >= 0 and allowed(own, a, b):
                key = key_of(a, b)
                if sums[slot_of(key, mask)] < least:
                    p = q
                    continue
                e = find(own, key)
                if e < 0:
                    if pairs + 1 > capacity:
                        state[0], state[1] = p, pairs
                        return NEED_PAIRS
                    if 2 * pairs >= slots:
                        state[0], state[1] = p, pairs
                        return NEED_TABLE
                    put_i32(own.table, -1 - e, pairs)
                    e = pairs
                    put_i64(own.keys, e, key)
                    put_i64(own.counts, e, 0)
                    numbers[e] = 0
                    pairs += 1
                level = level_of(own, level, p)
                put_i64(own.counts, e, get_i64(own.counts, e) + get_i64(own.level_count, level))
                numbers[e] += 1
            p = q
        state[0], state[1] = p, pairs
        return 0

    return count


_count_bpe, _count_pieces = _make_count(allowed_by_length), _make_count(allowed_as_piece)


@kernel
def count_pairs(
    line: Line, pairs: PairCounts, queue: Queue, texts: SymbolTexts, rules: Rules, pieces: int, numbers: OutI64,
    sums: I64, least: int, state: OutI64,
) -> int:  # fmt: skip
    """Enters all pairs with their counts but those that are below `least` by `sums` (see `sum_pairs`).

    One stretch of the line a call. numbers: int64[pairs] of places.
    pieces: 1 for the rules of valid pieces. state: int64[2] the place to continue from (1 at first), pairs so far.
    0, or NEED_PAIRS, NEED_TABLE, and the same place again.
    """
    own = open_pairs(line, pairs, queue, texts, rules)
    if pieces != 0:
        return _count_pieces(own, pairs.keys.size, pairs.table.size, numbers, sums, least, line.symbols.size, state)
    return _count_bpe(own, pairs.keys.size, pairs.table.size, numbers, sums, least, line.symbols.size, state)


@kernel
def list_pairs(line: Line, pairs: PairCounts, queue: Queue, texts: SymbolTexts, rules: Rules, state: OutI64) -> int:
    """Places of all pairs that are in the table to their lists, of which `at` and `size` (0 at first) tell."""
    own = open_pairs(line, pairs, queue, texts, rules)
    p = state[0]
    end = min(p + STEP, line.symbols.size - 1)
    while p < end:
        a, b, q = pair_at(own, p)
        if b >= 0:
            e = find(own, key_of(a, b))
            if e >= 0:
                size = get_i64(own.size, e)
                put_i32(own.pool, get_i64(own.at, e) + size, p)
                put_i64(own.size, e, size + 1)
        p = q
    state[0] = p
    return 0


@kernel
def compact(line: Line, pairs: PairCounts, count: int) -> int:
    """Drops stale places from the lists of pairs 0 .. count - 1, whose places in the pool rise; what is used of it."""
    out = 0
    for e in range(count):
        begin, size = pairs.at[e], pairs.size[e]
        pairs.at[e] = out
        if size <= 0 or pairs.counts[e] <= 0:
            pairs.size[e] = 0
            continue
        a, b = pairs.keys[e] >> PAIR_SHIFT, pairs.keys[e] & LOW
        length = np.int64(line.lengths[a])
        for k in range(begin, begin + size):
            p = np.int64(pairs.pool[k])
            if line.symbols[p] == a and line.symbols[p + length] == b:
                pairs.pool[out] = p
                out += 1
        pairs.size[e] = out - pairs.at[e]
    return out


@kernel
def enter_pairs(pairs: PairCounts, count: int) -> int:
    """Enters pairs 0 .. count - 1 into the table, which is emptied first."""
    pairs.table[:] = ABSENT
    mask = np.uint64(pairs.table.size - 1)
    for e in range(count):
        i = slot_of(np.int64(pairs.keys[e]), mask)
        while pairs.table[i] != ABSENT:
            i = i + 1 & np.int64(mask)
        pairs.table[i] = e
    return count


_push_by_id, _ = make_queue(before_by_id)
_push_by_text, _ = make_queue(before_by_text)


@kernel
def fill_queue(
    line: Line, pairs: PairCounts, queue: Queue, texts: SymbolTexts, rules: Rules, pieces: int, count: int
) -> int:
    """Puts pairs 0 .. count - 1 into the empty queue; its size."""
    own, size = open_pairs(line, pairs, queue, texts, rules), 0
    for e in range(count):
        if pairs.counts[e] < rules.least:
            continue
        if pieces != 0:
            size = _push_by_text(own, size, pairs.counts[e], e)
        else:
            size = _push_by_id(own, size, pairs.counts[e], e)
    return size

"""Words merged together end as each does alone: lowest rank first, leftmost among equals."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.kernels.jit import I32, I64, JIT, OutI32, OutI64, as_int64, frozen, kernel
from jittok.kernels.merging.lanes import (
    LANES,
    MOST_SYMBOLS,
    NOWHERE,
    LaneWork,
    clear_lane,
    make_lane_work,
    merge_lanes,
    next_symbol,
    note_lane_pair,
    open_lanes,
    prefetch_lane_pair,
    put_lane_symbol,
    resolve_lane_pairs,
    symbol_at,
)
from jittok.kernels.structures.pair_table import PairTable, build_pair_table, find_pair


@kernel
def merge(pairs: PairTable, work: LaneWork, symbols: I32, offsets: I64, out: OutI32, ends: OutI64) -> int:
    own, asked = open_lanes(work, pairs), 0
    for lane in range(offsets.size - 1):
        start, count = offsets[lane], offsets[lane + 1] - offsets[lane]
        clear_lane(own, lane, count)
        for k in range(count):
            put_lane_symbol(own, lane, k, as_int64(symbols[start + k]))
        for k in range(count - 1):
            left, right = as_int64(symbols[start + k]), as_int64(symbols[start + k + 1])
            if lane & 1 == 0:
                asked = prefetch_lane_pair(own, asked, lane, k, left, right)
            else:
                f = find_pair(own.slots, own.filter, own.slot_bits, own.filter_bits, left, right)
                note_lane_pair(own, lane, f, k)
    resolve_lane_pairs(own, asked)
    merge_lanes(own, offsets.size - 1)
    written = 0
    for lane in range(offsets.size - 1):
        k = 0
        while k != NOWHERE:
            out[written] = symbol_at(own, lane, k)
            written += 1
            k = next_symbol(own, lane, k)
        ends[lane] = written
    return written


def merged(rules, words, work=None):
    columns = zip(*((a, b, rank, c) for (a, b), (rank, c) in rules.items()), strict=True) if rules else [[]] * 4
    table = build_pair_table(*(frozen(list(column), np.int32) for column in columns))
    offsets = np.cumsum([0, *map(len, words)])
    out, ends = np.full(int(offsets[-1]) + 1, -1, np.int32), np.zeros(len(words), np.int64)
    symbols = frozen(list(itertools.chain.from_iterable(words)), np.int32)
    merge(table, work or make_lane_work(), symbols, frozen(offsets, np.int64), out, ends)
    return [part.tolist() for part in np.split(out, ends)[:-1]]


def naively(rules, symbols):
    """The definition, O(n^2)."""
    found = list(symbols)
    while True:
        ranked = [(rules[pair][0], k) for k, pair in enumerate(itertools.pairwise(found)) if pair in rules]
        if not ranked:
            return found
        _, k = min(ranked)
        found[k : k + 2] = [rules[found[k], found[k + 1]][1]]


symbol = st.integers(0, 7)
rank = st.integers(0, 12) | st.integers(0, (1 << 23) - 1)
rules_ = st.dictionaries(st.tuples(symbol, symbol), st.tuples(rank, symbol), max_size=40)
words_ = st.lists(st.lists(symbol, min_size=1, max_size=MOST_SYMBOLS), min_size=1, max_size=LANES)
RUNS = {(0, 0): (0, 1), (1, 1): (1, 2), (2, 2): (2, 3), (1, 0): (0, 0)}


@given(rules_, words_)
@example(RUNS, [[0] * MOST_SYMBOLS] * LANES)
@example(RUNS, [[0]])
@example(RUNS, [[0] * 16, [0] * 17] * (LANES // 2))
@example({(0, 1): ((1 << 23) - 1, 2), (2, 2): (0, 3)}, [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1] * 8])
def test_words_merged_together_end_as_each_does_alone(rules, words):
    assert merged(rules, words) == [naively(rules, word) for word in words]


@pytest.mark.parametrize("lanes", [1, 2, LANES - 1, LANES])
def test_what_was_merged_before_does_not_count(lanes):
    work, random = make_lane_work(), np.random.default_rng(lanes)
    for _ in range(200 if JIT else 5):
        rules = {(int(a), int(b)): (int(r), int(c)) for a, b, r, c in random.integers(0, 9, (30, 4)).tolist()}
        words = [random.integers(0, 9, random.integers(1, MOST_SYMBOLS + 1)).tolist() for _ in range(lanes)]
        assert merged(rules, words, work) == [naively(rules, word) for word in words]


def test_pairs_the_filter_cannot_tell_from_others_are_looked_up_and_not_found():
    """Many rules on few hash bits: searches that begin at another pair's slot, also at the front and the end."""
    random = np.random.default_rng(4)
    rules = {(int(a), int(b)): (k, int(c)) for k, (a, b, c) in enumerate(random.integers(0, 300, (4000, 3)))}
    words = [random.integers(0, 300, MOST_SYMBOLS).tolist() for _ in range(LANES)]
    work = make_lane_work()
    for _ in range(20 if JIT else 2):
        words = [random.integers(0, 300, MOST_SYMBOLS).tolist() for _ in range(LANES)]
        assert merged(rules, words, work) == [naively(rules, word) for word in words]

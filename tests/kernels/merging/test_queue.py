"""All three ways of merging are the naive one: lowest rank first, leftmost among equals."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.kernels.jit import JIT, OutI32, as_int64, frozen, kernel
from jittok.kernels.merging.queue import SCAN_SYMBOLS, SIXTEEN, MergeWork, make_merge_work, merge_symbols, open_merge
from jittok.kernels.structures.pair_table import PairTable, build_pair_table

LONGEST = 200
LENGTHS = [
    0,
    1,
    2,
    3,
    SIXTEEN - 1,
    SIXTEEN,
    SIXTEEN + 1,
    SCAN_SYMBOLS - 1,
    SCAN_SYMBOLS,
    SCAN_SYMBOLS + 1,
    64,
    100,
    LONGEST,
]


@kernel
def merge(pairs: PairTable, work: MergeWork, symbols: OutI32, places: OutI32) -> int:
    window = open_merge(work, pairs)
    for k in range(symbols.size):
        work.symbols[k], work.positions[k] = symbols[k], 3 * k
    work.positions[symbols.size] = 3 * symbols.size
    left = merge_symbols(window, symbols.size)
    for k in range(left):
        symbols[k] = as_int64(work.symbols[k])
    for k in range(left + 1):
        places[k] = as_int64(work.positions[k])
    return left


def merged(rules, symbols, work=None):
    columns = zip(*((a, b, rank, c) for (a, b), (rank, c) in rules.items()), strict=True) if rules else [[]] * 4
    table = build_pair_table(*(frozen(list(column), np.int32) for column in columns))
    out, places = np.array(symbols, np.int32), np.full(len(symbols) + 1, -1, np.int32)
    left = merge(table, work or make_merge_work(max(len(symbols), 1)), out, places)
    return out[:left].tolist(), places[: left + 1].tolist()


def naively(rules, symbols):
    """The definition, O(n^2)."""
    found, places = list(symbols), [3 * k for k in range(len(symbols) + 1)]
    while True:
        ranked = [(rules[pair][0], k) for k, pair in enumerate(itertools.pairwise(found)) if pair in rules]
        if not ranked:
            return found, places
        _, k = min(ranked)
        found[k : k + 2] = [rules[found[k], found[k + 1]][1]]
        del places[k + 1]


symbol = st.integers(0, 7)
rules_ = st.dictionaries(
    st.tuples(symbol, symbol), st.tuples(st.integers(0, 12) | st.integers(0, (1 << 24) - 1), symbol), max_size=40
)
lists = st.sampled_from(LENGTHS).flatmap(
    lambda length: st.lists(symbol | st.just(-1), min_size=length, max_size=length)
) | st.lists(symbol, max_size=LONGEST)
RUNS = {(0, 0): (0, 1), (1, 1): (1, 2), (2, 2): (2, 3), (1, 0): (0, 0)}


@given(rules_, lists)
@example(RUNS, [0] * 16)
@example(RUNS, [0] * 17)
@example(RUNS, [0] * 41)
@example({(0, 0): (0, 0)}, [0] * LONGEST)
@example({(0, 1): ((1 << 24) - 1, 2), (2, 3): (0, 2)}, [0, 1, 3, 3, 0, 1] * 7)
def test_merging_is_the_naive_algorithm(rules, symbols):
    assert merged(rules, symbols) == naively(rules, symbols)


@pytest.mark.parametrize("count", LENGTHS)
def test_runs_of_one_symbol_merge_from_the_left(count):
    assert merged(RUNS, [0] * count) == naively(RUNS, [0] * count)


def test_every_length_merges_as_the_naive_algorithm_does():
    random = np.random.default_rng(5)
    for count in range(LONGEST + 1) if JIT else [0, 5, 16, 17, 40, 41, 90]:
        rules = {(int(a), int(b)): (int(rank), int(c)) for a, b, rank, c in random.integers(0, 9, (30, 4)).tolist()}
        symbols = random.integers(0, 9, count).tolist()
        assert merged(rules, symbols) == naively(rules, symbols)


def test_what_was_merged_before_does_not_count():
    work = make_merge_work(LONGEST)
    random = np.random.default_rng(6)
    for count in [16, 200, 3, 40, 41, 1, 17, 16, 2] * 4:
        symbols = random.integers(0, 3, count).tolist()
        assert merged(RUNS, symbols, work) == naively(RUNS, symbols)

"""Merging from the left gives what merging by rank gives, and makes no more steps than the text is long."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.kernels.fragments import LONG_WORD
from jittok.kernels.jit import JIT, U8, OutI32, as_int64, frozen, kernel
from jittok.kernels.memory import get_i32, window
from jittok.kernels.merging import left_to_right as chains
from jittok.kernels.merging import left_to_right_build
from jittok.kernels.merging.left_to_right import (
    BUILD_ON_DEMAND,
    IMPOSSIBLE,
    LENGTH,
    LONG_WORD_SYMBOLS,
    READY,
    ROW,
    UNORDERED,
    LongWordTables,
    MergerWork,
    make_merger_work,
    merge_list,
    merge_text,
    open_merger,
)
from jittok.kernels.merging.left_to_right_build import build_chain, character_rows, no_chain
from jittok.kernels.merging.queue import SCAN_SYMBOLS
from jittok.kernels.structures.pair_table import PairTable, build_pair_table

BASES = 3


@kernel
def merge(pairs: PairTable, chain: LongWordTables, work: MergerWork, symbols: OutI32, places: OutI32) -> int:
    own = open_merger(work, pairs, chain)
    for k in range(symbols.size):
        work.queue.symbols[k], work.queue.positions[k] = symbols[k], 3 * k
    work.queue.positions[symbols.size] = 3 * symbols.size
    left = merge_list(own, symbols.size)
    for k in range(left):
        symbols[k] = as_int64(work.queue.symbols[k])
    for k in range(left + 1):
        places[k] = as_int64(work.queue.positions[k])
    return left


@kernel
def merge_of_bytes(pairs: PairTable, chain: LongWordTables, work: MergerWork, text: U8, start: int) -> int:
    return merge_text(open_merger(work, pairs, chain), window(text), start, text.size)


def table_of(rules):
    columns = zip(*((a, b, rank, c) for (a, b), (rank, c) in rules.items()), strict=True) if rules else [[]] * 4
    return build_pair_table(*(frozen(list(column), np.int32) for column in columns))


def merged(table, chain, symbols, work=None):
    out, places = np.array(symbols, np.int32), np.full(len(symbols) + 1, -1, np.int32)
    left = merge(table, chain, work or make_merger_work(max(len(symbols), 1)), out, places)
    return (out[:left].tolist(), places[: left + 1].tolist()) if left >= 0 else left


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


@st.composite
def vocabularies(draw, ranks):
    """Merges whose symbols are texts: whatever makes a text makes the same symbol."""
    texts = [(k,) for k in range(BASES)]
    rules = {}
    for order in range(draw(st.integers(0, 14))):
        a, b = draw(st.integers(0, len(texts) - 1)), draw(st.integers(0, len(texts) - 1))
        text = texts[a] + texts[b]
        if len(text) > 9 or (a, b) in rules:
            continue
        if text not in texts:
            texts.append(text)
        rules[a, b] = (draw(st.integers(0, 6)) if ranks else order, texts.index(text))
    return rules, len(texts)


def lists(smallest):
    return st.lists(st.integers(-1, BASES - 1), min_size=smallest, max_size=90) | st.integers(0, BASES - 1).flatmap(
        lambda base: st.integers(smallest, 90).map(lambda n: [base] * n)
    )


RUNS = {(0, 0): (0, 3), (3, 3): (1, 4), (4, 3): (2, 5), (5, 4): (3, 6)}
LATER_FIRST = {(0, 1): (5, 3), (3, 2): (1, 4), (1, 2): (3, 5), (2, 0): (2, 6), (4, 4): (0, 7)}
TAKEN_BACK = {(2, 2): (0, 3), (0, 3): (1, 4), (1, 0): (2, 5)}
"""In 0 2 2 2 a symbol of three bases is taken back after the next one was written over its second base."""


@given(st.booleans().flatmap(vocabularies), lists(SCAN_SYMBOLS + 1))
@example((RUNS, 7), [0] * 47)
@example((LATER_FIRST, 8), [0, 1, 2] * 15 + [0, 1])
@example((TAKEN_BACK, 6), [1, 0, 2, 2, 2, 1] + [1, 2] * 20)
def test_merging_from_the_left_is_merging_by_rank(vocabulary, symbols):
    rules, count = vocabulary
    table = table_of(rules)
    chain = build_chain(table, np.arange(BASES, dtype=np.int32), count)
    assert chain.state == READY
    assert merged(table, chain, symbols) == naively(rules, symbols)


def test_symbols_whose_merges_do_not_follow_their_ranks_are_known():
    late = {(0, 1): (5, 3), (3, 2): (1, 4)}
    chain = build_chain(table_of(late), np.arange(BASES, dtype=np.int32), 5)
    assert chain.rows[UNORDERED::ROW].tolist() == [0, 0, 0, 0, 1]


@given(
    st.dictionaries(st.tuples(*[st.integers(0, 6)] * 2), st.tuples(st.integers(0, 9), st.integers(0, 6)), max_size=20)
)
@example({(0, 1): (0, 3), (3, 2): (1, 3)})
@example({(0, 1): (0, 0)})
def test_a_symbol_that_is_no_text_of_its_own_makes_no_chain(rules):
    table = table_of(rules)
    chain = build_chain(table, np.arange(BASES, dtype=np.int32), 7)
    symbols = np.random.default_rng(len(rules)).integers(0, BASES, 60).tolist()
    if chain.state == IMPOSSIBLE:
        assert chain.rows.size == 0
    else:
        assert merged(table, chain, symbols) == naively(rules, symbols)


def test_what_was_judged_before_stays_right_with_a_full_memory():
    random, work = np.random.default_rng(7), make_merger_work(400)
    chain, table = build_chain(table_of(RUNS), np.arange(BASES, dtype=np.int32), 7), table_of(RUNS)
    for count in [41, 400, 64, 65, 128, 399]:
        symbols = random.integers(-1, 2, count).tolist()
        assert merged(table, chain, symbols, work) == naively(RUNS, symbols)


@pytest.mark.parametrize("good", [0, 1])
@pytest.mark.parametrize("rules", [RUNS, LATER_FIRST], ids=["runs", "later first"])
def test_what_was_judged_of_another_pair_counts_for_none(rules, good):
    """Pairs share places in the memory of judgements: here each place holds that of a pair which no text has."""
    work, table = make_merger_work(100), table_of(rules)
    chain = build_chain(table, np.arange(BASES, dtype=np.int32), 8)
    for symbols in ([0] * 47, [0, 1, 2] * 15 + [0, 1]):
        work.verdicts[:] = (1 << 20) << 26 | (1 << 20) << 2 | 2 | good
        assert merged(table, chain, symbols, work) == naively(rules, symbols)


def test_a_vocabulary_that_takes_long_to_judge_has_no_chain(monkeypatch):
    """Runs of one letter of every length, each made of every two shorter ones, in an order that tells nothing."""
    ranks = np.random.default_rng(1).permutation(30).tolist()
    rules = {(a, n - a - 2): (ranks[n], n) for n in range(1, 30) for a in range(n - 1)} | {(0, 0): (ranks[1], 1)}
    table, bases = table_of(rules), np.array([0], np.int32)
    monkeypatch.setattr(left_to_right_build, "STEPS_PER_PAIR", 0)
    chains = []
    for most in (1 << 20, 100):
        monkeypatch.setattr(left_to_right_build, "LEAST_STEPS", most)
        chains.append(build_chain(table, bases, 30))
    assert [chain.state for chain in chains] == [READY, IMPOSSIBLE]
    for chain in chains:
        assert merged(table, chain, [0] * 50) == naively(rules, [0] * 50)


@pytest.mark.parametrize("rules", [RUNS, LATER_FIRST], ids=["runs", "later first"])
def test_bytes_are_merged_where_they_stand_as_their_numbers_are(rules):
    random, work, table = np.random.default_rng(3), make_merger_work(200), table_of(rules)
    chain = build_chain(table, np.arange(BASES, dtype=np.int32), 8)
    for kinds in range(1, BASES + 1):
        text = random.integers(0, kinds, 200, np.uint8)
        left = merge_of_bytes(table, chain, work, frozen(text, np.uint8), 9)
        assert work.queue.symbols[:left].tolist() == naively(rules, text[9:].tolist())[0]


@pytest.mark.parametrize("count", [LONG_WORD_SYMBOLS, LONG_WORD_SYMBOLS + 1])
def test_a_long_word_asks_for_a_chain_only_if_one_is_wanted(count):
    if not JIT:
        count = count - LONG_WORD_SYMBOLS + SCAN_SYMBOLS
    table, symbols = table_of({}), [0] * count
    assert merged(table, no_chain(), symbols) == (symbols, [3 * k for k in range(count + 1)])
    answer = merged(table, no_chain()._replace(state=BUILD_ON_DEMAND), symbols)
    assert answer == (LONG_WORD if count > LONG_WORD_SYMBOLS else (symbols, [3 * k for k in range(count + 1)]))


def test_characters_are_found_by_their_first_bytes():
    from jittok.kernels.structures.bytes_table import build_bytes_table

    texts = [b"b", "\u00e9".encode(), b"ab", b"a", "\u4e00".encode(), b"", "\u00e9a".encode(), b"\xe4\xb8", b"\xf0ab"]
    offsets = frozen(np.cumsum([0, *map(len, texts)]), np.int64)
    table = build_bytes_table(frozen(np.frombuffer(b"".join(texts), np.uint8), np.uint8), offsets)
    assert character_rows(table).tolist() == [3, 0, 1, 7, 4, 8]


def test_a_symbol_is_as_long_as_its_parts_and_one_that_merging_never_makes_has_no_length():
    chain = build_chain(table_of(RUNS), np.arange(BASES, dtype=np.int32), 7)
    assert chain.rows[LENGTH::ROW].tolist() == [1, 1, 1, 2, 4, 6, 0]


@pytest.mark.skipif(JIT, reason="steps are counted without the compiler")
@pytest.mark.parametrize("symbols", [[0], [0, 1], [0, 0, 0, 1], [0, 1, 2, 2, 1, 0, 0]])
def test_steps_grow_with_the_text_and_not_faster(monkeypatch, symbols):
    steps = 0

    def counted(function):
        def call(*args):
            nonlocal steps
            steps += 1
            return function(*args)

        return call

    for name in ("_judge", "next_node"):
        monkeypatch.setattr(chains, name, counted(getattr(chains, name)))
    monkeypatch.setattr(chains, "merge_numbers", chains._make_merge(counted(get_i32), True))
    for rules, count in ((RUNS, 7), (LATER_FIRST, 8)):
        table, taken = table_of(rules), []
        chain = build_chain(table, np.arange(BASES, dtype=np.int32), count)
        for length in (300, 600, 1200):
            steps = 0
            merged(table, chain, (symbols * length)[:length])
            taken.append(steps)
        assert taken[-1] < 16 * 1200
        assert taken[2] - taken[1] <= 2.2 * (taken[1] - taken[0]) + 20

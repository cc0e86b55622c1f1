"""The table of pairs is a dict from (left, right) to (rank, merged)."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.kernels.jit import I32, OutU64, as_int64, frozen, kernel
from jittok.kernels.memory import window
from jittok.kernels.structures.pair_table import NO_PAIR, PAIR_MIX, PairTable, build_pair_table, find_pair

symbols = st.integers(0, 9) | st.integers(0, 2**31 - 2)
entries = st.lists(st.tuples(symbols, symbols, st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)), max_size=80)
negative = st.integers(-(2**31), -1)


@kernel
def find_all_pairs(table: PairTable, left: I32, right: I32, found: OutU64) -> int:
    slots, bits = window(table.slots), window(table.filter)
    for k in range(found.size):
        found[k] = find_pair(slots, bits, table.slot_bits, table.filter_bits, as_int64(left[k]), as_int64(right[k]))
    return found.size


def column(values):
    return frozen(list(values), np.int32)


def look_up(table, asked):
    found = np.zeros(len(asked), np.uint64)
    find_all_pairs(table, column(a for a, _ in asked), column(b for _, b in asked), found)
    return [None if f == NO_PAIR else (int(f) >> 32, int(f) & 0xFFFFFFFF) for f in found]


@given(entries, st.lists(st.tuples(symbols, symbols), max_size=30))
@example([(0, 0, 0, 0)], [(0, 1), (1, 0)])
@example([(1, 2, 5, 6), (1, 2, 7, 8)], [])
@example([], [(0, 0)])
def test_every_pair_gives_its_first_entry_and_others_give_none(rows, others):
    table = build_pair_table(*(column(row[k] for row in rows) for k in range(4)))
    first = {}
    for left, right, rank, merged in rows:
        first.setdefault((left, right), (rank, merged))
    asked = [*first, *others, *((right, left) for left, right in first)]
    assert look_up(table, asked) == [first.get(pair) for pair in asked]


@given(entries, st.lists(st.tuples(negative | symbols, negative), max_size=20))
def test_a_negative_symbol_merges_with_nothing(rows, others):
    table = build_pair_table(*(column(row[k] for row in rows) for k in range(4)))
    assert look_up(table, [*others, *((right, left) for left, right in others)]) == [None] * (2 * len(others))


@given(entries)
def test_a_third_of_the_slots_is_free_so_every_search_ends(rows):
    table = build_pair_table(*(column(row[k] for row in rows) for k in range(4)))
    assert table.slots.size == 2 << table.slot_bits
    assert table.filter.size << 6 == 1 << table.filter_bits
    assert 3 * np.count_nonzero(table.slots[::2]) <= 2 * (1 << table.slot_bits)


def test_a_big_table_of_neighbouring_pairs_holds_all_of_them():
    left, right = np.divmod(np.arange(4000), 64)
    table = build_pair_table(column(left), column(right), column(range(4000)), column(range(4000, 8000)))
    asked = list(zip(left.tolist(), right.tolist(), strict=True))
    assert look_up(table, asked) == [(k, 4000 + k) for k in range(4000)]


def test_pairs_that_a_full_line_has_no_room_for_are_in_the_next_ones():
    places = [((k + 1 << 32 | 1) * int(PAIR_MIX) % (1 << 64) >> 61, k) for k in range(400)]  # of 8 lines
    last, first = ([(k, 0) for line, k in places if line == which] for which in (7, 0))
    rows = [*last[:9], *first[:3]]  # the last line goes on in the first and the second
    table = build_pair_table(
        column(a for a, _ in rows), column(b for _, b in rows), column(range(12)), column(range(12))
    )
    assert table.slot_bits == 5
    assert look_up(table, [*rows, *last[9:], *first[3:]]) == [(k, k) for k in range(12)] + [None] * (
        len(last) + len(first) - 12
    )

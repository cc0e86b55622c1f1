"""The table of byte strings is a dict of their rows."""

import numpy as np
from chosen_tokens import chosen, key_of
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.kernels.jit import frozen
from jittok.kernels.structures import bytes_table
from jittok.kernels.structures.bytes_table import ABSENT, build_bytes_table, fill_bytes_table, find_rows, slot_count

texts = st.lists(st.binary(max_size=20) | st.text("ab", max_size=18).map(str.encode), max_size=80)


def flat(strings):
    data = np.frombuffer(b"".join(strings), np.uint8)
    return frozen(data, np.uint8), frozen(np.cumsum([0, *map(len, strings)]), np.int64)


@given(texts, texts)
@example([], [b"", b"a"])
@example([b""], [b"", b"\0"])
@example([b"12345678", b"12345678\0", b"1234567"], [b"123456789"])
def test_every_string_is_found_at_its_first_row_and_no_other_is_found(strings, others):
    table = build_bytes_table(*flat(strings))
    first = {}
    for row, string in enumerate(strings):
        first.setdefault(string, row)
    asked = [*strings, *others]
    assert find_rows(table, asked).tolist() == [first.get(string, ABSENT) for string in asked]


@given(texts)
def test_filling_tells_the_first_row_that_repeats(strings):
    repeated = next((row for row, string in enumerate(strings) if string in strings[:row]), ABSENT)
    slots = np.zeros(slot_count(len(strings)), np.int32)
    assert fill_bytes_table(*flat(strings), slots, bytes_table.KEYS) == repeated
    assert np.count_nonzero(slots) == len(set(strings))


@given(st.integers(0, 1 << 22))
def test_at_least_half_of_the_slots_are_free_so_every_search_ends(rows):
    count = slot_count(rows)
    assert count & (count - 1) == 0
    assert count >= 2 * rows


def test_strings_of_one_hash_are_told_apart():
    strings = [b"%d" % k for k in range(300)]
    table = build_bytes_table(*flat(strings))
    # every slot before a string's own, back to its home, is taken: the search passes through them
    assert find_rows(table, strings).tolist() == list(range(300))
    assert np.diff(np.flatnonzero(table.slots)).min() == 1
    assert not bytes_table.build_bytes_table(*flat([])).slots.any()


@given(texts, texts)
def test_what_is_found_does_not_depend_on_the_secret(strings, others):
    answers = []
    for number in (1, 2):
        slots = np.zeros(slot_count(len(strings)), np.int32)
        fill_bytes_table(*flat(strings), slots, key_of(number))
        table = bytes_table.BytesTable(*flat(strings), frozen(slots, np.int32), key_of(number))
        answers.append(find_rows(table, [*strings, *others]).tolist())
    assert answers[0] == answers[1]


def test_chosen_strings_are_spread_over_the_slots():
    """Full slots in a row: a search takes as many steps."""
    strings = chosen(1 << 12)
    assert len(set(strings)) == len(strings)
    for number in range(3):
        slots = np.zeros(slot_count(len(strings)), np.int32)
        assert fill_bytes_table(*flat(strings), slots, key_of(number)) == ABSENT
        free = np.flatnonzero(slots == 0)
        assert np.diff(free).max() < 100

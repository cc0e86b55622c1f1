"""The trie is a dict: every key is found, nothing else is, and no index leaves the array."""

import numpy as np
import pytest
from amounts import amount
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.kernels.jit import frozen, standalone
from jittok.kernels.structures import double_array
from jittok.kernels.structures.double_array import (
    FREE,
    NO_NODE,
    NO_VALUE,
    PARENT,
    ROOT,
    UNIT,
    DoubleArray,
    build_double_array,
    is_sound,
)

child, walk = standalone(double_array.child), standalone(double_array.walk)
value_at, score_at = standalone(double_array.value_at), standalone(double_array.score_at)

keys = st.binary(min_size=1, max_size=6) | st.text("ab", min_size=1, max_size=6).map(str.encode)


def build(pairs, scores=None):
    """A trie of (key, value) pairs."""
    data = np.frombuffer(b"".join(key for key, _ in pairs), np.uint8)
    offsets = np.cumsum([0, *(len(key) for key, _ in pairs)])
    return build_double_array(data, offsets, np.array([value for _, value in pairs], np.int32), scores)


def find(trie, key: bytes) -> int | None:
    node = walk(trie, ROOT, frozen(np.frombuffer(key, np.uint8), np.uint8), 0, len(key))
    value = value_at(trie, node) if node != NO_NODE else NO_VALUE
    return int(value) if value != NO_VALUE else None


@given(st.lists(st.tuples(keys, st.integers(0, 2**31 - 1)), max_size=60), st.lists(keys))
@example([(b"a", 1), (b"a", 2)], [])
@example([], [b"a"])
@example([(bytes([c, d]), c) for c in range(6) for d in range(0, 256, 9)], [])
def test_the_trie_is_the_dict_and_of_equal_keys_the_last_counts(pairs, others):
    trie, items = build(pairs), dict(pairs)
    assert is_sound(trie)
    for key in [*items, *others]:
        assert find(trie, key) == items.get(key)


@given(st.dictionaries(keys, st.floats(width=32), max_size=40))
def test_scores_are_read_with_their_values(items):
    trie = build([(key, 7) for key in items], np.array([*items.values()], np.float32))
    for key, score in items.items():
        text = frozen(np.frombuffer(key, np.uint8), np.uint8)
        np.testing.assert_array_equal(score_at(trie, walk(trie, ROOT, text, 0, text.size)), score)
    if b"zz" not in items:
        trie = build([(b"zzz", 7), *((key, 7) for key in items)])
        assert score_at(trie, walk(trie, ROOT, frozen(np.frombuffer(b"zz", np.uint8), np.uint8), 0, 2)) == -np.inf


@given(st.lists(keys, max_size=40))
def test_every_node_is_the_child_of_its_parent_and_of_no_other(texts):
    trie = build([(key, 0) for key in texts])
    slots = trie.units.size // UNIT
    nodes = [t for t in range(slots) if trie.units[UNIT * t + PARENT] != FREE]
    assert len(nodes) == 1 + len({key[:n] for key in texts for n in range(1, len(key) + 1)})
    for node in range(slots):
        for byte in range(0, 256, 5):
            t = child(trie, node, byte)
            assert t == NO_NODE or trie.units[UNIT * t + PARENT] == node


def test_an_empty_key_only_gives_the_root_a_value():
    trie = build([(b"", 3), (b"a", 4)])
    assert value_at(trie, ROOT) == 3
    assert find(trie, b"a") == 4
    assert find(trie, b"b") is None


def test_it_grows_when_children_do_not_share_blocks():
    # Every byte is the XOR of two of these 31 labels, so no two nodes share a block: more slots than bytes of keys.
    labels = {*range(16), *range(0, 256, 16)}
    items = [(bytes([a, c]), a) for a in range(amount(40, 20, 10)) for c in labels]
    trie = build(items)
    assert trie.units.size // UNIT > sum(len(key) for key, _ in items) + 512
    assert all(find(trie, key) == value for key, value in items)
    assert is_sound(trie)


@pytest.mark.parametrize("units", [[], [0, -2, -1, 0], [256, -2, -1, 0] * 256, [-1, -2, -1, 0] * 256])
def test_arrays_that_break_an_invariant_are_not_sound(units):
    assert not is_sound(DoubleArray(frozen(units, np.int32)))


def test_a_value_below_zero_is_a_broken_promise():
    with pytest.raises(AssertionError, match="one value >= 0"):
        build([(b"a", -1)])

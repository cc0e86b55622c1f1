"""Where searches in tables begin, and how densely nodes stand."""

import numpy as np

from jittok.kernels.jit import I32, OutI64, as_int64, frozen, kernel
from jittok.kernels.memory import window
from jittok.kernels.structures.double_array import UNIT, build_double_array
from jittok.kernels.structures.pair_table import NO_PAIR, PairTable, build_pair_table, find_at, pair_key, pair_slot


@kernel
def ranks_by_place(table: PairTable, left: I32, right: I32, found: OutI64) -> int:
    """The rank of each pair, -1 where its place says that there is none, -2 where the search does."""
    slots, bits = window(table.slots), window(table.filter)
    for k in range(found.size):
        key = pair_key(as_int64(left[k]), as_int64(right[k]))
        at = pair_slot(bits, table.slot_bits, table.filter_bits, key)
        found[k] = -1
        if at >= 0:
            merged = find_at(slots, table.slot_bits, at, key)
            found[k] = -2 if merged == NO_PAIR else np.int64(merged >> np.uint64(32))
    return found.size


def test_a_place_leads_to_the_pair_or_says_that_there_is_none():
    draw = np.random.default_rng(1)
    left, right = (frozen(part, np.int32) for part in np.divmod(draw.permutation(40_000)[:4000], 200))
    ranks = np.arange(2000)
    table = build_pair_table(left[:2000], right[:2000], frozen(ranks, np.int32), frozen(ranks, np.int32))
    found = np.zeros(4000, np.int64)
    ranks_by_place(table, left, right, found)
    assert found[:2000].tolist() == ranks.tolist()
    assert (found[2000:] < 0).all()
    assert np.count_nonzero(found[2000:] == -1) > 1000  # most without a search


@kernel
def ranks_from_line(table: PairTable, left: I32, right: I32, line: int, found: OutI64) -> int:
    """The rank of each pair, searched for from a line on; -1 where there is none."""
    slots = window(table.slots)
    for k in range(found.size):
        merged = find_at(slots, table.slot_bits, line, pair_key(as_int64(left[k]), as_int64(right[k])))
        found[k] = -1 if merged == NO_PAIR else np.int64(merged >> np.uint64(32))
    return found.size


def test_pairs_of_a_full_line_are_in_the_next_and_behind_the_last_comes_the_first():
    left, right = np.divmod(np.arange(4096), 64)
    keys = (left + 1).astype(np.uint64) << np.uint64(32) | (right + 1).astype(np.uint64)
    homes = keys * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(62)  # of four lines
    pairs = np.flatnonzero(homes == 3)[:12]
    left, right, ranks = (frozen(part, np.int32) for part in (left[pairs], right[pairs], range(12)))
    table = build_pair_table(left[:9], right[:9], ranks[:9], ranks[:9])
    assert (table.slots[::2].reshape(4, 4) != 0).sum(axis=1).tolist() == [4, 1, 0, 4]
    for line, wanted in ((3, [*range(9), -1, -1, -1]), (0, [*[-1] * 4, *range(4, 9), -1, -1, -1]), (-1, [-1] * 12)):
        found = np.zeros(12, np.int64)
        ranks_from_line(table, left, right, line, found)
        # a negative line is that of a pair known to be none: it is not searched for after the first line
        assert found.tolist() == (wanted if line >= 0 else [*wanted[:4], 4, 5, 6, 7, *wanted[8:]])


def test_nodes_stand_in_free_slots_of_blocks_that_are_begun():
    texts = [bytes([a, b]) for a in range(0x41, 0x5B) for b in range(0x41, 0x5B)]
    data = np.frombuffer(b"".join(texts), np.uint8)
    offsets = frozen(2 * np.arange(len(texts) + 1), np.int64)
    trie = build_double_array(data, offsets, frozen(range(len(texts)), np.int32))
    nodes = 1 + 26 + len(texts)
    assert trie.units.size // UNIT < 2 * nodes

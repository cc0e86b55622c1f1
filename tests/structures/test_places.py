"""Where searches in tables begin, and how densely nodes stand."""

import numpy as np

from jittok._jit import I32, OutI64, frozen, kernel, wide
from jittok._raw import window
from jittok.structures.double_array import UNIT, build_double_array
from jittok.structures.pair_table import NO_PAIR, PairTable, build_pair_table, find_at, pair_key, pair_place


@kernel
def ranks_by_place(table: PairTable, left: I32, right: I32, found: OutI64) -> int:
    """The rank of each pair, -1 where its place says that there is none, -2 where the search does."""
    slots, bits = window(table.slots), window(table.filter)
    for k in range(found.size):
        key = pair_key(wide(left[k]), wide(right[k]))
        at = pair_place(bits, table.slot_bits, table.filter_bits, key)
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


def test_nodes_stand_in_free_slots_of_blocks_that_are_begun():
    texts = [bytes([a, b]) for a in range(0x41, 0x5B) for b in range(0x41, 0x5B)]
    data = np.frombuffer(b"".join(texts), np.uint8)
    offsets = frozen(2 * np.arange(len(texts) + 1), np.int64)
    trie = build_double_array(data, offsets, frozen(range(len(texts)), np.int32))
    nodes = 1 + 26 + len(texts)
    assert trie.units.size // UNIT < 2 * nodes

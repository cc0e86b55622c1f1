"""What two neighbouring bytes merge to is what a search for each of the pairs finds."""

import numpy as np
import pytest

from jittok._jit import I32, OutU64, frozen, kernel, wide
from jittok._raw import window
from jittok.models.bpe.compile import pair_all_bytes
from jittok.structures.pair_table import NO_PAIR, PairTable, build_pair_table, find_pair


@kernel
def search(pairs: PairTable, left: I32, right: I32, out: OutU64) -> int:
    """What is found of each pair. left, right: int32[pairs], out: uint64[pairs]."""
    slots, bits = window(pairs.slots), window(pairs.filter)
    for k in range(left.size):
        out[k] = find_pair(slots, bits, pairs.slot_bits, pairs.filter_bits, wide(left[k]), wide(right[k]))
    return left.size


def by_search(pairs, byte_symbols, some):
    out = np.zeros(len(some), np.uint64)
    search(pairs, *(frozen(byte_symbols[[pair[k] for pair in some]], np.int32) for k in (0, 1)), out)
    return out.tolist()


@pytest.mark.parametrize("first", [0, 1000, 1 << 20])
@pytest.mark.parametrize("kinds", [1, 2, 40, 256])
def test_each_pair_of_bytes_has_what_the_search_finds(first, kinds):
    """Symbols of bytes from `first` on, several bytes of one symbol where there are few `kinds`, some without any."""
    draw = np.random.default_rng([first, kinds])
    byte_symbols = first + draw.integers(0, kinds, 256).astype(np.int32)
    if kinds != 40:
        byte_symbols[draw.integers(0, 256, 5)] = -1
    lone = np.setdiff1d(draw.integers(0, first + 2 * kinds + 3, 60), [-1])
    known = np.unique(byte_symbols[byte_symbols >= 0])
    symbols = np.concatenate([known, lone])
    drawn = [np.concatenate([draw.choice(known, 200), draw.choice(symbols, 200)]) for _ in range(2)]
    pairs = np.unique(np.stack(drawn, 1), axis=0)
    order = draw.permutation(len(pairs))
    left, right = (frozen(column[order], np.int32) for column in pairs.T)
    rank, merged = (frozen(draw.permutation(len(pairs)) + far, np.int32) for far in (0, 1 << 21))
    table = build_pair_table(left, right, rank, merged)
    found = pair_all_bytes(table, frozen(byte_symbols, np.int32)).tolist()
    bytes_of = {symbol: np.flatnonzero(byte_symbols == symbol).tolist() for symbol in {*symbols.tolist()}}
    there = {(a, b) for i, j in pairs.tolist() for a in bytes_of[i] for b in bytes_of[j]}
    others = {(int(a), int(b)) for a, b in draw.integers(0, 256, (300, 2))}
    assert there
    some = sorted({*[*there][:2000], *others})
    assert [found[a << 8 | b] for a, b in some] == by_search(table, byte_symbols, some)
    assert sum(value != int(NO_PAIR) for value in found) == len(there)


def test_bytes_of_no_symbol_merge_with_nothing():
    one = frozen([3], np.int32)
    table = build_pair_table(one, one, frozen([0], np.int32), frozen([4], np.int32))
    assert set(pair_all_bytes(table, frozen(np.full(256, -1), np.int32)).tolist()) == {int(NO_PAIR)}

"""What two neighboring bytes merge to is what the pairs say that the table was made of."""

import numpy as np
import pytest

from jittok.kernels.jit import frozen
from jittok.kernels.models.bpe.compile import pair_all_bytes
from jittok.kernels.structures.pair_table import NO_PAIR, build_pair_table


@pytest.mark.parametrize("first", [0, 1000, 1 << 20])
@pytest.mark.parametrize("kinds", [1, 2, 40, 256])
def test_each_pair_of_bytes_has_its_rank_and_symbol(first, kinds):
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
    known_pairs = zip(left.tolist(), right.tolist(), rank.tolist(), merged.tolist(), strict=True)
    wanted = {(a, b): number << 32 | made for a, b, number, made in known_pairs}
    symbols = byte_symbols.tolist()
    assert found == [wanted.get((a, b), int(NO_PAIR)) for a in symbols for b in symbols]
    assert len({*found}) > 1


def test_bytes_of_no_symbol_merge_with_nothing():
    one = frozen([3], np.int32)
    table = build_pair_table(one, one, frozen([0], np.int32), frozen([4], np.int32))
    assert set(pair_all_bytes(table, frozen(np.full(256, -1), np.int32)).tolist()) == {int(NO_PAIR)}

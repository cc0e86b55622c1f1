"""The table of characters is a dict of their symbols, whatever its secret, and is not crowded by chosen characters."""

import numpy as np
import pytest
from chosen_tokens import key_of

from jittok.kernels.jit import I32, JIT, U32, OutI32, as_int64, frozen, kernel
from jittok.kernels.structures import char_table
from jittok.kernels.structures.char_table import ABSENT, CharTable, build_char_table, find_character, open_char_table


@kernel
def find_all_characters(table: CharTable, asked: U32, found: OutI32) -> int:
    own = open_char_table(table)
    for k in range(asked.size):
        found[k] = find_character(own, np.uint64(as_int64(asked[k])))
    return asked.size


def characters():
    """All beyond ASCII, as the numbers that their bytes are."""
    points = [*range(0x80, 0xD800), *range(0xE000, 0x110000 if JIT else 0xE100)]
    return np.array([int.from_bytes(chr(point).encode(), "little") for point in points], np.uint64)


@pytest.mark.parametrize("number", range(3))
def test_chosen_characters_are_found_and_spread_over_the_slots(number, monkeypatch):
    """Full slots in a row: a search takes as many steps."""
    monkeypatch.setattr(char_table, "KEYS", key_of(number))
    every = characters()
    chosen = every[np.argsort(every * np.uint64(0x9E3779B97F4A7C15))]  # the factor when it was no secret
    keys, others = chosen[:20_000].astype(np.uint32), chosen[20_000:40_000].astype(np.uint32)
    symbols: I32 = frozen(np.arange(keys.size)[::-1], np.int32)
    table = build_char_table(frozen(keys, np.uint32), symbols)
    found = np.empty(keys.size + others.size, np.int32)
    find_all_characters(table, frozen(np.concatenate([keys, others]), np.uint32), found)
    assert (found[: keys.size] == symbols).all()
    assert (found[keys.size :] == ABSENT).all()
    assert np.diff(np.append(-1, np.flatnonzero(table.slots == 0))).max() < 1000

"""Characters to symbols: a hash table whose key is the character's own bytes, so that a look-up is one multiplication
and, nearly always, one load.

The factor is a secret of the process, which the table holds: a file cannot choose characters that all hash to one slot.
No result depends on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.kernels.jit import I32, U32, U64, OutU64, as_int64, frozen, helper, kernel
from jittok.kernels.memory import Window, get_u64, multiply, window
from jittok.kernels.structures.bytes_table import KEYS, BytesTable

ABSENT = -1
_32, _0, _1, _LOW = np.uint64(32), np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFF)


class CharTable(NamedTuple):
    """Invariant, by construction: slots.size == 1 << bits, and at least half of the slots are 0: every search ends."""

    slots: U64  # up to four bytes of a character, little-endian, << 32 | its symbol + 1; 0 where free
    bits: int
    factor: U64  # [1] odd, see `bytes_table.KEYS`


class CharWindow(NamedTuple):
    """The same as windows."""

    slots: Window
    bits: int
    factor: np.uint64


def build_char_table(keys: U32, symbols: I32) -> CharTable:
    """The table of distinct characters; uint32[characters], int32[characters] >= 0."""
    bits = max(4, (2 * keys.size).bit_length())
    slots = np.zeros(1 << bits, np.uint64)
    factor = frozen(KEYS[1:], np.uint64)
    fill_char_table(frozen(keys, np.uint32), frozen(symbols, np.int32), slots, bits, factor)
    return CharTable(frozen(slots, np.uint64), bits, factor)


@helper
def open_char_table(table: CharTable) -> CharWindow:
    """A window onto the array."""
    return CharWindow(window(table.slots), table.bits, table.factor[0])


@kernel
def fill_char_table(keys: U32, symbols: I32, slots: OutU64, bits: int, factor: U64) -> int:
    """Insert every character. slots: uint64[1 << bits], zeroed; factor: uint64[1]. Returns their number."""
    for k in range(keys.size):
        key = np.uint64(as_int64(keys[k]))
        at = np.int64(multiply(key, factor[0]) >> np.uint64(64 - bits))
        while slots[at] != _0:
            at = (at + 1) & ((1 << bits) - 1)
        slots[at] = key << _32 | np.uint64(as_int64(symbols[k]) + 1)
    return keys.size


@helper
def find_character(table: CharWindow, key: np.uint64) -> int:
    """The symbol of a character given by its bytes, or ABSENT."""
    at = np.int64(multiply(key, table.factor) >> np.uint64(64 - table.bits))
    while True:
        slot = get_u64(table.slots, at)
        if slot >> _32 == key:
            return np.int64(slot & _LOW) - 1
        if slot == _0:
            return ABSENT
        at = (at + 1) & ((1 << table.bits) - 1)


def no_characters() -> CharTable:
    """An empty table."""
    return build_char_table(frozen([], np.uint32), frozen([], np.int32))


def wide_characters(texts: BytesTable) -> CharTable:
    """The symbols of characters beyond ASCII; of equal texts the first."""
    lengths = np.diff(texts.offsets)
    rows = np.flatnonzero((lengths > 0) & (lengths <= 4))
    padded = np.concatenate([texts.data, np.zeros(4, np.uint8)])
    columns = [padded[texts.offsets[rows] + k].astype(np.uint32) for k in range(4)]
    sizes = np.array([1] * 12 + [2, 2, 3, 4])[columns[0] >> 4]
    chosen = (columns[0] >= 0x80) & (sizes == lengths[rows])
    keys = np.zeros(rows.size, np.uint32)
    for k, column in enumerate(columns):
        keys |= np.where(k < lengths[rows], column << np.uint32(8 * k), np.uint32(0))
    return build_char_table(frozen(keys[chosen], np.uint32), frozen(rows[chosen], np.int32))

"""Byte strings to numbers: an open-addressing hash table over strings that stay in place.

A slot holds only the number of a string in a blob. So the table needs no copy of the texts, and one builder serves
token texts, parts of merges and byte-decoded tokens.

Strings are hashed with a secret, which the table holds (`keys`): a file cannot choose strings that all hash to one
slot, which would take quadratic time. No result depends on the secret: of equal strings the first is found.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import I32, I64, U8, U64, OutI32, frozen, helper, kernel
from jittok.kernels.memory import Window, add, get_i32, get_i64, get_u8, get_u64, get_word, multiply, put_i32, window

ABSENT = -1
_MIX = np.uint64(0xD6E8FEB86659FD93)
_32, _29, _LOW = np.uint64(32), np.uint64(29), np.uint64(0xFFFFFFFF)
KEYS: U64 = frozen(np.frombuffer(os.urandom(16), np.uint64) | np.uint64(1 << 32 | 1), np.uint64)
"""The secret of this process: the summand and the factor of a word. Both halves of a key are odd."""


class BytesTable(NamedTuple):
    """Invariant, by construction: 0 <= slots[k] <= rows; at least half of the slots are 0, so every search ends."""

    data: U8  # [bytes] the strings, concatenated
    offsets: I64  # [rows + 1]
    slots: I32  # [2**k] row + 1, or 0 where free
    keys: U64  # [2] see KEYS


class BytesWindow(NamedTuple):
    """The same as windows."""

    data: Window
    offsets: Window
    slots: Window
    mask: int
    key: np.uint64
    factor: np.uint64


def slot_count(rows: int) -> int:
    """A power of two, at least twice the rows."""
    return 1 << max(4, (2 * rows + 1).bit_length())


def build_bytes_table(data: U8, offsets: I64) -> BytesTable:
    """The table of these strings; of equal ones the first is found."""
    slots = np.zeros(slot_count(offsets.size - 1), np.int32)
    data, offsets = frozen(data, np.uint8), frozen(offsets, np.int64)
    fill_bytes_table(data, offsets, slots, KEYS)
    return BytesTable(data, offsets, frozen(slots, np.int32), KEYS)


def find_rows(table: BytesTable, texts: list[bytes]) -> NDArray[np.int32]:
    """int32[texts]: the row of each text, or ABSENT."""
    rows = np.empty(len(texts), np.int32)
    data = frozen(np.frombuffer(b"".join(texts), np.uint8), np.uint8)
    find_all(table, data, frozen(np.cumsum([0, *map(len, texts)]), np.int64), rows)
    return rows


@helper
def open_bytes_table(table: BytesTable) -> BytesWindow:
    """Windows onto the arrays."""
    keys = window(table.keys)
    mask = table.slots.size - 1
    return BytesWindow(
        window(table.data), window(table.offsets), window(table.slots), mask, get_u64(keys, 0), get_u64(keys, 1)
    )


@kernel
def fill_bytes_table(data: U8, offsets: I64, slots: OutI32, keys: U64) -> int:
    """Insert every row. Returns the first row whose string is there already, or ABSENT.

    data: uint8[bytes], offsets: int64[rows + 1], slots: int32[slot_count(rows)], zeroed; keys: uint64[2]. Linear in the
    bytes.
    """
    strings = BytesWindow(window(data), window(offsets), window(slots), slots.size - 1, keys[0], keys[1])
    repeated = ABSENT
    for row in range(offsets.size - 1):
        if find_bytes(strings, strings.data, offsets[row], offsets[row + 1]) == ABSENT:
            enter_row(strings, row)
        elif repeated == ABSENT:
            repeated = row
    return repeated


@kernel
def find_all(table: BytesTable, data: U8, offsets: I64, rows: OutI32) -> int:
    """The row of each string, or ABSENT. data: uint8[bytes], offsets: int64[n + 1], rows: int32[n]."""
    strings = open_bytes_table(table)
    for k in range(rows.size):
        rows[k] = find_bytes(strings, window(data), offsets[k], offsets[k + 1])
    return rows.size


@helper
def folded(word: np.uint64, factor: np.uint64) -> np.uint64:
    """The low half of a product XOR (about) its high half. A change of the highest bits of a word changes only the
    highest bits of the low half, but changes the high half unpredictably without knowing the factor."""
    a, b, c, d = word >> _32, word & _LOW, factor >> _32, factor & _LOW
    high = add(multiply(a, c), add(multiply(a, d) >> _32, multiply(b, c) >> _32))
    return multiply(word, factor) ^ high


@helper
def hash_bytes(text: Window, start: int, stop: int, key: np.uint64, factor: np.uint64) -> np.uint64:
    """A 64-bit hash of text[start:stop], eight bytes a step."""
    h = add(np.uint64(stop - start), key)
    i = start
    while i + 8 <= stop:
        h = add(folded(h ^ get_word(text, i), factor), key)
        i += 8
    if i < stop:
        word, shift = np.uint64(0), np.uint64(0)
        while i < stop:
            word |= np.uint64(get_u8(text, i)) << shift
            shift += np.uint64(8)
            i += 1
        h = folded(h ^ word, factor)
    h ^= h >> _32
    return add(multiply(h, _MIX), h >> _29)


@helper
def _home(table: BytesWindow, text: Window, start: int, stop: int) -> int:
    return np.int64(hash_bytes(text, start, stop, table.key, table.factor) >> np.uint64(20)) & table.mask


@helper
def _equal(table: BytesWindow, row: int, text: Window, start: int, stop: int) -> bool:
    at = get_i64(table.offsets, row)
    if get_i64(table.offsets, row + 1) - at != stop - start:
        return False
    for k in range(stop - start):
        if get_u8(table.data, at + k) != get_u8(text, start + k):
            return False
    return True


@helper
def enter_row(table: BytesWindow, row: int) -> None:
    """Insert one row whose string is known to be absent. The caller must have allocated enough slots."""
    at = _home(table, table.data, get_i64(table.offsets, row), get_i64(table.offsets, row + 1))
    while get_i32(table.slots, at) != 0:
        at = (at + 1) & table.mask
    put_i32(table.slots, at, row + 1)


@helper
def find_bytes(table: BytesWindow, text: Window, start: int, stop: int) -> int:
    """The row whose string is text[start:stop], or ABSENT. In bounds by the invariant of BytesTable."""
    at = _home(table, text, start, stop)
    while True:
        row = get_i32(table.slots, at) - 1
        if row == ABSENT or _equal(table, row, text, start, stop):
            return row
        at = (at + 1) & table.mask

"""Byte strings to numbers: an open-addressing hash table over strings that stay where they are.

The table holds only places: which string of a blob stands in a slot. So it needs no copy of the texts, and one builder
serves token texts, parts of merges and byte-decoded tokens.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok._jit import I64, U8, OutI32, frozen, helper, kernel, wide
from jittok._raw import add, multiply

ABSENT = -1
_MIX_1 = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio, odd
_MIX_2 = np.uint64(0xD6E8FEB86659FD93)


class BytesTable(NamedTuple):
    """Invariant, by construction: 0 <= slots[k] <= rows; at least half of the slots are 0, so every search ends."""

    data: U8  # [bytes] the strings, behind each other
    offsets: I64  # [rows + 1]
    slots: OutI32  # [2**k] row + 1, or 0 where free


def slot_count(rows: int) -> int:
    """A power of two, at least twice the rows."""
    return 1 << max(4, (2 * rows + 1).bit_length())


def build_bytes_table(data: U8, offsets: I64) -> BytesTable:
    """The table of distinct strings; of equal ones the first is found."""
    slots = np.zeros(slot_count(offsets.size - 1), np.int32)
    table = BytesTable(frozen(data, np.uint8), frozen(offsets, np.int64), slots)
    fill_bytes_table(table, 0, offsets.size - 1)
    return table


@kernel
def fill_bytes_table(table: BytesTable, first: int, last: int) -> int:
    """Enter rows first .. last - 1; returns the first row whose string is there already, or ABSENT.

    Linear in the bytes. The caller has made `slot_count(last)` slots.
    """
    repeated = ABSENT
    for row in range(first, last):
        start, stop = table.offsets[row], table.offsets[row + 1]
        at = _home(table, table.data, start, stop)
        while True:
            found = wide(table.slots[at]) - 1
            if found == ABSENT:
                table.slots[at] = row + 1
                break
            if _equal(table, found, table.data, start, stop):
                if repeated == ABSENT:
                    repeated = row
                break
            at = (at + 1) & (table.slots.size - 1)
    return repeated


@helper
def hash_bytes(data: U8, start: int, stop: int) -> np.uint64:
    """A 64-bit hash of data[start:stop], eight bytes a step."""
    h = np.uint64(stop - start)
    i = start
    while i < stop:
        word = np.uint64(0)
        for k in range(min(8, stop - i)):
            word |= np.uint64(data[i + k]) << np.uint64(8 * k)
        h = multiply(h ^ word, _MIX_1)
        h ^= h >> np.uint64(32)
        i += 8
    return add(multiply(h, _MIX_2), h >> np.uint64(29))


@helper
def _home(table: BytesTable, data: U8, start: int, stop: int) -> int:
    return np.int64(hash_bytes(data, start, stop) >> np.uint64(20)) & (table.slots.size - 1)  # type: ignore[return-value]


@helper
def _equal(table: BytesTable, row: int, data: U8, start: int, stop: int) -> bool:
    at = table.offsets[row]
    if table.offsets[row + 1] - at != stop - start:
        return False
    for k in range(stop - start):
        if table.data[at + k] != data[start + k]:
            return False
    return True


@helper
def enter_row(table: BytesTable, row: int) -> None:
    """Enter one row whose string is known to be absent. The caller has made the slots for it."""
    at = _home(table, table.data, table.offsets[row], table.offsets[row + 1])
    while table.slots[at] != 0:
        at = (at + 1) & (table.slots.size - 1)
    table.slots[at] = row + 1


@helper
def find_bytes(table: BytesTable, data: U8, start: int, stop: int) -> int:
    """The row whose string is data[start:stop], or ABSENT."""
    at = _home(table, data, start, stop)
    while True:
        row = wide(table.slots[at]) - 1
        if row == ABSENT or _equal(table, row, data, start, stop):
            return row
        at = (at + 1) & (table.slots.size - 1)

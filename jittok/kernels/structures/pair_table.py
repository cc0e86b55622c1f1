"""Pairs of symbols to (rank, merged symbol): the look-up of a merge step.

Open addressing over lines of four slots: a pair is in its home line, or, where that is full, in the next one. A slot is
two words, the pair, then rank and merged symbol, so one cache line is nearly always enough, and all four of its slots
are compared at once. Most adjacent pairs have no merge; a bit array that fits the second-level cache excludes nine of
ten of them before the table (megabytes) is read.

The hash has no secret: the factor is a constant of hot loops, and tables are kept on disk and read by other processes.
So a file can choose pairs that all hash to one line, and searches then take time in proportion to their number (32,000
such pairs take 0.7 s to insert). A text cannot: it can only ask for pairs of symbols that the file has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.kernels.jit import I32, U64, OutU64, as_int64, frozen, helper, inlined, kernel
from jittok.kernels.memory import Window, add, get_u64, leading_zeros, match_four, multiply, prefetch

NO_PAIR = np.uint64(0xFFFFFFFFFFFFFFFF)
"""The result for a pair without a merge: sorts after every rank."""
IN_LINE = 4
"""Slots of a line."""
PAIR_MIX = np.uint64(0x9E3779B97F4A7C15)
_32 = np.uint64(32)
_6, _63, _1, _0 = np.uint64(6), np.uint64(63), np.uint64(1), np.uint64(0)


class PairTable(NamedTuple):
    """Invariant, by construction: slots.size == 2 << slot_bits and filter.size << 6 == 1 << filter_bits. At least a
    third of the slots is free, so that every search ends. slot_bits >= 2. A line is filled from its first slot on."""

    slots: U64  # [2 << slot_bits] (left + 1) << 32 | right + 1, or 0; then rank << 32 | merged
    filter: U64  # [1 << filter_bits - 6] a bit for each hash value that some pair has
    slot_bits: int
    filter_bits: int


def build_pair_table(left: I32, right: I32, rank: I32, merged: I32) -> PairTable:
    """The table of distinct pairs; all int32[pairs], none negative."""
    slot_bits = max(4, (3 * left.size // 2).bit_length())
    filter_bits = max(9, (8 * left.size).bit_length())
    slots, bits = np.zeros(2 << slot_bits, np.uint64), np.zeros(1 << filter_bits - 6, np.uint64)
    fill_pair_table(left, right, rank, merged, slots, bits, slot_bits, filter_bits)
    return PairTable(frozen(slots, np.uint64), frozen(bits, np.uint64), slot_bits, filter_bits)


@helper
def pair_key(left: int, right: int) -> np.uint64:
    """The key of a pair. If one symbol is -1, it is the key of no pair; if both are, that of a free slot."""
    return np.uint64(left + 1) << _32 | np.uint64(right + 1)


@kernel
def fill_pair_table(
    left: I32, right: I32, rank: I32, merged: I32, slots: OutU64, bits: OutU64, slot_bits: int, filter_bits: int
) -> int:
    """Insert every pair; of equal pairs the first is kept. Returns the number of pairs in the table.

    left, right, rank, merged: int32[pairs]; slots: uint64[2 << slot_bits], bits: uint64[1 << filter_bits - 6], zeroed
    """
    lines = (1 << slot_bits - 2) - 1
    count = 0
    for k in range(left.size):
        key = pair_key(as_int64(left[k]), as_int64(right[k]))
        h = multiply(key, PAIR_MIX)
        line = np.int64(h >> np.uint64(66 - slot_bits))
        at = IN_LINE * line
        while slots[2 * at] != _0 and slots[2 * at] != key:
            at += 1
            if at == IN_LINE * (line + 1):
                line = (line + 1) & lines
                at = IN_LINE * line
        if slots[2 * at] == _0:
            count += 1
            slots[2 * at] = key
            slots[2 * at + 1] = np.uint64(as_int64(rank[k])) << _32 | np.uint64(as_int64(merged[k]))
            f = h >> np.uint64(64 - filter_bits)
            bits[np.int64(f >> _6)] |= _1 << (f & _63)
    return count


@helper
def pair_slot(bits: Window, slot_bits: int, filter_bits: int, key: np.uint64) -> int:
    """The line where the search for a pair begins; negative when there is no such pair. key: from `pair_key`."""
    h = multiply(key, PAIR_MIX)
    f = h >> np.uint64(64 - filter_bits)
    there = np.int64((get_u64(bits, np.int64(f >> _6)) >> (f & _63)) & _1)
    return np.int64(h >> np.uint64(66 - slot_bits)) | (there - 1)


@inlined
def prefetch_line(slots: Window, line: int) -> None:
    """Prefetch the memory that `find_at` reads first."""
    prefetch(slots, 2 * IN_LINE * max(line, 0), 8)


@inlined
def find_at(slots: Window, slot_bits: int, line: int, key: np.uint64) -> np.uint64:
    """rank << 32 | merged symbol of the pair with this key, or NO_PAIR. line: `pair_slot` of it.

    Whether there is a pair is unpredictable, so there is no branch on it. A pair that the filter excludes is searched
    for in the first line as well, and not found. A pair can be elsewhere only if its line is full; the three conditions
    are combined as numbers to one branch.
    """
    at = 2 * IN_LINE * max(line, 0)
    found = match_four(slots, at, key)
    free = np.uint64(leading_zeros(get_u64(slots, at + 2 * IN_LINE - 2)) >> 6)
    excluded = np.uint64(line >> 63 & 1)
    if add(found, _1) | free | excluded == _0:
        return _find_after(slots, slot_bits, line, key)
    return found


@helper
def _find_after(slots: Window, slot_bits: int, line: int, key: np.uint64) -> np.uint64:
    """The same for a pair that is not in its line, which is full."""
    while True:
        line = (line + 1) & ((1 << slot_bits - 2) - 1)
        at = 2 * IN_LINE * line
        found = match_four(slots, at, key)
        if found != NO_PAIR or get_u64(slots, at + 2 * IN_LINE - 2) == _0:
            return found


@helper
def find_pair(slots: Window, bits: Window, slot_bits: int, filter_bits: int, left: int, right: int) -> np.uint64:
    """rank << 32 | merged symbol of two neighbors, or NO_PAIR. A negative symbol merges with nothing.

    In bounds by the invariant of PairTable: both indices are the top bits of a hash.
    """
    if left < 0 or right < 0:
        return NO_PAIR
    key = pair_key(left, right)
    h = multiply(key, PAIR_MIX)
    line = np.int64(h >> np.uint64(66 - slot_bits))
    prefetch_line(slots, line)
    f = h >> np.uint64(64 - filter_bits)
    if (get_u64(bits, np.int64(f >> _6)) >> (f & _63)) & _1 == _0:
        return NO_PAIR
    return find_at(slots, slot_bits, line, key)

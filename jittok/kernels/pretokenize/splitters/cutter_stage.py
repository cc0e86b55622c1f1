"""One stage of the general splitter in one pass: a cutter's table (see `pretokenize.cutter`), two bytes per step, four
segments at once.

Each step depends on the row that the step before loads, a latency of some eight cycles. Four segments of the text that
are walked side by side overlap their latencies. A segment begins at an offset that is always a cut, whatever is before
it, so it starts in the same state as a text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.kernels.jit import as_int64, helper
from jittok.kernels.memory import (
    Window,
    bit_masks,
    get_i32,
    get_u8,
    get_u16,
    get_u64,
    leading_zeros,
    pair_block,
    put_two,
    put_u8,
    put_u64,
    trailing_zeros,
)
from jittok.kernels.pretokenize.cutter import REST

ACTION_BITS, ROW_BITS = 8, 4
"""An entry is the offset of the next row >> ROW_BITS << 2 * ACTION_BITS | actions before the second byte << ACTION_BITS
| actions before the first: rows begin at multiples of 1 << ROW_BITS."""
LEAST_BYTES = 512
"""Bytes from which on a text is walked as four segments; a quarter is no shorter than SEARCHED."""
SEARCHED = 128
"""Bytes that are searched for a sure cut."""
BLOCK, COLUMNS = 64, 128
ONE, NONE = np.uint64(1), np.uint64(0)


class CutterWindow(NamedTuple):
    """A cutter, as windows that all stages share."""

    tables: Window  # int32: its rows from `table` on, an entry for each pair of columns
    table: int
    columns: Window  # uint8: from `columns_at` on, [128] twice the column of each class
    columns_at: int
    width: int  # columns, with and without a cut before them
    sure: Window  # uint8: from `sure_at` on, [classes, classes] whether a cut is sure between two characters
    sure_at: int
    classes: int


@helper
def run_cutter(own: CutterWindow, classes: Window, size: int, pairs: Window, flags: Window) -> None:
    """flags[i]: the actions before byte i of 0 .. size, the end included.

    classes: uint8[size + 1] 2 * class of each byte. The lowest bit: a cut is before it. Sure cuts are added
    pairs: uint16[size // 2 + 33] scratch, the same memory as the flags: the flags of two bytes overwrite their pair
    after it is read. 64 bytes are readable and writable after the text in all arrays
    """
    end0 = end1 = end2 = size
    if size >= LEAST_BYTES:
        end0 = _sure_cut(own, classes, size, size >> 2)
        if end0 < size:
            end1 = _sure_cut(own, classes, size, size >> 1)
        if end1 < size:
            end2 = _sure_cut(own, classes, size, (size >> 1) + (size >> 2))
    for at in range(0, size + 1, BLOCK):
        pair_block(own.columns, own.columns_at, classes, at, own.width, pairs, at >> 1)
    # from here on in pairs; the last one holds the end of the text
    begin1, begin2, begin3, end = end0 >> 1, end1 >> 1, end2 >> 1, (size >> 1) + 1
    if end0 == size:
        begin1 = begin2 = begin3 = end
    elif end1 == size:
        begin2 = begin3 = end
    elif end2 == size:
        begin3 = end
    row0 = row1 = row2 = row3 = own.table
    ending0, ending1, ending2 = _pair(pairs, begin1, end), _pair(pairs, begin2, end), _pair(pairs, begin3, end)
    steps = min(begin1, begin2 - begin1, begin3 - begin2, end - begin3)
    for k in range(steps):
        entry0 = get_i32(own.tables, row0 + get_u16(pairs, k))
        entry1 = get_i32(own.tables, row1 + get_u16(pairs, begin1 + k))
        entry2 = get_i32(own.tables, row2 + get_u16(pairs, begin2 + k))
        entry3 = get_i32(own.tables, row3 + get_u16(pairs, begin3 + k))
        put_two(flags, 2 * k, entry0)
        put_two(flags, 2 * (begin1 + k), entry1)
        put_two(flags, 2 * (begin2 + k), entry2)
        put_two(flags, 2 * (begin3 + k), entry3)
        row0, row1, row2, row3 = _row_of(entry0), _row_of(entry1), _row_of(entry2), _row_of(entry3)
    row0 = _walk(own, row0, pairs, steps, begin1, flags)
    row1 = _walk(own, row1, pairs, begin1 + steps, begin2, flags)
    row2 = _walk(own, row2, pairs, begin2 + steps, begin3, flags)
    _walk(own, row3, pairs, begin3 + steps, end, flags)
    # where a segment ends, the next one begins: both have actions there
    _end(own, row0, ending0, begin1, end, flags)
    _end(own, row1, ending1, begin2, end, flags)
    _end(own, row2, ending2, begin3, end, flags)


@helper
def _row_of(entry: int) -> int:
    return entry >> 2 * ACTION_BITS << ROW_BITS


@helper
def _walk(own: CutterWindow, row: int, pairs: Window, k: int, end: int, flags: Window) -> int:
    while k < end:
        entry = get_i32(own.tables, row + get_u16(pairs, k))
        put_two(flags, 2 * k, entry)
        row = _row_of(entry)
        k += 1
    return row


@helper
def _pair(pairs: Window, k: int, end: int) -> int:
    """Pair k, if there is one: flags will overwrite it."""
    return as_int64(get_u16(pairs, k)) if k < end else as_int64(0)


@helper
def _end(own: CutterWindow, row: int, pair: int, k: int, end: int, flags: Window) -> None:
    """Add the actions of a segment that ends before pair k at that offset, unless it is the end of the text."""
    if k < end:
        entry = get_i32(own.tables, row + pair)
        put_u8(flags, 2 * k, get_u8(flags, 2 * k) | entry & (1 << ACTION_BITS) - 1)


@helper
def _sure_cut(own: CutterWindow, classes: Window, size: int, i: int) -> int:
    """The first sure cut at an even offset from i on, marked in `classes`; `size` if there is none nearby."""
    for j in range(i + (i & 1), min(i + SEARCHED, size), 2):
        left, right = get_u8(classes, j - 1), get_u8(classes, j)
        if right & 1 != 0:
            return j
        left, right = left >> 1, right >> 1
        whole = left < own.classes and right < own.classes
        if whole and get_u8(own.sure, own.sure_at + left * own.classes + right) != 0:
            put_u8(classes, j, 2 * right + 1)
            return j
    return size


@helper
def collect_cuts(flags: Window, size: int, words: Window) -> None:
    """The cuts that the flags encode, as a bitmap: bit i is set if a piece begins at byte i of 0 .. size.

    flags: uint8[size + 1], 64 bytes are readable after it; words: uint64[size // 64 + 1]
    """
    noted_at = 0
    for at in range(0, size + 1, 64):
        here, previous, remember, noted, rest = bit_masks(flags, at)
        if size - at < 63:
            inside = (ONE << np.uint64(size + 1 - at)) - ONE
            here &= inside
            previous &= inside
            noted &= inside
            remember &= inside
        word = here
        if rest == NONE:
            word |= previous >> ONE
            previous &= ONE
        while previous != NONE:
            position = _character_before(flags, at + trailing_zeros(previous))
            word |= _bit(words, at, position)
            previous &= previous - ONE
        while noted != NONE:
            below = remember & ((noted & (~noted + ONE)) - ONE)
            position = noted_at if below == NONE else at + 63 - leading_zeros(below)
            word |= _bit(words, at, _character_before(flags, position))
            noted &= noted - ONE
        if remember != NONE:
            noted_at = at + 63 - leading_zeros(remember)
        put_u64(words, at >> 6, word)


@helper
def _character_before(flags: Window, i: int) -> int:
    i -= 1
    while get_u8(flags, i) & REST != 0:
        i -= 1
    return i


@helper
def _bit(words: Window, at: int, position: int) -> np.uint64:
    """The bit of `position` in the word of bytes at .. at + 63; a position before them is set in its own word."""
    bit = ONE << np.uint64(position & 63)
    if position >= at:
        return bit
    put_u64(words, position >> 6, get_u64(words, position >> 6) | bit)
    return NONE

"""One stage of the general splitter in one pass: a cutter's table (see `pretokenize.cutter`), four stretches at once.

Every step waits for the one before it (the row it leads to), some six cycles in all; four stretches of the text that
are walked side by side wait together. A stretch begins where a cut is sure whatever stands before, so that it can begin
like a text.
"""

from __future__ import annotations

import numpy as np

from jittok._jit import helper
from jittok._raw import Window, bit_masks, get_i32, get_u8, get_u64, leading_zeros, put_u8, put_u64, trailing_zeros
from jittok.pretokenize.cutter import REST

ACTION_BITS = 8
LEAST = 512
"""Bytes from which on a text is cut into four stretches; a quarter is no shorter than SEARCHED."""
SEARCHED = 128
"""Bytes that are looked through for a sure cut."""
ONE, NONE = np.uint64(1), np.uint64(0)


@helper
def run_cutter(
    tables: Window, table: int, width: int, sure: Window, sure_at: int, classes: Window, size: int, flags: Window
) -> None:
    """flags[i]: the actions before byte i of 0 .. size, the end included.

    tables: int32, the cutter's rows from `table` on, `width` entries each: place of the next row << 8 | actions
    sure: uint8, from `sure_at` on [classes, classes]; classes: uint8[size + 1] columns; sure cuts are added to it
    """
    end0 = end1 = end2 = size
    if size >= LEAST:
        end0 = _sure_cut(sure, sure_at, width, classes, size, size >> 2)
        if end0 < size:
            end1 = _sure_cut(sure, sure_at, width, classes, size, size >> 1)
        if end1 < size:
            end2 = _sure_cut(sure, sure_at, width, classes, size, (size >> 1) + (size >> 2))
    row0 = row1 = row2 = row3 = table
    steps = min(end0, end1 - end0, end2 - end1, size - end2)
    for k in range(steps):
        entry0 = get_i32(tables, row0 + get_u8(classes, k))
        entry1 = get_i32(tables, row1 + get_u8(classes, end0 + k))
        entry2 = get_i32(tables, row2 + get_u8(classes, end1 + k))
        entry3 = get_i32(tables, row3 + get_u8(classes, end2 + k))
        put_u8(flags, k, entry0)
        put_u8(flags, end0 + k, entry1)
        put_u8(flags, end1 + k, entry2)
        put_u8(flags, end2 + k, entry3)
        row0, row1 = entry0 >> ACTION_BITS, entry1 >> ACTION_BITS
        row2, row3 = entry2 >> ACTION_BITS, entry3 >> ACTION_BITS
    row0 = _walk(tables, row0, classes, steps, end0, flags)
    row1 = _walk(tables, row1, classes, end0 + steps, end1, flags)
    row2 = _walk(tables, row2, classes, end1 + steps, end2, flags)
    row3 = _walk(tables, row3, classes, end2 + steps, size, flags)
    # where a stretch ends the next one has begun: both have something to say there
    put_u8(flags, size, 0)
    _end(tables, row0, classes, end0, flags)
    if end0 < size:
        _end(tables, row1, classes, end1, flags)
    if end1 < size:
        _end(tables, row2, classes, end2, flags)
    if end2 < size:
        _end(tables, row3, classes, size, flags)


@helper
def _walk(tables: Window, row: int, classes: Window, i: int, end: int, flags: Window) -> int:
    while i < end:
        entry = get_i32(tables, row + get_u8(classes, i))
        put_u8(flags, i, entry)
        row = entry >> ACTION_BITS
        i += 1
    return row


@helper
def _end(tables: Window, row: int, classes: Window, end: int, flags: Window) -> None:
    put_u8(flags, end, get_u8(flags, end) | get_i32(tables, row + get_u8(classes, end)))


@helper
def _sure_cut(sure: Window, sure_at: int, width: int, classes: Window, size: int, i: int) -> int:
    """The first sure cut from i on, marked in `classes`; `size` when there is none nearby."""
    count = (width >> 1) - 1
    for j in range(i, min(i + SEARCHED, size)):
        left, right = get_u8(classes, j - 1), get_u8(classes, j)
        if right & 1 != 0:
            return j
        if left >> 1 < count and right >> 1 < count and get_u8(sure, sure_at + (left >> 1) * count + (right >> 1)) != 0:
            put_u8(classes, j, right | 1)
            return j
    return size


@helper
def collect_cuts(flags: Window, size: int, words: Window) -> None:
    """The cuts that the flags speak of, as bits: bit i for a piece that begins at byte i of 0 .. size.

    flags: uint8[size + 1] with 64 bytes of room behind; words: uint64[size // 64 + 1]
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
            place = _character_before(flags, at + trailing_zeros(previous))
            word |= _bit(words, at, place)
            previous &= previous - ONE
        while noted != NONE:
            below = remember & ((noted & (~noted + ONE)) - ONE)
            place = noted_at if below == NONE else at + 63 - leading_zeros(below)
            word |= _bit(words, at, _character_before(flags, place))
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
def _bit(words: Window, at: int, place: int) -> np.uint64:
    """The bit of `place` in the word of bytes at .. at + 63; a place before them is entered where it belongs."""
    bit = ONE << np.uint64(place & 63)
    if place >= at:
        return bit
    put_u64(words, place >> 6, get_u64(words, place >> 6) | bit)
    return NONE

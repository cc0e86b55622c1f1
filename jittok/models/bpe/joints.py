"""Which neighbours a merge can ever join: where none can, a piece may be cut in two without another id.

Some patterns leave long pieces: lines, phrases, or all text up to the next number. Hardly one of them comes twice, so
the piece cache is of no help; their parts do. A merge joins the last byte of its left symbol with the first of its
right one; two neighbours that no merge joins so stay apart in every text, and what is merged on one side of them does
not change the other. Where symbols are characters, the same holds for the last and the first character.

With `ignore_merges` a piece that is a token is that token, whatever its merges, and a part of a piece must not be: then
any two neighbours count as joined. So do those beside a space where a space inside a piece is an error, and newlines,
which gemma4 takes whole.
"""

from __future__ import annotations

import numpy as np

from jittok._jit import I32, I64, U8, U64, OutU64, frozen, helper, kernel, wide
from jittok._raw import (
    Window,
    equal_mask,
    get_u8,
    get_u64,
    leading_zeros,
    put_u64,
    span_masks,
    trailing_zeros,
    utf8_masks,
)
from jittok.structures.bytes_table import BytesTable

BYTE_BITS, CHARACTER_BITS = 8, 10
"""A joint is the number of the left neighbour and that of the right one; characters share their numbers."""
BLOCK = 64
ONE, NONE = np.uint64(1), np.uint64(0)
NEWLINE, SPACE, ESCAPED_SPACE = 0x0A, 0x20, 0x2581
FIRST_OF_ESCAPED = 0xE2


def all_joined(characters: bool) -> U64:
    """The table that allows no cut."""
    return frozen(np.full(1 << 2 * (CHARACTER_BITS if characters else BYTE_BITS) - 6, ~np.uint64(0)), np.uint64)


def byte_joints(texts: BytesTable, left: I32, right: I32, byte_of: I32) -> U64:
    """uint64[1024]: bit a << 8 | b is set when a merge has byte a in front of byte b.

    texts: of all symbols, written in the alphabet of bytes; left, right: int32[merges] symbols
    byte_of: int32[512] the byte of each character of the alphabet
    """
    out = np.zeros(1 << 2 * BYTE_BITS - 6, np.uint64)
    join_merges(texts.data, texts.offsets, left, right, byte_of, out)
    return frozen(out, np.uint64)


def character_joints(texts: BytesTable, left: I32, right: I32) -> U64:
    """uint64[16384]: the same for characters, by their numbers (see `_number`); all that stand beside a space, too."""
    out = np.zeros(1 << 2 * CHARACTER_BITS - 6, np.uint64)
    join_merges(texts.data, texts.offsets, left, right, frozen(np.zeros(0), np.int32), out)
    bits = np.unpackbits(out.view(np.uint8), bitorder="little").reshape(1 << CHARACTER_BITS, -1)
    bits[SPACE], bits[:, SPACE], bits[NEWLINE, NEWLINE] = 1, 1, 1
    return frozen(np.packbits(bits, bitorder="little").view(np.uint64), np.uint64)


@helper
def _number(c: int) -> int:
    """Ten bits of a code point: Latin-1 as it is, the character that stands for a space alone, all others shared."""
    if c < 0x100:
        return c
    return 0xFF if c == ESCAPED_SPACE else 0x100 + (((c * 40503) & 0xFFFF) * 0x300 >> 16)


@helper
def _enter(out: OutU64, joint: int) -> None:
    out[joint >> 6] |= ONE << np.uint64(joint & 63)


@helper
def _character(data: U8, i: int, end: int) -> int:
    """The code point at i, as far as its bytes are there."""
    c = wide(data[i])
    if c < 0xC0:
        return c
    size = 2 if c < 0xE0 else 3 if c < 0xF0 else 4
    c &= 0x7F >> size
    for k in range(i + 1, min(i + size, end)):
        c = c << 6 | wide(data[k]) & 0x3F
    return c


@kernel
def join_merges(data: U8, offsets: I64, left: I32, right: I32, byte_of: I32, out: OutU64) -> int:
    """Enter where the texts of left[k] and right[k] meet, for every k.

    byte_of: int32[512] the bytes that characters stand for (texts with others are skipped), or empty for characters
    """
    for k in range(left.size):
        begin, end = offsets[left[k]], offsets[left[k] + 1]
        next_begin, next_end = offsets[right[k]], offsets[right[k] + 1]
        if end > begin and next_end > next_begin:
            last = end - 1
            while wide(data[last]) & 0xC0 == 0x80 and last > begin:
                last -= 1
            a, b = _character(data, last, end), _character(data, next_begin, next_end)
            if byte_of.size == 0:
                _enter(out, _number(a) << CHARACTER_BITS | _number(b))
            elif a < byte_of.size and b < byte_of.size and byte_of[a] >= 0 and byte_of[b] >= 0:
                _enter(out, wide(byte_of[a]) << BYTE_BITS | wide(byte_of[b]))
    return out.size


@helper
def cut_joints(joints: Window, characters: bool, text: Window, start: int, size: int, cuts: Window) -> None:
    """More cuts in text[start:start + size], where no merge joins: between an ASCII letter (of bytes: also one beyond
    ASCII) and something else but a space in front of it, before what may stand for a space, and anywhere in pieces of
    more than 16 bytes.

    joints: of characters or of bytes; cuts: see `splitters.general`; 64 bytes are readable behind the text
    """
    before = p_letter = p_high = NONE
    for at in range(0, size, BLOCK):
        high, letter, _, _, space = span_masks(text, start + at)
        follower = begins = NONE
        if not characters:
            letter |= high
        elif high != NONE:
            follower, _, _, _, _ = utf8_masks(text, start + at)
            begins = equal_mask(text, start + at, FIRST_OF_ESCAPED)
        cut = get_u64(cuts, at // BLOCK)
        near = cut << ONE | cut
        near |= near << np.uint64(2)
        near |= near << np.uint64(4)
        near |= near << np.uint64(8)
        near |= _near_before(before)
        change = letter ^ (letter << ONE | p_letter)
        change &= ~(space << ONE)  # a space is nearly always joined to the letter behind it
        if characters:  # what stands for a space is nearly always joined to the letter behind it
            change &= ~(letter & (high << ONE | p_high))
        asked = (change | begins | ~near) & ~cut & ~follower
        p_letter, p_high = letter >> np.uint64(63), high >> np.uint64(63)
        if size - at < BLOCK:
            asked &= (ONE << np.uint64(size - at)) - ONE
        while asked != NONE:
            k = trailing_zeros(asked)
            asked &= asked - ONE
            i = start + at + k
            if characters:
                joint = _number(_code_point_before(text, i)) << CHARACTER_BITS | _number(_code_point(text, i))
            else:
                joint = get_u8(text, i - 1) << BYTE_BITS | get_u8(text, i)
            free = ~get_u64(joints, joint >> 6) >> np.uint64(joint & 63) & ONE
            cut |= free << np.uint64(k)
        put_u64(cuts, at // BLOCK, cut)
        before = cut


@helper
def _near_before(before: np.uint64) -> np.uint64:
    """The first bytes of a block that are fewer than 16 behind the last cut of the block before."""
    if before == NONE:
        return NONE
    behind = leading_zeros(before) + 1  # of that cut is the block's first byte
    return (ONE << np.uint64(16 - behind)) - ONE if behind < 16 else NONE


@helper
def _code_point(text: Window, i: int) -> int:
    """The character at i of well-formed text."""
    c = get_u8(text, i)
    if c < 0x80:
        return c
    if c < 0xE0:
        return (c & 0x1F) << 6 | get_u8(text, i + 1) & 0x3F
    c = (c & 0xF) << 12 | (get_u8(text, i + 1) & 0x3F) << 6 | get_u8(text, i + 2) & 0x3F
    return c if get_u8(text, i) < 0xF0 else (c & 0x7FFF) << 6 | get_u8(text, i + 3) & 0x3F


@helper
def _code_point_before(text: Window, i: int) -> int:
    """The character that ends before i."""
    i -= 1
    while get_u8(text, i) & 0xC0 == 0x80:
        i -= 1
    return _code_point(text, i)

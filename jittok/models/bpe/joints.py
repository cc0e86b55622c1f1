"""Which neighbouring bytes a merge can ever join: where none can, a piece may be cut in two without another id.

Some patterns leave long pieces: phrases, or all text up to the next number. Hardly one of them comes twice, so the
piece cache is of no help; their parts do. A merge joins the last byte of its left symbol with the first of its right
one; two neighbours that no merge joins so stay apart in every text, and what is merged on one side of them does not
change the other. With `ignore_merges` a piece that is a token is that token, whatever its merges, and a part of a piece
must not be: then any two bytes count as joined.
"""

from __future__ import annotations

import numpy as np

from jittok._jit import I32, I64, U8, U64, OutU64, frozen, helper, kernel, wide
from jittok._raw import Window, get_u8, get_u64, put_u64, span_masks, trailing_zeros
from jittok.structures.bytes_table import BytesTable

WORDS = 1024
BLOCK = 64
ONE, NONE = np.uint64(1), np.uint64(0)


def joint_table(texts: BytesTable, left: I32, right: I32, byte_of: I32) -> U64:
    """uint64[1024]: bit a << 8 | b is set when a merge has byte a in front of byte b.

    texts: of all symbols, written in the alphabet of bytes; left, right: int32[merges] symbols
    byte_of: int32[512] the byte of each character of the alphabet
    """
    out = np.zeros(WORDS, np.uint64)
    join_merges(texts.data, texts.offsets, left, right, byte_of, out)
    return frozen(out, np.uint64)


@kernel
def join_merges(data: U8, offsets: I64, left: I32, right: I32, byte_of: I32, out: OutU64) -> int:
    """Enter where the texts of left[k] and right[k] meet, for every k; texts with other characters are skipped."""
    for k in range(left.size):
        begin, end = offsets[left[k]], offsets[left[k] + 1]
        next_begin, next_end = offsets[right[k]], offsets[right[k] + 1]
        if end > begin and next_end > next_begin:
            last = end - 1
            if wide(data[last]) & 0xC0 == 0x80 and last > begin:
                last -= 1
            a, b = _byte_at(data, last, end, byte_of), _byte_at(data, next_begin, next_end, byte_of)
            if a >= 0 and b >= 0:
                out[(a << 8 | b) >> 6] |= ONE << np.uint64(b & 63)
    return out.size


@helper
def _byte_at(data: U8, i: int, end: int, byte_of: I32) -> int:
    """The byte that the character at i of data[:end] stands for, or below 0."""
    c = wide(data[i])
    if 0xC2 <= c < 0xC8 and i + 1 < end and wide(data[i + 1]) & 0xC0 == 0x80:
        c = (c & 0x1F) << 6 | wide(data[i + 1]) & 0x3F
    elif c >= 0x80:
        return -1
    return wide(byte_of[c])


@helper
def cut_joints(joints: Window, text: Window, start: int, size: int, cuts: Window) -> None:
    """More cuts in text[start:start + size], where no merge joins: between a letter and something else, and anywhere in
    pieces of more than 16 bytes.

    joints: see `joint_table`; cuts: see `splitters.general`; 64 bytes are readable behind the text
    """
    before = p_letter = NONE
    for at in range(0, size, BLOCK):
        high, letter, _, _, _ = span_masks(text, start + at)
        letter |= high
        cut = get_u64(cuts, at // BLOCK)
        near = cut << ONE | cut
        near |= near << np.uint64(2)
        near |= near << np.uint64(4)
        near |= near << np.uint64(8)
        near |= _near_before(before)
        asked = (letter ^ (letter << ONE | p_letter) | ~near) & ~cut
        before, p_letter = cut, letter >> np.uint64(63)
        if size - at < BLOCK:
            asked &= (ONE << np.uint64(size - at)) - ONE
        while asked != NONE:
            k = trailing_zeros(asked)
            asked &= asked - ONE
            i = start + at + k
            joint = get_u8(text, i - 1) << 8 | get_u8(text, i)
            free = ~get_u64(joints, joint >> 6) >> np.uint64(joint & 63) & ONE
            cut |= free << np.uint64(k)
        put_u64(cuts, at // BLOCK, cut)


@helper
def _near_before(before: np.uint64) -> np.uint64:
    """The first bytes of a block that are fewer than 16 behind the last cut of the block before."""
    near = before >> np.uint64(49)
    near |= near >> ONE
    near |= near >> np.uint64(2)
    near |= near >> np.uint64(4)
    return near | near >> np.uint64(8)

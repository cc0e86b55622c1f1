"""Safe cuts inside pre-tokens: offsets between two neighbors (a *joint*) that no merge can ever join.

Some patterns leave long pre-tokens: lines, phrases, or all text up to the next number. They hardly ever repeat, so the
pre-token cache does not help, but parts of them do repeat. A merge joins the last byte of its left symbol with the
first byte of its right symbol. If no merge joins two neighbors in this way, they stay apart in every text, and merges
on one side of them do not change the other side. If symbols are characters, the same is true of characters.

Two bytes may be joined *loosely*: only by merges of longer symbols, which need certain bytes next to the two.

Spaces are a special case. In some vocabularies, the merge of two spaces has a lower rank than all other merges of a
single space. Then spaces are merged in pairs first, from the left, and a run of an even number of spaces leaves no
single space. So after such a run only merges of two spaces matter. `merge_boundary_tables` computes the tables from
the merges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.common.unicode.characters import SPACE_MARK_CODE
from jittok.kernels.jit import U64, helper
from jittok.kernels.memory import (
    Window,
    add,
    class_masks,
    equal_mask,
    get_u8,
    get_u64,
    leading_zeros,
    multiply,
    put_u64,
    trailing_zeros,
    utf8_masks,
    window,
)

BYTE_BITS, CHARACTER_BITS = 8, 10
"""Bits of a neighbor's number; a joint is the number of the left neighbor and that of the right one. Several
characters may have the same number."""
PAIRED = 1 << BYTE_BITS
"""The number of a space that ends an even run of spaces; like any other space where spaces are not paired first."""
APART, LOOSE, JOINED = 0, 1, 3
"""Two bytes are joined by no merge, by merges of longer symbols only, or by a merge of the two bytes."""
LEFT_LONGER, RIGHT_LONGER = 1, 2
"""Bits of a loose joint's context: its left or right symbol has more than one byte, of which one more is known."""
FIRST_OF_ESCAPED = 0xE2
FIRST_SHARED, NUMBER_OF_ESCAPED = 0x100, 0xFF
BLOCK = 64
CONTEXT_K = np.uint64(0x9E3779B97F4A7C15)
ONE, NONE, ALL, B63 = np.uint64(1), np.uint64(0), ~np.uint64(0), np.uint64(63)
EVEN = np.uint64(0x5555555555555555)
_6, _64 = np.uint64(6), np.uint64(64)


class MergeBoundaries(NamedTuple):
    """The neighbors that merges join. Invariant: contexts.size << 6 == 1 << context_bits."""

    pairs: U64  # one bit for each joint of characters; two for each joint of bytes: APART, LOOSE or JOINED
    contexts: U64  # hashed set of the contexts of loose joints, see `context`: false positives only
    context_bits: int


class MergeBoundaryWindow(NamedTuple):
    """The same as windows."""

    pairs: Window
    contexts: Window
    context_bits: int


@helper
def open_merge_boundaries(joints: MergeBoundaries) -> MergeBoundaryWindow:
    """Windows onto the arrays."""
    return MergeBoundaryWindow(window(joints.pairs), window(joints.contexts), joints.context_bits)


@helper
def context(kind: int, before: int, left: int, right: int, after: int) -> int:
    """The context of a loose joint as a number below 2 ** 34; kind: LEFT_LONGER, RIGHT_LONGER or both. `before` or
    `after` is 0 on a side that is not longer. Also for arrays."""
    return before | left << 8 | right << 16 | after << 24 | kind << 32


@helper
def cut_merge_boundaries(
    joints: MergeBoundaryWindow, characters: bool, text: Window, start: int, size: int, cuts: Window
) -> None:
    """Add cuts in text[start:start + size] where no merge joins the neighbors.

    These offsets are tested:

    - between an ASCII letter (for bytes: also a byte of a non-ASCII character) and something else, but not after a
      space;
    - before a character that may be U+2581;
    - after an even run of spaces;
    - in pre-tokens of more than 16 bytes, every offset. Bytes are first cut between bytes of unequal classes.

    joints: of characters or of bytes; cuts: see `splitters.general`; 64 bytes are readable after the text
    """
    before = p_letter = p_high = p_capital = p_space = p_paired = odd = NONE
    for at in range(0, size, BLOCK):
        high, letter, _, _, space, _, _, capital, _ = class_masks(text, start + at)
        cut = get_u64(cuts, at // BLOCK)
        inside = (ALL if size - at >= BLOCK else (ONE << np.uint64(size - at)) - ONE) & ~cut
        near = _near(cut, before)
        if characters:
            follower = begins = NONE
            if high != NONE:
                follower, _, _, _, _ = utf8_masks(text, start + at)
                begins = equal_mask(text, start + at, FIRST_OF_ESCAPED)
            change = letter ^ (letter << ONE | p_letter)
            # a space or U+2581 is nearly always joined to the letter after it
            change &= ~(space << ONE | letter & (high << ONE | p_high))
            cut |= _apart_characters(joints, text, start + at, (change | begins | ~near) & ~follower & inside)
        else:
            letter |= high
            lower = letter & ~capital
            change = letter ^ (letter << ONE | p_letter)
            change &= ~(space << ONE)
            alike = lower & (lower << ONE | p_letter & ~p_capital) | capital & (capital << ONE | p_capital)
            alike |= (letter | space) & (space << ONE | p_space)
            paired = space & (space << ONE | p_space) & ~cut  # after another space of the same pre-token
            ends, odd = _odd_ends(paired, p_paired, odd)
            after = _near(get_u64(cuts, at // BLOCK + 1), cut) if at + BLOCK <= size else ALL
            unlike = change | _in_long(~near, ~after) & ~alike
            cut |= _apart_bytes(joints, text, start, at, (unlike | ends) & inside, ends)
            cut |= _apart_bytes(joints, text, start, at, ~_near(cut, before) & alike & inside, NONE)
            p_space, p_paired, p_capital = space >> B63, paired >> B63, capital >> B63
        p_letter, p_high = letter >> B63, high >> B63
        put_u64(cuts, at // BLOCK, cut)
        before = cut


@helper
def _near(cut: np.uint64, before: np.uint64) -> np.uint64:
    """Offsets at most 15 after a cut of the block, or after the last one of the block before."""
    near = cut << ONE | cut
    near |= near << np.uint64(2)
    near |= near << np.uint64(4)
    near |= near << np.uint64(8)
    return near | _near_before(before)


@helper
def _in_long(far: np.uint64, after: np.uint64) -> np.uint64:
    """Offsets in pre-tokens of more than 16 bytes: those far from cuts, and the 15 before each. after: the offsets far
    from cuts in the next block."""
    for shift in (np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(8)):
        far |= far >> shift | after << (_64 - shift)
        after |= after >> shift
    return far


@helper
def _near_before(before: np.uint64) -> np.uint64:
    """The first bytes of a block that are fewer than 16 after the last cut of the block before."""
    if before == NONE:
        return NONE
    after = leading_zeros(before) + 1  # the block's first byte is so far after that cut
    return (ONE << np.uint64(16 - after)) - ONE if after < 16 else NONE


@helper
def _odd_ends(some: np.uint64, before: np.uint64, odd: np.uint64) -> tuple[np.uint64, np.uint64]:
    """(the offsets right after runs of an odd number of bits; 1 if the block ends inside a run of which it has an odd
    number so far). before: 1 if the block before ends with a bit; odd: 1 if it ends inside such a run.

    Adding a run's first bit carries to the offset after the run. A run from an even offset to another even offset,
    inclusive, has an odd number of bits.
    """
    starts, goes_on = some & ~(some << ONE | before), some & before
    from_odd = add(some, starts & ~EVEN | goes_on & odd)
    from_even = add(some, starts & EVEN | goes_on & ~odd)
    ends = (from_odd & EVEN | from_even & ~EVEN | before & odd) & ~some
    return ends, (some & ~from_odd) >> B63


@helper
def _state(joints: MergeBoundaryWindow, joint: int) -> int:
    return np.int64(get_u64(joints.pairs, joint >> 5) >> np.uint64(2 * (joint & 31))) & JOINED


@helper
def _apart_bytes(
    joints: MergeBoundaryWindow, text: Window, start: int, at: int, asked: np.uint64, ends: np.uint64
) -> np.uint64:
    """Those of the offsets `asked` in the block at text[start + at] where no merge joins the bytes on both sides.

    ends: the offsets right after even runs of spaces
    """
    found = loose = NONE
    while asked != NONE:
        k = trailing_zeros(asked)
        asked &= asked - ONE
        i = start + at + k
        left = PAIRED if ends >> np.uint64(k) & ONE != NONE else get_u8(text, i - 1)
        state = _state(joints, left << BYTE_BITS | get_u8(text, i))
        found |= np.uint64(state == APART) << np.uint64(k)
        loose |= np.uint64(state == LOOSE) << np.uint64(k)
    while loose != NONE:
        k = trailing_zeros(loose)
        loose &= loose - ONE
        if at + k >= 2:
            found |= np.uint64(not _is_held(joints, text, start + at + k)) << np.uint64(k)
    return found


@helper
def _is_held(joints: MergeBoundaryWindow, text: Window, i: int) -> bool:
    """Whether some merge may join bytes i - 1 and i, a loose joint, in this context. Bytes i - 2 and i + 1 may belong
    to other pre-tokens. Then a merge that includes them cannot happen, and a true result merely misses a cut."""
    before, left, right, after = get_u8(text, i - 2), get_u8(text, i - 1), get_u8(text, i), get_u8(text, i + 1)
    return (
        _is_there(joints, context(LEFT_LONGER, before, left, right, 0))
        or _is_there(joints, context(RIGHT_LONGER, 0, left, right, after))
        or _is_there(joints, context(LEFT_LONGER | RIGHT_LONGER, before, left, right, after))
    )


@helper
def _is_there(joints: MergeBoundaryWindow, key: int) -> bool:
    position = multiply(np.uint64(key), CONTEXT_K) >> (_64 - np.uint64(joints.context_bits))
    return bool(get_u64(joints.contexts, np.int64(position >> _6)) >> (position & B63) & ONE)


@helper
def _apart_characters(joints: MergeBoundaryWindow, text: Window, begin: int, asked: np.uint64) -> np.uint64:
    """`_apart_bytes` for characters; the block is at text[begin]."""
    found = NONE
    while asked != NONE:
        k = trailing_zeros(asked)
        asked &= asked - ONE
        i = begin + k
        joint = _number(_code_point_before(text, i)) << CHARACTER_BITS | _number(_code_point(text, i))
        free = ~get_u64(joints.pairs, joint >> 6) >> np.uint64(joint & 63) & ONE
        found |= free << np.uint64(k)
    return found


@helper
def _number(c: int) -> int:
    """The ten-bit number of a code point: its own for Latin-1 and for U+2581, a shared one for all others."""
    if c < FIRST_SHARED:
        return c
    return NUMBER_OF_ESCAPED if c == SPACE_MARK_CODE else shared_number(c)


@helper
def shared_number(c: int) -> int:
    """The number of a code point that has none of its own. Also for arrays."""
    return FIRST_SHARED + (((c * 40503) & 0xFFFF) * 0x300 >> 16)


@helper
def _code_point(text: Window, i: int) -> int:
    """The character at i of valid UTF-8."""
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

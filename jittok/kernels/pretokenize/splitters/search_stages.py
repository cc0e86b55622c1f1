"""Stages of the general splitter that search for offsets, and helpers of all stages: offsets that a stage searches for,
and cuts as a bitmap. A matcher runs an automaton from such an offset. The other stages are those that no automaton with
one character of look-ahead can express (see `compile`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok.kernels.jit import helper
from jittok.kernels.memory import (
    Window,
    any_bit_mask,
    get_i32,
    get_u8,
    get_u64,
    mark_block,
    put_u8,
    put_u64,
    span_masks,
    trailing_zeros,
)
from jittok.kernels.pretokenize.splitters.cutter_stage import ACTION_BITS

MATCHED = 1
"""The action of a matcher: a match ends before this character."""
SplitterWindow = Any  # of `general.py`
IS_REST = 0x80
"""In `begun`: a continuation byte. The bits below it are one per stage, the same for all bytes of a character."""
BLOCK = 64
MOST_SPACES = 512
ONE, NONE = np.uint64(1), np.uint64(0)
SplitWindow = Any  # of `general.py`


@helper
def looked_for(work: SplitWindow, stage: int, at: int, size: int) -> np.uint64:
    """Which of the 64 bytes from `at` on, as far as the text goes, begin characters that the stage searches for."""
    found = any_bit_mask(work.begun, at, 1 << stage) & ~any_bit_mask(work.begun, at, IS_REST)
    if size - at < BLOCK:
        found &= (ONE << np.uint64(size - at)) - ONE
    return found


@helper
def next_cut(cuts: Window, i: int) -> int:
    """The first cut after byte i; the end of the text counts as one."""
    word = (i + 1) // BLOCK
    rest = get_u64(cuts, word) >> np.uint64((i + 1) & 63) << np.uint64((i + 1) & 63)
    while rest == NONE:
        word += 1
        rest = get_u64(cuts, word)
    return word * BLOCK + trailing_zeros(rest)


@helper
def _is_cut(cuts: Window, i: int) -> bool:
    return get_u64(cuts, i // BLOCK) >> np.uint64(i & 63) & ONE != NONE


@helper
def cut_at(work: SplitWindow, i: int) -> None:
    """Set a cut: a piece begins at byte i."""
    put_u64(work.cuts, i // BLOCK, get_u64(work.cuts, i // BLOCK) | ONE << np.uint64(i & 63))
    put_u8(work.classes, i, get_u8(work.classes, i) | 1)


@helper
def cut_runs(work: SplitWindow, stage: int, size: int, alone: bool) -> None:
    """Make a piece of every run of the characters that the stage searches for; with `alone`, of each character."""
    before = NONE
    for at in range(0, size, BLOCK):
        members = any_bit_mask(work.begun, at, 1 << stage)
        if (members | before) == NONE:
            continue
        found = members ^ (members << ONE | before)
        before = members >> np.uint64(63)
        if alone:
            found |= members & ~any_bit_mask(work.begun, at, IS_REST)
        if size - at < BLOCK:
            found &= (ONE << np.uint64(size - at)) - ONE
        put_u64(work.cuts, at // BLOCK, get_u64(work.cuts, at // BLOCK) | found)
        mark_block(work.classes, at, found)


@helper
def _run(work: SplitWindow, stage: int, i: int, piece_end: int) -> tuple[int, int]:
    """(end of the run at i of characters that the stage searches for, how many they are)."""
    count = 0
    while i < piece_end:
        begun = get_u8(work.begun, i)
        if begun & IS_REST == 0:
            if begun >> stage & 1 == 0:
                break
            count += 1
        i += 1
    return i, count


@helper
def _cut_threes(work: SplitWindow, i: int, end: int, count: int) -> None:
    """Cuts between groups of three of the `count` characters of i .. end, counted from the right."""
    first = i
    while i < end:
        if get_u8(work.begun, i) & IS_REST == 0:
            if i > first and count % 3 == 0:
                cut_at(work, i)
            count -= 1
        i += 1


@helper
def cut_digits(work: SplitWindow, stage: int, size: int, only_threes: bool) -> None:
    """Cut runs of numbers in threes from their right ends. The text before a run belongs to its first group, and a cut
    is after the run; with `only_threes` (a cut wherever a multiple of three ASCII digits, and then none, follows) there
    is none after it, but one before it if its length is such a multiple. No cut leaves an empty piece."""
    end = piece_end = 0
    for at in range(0, size, BLOCK):
        found = looked_for(work, stage, at, size)
        while found != NONE:
            i = at + trailing_zeros(found)
            found &= found - ONE
            if i >= end:
                if i >= piece_end:
                    piece_end = next_cut(work.cuts, i)
                end, count = _run(work, stage, i, piece_end)
                _cut_threes(work, i, end, count)
                if not only_threes:
                    cut_at(work, end)
                elif count % 3 == 0:
                    cut_at(work, i)


@helper
def cut_trailing_space(work: SplitWindow, stage: int, size: int) -> None:
    """A cut before the run of white space that ends a piece."""
    over = NONE  # whether the byte before the block may end such a run
    for at in range(0, size + 1, BLOCK):
        white = any_bit_mask(work.begun, at, 1 << stage)
        ends = get_u64(work.cuts, at // BLOCK) & (white << ONE | over)
        over = white >> np.uint64(63)
        while ends != NONE:
            _cut_before_run(work, stage, at + trailing_zeros(ends))
            ends &= ends - ONE


@helper
def _cut_before_run(work: SplitWindow, stage: int, end: int) -> None:
    """A cut before the run of white space that ends at `end`, where a piece does."""
    first, i = end, end
    while i > 0 and (first == end or not _is_cut(work.cuts, first)):
        i -= 1
        begun = get_u8(work.begun, i)
        if begun & IS_REST == 0:
            if begun >> stage & 1 == 0:
                break
            first = i
    if first < end:
        cut_at(work, first)


@helper
def cut_space_powers(work: SplitWindow, stage: int, size: int) -> None:
    """Split pieces that consist of the stage's characters, from the left, into 512 while there are as many, 256, .. 2,
    1.

    (jais-2's `\\s{512}(?!\\S)|\\s{256}(?!\\S)|..` after the other alternatives: a run of white space without its
    last character, which is what `\\s+(?!\\S)` has made a piece.)
    """
    for at in range(0, size, BLOCK):
        found = looked_for(work, stage, at, size) & get_u64(work.cuts, at // BLOCK)
        while found != NONE:
            i = at + trailing_zeros(found)
            found &= found - ONE
            if get_u8(work.begun, i + 1) >> stage & 1 != 0:  # else the piece is one character, or has others in it
                _cut_powers(work, stage, i, next_cut(work.cuts, i))


@helper
def _cut_powers(work: SplitWindow, stage: int, i: int, piece_end: int) -> None:
    end, left = _run(work, stage, i, piece_end)
    if end < piece_end:
        return
    power, taken = MOST_SPACES, 0
    while i < end:
        if get_u8(work.begun, i) & IS_REST == 0:
            if taken == 0:
                cut_at(work, i)
                while power > left:
                    power >>= 1
                taken, left = power, left - power
            taken -= 1
        i += 1


@helper
def run_matcher(
    splitter: SplitterWindow, stage: int, dead: int, text: Window, start: int, size: int, work: SplitWindow
) -> None:
    """Every match is a piece, and so is every gap between matches."""
    begin, after, end = dead + splitter.width, 0, 0
    apart = get_u8(splitter.apart, stage) != 0
    for at in range(0, size, BLOCK):
        found = looked_for(work, stage, at, size)
        if apart:
            _, letter, _, _, space = span_masks(text, start + at)
            found &= ~(space & letter >> ONE)
        if after - at >= BLOCK:
            continue
        if after > at:  # a match that began in an earlier block ends here
            found &= ~((ONE << np.uint64(after - at)) - ONE)
        while found != NONE:
            i = at + trailing_zeros(found)
            found &= found - ONE
            if i >= end:
                end = next_cut(work.cuts, i)
            row = get_i32(splitter.tables, begin + (get_u8(work.classes, i) & 254)) >> ACTION_BITS
            j, match = i + 1, 0
            while row != dead:
                entry = get_i32(splitter.tables, row + (get_u8(work.classes, j) | (j == end)))
                if entry & MATCHED != 0:
                    match = j
                row = entry >> ACTION_BITS
                j += 1
            if match > 0:
                cut_at(work, i)
                cut_at(work, match)
                after = match
                if match - at < BLOCK:
                    found &= ~((ONE << np.uint64(match - at)) - ONE)
                else:
                    found = NONE

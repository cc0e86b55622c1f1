"""Stages that search for offsets where a match may begin, and run an automaton from there (see `general`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok.kernels.jit import helper
from jittok.kernels.memory import Window, get_i32, get_u8, span_masks, trailing_zeros
from jittok.kernels.pretokenize.splitters.counting_stages import cut_at, looked_for, next_cut
from jittok.kernels.pretokenize.splitters.cutter_stage import ACTION_BITS

MATCHED = 1
"""The action of a matcher: a match ends before this character."""
BLOCK = 64
ONE, NONE = np.uint64(1), np.uint64(0)
SplitterWindow = Any  # of `general.py`
SplitWindow = Any


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

"""The search for the next special token in a text: 64 bytes at once if the tokens have few distinct beginnings, by runs
of one byte, and by their trie."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.kernels.jit import helper, inlined
from jittok.kernels.memory import Window, equal_mask, get_i32, get_i64, get_u8, get_u32, put_i64, trailing_zeros
from jittok.kernels.special.tables import GUARDED
from jittok.kernels.structures.double_array import BASE, NO_VALUE, PARENT, ROOT, UNIT, VALUE
from jittok.kernels.structures.long_keys import LONG, NONE, LongWindow, find_long, long_value, next_long
from jittok.kernels.structures.prefetch import prefetch_text
from jittok.kernels.structures.sequences import BLOCK, SequenceWindow, ones_begin, threes_begin, twos_begin

NOTHING_LITERAL, MIXED_FAILS, MIXED_IS_TEXT = 0, 1, 2
"""`PartitionWork.mixed`: no byte is literal; a guarded token that is literal in part is an error, or is text."""
STANDS, REFUSED, MIXED = 0, 1, 2
"""A token may be at an offset; it is literal text; it is literal in part."""


class SearchWindow(NamedTuple):
    """What the helpers read and write: `data`, then the arrays of SpecialTokens and Work under their names."""

    data: Window
    size: int  # bytes of data
    first: Window
    few: SequenceWindow
    runs: Window
    run_ranks: Window
    run_at: Window
    units: Window
    ids: Window
    lengths: Window
    strips: Window
    keys: Window
    heap: Window
    owners: Window
    long: LongWindow
    long_at: Window  # the long tokens that begin at each offset of the text that is searched
    long_room: int
    begun: Window  # the start of that text, at index `slot`
    slot: int
    literal: Window  # see PartitionWork
    mixed: int


@helper
def run_end(w: SearchWindow, at: int, stop: int) -> int:
    """The end of the run of one byte that begins at data[at], at most `stop`."""
    byte, end, readable = get_u8(w.data, at), at + 1, max(stop, w.size)
    if end < stop and get_u8(w.data, end) != byte:  # most runs of newlines and tabs
        return end
    while end < stop and end + 64 <= readable:
        others = ~equal_mask(w.data, end, byte)
        end += trailing_zeros(others)
        if others != np.uint64(0):
            return min(end, stop)
    while end < stop and get_u8(w.data, end) == byte:
        end += 1
    return min(end, stop)


@helper
def longest_of_run(w: SearchWindow, byte: int, size: int) -> int:
    """Rank of the longest token at the start of a run of `size` times `byte`, or NO_VALUE. All tokens that begin with
    this byte are runs of it."""
    rank: int = get_i32(w.run_ranks, get_i32(w.run_at, byte) + min(size, get_i32(w.runs, byte)))
    return rank


@helper
def know_long(w: SearchWindow, start: int, stop: int) -> bool:
    """Find the long tokens in data[start:stop], which is searched next; False if there is no capacity."""
    if w.long.count == 0 or stop - start <= LONG:
        return True
    if stop - start > w.long_room:
        return False
    put_i64(w.begun, w.slot, start)
    find_long(w.long, w.data, start, stop, w.long_at, 0)
    return True


@helper
def _longest(w: SearchWindow, at: int, stop: int) -> int:
    """Rank of the longest admitted token at data[at:stop], or NO_VALUE, in at most LONG steps. The text up to `stop`
    has gone through `know_long`."""
    node, rank, end = ROOT, NO_VALUE, stop
    if w.long.count != 0 and stop - at > LONG:
        long = get_i32(w.long_at, at - get_i64(w.begun, w.slot))
        if long != NONE:
            return long_value(w.long, long)[0]
        end = at + LONG
    for i in range(at, end):
        position = get_i32(w.units, UNIT * node + BASE) ^ get_u8(w.data, i)  # inside by the invariant of DoubleArray
        if get_i32(w.units, UNIT * position + PARENT) != node:
            break
        node = position
        here = get_i32(w.units, UNIT * node + VALUE)
        if here != NO_VALUE:
            rank = here
    return rank


@helper
def judged(w: SearchWindow, at: int, rank: int) -> int:
    """Whether a token may be at `at`: STANDS, REFUSED or MIXED."""
    if w.mixed == NOTHING_LITERAL or not get_u8(w.strips, rank) & GUARDED:
        return STANDS
    length = get_i32(w.lengths, rank)
    inside = (get_u32(w.literal, at + length) - get_u32(w.literal, at)) & 0xFFFFFFFF
    if inside == 0:
        return STANDS
    return REFUSED if inside == length or w.mixed == MIXED_IS_TEXT else MIXED


@helper
def longest_admitted(w: SearchWindow, at: int, length: int) -> int:
    """Rank of the longest token at `at`, shorter than `length`, that literal text does not refuse, or NO_VALUE. A token
    of that length is there."""
    node, rank, last = ROOT, NO_VALUE, length - 1
    if w.long.count != 0 and length > LONG:
        long = get_i32(w.long_at, at - get_i64(w.begun, w.slot))
        while long != NONE:
            rank, size = long_value(w.long, long)
            if size < length and judged(w, at, rank) != REFUSED:
                return rank
            long = next_long(w.long, long)
        rank, last = NO_VALUE, min(last, LONG)
    for i in range(last):
        position = get_i32(w.units, UNIT * node + BASE) ^ get_u8(w.data, at + i)
        if get_i32(w.units, UNIT * position + PARENT) != node:
            break
        node = position
        here = get_i32(w.units, UNIT * node + VALUE)
        if here != NO_VALUE and judged(w, at, here) != REFUSED:
            rank = here
    return rank


@helper
def _candidates(w: SearchWindow, at: int) -> np.uint64:
    """The offsets at .. at + 63 where one of the few beginnings is, as a bit mask; BLOCK bytes must be readable."""
    return ones_begin(w.few, w.data, at) | twos_begin(w.few, w.data, at) | threes_begin(w.few, w.data, at)


@inlined
def next_occurrence(
    w: SearchWindow, at: int, stop: int, block: int, mask: np.uint64
) -> tuple[int, int, int, np.uint64]:
    """(the offset of the next token from `at` on, the rank of the longest there, block, mask); (stop, NO_VALUE, ...) at
    the end. mask: the candidates among the 64 bytes from `block` on, which is not after `at`."""
    while at < stop:
        if w.few.threes and (at < block + 64 or at + BLOCK <= max(stop, w.size)):
            if at >= block + 64:
                prefetch_text(w.data, at)
                block, mask = at, _candidates(w, at)
            rest = mask >> np.uint64(at - block)
            if rest == np.uint64(0):
                at = block + 64
                continue
            at += trailing_zeros(rest)
            if at >= stop:
                break
        byte = get_u8(w.data, at)
        if get_u8(w.first, byte):
            most = get_i32(w.runs, byte)
            if most > 0:
                rank = longest_of_run(w, byte, run_end(w, at, min(stop, at + most)) - at)
            else:
                rank = _longest(w, at, stop)
            if rank != NO_VALUE:
                return at, rank, block, mask
        at += 1
    return stop, NO_VALUE, block, mask


@helper
def is_alone(w: SearchWindow, at: int, rank: int, block: int, mask: np.uint64) -> bool:
    """Whether no occurrence can overlap the token at `at`: no token begins inside of it. No occurrence before it may
    reach it."""
    length = get_i32(w.lengths, rank)
    if w.few.threes == 0 or at + length > block + 64:
        return False
    inside = (np.uint64(1) << np.uint64(length - 1)) - np.uint64(1)
    return bool(mask >> np.uint64(at - block) >> np.uint64(1) & inside == np.uint64(0))

"""Merging several words at once, a step of each in turn, so that their cache misses overlap.

The merges of one word depend on each other: the smallest rank, its neighbors, two look-ups in megabytes of pairs, the
smallest rank again. Up to LANES words take their steps together: first the two look-ups of each are prefetched, then
they are read. Within a word, the merges and their order are those of `queue`.

By hand for one lane with the word "hello", where the pairs (h e), (l l), (he ll), (hell o) have the ranks 2, 1, 3, 4:

    symbols      h e l l o        at 0 to 4; NOWHERE is before the first and after the last
    ranks        2<<8|0  -  1<<8|2  -     rank and position of the pair that begins at each symbol; - is NO_WORD
    task         the lowest word, 1<<8|2: the pair at 2
    step 1       symbol 2 = ll, its next symbol is 4; the pairs (ll o) and (e ll) are prefetched, none merges
    ranks        2<<8|0  -  -  -         the task is the pair at 0
    step 2       symbol 0 = he, next 2; (he ll) has rank 3:  3<<8|0
    step 3       symbol 0 = hell, next 4; (hell o) has rank 4:  4<<8|0
    step 4       symbol 0 = hello, next NOWHERE: no pair is left, and the lane is done

Each step does this for all lanes that are not done, and reads nothing that was not prefetched a round before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.kernels.jit import OutI32, OutU8, OutU32, OutU64, helper, inlined
from jittok.kernels.memory import (
    Window,
    get_i32,
    get_u8,
    get_u32,
    get_u64,
    lowest_16,
    lowest_32,
    put_i32,
    put_u8,
    put_u32,
    put_u64,
    set_three_lowest_16,
    set_three_lowest_32,
    window,
)
from jittok.kernels.merging.queue import NO_WORD, SIXTEEN
from jittok.kernels.structures.pair_table import PairTable, find_at, pair_key, pair_slot, prefetch_line

LANES, MOST_SYMBOLS = 16, 31
"""Words at once; symbols a word."""
NOWHERE = 31
"""The place before the first symbol and after the last one: the symbol there merges with nothing, so what is
noted of a pair there is NO_WORD or like it."""
_ROOM, _BEFORE = 32, 32
_8, _24 = np.uint64(8), np.uint64(24)
_LOW, _RANKS = np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFF00)
NO_RANK = 1 << 31
"""Ranks are below 1 << 23, so a word of `ranks` that is no less is no pair's."""


class LaneWork(NamedTuple):
    """Scratch for LANES words of up to MOST_SYMBOLS symbols."""

    symbols: OutI32  # [LANES * 32]; -1 at NOWHERE
    merged: OutU32  # [LANES * 32] the symbol that each pair becomes
    ranks: OutU32  # [LANES * 32] rank << 8 | position of each pair; the upper 16 only for a wide lane
    wide: OutU8  # [LANES] 1 for a word of more than 16 symbols
    neighbours: OutU8  # [LANES * 64] next symbol; from 32 on the previous one
    steps: OutU64  # [LANES * 4] for both pairs of a pending step: the key; the slot of its search, see `pair_slot`
    asked: OutU64  # [LANES * 64] prefetched first pairs, 30 a lane and one more: key; slot << 16 | lane << 8 | position
    tasks: OutU64  # [LANES] for each active lane: its smallest rank << 16 | position << 8 | lane


class LaneWindow(NamedTuple):
    """The same, and the pair table, as windows."""

    symbols: Window
    merged: Window
    ranks: Window
    wide: Window
    neighbours: Window
    steps: Window
    asked: Window
    tasks: Window
    slots: Window
    filter: Window
    slot_bits: int
    filter_bits: int


def make_lane_work() -> LaneWork:
    """Scratch of one thread."""
    return LaneWork(
        np.full(LANES * _ROOM, -1, np.int32),
        np.zeros(LANES * _ROOM, np.uint32),
        np.zeros(LANES * _ROOM, np.uint32),
        np.zeros(LANES, np.uint8),
        np.zeros(LANES * 64, np.uint8),
        np.zeros(LANES * 4, np.uint64),
        np.zeros(LANES * 64, np.uint64),
        np.zeros(LANES, np.uint64),
    )


@helper
def open_lanes(work: LaneWork, pairs: PairTable) -> LaneWindow:
    """Windows onto the arrays."""
    return LaneWindow(
        window(work.symbols),
        window(work.merged),
        window(work.ranks),
        window(work.wide),
        window(work.neighbours),
        window(work.steps),
        window(work.asked),
        window(work.tasks),
        window(pairs.slots),
        window(pairs.filter),
        pairs.slot_bits,
        pairs.filter_bits,
    )


@inlined
def put_lane_symbol(own: LaneWindow, lane: int, position: int, symbol: int) -> None:
    """Set one of the initial symbols of a lane."""
    put_i32(own.symbols, _ROOM * lane + position, symbol)


@inlined
def symbol_at(own: LaneWindow, lane: int, position: int) -> int:
    """The symbol at a position."""
    return get_i32(own.symbols, _ROOM * lane + position)


@inlined
def next_symbol(own: LaneWindow, lane: int, position: int) -> int:
    """The position of the next symbol, or NOWHERE."""
    return get_u8(own.neighbours, 64 * lane + position)


@inlined
def _word_of(f: np.uint64, position: int) -> int:
    """rank << 8 | position; NEVER or more for NO_PAIR, whose upper half is all ones."""
    return np.int64(f >> _24 & _RANKS) | position


@inlined
def _clear_half(own: LaneWindow, lane: int, first: int) -> None:
    for k in range(first, first + SIXTEEN):
        put_u32(own.ranks, _ROOM * lane + k, NO_WORD)
        put_u8(own.neighbours, 64 * lane + k, k + 1)
        put_u8(own.neighbours, 64 * lane + _BEFORE + k, k - 1 & NOWHERE)


@inlined
def clear_lane(own: LaneWindow, lane: int, count: int) -> None:
    """Initialize a lane for `count` symbols: no pair merges, each symbol's neighbors are the adjacent ones."""
    _clear_half(own, lane, 0)
    if count > SIXTEEN:
        _clear_half(own, lane, SIXTEEN)
    end_lane(own, lane, count)


@inlined
def end_lane(own: LaneWindow, lane: int, count: int) -> None:
    """Shorten a lane to `count` symbols, at most as many as it was initialized for."""
    put_u8(own.wide, lane, int(count > SIXTEEN))
    put_u8(own.neighbours, 64 * lane + count - 1, NOWHERE)


@inlined
def note_lane_pair(own: LaneWindow, lane: int, f: np.uint64, position: int) -> None:
    """Record the pair of symbols `position` and `position` + 1 (f: see `find_pair`), after `clear_lane`."""
    put_u32(own.merged, _ROOM * lane + position, np.int64(f & _LOW))
    put_u32(own.ranks, _ROOM * lane + position, _word_of(f, position))


@inlined
def prefetch_lane_pair(own: LaneWindow, asked: int, lane: int, position: int, left: int, right: int) -> int:
    """Prefetch the pair of symbols `position` and `position` + 1, unless the filter excludes it. Returns the number of
    prefetched pairs."""
    key = pair_key(left, right)
    at = pair_slot(own.filter, own.slot_bits, own.filter_bits, key)
    prefetch_line(own.slots, at)
    put_u64(own.asked, 2 * asked, key)
    put_u64(own.asked, 2 * asked + 1, np.uint64(at << 16 | lane << 8 | position))
    return asked + (at >= 0)


@helper
def resolve_lane_pairs(own: LaneWindow, asked: int) -> None:
    """Record the first `asked` pairs that were prefetched."""
    for k in range(asked):
        what = np.int64(get_u64(own.asked, 2 * k + 1))
        f = find_at(own.slots, own.slot_bits, what >> 16, get_u64(own.asked, 2 * k))
        note_lane_pair(own, what >> 8 & 0xFF, f, what & 0xFF)


@inlined
def _ask(own: LaneWindow, step: int, left: int, right: int) -> None:
    """Start the look-up of a pair: note its key, and prefetch its slot unless the filter excludes it."""
    key = pair_key(left, right)
    at = pair_slot(own.filter, own.slot_bits, own.filter_bits, key)
    prefetch_line(own.slots, at)
    put_u64(own.steps, step, key)
    put_u64(own.steps, step + 1, np.uint64(at))


@inlined
def _answer(own: LaneWindow, lane: int, step: int, position: int) -> int:
    f = find_at(own.slots, own.slot_bits, np.int64(get_u64(own.steps, step + 1)), get_u64(own.steps, step))
    put_u32(own.merged, _ROOM * lane + position, np.int64(f & _LOW))
    return _word_of(f, position)


@helper
def merge_lanes(own: LaneWindow, lanes: int) -> None:
    """Merge the words of the first `lanes` lanes, whose pairs are recorded. The result of a word is a linked list:
    symbol 0, the next one by `neighbours`, and so on up to NOWHERE."""
    symbols, neighbours = own.symbols, own.neighbours
    busy = 0
    for lane in range(lanes):
        row = _ROOM * lane
        best = lowest_16(own.ranks, row) if get_u8(own.wide, lane) == 0 else lowest_32(own.ranks, row)
        if best < NO_RANK:
            put_u64(own.tasks, busy, np.uint64(best) << _8 | np.uint64(lane))
            busy += 1
    while busy > 0:
        for at in range(busy):
            task = np.int64(get_u64(own.tasks, at))
            lane, k = task & 0xFF, task >> 8 & 0xFF
            new = get_u32(own.merged, _ROOM * lane + k)
            row = 64 * lane
            right = get_u8(neighbours, row + k)
            after = get_u8(neighbours, row + right)
            before = get_u8(neighbours, row + _BEFORE + k)
            put_i32(symbols, _ROOM * lane + k, new)
            put_u8(neighbours, row + k, after)
            put_u8(neighbours, row + _BEFORE + after, k)
            put_u64(own.tasks, at, np.uint64(task & 0xFFFF | right << 16 | before << 24))
            _ask(own, 4 * lane, new, get_i32(symbols, _ROOM * lane + after))
            _ask(own, 4 * lane + 2, get_i32(symbols, _ROOM * lane + before), new)
        left = 0
        for at in range(busy):
            task = np.int64(get_u64(own.tasks, at))
            lane, k, right, before = task & 0xFF, task >> 8 & 0xFF, task >> 16 & 0xFF, task >> 24
            mine, other = _answer(own, lane, 4 * lane, k), _answer(own, lane, 4 * lane + 2, before)
            if get_u8(own.wide, lane) != 0:
                best = set_three_lowest_32(own.ranks, _ROOM * lane, right, NO_WORD, k, mine, before, other)
            else:
                best = set_three_lowest_16(own.ranks, _ROOM * lane, right, NO_WORD, k, mine, before, other)
            put_u64(own.tasks, left, np.uint64(best << 8 | lane))
            left += best < NO_RANK
        busy = left

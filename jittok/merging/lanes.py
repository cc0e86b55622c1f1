"""Merging several words at once, a step of each in turn, so that their waits for memory overlap.

One word's merges are a chain: the smallest rank, its neighbours, two look-ups in megabytes of pairs, the smallest rank
again. LANES words take their steps together: one operation finds the smallest rank of each, joins the two symbols, and
asks the filter about the two new pairs (`merge_round`). Only pairs that may be there are looked up. What is merged, and
in which order within a word, is what `merge_queue` does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import OutI32, OutU32, OutU64, helper, inlined
from jittok._raw import (
    Window,
    get_i32,
    get_u32,
    get_u64,
    leading_zeros,
    merge_round,
    put_i32,
    put_u32,
    put_u64,
    trailing_zeros,
    window,
)
from jittok.merging.queue import NO_WORD
from jittok.structures.pair_table import PAIR_MIX, PairTable, expect_line, find_at, pair_key, pair_place

LANES, MOST_SYMBOLS = 16, 31
"""Words at once; symbols a word."""
NOWHERE = 31
"""The place in front of the first symbol and behind the last one: the symbol there merges with nothing, so what is
noted of a pair there is NO_WORD or like it."""
_ROOM, _LINE = 32, 64
_24, _0, _1 = np.uint64(24), np.uint64(0), np.uint64(1)
_LOW, _RANKS, _END, _ALL = np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFF00), np.uint64(1 << NOWHERE), ~np.uint64(0)


class LaneWork(NamedTuple):
    """Scratch for LANES words of up to MOST_SYMBOLS symbols; element LANES * k + lane belongs to place k of a lane.
    Between words no place has a rank: merging ends so, and `forget_lane` is for what was not merged."""

    symbols: OutI32  # [32 * LANES]; -1 at NOWHERE
    merged: OutU32  # [32 * LANES] what each pair becomes
    ranks: OutU32  # [32 * LANES] rank << 8 | place of each pair, or NO_WORD or like it; below 1 << 31 if it is one
    alive: OutU32  # [LANES] a bit for each place that has a symbol
    asked: OutU64  # [64 * LANES] first pairs, 30 a lane and one more: key; line << 16 | lane << 8 | place
    keys: OutU64  # [2 * LANES] of pairs to be looked up: what `pair_key` says
    lines: OutU64  # [2 * LANES] where their search begins
    places: OutU32  # [2 * LANES] the elements that they belong to


class LaneWindow(NamedTuple):
    """The same, and the pair table, as windows."""

    symbols: Window
    merged: Window
    ranks: Window
    alive: Window
    asked: Window
    keys: Window
    lines: Window
    places: Window
    slots: Window
    filter: Window
    slot_bits: int
    filter_bits: int


def make_lane_work() -> LaneWork:
    """Scratch of one thread."""
    return LaneWork(
        _in_lines(_ROOM * LANES, np.int32, -1),
        _in_lines(_ROOM * LANES, np.uint32, NO_WORD),
        _in_lines(_ROOM * LANES, np.uint32, NO_WORD),
        _in_lines(LANES, np.uint32, 0),
        np.zeros(64 * LANES, np.uint64),
        _in_lines(2 * LANES, np.uint64, 0),
        _in_lines(2 * LANES, np.uint64, 0),
        _in_lines(2 * LANES, np.uint32, 0),
    )


def _in_lines(count: int, kind: type[Any], value: int) -> NDArray[Any]:
    """An array that begins where a cache line does: a row of 16 lanes is one."""
    longer = np.full(count + _LINE, value, kind)
    first = -longer.ctypes.data % _LINE // longer.itemsize
    return longer[first : first + count]


@helper
def open_lanes(work: LaneWork, pairs: PairTable) -> LaneWindow:
    """Windows onto the arrays."""
    return LaneWindow(
        window(work.symbols),
        window(work.merged),
        window(work.ranks),
        window(work.alive),
        window(work.asked),
        window(work.keys),
        window(work.lines),
        window(work.places),
        window(pairs.slots),
        window(pairs.filter),
        pairs.slot_bits,
        pairs.filter_bits,
    )


@helper
def forget_lane(own: LaneWindow, lane: int) -> None:
    """No place of a lane has a rank."""
    for place in range(_ROOM):
        put_u32(own.ranks, LANES * place + lane, NO_WORD)


@helper
def forget_lanes(own: LaneWindow) -> None:
    """The same of all lanes."""
    for lane in range(LANES):
        forget_lane(own, lane)


@inlined
def put_lane_symbol(own: LaneWindow, lane: int, place: int, symbol: int) -> None:
    """One of the symbols that a lane begins with."""
    put_i32(own.symbols, LANES * place + lane, symbol)


@inlined
def symbol_at(own: LaneWindow, lane: int, place: int) -> int:
    """The symbol that stands at a place."""
    return get_i32(own.symbols, LANES * place + lane)


@inlined
def next_place(own: LaneWindow, lane: int, place: int) -> int:
    """The place of the next symbol, or NOWHERE."""
    return trailing_zeros(np.uint64(get_u32(own.alive, lane)) & (_ALL << np.uint64(place + 1)) | _END)


@inlined
def _word_of(f: np.uint64, place: int) -> int:
    """rank << 8 | place; NEVER or more for NO_PAIR, whose upper half is all ones."""
    return np.int64(f >> _24 & _RANKS) | place


@inlined
def fill_lane(own: LaneWindow, lane: int, count: int) -> None:
    """There are `count` symbols in a lane."""
    put_u32(own.alive, lane, (1 << count) - 1)


@inlined
def note_lane_pair(own: LaneWindow, lane: int, f: np.uint64, place: int) -> None:
    """The pair of symbols place and place + 1 (see `find_pair`)."""
    put_u32(own.merged, LANES * place + lane, np.int64(f & _LOW))
    put_u32(own.ranks, LANES * place + lane, _word_of(f, place))


@inlined
def ask_lane_pair(own: LaneWindow, asked: int, lane: int, place: int, left: int, right: int) -> int:
    """Ask for the memory of the pair of symbols place and place + 1, unless the filter knows it is none; how many pairs
    are asked for then."""
    key = pair_key(left, right)
    at = pair_place(own.filter, own.slot_bits, own.filter_bits, key)
    expect_line(own.slots, at)
    put_u64(own.asked, 2 * asked, key)
    put_u64(own.asked, 2 * asked + 1, np.uint64(at << 16 | lane << 8 | place))
    return asked + (at >= 0)


@helper
def answer_lane_pairs(own: LaneWindow, asked: int) -> None:
    """Note the first `asked` pairs that were asked for."""
    for k in range(asked):
        what = np.int64(get_u64(own.asked, 2 * k + 1))
        f = find_at(own.slots, own.slot_bits, what >> 16, get_u64(own.asked, 2 * k))
        note_lane_pair(own, what >> 8 & 0xFF, f, what & 0xFF)


@helper
def merge_lanes(own: LaneWindow, lanes: int) -> None:
    """Merge the words of the first `lanes` lanes, whose pairs are noted; the others have no ranks. What is left of a
    word: symbols 0, the one behind it by `next_place`, and so on up to NOWHERE."""
    places = _0
    for lane in range(lanes):
        places |= np.uint64(get_u32(own.alive, lane))
    rows = 63 - leading_zeros(places)  # the last place has no pair
    line_shift, bit_shift = 66 - own.slot_bits, 64 - own.filter_bits
    while True:
        found = merge_round(
            own.symbols, own.merged, own.ranks, own.alive, rows,
            own.filter, line_shift, bit_shift, PAIR_MIX, own.keys, own.lines, own.places,
        )  # fmt: skip
        if found < 0:
            break
        pending = np.uint64(found)
        while pending != _0:
            k = trailing_zeros(pending)
            pending &= pending - _1
            f = find_at(own.slots, own.slot_bits, np.int64(get_u64(own.lines, k)), get_u64(own.keys, k))
            at = get_u32(own.places, k)
            put_u32(own.merged, at, np.int64(f & _LOW))
            put_u32(own.ranks, at, _word_of(f, at // LANES))

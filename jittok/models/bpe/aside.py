"""New short words set aside, to be merged together: room is left for their ids, and what follows moves up then."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok._jit import OutI64, OutU64, helper, inlined
from jittok._raw import (
    Window,
    copy_four,
    get_i32,
    get_i64,
    get_u8,
    get_u64,
    put_i64,
    put_u64,
    window,
)
from jittok.models.bpe.words import WordWindow, put_symbol
from jittok.structures.merge_lanes import (
    LANES,
    NOWHERE,
    LaneWindow,
    LaneWork,
    clear_lane,
    make_lane_work,
    merge_lanes,
    next_place,
    note_lane_pair,
    open_lanes,
    put_lane_symbol,
    symbol_at,
)
from jittok.structures.pair_table import PairTable
from jittok.structures.piece_cache import SHORT_BITS, CacheWindow, hash_short, short_home, short_line, write_ids

MOST = 2 * LANES
"""Words aside. A new word is often met again at once (a name in code), and shares the lane then."""
_ASIDE, _IN_LANES = 0, 1


class AsideWork(NamedTuple):
    """Scratch of one thread."""

    lanes: LaneWork
    keys: OutU64  # [2 * LANES] the words in the lanes, see `put_key`
    rooms: OutI64  # [3 * MOST] where in the ids the room for each begins and ends, and its lane
    state: OutI64  # [2] how many words are aside; how many lanes hold them


class AsideWindow(NamedTuple):
    """The same as windows."""

    lanes: LaneWindow
    keys: Window
    rooms: Window
    state: Window


def make_aside_work() -> AsideWork:
    """Scratch without a word."""
    return AsideWork(
        make_lane_work(), np.zeros(2 * LANES, np.uint64), np.zeros(3 * MOST, np.int64), np.zeros(2, np.int64)
    )


@helper
def open_aside(work: AsideWork, pairs: PairTable) -> AsideWindow:
    """Windows onto the arrays; no word is aside."""
    work.state[_ASIDE], work.state[_IN_LANES] = 0, 0
    return AsideWindow(open_lanes(work.lanes, pairs), window(work.keys), window(work.rooms), window(work.state))


@inlined
def has_room(aside: AsideWindow) -> bool:
    """Whether one more word can be set aside."""
    return get_i64(aside.state, _ASIDE) < MOST and get_i64(aside.state, _IN_LANES) < LANES


@inlined
def set_aside(
    aside: AsideWindow,
    words: WordWindow,
    text: Window,
    start: int,
    stop: int,
    low: np.uint64,
    high: np.uint64,
    count: int,
) -> int:
    """Keep text[start:stop], 2 to 15 bytes, with byte encoding; the count behind the room for its ids. The caller has
    asked `has_room`."""
    word, lanes, lane = get_i64(aside.state, _ASIDE), get_i64(aside.state, _IN_LANES), 0
    while lane < lanes and (get_u64(aside.keys, 2 * lane) != low or get_u64(aside.keys, 2 * lane + 1) != high):
        lane += 1
    end = count + 2 * (stop - start)
    put_i64(aside.state, _ASIDE, word + 1)
    put_i64(aside.rooms, 3 * word, count)
    put_i64(aside.rooms, 3 * word + 1, end)
    put_i64(aside.rooms, 3 * word + 2, lane)
    if lane == lanes:
        put_i64(aside.state, _IN_LANES, lanes + 1)
        put_u64(aside.keys, 2 * lane, low)
        put_u64(aside.keys, 2 * lane + 1, high)
        _enter(aside.lanes, words, lane, text, start, stop)
    return end  # type: ignore[return-value]


@inlined
def _enter(lanes: LaneWindow, words: WordWindow, lane: int, text: Window, start: int, stop: int) -> None:
    """The symbols of text[start:stop], and their pairs, to a lane."""
    clear_lane(lanes, lane, stop - start)
    before = get_u8(text, start)
    put_lane_symbol(lanes, lane, 0, get_i32(words.byte_symbols, before))
    for k in range(1, stop - start):
        byte = get_u8(text, start + k)
        put_lane_symbol(lanes, lane, k, get_i32(words.byte_symbols, byte))
        note_lane_pair(lanes, lane, get_u64(words.byte_pairs, before << 8 | byte), k - 1)
        before = byte


@helper
def finish_words(aside: AsideWindow, words: WordWindow, cache: CacheWindow, ids: Window, count: int) -> int:
    """Merge all words that are aside, write their ids, move up what follows them, and keep them; the new count.

    Ids take two a byte at most, so each word's fit the room that was left, and everything moves to the front. A copy of
    four may write three too many, which a room of at least four behind it takes, or the slack behind the last ids.
    """
    number, lanes, kept = get_i64(aside.state, _ASIDE), get_i64(aside.state, _IN_LANES), 0
    if number == 0:
        return count
    put_i64(aside.state, _ASIDE, 0)
    put_i64(aside.state, _IN_LANES, 0)
    merge_lanes(aside.lanes, lanes)
    to = get_i64(aside.rooms, 0)
    for word in range(number):
        begin, k, lane = to, 0, get_i64(aside.rooms, 3 * word + 2)
        while k != NOWHERE:
            to = put_symbol(words, symbol_at(aside.lanes, lane, k), ids, to)
            k = next_place(aside.lanes, lane, k)
        if lane == kept:  # its first word
            _keep(cache, get_u64(aside.keys, 2 * lane), get_u64(aside.keys, 2 * lane + 1), ids, begin, to)
            kept += 1
        source = get_i64(aside.rooms, 3 * word + 1)
        until = get_i64(aside.rooms, 3 * word + 3) if word + 1 < number else count
        for k in range(0, until - source, 4):
            copy_four(ids, to + k, ids, source + k)
        to += until - source
    return to


@helper
def _keep(cache: CacheWindow, low: np.uint64, high: np.uint64, ids: Window, start: int, stop: int) -> None:
    """Ids of a short piece to its slot, which other pieces may have taken."""
    line = short_line(hash_short(low, high), get_i64(cache.state, SHORT_BITS))
    at, kept = short_home(cache, low, high, line)
    if not kept:
        put_u64(cache.short, at, low)
        put_u64(cache.short, at + 1, high)
    write_ids(cache, cache.short, at + 2, 2, ids, start, stop)

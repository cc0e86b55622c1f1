"""Deferred words: new words are collected, and up to 16 different ones are merged at once, one per vector lane.

Space for their ids is reserved among the ids. When they are merged, the ids after them move up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.common.unicode.characters import SPACE_BYTE
from jittok.kernels.jit import OutI64, OutU64, helper, inlined
from jittok.kernels.memory import (
    Window,
    copy_four,
    get_i32,
    get_i64,
    get_u8,
    get_u64,
    get_word,
    put_i32,
    put_i64,
    put_u64,
    window,
)
from jittok.kernels.merging.lanes import (
    LANES,
    NOWHERE,
    LaneWindow,
    LaneWork,
    clear_lane,
    end_lane,
    make_lane_work,
    merge_lanes,
    next_symbol,
    note_lane_pair,
    open_lanes,
    prefetch_lane_pair,
    put_lane_symbol,
    resolve_lane_pairs,
    symbol_at,
)
from jittok.kernels.models.bpe.words.word import MARK_BYTES, BpeWordWindow, put_symbol
from jittok.kernels.pretoken_cache.lookup import ALL_WHOLE
from jittok.kernels.pretoken_cache.records import DONE, RunWindow
from jittok.kernels.pretoken_cache.tables import (
    MIDDLE_BITS,
    SHORT_BITS,
    CacheWindow,
    Key,
    hash_middle,
    hash_short,
    middle_home,
    middle_slot,
    put_middle_key,
    short_home,
    short_line,
    write_ids,
)
from jittok.kernels.structures.bytes_table import ABSENT
from jittok.kernels.structures.char_table import find_character
from jittok.kernels.structures.pair_table import PairTable
from jittok.kernels.structures.utf8 import lead_length

MOST_DEFERRED = 2 * LANES
"""The most deferred words. A new word often repeats soon (a name in code), and its occurrences share a lane."""
IDS_PER_BYTE, IDS_PER_CHARACTER_BYTE = 2, 3
"""Ids reserved for each byte of a word, if byte-level and if not: then a space may be three."""
_DEFERRED, _IN_LANES, _PREFETCHED, _FIRST_END, _STATES = range(5)
NO_BYTE = 0x100
"""The value of the byte before a word."""
_0, _1, _8, _56 = (np.uint64(k) for k in (0, 1, 8, 56))


class DeferredWork(NamedTuple):
    """Scratch of one thread."""

    lanes: LaneWork
    keys: OutU64  # [4 * LANES] the words in the lanes: keys of the pre-token cache, padded with zeros
    rooms: OutI64  # [3 * MOST_DEFERRED] start and stop of the space reserved for each word, and its lane
    state: OutI64  # [_STATES] deferred words; used lanes; prefetched pairs; the first fragment that ends after a word


class DeferredWindow(NamedTuple):
    """The same as windows."""

    lanes: LaneWindow
    keys: Window
    rooms: Window
    state: Window


def make_deferred_work() -> DeferredWork:
    """Scratch without a word."""
    return DeferredWork(
        make_lane_work(),
        np.zeros(4 * LANES, np.uint64),
        np.zeros(3 * MOST_DEFERRED, np.int64),
        np.zeros(_STATES, np.int64),
    )


@helper
def open_deferred(work: DeferredWork, pairs: PairTable) -> DeferredWindow:
    """Windows onto the arrays; no word is deferred."""
    work.state[:] = 0
    return DeferredWindow(open_lanes(work.lanes, pairs), window(work.keys), window(work.rooms), window(work.state))


@inlined
def has_free_lane(deferred: DeferredWindow) -> bool:
    """Whether one more word can be deferred."""
    return get_i64(deferred.state, _DEFERRED) < MOST_DEFERRED and get_i64(deferred.state, _IN_LANES) < LANES


@helper
def discard_words(deferred: DeferredWindow) -> int:
    """Discard all deferred words; returns the first fragment whose end is after one, or ALL_WHOLE."""
    number = get_i64(deferred.state, _DEFERRED)
    put_i64(deferred.state, _DEFERRED, 0)
    put_i64(deferred.state, _IN_LANES, 0)
    put_i64(deferred.state, _PREFETCHED, 0)
    return get_i64(deferred.state, _FIRST_END) if number > 0 else ALL_WHOLE


@inlined
def _lane_of(deferred: DeferredWindow, key: Key) -> int:
    """The lane that holds a word, or else the first free one."""
    lanes, lane = get_i64(deferred.state, _IN_LANES), 0
    while lane < lanes and (
        get_u64(deferred.keys, 4 * lane) != key[0]
        or get_u64(deferred.keys, 4 * lane + 1) != key[1]
        or get_u64(deferred.keys, 4 * lane + 2) != key[2]
        or get_u64(deferred.keys, 4 * lane + 3) != key[3]
    ):
        lane += 1
    return lane


@inlined
def _take_lane(deferred: DeferredWindow, lane: int, key: Key) -> None:
    put_i64(deferred.state, _IN_LANES, lane + 1)
    put_u64(deferred.keys, 4 * lane, key[0])
    put_u64(deferred.keys, 4 * lane + 1, key[1])
    put_u64(deferred.keys, 4 * lane + 2, key[2])
    put_u64(deferred.keys, 4 * lane + 3, key[3])


@inlined
def _reserve_ids(deferred: DeferredWindow, run: RunWindow, lane: int, count: int, capacity: int) -> int:
    """Record a word and reserve space for its ids; the count after it."""
    word = get_i64(deferred.state, _DEFERRED)
    if word == 0:
        put_i64(deferred.state, _FIRST_END, get_i64(run.state, DONE) + 1)
    put_i64(deferred.state, _DEFERRED, word + 1)
    put_i64(deferred.rooms, 3 * word, count)
    put_i64(deferred.rooms, 3 * word + 1, count + capacity)
    put_i64(deferred.rooms, 3 * word + 2, lane)
    return count + capacity


@inlined
def defer_bytes(
    deferred: DeferredWindow,
    words: BpeWordWindow,
    run: RunWindow,
    text: Window,
    start: int,
    stop: int,
    key: Key,
    count: int,
) -> int:
    """Byte-level: defer the word text[start:stop] of 2 to LONGEST_MIDDLE bytes; the count after the space for its ids.
    key: of the pre-token cache. The caller has checked `has_free_lane`."""
    lane = _lane_of(deferred, key)
    if lane == get_i64(deferred.state, _IN_LANES):
        _take_lane(deferred, lane, key)
        clear_lane(deferred.lanes, lane, stop - start)
        before = get_u8(text, start)
        put_lane_symbol(deferred.lanes, lane, 0, get_i32(words.byte_symbols, before))
        for k in range(1, stop - start):
            byte = get_u8(text, start + k)
            put_lane_symbol(deferred.lanes, lane, k, get_i32(words.byte_symbols, byte))
            note_lane_pair(deferred.lanes, lane, get_u64(words.byte_pairs, before << 8 | byte), k - 1)
            before = byte
    return _reserve_ids(deferred, run, lane, count, IDS_PER_BYTE * (stop - start))


@helper
def defer_characters(
    deferred: DeferredWindow,
    words: BpeWordWindow,
    run: RunWindow,
    text: Window,
    start: int,
    stop: int,
    key: Key,
    count: int,
) -> int:
    """Not byte-level: the same for valid UTF-8 whose spaces mean U+2581. Prefetches the first pairs. Returns -1 if a
    character has no symbol; nothing is deferred then."""
    lane = _lane_of(deferred, key)
    if lane == get_i64(deferred.state, _IN_LANES):
        lanes, asked, symbols, i = deferred.lanes, get_i64(deferred.state, _PREFETCHED), 0, start
        clear_lane(lanes, lane, stop - start)
        before, last = NO_BYTE, 0
        while i < stop:
            byte, size = get_u8(text, i), 1
            if byte == SPACE_BYTE:
                symbol = find_character(words.characters, MARK_BYTES)
            elif byte < 0x80:
                symbol = get_i32(words.byte_symbols, byte)
            else:
                size = lead_length(byte)
                symbol = find_character(words.characters, get_word(text, i) & ((_1 << np.uint64(8 * size)) - _1))
            if symbol < 0:
                return -1
            put_lane_symbol(lanes, lane, symbols, symbol)
            if before < 0x80 and byte < 0x80:
                note_lane_pair(lanes, lane, get_u64(words.byte_pairs, before << 8 | byte), symbols - 1)
            elif symbols > 0:
                asked = prefetch_lane_pair(lanes, asked, lane, symbols - 1, last, symbol)
            before, last = byte, symbol
            symbols += 1
            i += size
        end_lane(lanes, lane, symbols)
        put_i64(deferred.state, _PREFETCHED, asked)
        _take_lane(deferred, lane, key)
    return _reserve_ids(deferred, run, lane, count, IDS_PER_CHARACTER_BYTE * (stop - start))


@helper
def flush_words(
    deferred: DeferredWindow, words: BpeWordWindow, cache: CacheWindow, run: RunWindow, ids: Window, count: int
) -> int:
    """Merge all deferred words, write and cache their ids, and close the gaps; the new count.

    A word never has more ids than were reserved, so everything moves toward the front. A copy of four ids may write
    three too many: into the next reserved space, which has at least four, or into the slack after the last ids. The
    ends of fragments move along.
    """
    number, lanes, kept = get_i64(deferred.state, _DEFERRED), get_i64(deferred.state, _IN_LANES), 0
    if number == 0:
        return count
    end, last = get_i64(deferred.state, _FIRST_END), get_i64(run.state, DONE)
    put_i64(deferred.state, _DEFERRED, 0)
    put_i64(deferred.state, _IN_LANES, 0)
    resolve_lane_pairs(deferred.lanes, get_i64(deferred.state, _PREFETCHED))
    put_i64(deferred.state, _PREFETCHED, 0)
    merge_lanes(deferred.lanes, lanes)
    to = get_i64(deferred.rooms, 0)
    for word in range(number):
        begin, lane = to, get_i64(deferred.rooms, 3 * word + 2)
        to = _put_word(deferred, words, lane, ids, to)
        if lane == kept:  # the first word of this lane
            _keep(cache, _key_of(deferred, lane), ids, begin, to)
            kept += 1
        source = get_i64(deferred.rooms, 3 * word + 1)
        until = get_i64(deferred.rooms, 3 * word + 3) if word + 1 < number else count
        for k in range(0, until - source, 4):
            copy_four(ids, to + k, ids, source + k)
        while end <= last and get_i64(run.ends, end) <= until:
            put_i64(run.ends, end, get_i64(run.ends, end) - source + to)
            end += 1
        to += until - source
    return to


@inlined
def _put_word(deferred: DeferredWindow, words: BpeWordWindow, lane: int, ids: Window, count: int) -> int:
    """Write the ids of a merged word; the new count."""
    begin, k = count, 0
    while k != NOWHERE:
        symbol = symbol_at(deferred.lanes, lane, k)
        if words.byte_encode == 0 and symbol >= words.tokens:
            return _put_bytes(deferred, words, lane, ids, begin)
        count = put_symbol(words, symbol, ids, count)
        k = next_symbol(deferred.lanes, lane, k)
    return count


@helper
def _put_bytes(deferred: DeferredWindow, words: BpeWordWindow, lane: int, ids: Window, count: int) -> int:
    """The same for words with a symbol that is no token: it becomes the tokens of its bytes, three for U+2581."""
    i, position, k = 0, 0, 0
    size_at = 4 * lane + (1 if get_u64(deferred.keys, 4 * lane + 3) == _0 else 3)
    length = np.int64(get_u64(deferred.keys, size_at) >> _56)
    while k != NOWHERE:
        symbol, after = symbol_at(deferred.lanes, lane, k), next_symbol(deferred.lanes, lane, k)
        if symbol < words.tokens:
            put_i32(ids, count, symbol)
            count += 1
        while position != after and i < length:  # the bytes of one character
            byte = _byte_of(deferred, lane, i)
            size = lead_length(byte)
            if symbol >= words.tokens and byte == SPACE_BYTE:
                for j in range(3):
                    count = _put_byte(words, np.int64(MARK_BYTES >> np.uint64(8 * j) & np.uint64(0xFF)), ids, count)
            elif symbol >= words.tokens:
                for j in range(size):
                    count = _put_byte(words, _byte_of(deferred, lane, i + j), ids, count)
            i += size
            position += 1
        k = after
    return count


@inlined
def _byte_of(deferred: DeferredWindow, lane: int, i: int) -> int:
    """Byte i of a word, read from its key."""
    eight = get_u64(deferred.keys, 4 * lane + (i >> 3))
    return np.int64(eight >> (_8 * np.uint64(i & 7)) & np.uint64(0xFF))


@inlined
def _put_byte(words: BpeWordWindow, byte: int, ids: Window, count: int) -> int:
    token = get_i32(words.byte_ids, byte)
    if token == ABSENT:
        return count
    put_i32(ids, count, token)
    return count + 1


@inlined
def _key_of(deferred: DeferredWindow, lane: int) -> Key:
    a, b = get_u64(deferred.keys, 4 * lane), get_u64(deferred.keys, 4 * lane + 1)
    return a, b, get_u64(deferred.keys, 4 * lane + 2), get_u64(deferred.keys, 4 * lane + 3)


@helper
def _keep(cache: CacheWindow, key: Key, ids: Window, start: int, stop: int) -> None:
    """Write ids to a word's slot of the cache, which another word may have taken meanwhile."""
    a, b, c, d = key
    if d == _0:
        line = short_line(hash_short(a, b), get_i64(cache.state, SHORT_BITS))
        at, kept = short_home(cache, a, b, line)
        if not kept:
            put_u64(cache.short, at, a)
            put_u64(cache.short, at + 1, b)
        write_ids(cache, cache.short, at + 2, 2, ids, start, stop)
    else:
        slot = middle_slot(hash_middle(a, b, c, d), get_i64(cache.state, MIDDLE_BITS))
        at, kept = middle_home(cache, a, b, c, d, slot)
        if not kept:
            put_middle_key(cache, at, a, b, c, d)
        write_ids(cache, cache.middle, at + 4, 4, ids, start, stop)

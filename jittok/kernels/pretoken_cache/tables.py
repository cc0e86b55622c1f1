"""The pre-token cache: pre-tokens that were encoded before, and their ids. Bounded, private to one thread, persistent.

Three tables by length, all of 64-bit words:

    short   1 .. 15 bytes    slot of 4 words: text, zero-padded, its length in byte 15; four ids, or seven narrow ones
    middle  16 .. 31 bytes   slot of 8 words: text, zero-padded, its length in byte 31; eight ids
    long    32 bytes and on  slot of 3 words: hash; offset of the text | length << 32; offset of the ids | number << 32

The length inside the key separates "a" from "a\\0". A length of 0 is an empty slot. Ids have 24 bits, and the top byte
of a slot's first id holds their number + 1. A vocabulary of up to 65536 tokens has a *narrow* cache: there short slots
have seven ids of 16 bits, and the top 16 bits of the slot hold their number + 1. If that field is 0, the ids did not
fit. Then the upper half of the first word of ids is their offset in the id store, and the second word holds their
number and the epoch of the store.

A short or middle pre-token belongs to a *group* of four slots. The main loop reads a single cache line: for a short
pre-token the two slots of its own line, both compared without a branch; for a middle one its own slot. The rest of the
group is searched out of line. An entry found there is swapped with the one in its home slot, so that frequent
pre-tokens are where the main loop finds them.

Tables begin small, so that a small working set is on few pages. They double when too full (see `growth`). At their
largest size, a full group evicts an entry. A full store is cleared as a whole: its epoch is incremented, which also
invalidates the references of the other tables. Keys are compared completely, so a hash collision costs time, but never
changes an id.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from jittok.kernels.jit import OutI32, OutI64, OutU8, OutU64, helper, inlined
from jittok.kernels.memory import (
    PAD,
    Window,
    add,
    copy_ids,
    copy_narrow,
    get_i32,
    get_i64,
    get_u64,
    key_masks,
    multiply,
    pair_places,
    put_i32,
    put_i64,
    put_u64,
    window,
)
from jittok.kernels.structures.pages import zeroed

LONGEST_KEPT = 2048
"""Bytes; longer pre-tokens are not cached."""
SPARE_IDS = 8
"""Ids after the last one that a copy may overwrite."""
LONGEST_SHORT, LONGEST_MIDDLE = 15, 31
"""Bytes of the longest short and the longest middle pre-token."""
Key: TypeAlias = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
"""A pre-token of up to LONGEST_MIDDLE bytes as the tables hold it; the last two words of a short one are zeros."""
FIRST_BITS = 13
"""log2 of the slots that the short table begins with."""
ID_LIMIT, NARROW_LIMIT = 1 << 24, 1 << 16
NARROW_IDS = 7
"""Ids that a short slot of a narrow cache holds."""
MOST_STORED = 0xFFFF
"""The most ids of a short or middle pre-token that the store keeps."""

(
    SHORT_BITS,
    SHORT_MOST,
    SHORT_COUNT,
    MIDDLE_BITS,
    MIDDLE_MOST,
    MIDDLE_COUNT,
    LONG_COUNT,
    TEXT_USED,
    IDS_USED,
    EPOCH,
    VICTIM,
    MISSES,
    SHORT_LOST,
    NARROW,
    STATES,
) = range(15)
"""Indices of PretokenCache.state. Bits are log2 of slots; LOST: entries evicted since the table grew;
NARROW: 1 or 0, which never changes."""

K1, K2, K3, K4 = (
    np.uint64(k) for k in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)
)
_0, _1, _8, _16, _24, _29, _30, _32, _40, _48, _56 = (np.uint64(k) for k in (0, 1, 8, 16, 24, 29, 30, 32, 40, 48, 56))
_LOW32, _LOW16 = np.uint64(0xFFFFFFFF), np.uint64(0xFFFF)


class PretokenCache(NamedTuple):
    """One thread's cache. Sizes are powers of two times a slot; see `make_cache`."""

    short: OutU64  # [4 << state[SHORT_MOST]] and a line more
    middle: OutU64  # [8 << state[MIDDLE_MOST]]
    long: OutU64  # [3 * slots]
    text: OutU8  # store of the long table's texts
    ids: OutI32  # store of ids that do not fit a slot
    state: OutI64  # [STATES]
    masks: OutU64  # [128] what `put_key` makes keys with
    pairs: OutU8  # [256] what `match_pair` finds slots with
    scratch: OutU64  # [16] a slot on its way


class CacheWindow(NamedTuple):
    """The same as windows."""

    short: Window
    middle: Window
    long: Window
    text: Window
    ids: Window
    state: Window
    masks: Window
    pairs: Window
    scratch: Window
    long_slots: int
    text_size: int
    ids_size: int
    narrow: int


def make_cache(cache_bytes: int, tokens: int = ID_LIMIT) -> PretokenCache:
    """An empty cache of at most about `cache_bytes` for a vocabulary of `tokens` tokens. Memory is taken as pages are
    touched, so a small working set costs little."""
    bits = max(6, (max(cache_bytes, 1 << 14) // 4 // 32).bit_length() - 1)  # a quarter for the short table
    short_most, middle_most = bits, bits - 2
    short = zeroed((4 << short_most) + 32, np.uint64)
    middle = zeroed(8 << middle_most, np.uint64)
    long_slots = 1 << max(6, bits - 3)
    state = np.zeros(STATES, np.int64)
    state[[SHORT_BITS, SHORT_MOST, MIDDLE_BITS, MIDDLE_MOST]] = (
        min(FIRST_BITS, short_most),
        short_most,
        min(FIRST_BITS - 3, middle_most),
        middle_most,
    )
    state[EPOCH], state[NARROW] = 1, tokens <= NARROW_LIMIT
    store = max(4 * LONGEST_KEPT, cache_bytes // 4)
    return PretokenCache(
        short,
        middle,
        zeroed(3 * long_slots, np.uint64),
        zeroed(store + PAD, np.uint8),
        zeroed(max(2 * LONGEST_KEPT, cache_bytes // 32) + SPARE_IDS, np.int32),
        state,
        key_masks(),
        pair_places(),
        np.zeros(16, np.uint64),
    )


@helper
def open_cache(cache: PretokenCache) -> CacheWindow:
    """Windows onto the arrays."""
    return CacheWindow(
        window(cache.short),
        window(cache.middle),
        window(cache.long),
        window(cache.text),
        window(cache.ids),
        window(cache.state),
        window(cache.masks),
        window(cache.pairs),
        window(cache.scratch),
        cache.long.size // 3,
        cache.text.size - PAD,
        cache.ids.size - SPARE_IDS,
        cache.state[NARROW],
    )


# ---- keys


@helper
def hash_short(low: np.uint64, high: np.uint64) -> np.uint64:
    """Hash of a short key."""
    return add(multiply(low, K1), multiply(high, K2))


@helper
def hash_middle(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64) -> np.uint64:
    """Hash of a middle key."""
    h = add(multiply(a, K1), multiply(b, K2)) ^ add(multiply(c, K3), multiply(d, K4))
    return multiply(h ^ (h >> _32), K1)


@helper
def short_line(h: np.uint64, bits: int) -> int:
    """Offset of the line (two slots) of a short key, in words. bits: log2 of slots."""
    return np.int64(h >> np.uint64(65 - bits)) << 3


@helper
def middle_slot(h: np.uint64, bits: int) -> int:
    """Offset of the slot of a middle key, in words."""
    return np.int64(h >> np.uint64(64 - bits)) << 3


# ---- ids of a slot


@helper
def read_ids(cache: CacheWindow, word: int, halves: int, ids: Window, count: int) -> int:
    """Copy the ids in the words from `word` on to ids[count:]. Returns the new count, or -1 if the store has dropped
    them."""
    table = cache.short if halves == 2 else cache.middle
    head, tail = get_u64(table, word), get_u64(table, word + 1)
    if halves == 2 and cache.narrow != 0:
        number = np.int64(tail >> _48) - 1
        if number >= 0:
            copy_narrow(ids, count, table, word)
            return count + number
    else:
        number = np.int64(head >> _24 & np.uint64(0xFF)) - 1
        if number >= 0:
            for k in range(0, halves, 2):
                if 2 * k <= number or k == 0:
                    _copy(ids, count + 2 * k, table, word + k, k == 0)
            return count + number
    if np.int64(tail >> _16) != get_i64(cache.state, EPOCH):
        return -1
    number, position = np.int64(tail & _LOW16), np.int64(head >> _32)
    for k in range(number):
        put_i32(ids, count + k, get_i32(cache.ids, position + k))
    return count + number


@helper
def _copy(ids: Window, at: int, table: Window, word: int, first: bool) -> None:
    if first:
        copy_ids(ids, at, table, word)
    else:
        for k in range(2):
            pair = get_u64(table, word + k)
            put_i32(ids, at + 2 * k, np.int64(pair & _LOW32))
            put_i32(ids, at + 2 * k + 1, np.int64(pair >> _32))


@helper
def write_ids(cache: CacheWindow, table: Window, word: int, halves: int, ids: Window, start: int, stop: int) -> None:
    """Write ids[start:stop] to the words from `word` on (2 words for a short slot, 4 for a middle one) or to the store;
    too many for the store are not kept."""
    number = stop - start
    narrow = halves == 2 and cache.narrow != 0
    fits = number <= (NARROW_IDS if narrow else 2 * halves)
    k, limit = start, NARROW_LIMIT if narrow else ID_LIMIT
    while fits and k < stop:
        fits = 0 <= get_i32(ids, k) < limit
        k += 1
    if fits and narrow:
        low, high = _0, np.uint64(number + 1) << _48
        for k in range(number):
            placed = np.uint64(get_i32(ids, start + k)) << np.uint64(16 * (k & 3))
            low |= placed if k < 4 else _0
            high |= placed if k >= 4 else _0
        put_u64(table, word, low)
        put_u64(table, word + 1, high)
        return
    if fits:
        for k in range(halves):
            low = high = _0
            if 2 * k < number:
                low = np.uint64(get_i32(ids, start + 2 * k))
            if 2 * k + 1 < number:
                high = np.uint64(get_i32(ids, start + 2 * k + 1))
            if k == 0:
                low |= np.uint64(number + 1) << _24
            put_u64(table, word + k, low | high << _32)
        return
    if number > min(MOST_STORED, cache.ids_size):
        put_u64(table, word, _0)
        put_u64(table, word + 1, _0)
        return
    position = keep_ids(cache, ids, start, stop)
    put_u64(table, word, np.uint64(position) << _32)
    put_u64(table, word + 1, np.uint64(number) | np.uint64(get_i64(cache.state, EPOCH)) << _16)


@helper
def keep_ids(cache: CacheWindow, ids: Window, start: int, stop: int) -> int:
    """Copy ids[start:stop] (at most the capacity of the store) to the store. Returns their offset there."""
    if get_i64(cache.state, IDS_USED) + stop - start > cache.ids_size:
        drop_stores(cache)
    position = get_i64(cache.state, IDS_USED)
    for k in range(stop - start):
        put_i32(cache.ids, position + k, get_i32(ids, start + k))
    put_i64(cache.state, IDS_USED, position + stop - start)
    return position


@helper
def drop_stores(cache: CacheWindow) -> None:
    """Discard all long pre-tokens and all ids in the store."""
    for k in range(cache.long_slots):
        put_u64(cache.long, 3 * k, _0)
    for k in (TEXT_USED, IDS_USED, LONG_COUNT):
        put_i64(cache.state, k, 0)
    put_i64(cache.state, EPOCH, get_i64(cache.state, EPOCH) % 0x7FFFFFFF + 1)


# ---- finding a slot


@helper
def _victim(cache: CacheWindow) -> int:
    v = get_i64(cache.state, VICTIM)
    put_i64(cache.state, VICTIM, v + 1)
    return v & 3


@helper
def _swap(table: Window, a: int, b: int, words: int) -> None:
    for k in range(words):
        x = get_u64(table, a + k)
        put_u64(table, a + k, get_u64(table, b + k))
        put_u64(table, b + k, x)


@helper
def short_home(cache: CacheWindow, low: np.uint64, high: np.uint64, line: int) -> tuple[int, bool]:
    """(slot for a short key that the main loop did not find complete in its line, whether the key is in there).

    Searches the line, then the other line of the group; takes an empty slot, else evicts an entry.
    """
    table = cache.short
    empty = -1
    for k in range(4):
        at = (line ^ (k >> 1) << 3) + ((k & 1) << 2)
        tag = get_u64(table, at + 1)
        if tag == high and get_u64(table, at) == low:
            if k > 1:
                own = line + ((_victim(cache) & 1) << 2)
                _swap(table, at, own, 4)
                at = own
            return at, True
        if tag == _0:
            if empty < 0:
                empty = at
            break  # keys of this line are in the other one only if this one was full, and it mostly stays full
    if empty >= 0:
        put_i64(cache.state, SHORT_COUNT, get_i64(cache.state, SHORT_COUNT) + 1)
        return empty, False
    put_i64(cache.state, SHORT_LOST, get_i64(cache.state, SHORT_LOST) + 1)
    v = _victim(cache)
    return (line ^ (v & 2) << 2) + ((v & 1) << 2), False


@helper
def middle_home(
    cache: CacheWindow, a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, own: int
) -> tuple[int, bool]:
    """The same for a middle key, whose own slot is `own`. If that is empty, nothing else is read: keys of this slot are
    in others only if it was taken. (A key whose own slot has become free since is stored twice, with the same ids.)"""
    table = cache.middle
    if get_u64(table, own + 3) == _0:
        put_i64(cache.state, MIDDLE_COUNT, get_i64(cache.state, MIDDLE_COUNT) + 1)
        return own, False
    group = own & ~31
    empty = -1
    for k in range(4):
        at = group + 8 * k
        tag = get_u64(table, at + 3)
        if tag == d and get_u64(table, at) == a and get_u64(table, at + 1) == b and get_u64(table, at + 2) == c:
            if at != own:
                _swap(table, at, own, 8)
            return own, True
        if tag == _0 and empty < 0:
            empty = at
    if empty >= 0:
        put_i64(cache.state, MIDDLE_COUNT, get_i64(cache.state, MIDDLE_COUNT) + 1)
        return empty, False
    return group + 8 * _victim(cache), False


@inlined
def put_middle_key(cache: CacheWindow, at: int, a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64) -> None:
    """Write the key of the slot at `at`."""
    put_u64(cache.middle, at, a)
    put_u64(cache.middle, at + 1, b)
    put_u64(cache.middle, at + 2, c)
    put_u64(cache.middle, at + 3, d)

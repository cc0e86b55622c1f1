"""Doubling the tables of the pre-token cache, in place: the entries of group g move to groups 2g and 2g + 1."""

from __future__ import annotations

import numpy as np

from jittok.kernels.jit import helper
from jittok.kernels.memory import Window, get_i64, get_u64, prefetch, put_i64, put_u64
from jittok.kernels.pretoken_cache.tables import (
    MIDDLE_BITS,
    MIDDLE_COUNT,
    MIDDLE_MOST,
    SHORT_BITS,
    SHORT_COUNT,
    SHORT_LOST,
    SHORT_MOST,
    CacheWindow,
    hash_middle,
    hash_short,
    middle_slot,
    short_line,
)

BY_LOSSES, MIDDLE_BY_LOSSES = 19, 17
"""log2 of the slots from which on tables grow only for what they lose: larger ones are touched page by page, and memory
that keeps nothing from being lost makes nothing faster."""
_AHEAD = 16
"""Groups that are prefetched ahead of the one that is moved."""
_0 = np.uint64(0)


@helper
def grow_tables(cache: CacheWindow) -> None:
    """Double the tables that are too full; only between batches, as records hold offsets into them.

    Some groups are full long before a quarter of all slots is taken, and their pre-tokens are encoded again and again:
    the short table grows for that, too. A large short table grows when the number of its evictions is a quarter of its
    slots; a large middle table, whose evictions are not counted, when three quarters of its slots are taken.
    """
    short, middle = get_i64(cache.state, SHORT_BITS), get_i64(cache.state, MIDDLE_BITS)
    taken, lost = get_i64(cache.state, SHORT_COUNT), get_i64(cache.state, SHORT_LOST)
    need = 4 * lost if short >= BY_LOSSES else max(4 * taken, 256 * lost)
    if need > 1 << short and short < get_i64(cache.state, SHORT_MOST):
        grow_short(cache)
    part = 3 if middle >= MIDDLE_BY_LOSSES else 1
    if 4 * get_i64(cache.state, MIDDLE_COUNT) > part << middle and middle < get_i64(cache.state, MIDDLE_MOST):
        grow_middle(cache)


@helper
def grow_short(cache: CacheWindow) -> None:
    """Double the short table in place: the entries of group g move to groups 2g and 2g + 1, from the last group down.

    The memory after the old table is zero already. Lines that get no entry are not written, and so do not fill the
    processor's caches.
    """
    bits = get_i64(cache.state, SHORT_BITS)
    put_i64(cache.state, SHORT_BITS, bits + 1)
    put_i64(cache.state, SHORT_LOST, 0)
    table, moved = cache.short, cache.scratch
    g = (1 << bits - 2) - 1
    while g >= 0:
        ahead = 16 * max(0, g - _AHEAD)
        for k in range(0, 16, 4):  # an empty slot prefetches the first line, which is harmless
            h = hash_short(get_u64(table, ahead + k), get_u64(table, ahead + k + 1))
            prefetch(table, short_line(h, bits + 1), 8)
        prefetch(table, 16 * max(0, g - 4 * _AHEAD), 8)
        prefetch(table, 16 * max(0, g - 4 * _AHEAD) + 8, 8)
        for k in range(16):
            put_u64(moved, k, get_u64(table, 16 * g + k))
        if 32 * g < 4 << bits:
            for k in range(32):
                put_u64(table, 32 * g + k, _0)
        taken = 0  # bits of the eight slots of both groups: reading the slots would wait for memory
        for k in range(4):
            low, high = get_u64(moved, 4 * k), get_u64(moved, 4 * k + 1)
            if high != _0:
                slot = short_line(hash_short(low, high), bits + 1) >> 2 & 7
                while taken >> slot & 1 != 0:  # own line first; at most four entries, and four slots
                    slot = slot + 1 if slot & 1 == 0 else slot & 6 ^ 2
                taken |= 1 << slot
                at = 32 * g + 4 * slot
                for j in range(4):
                    put_u64(table, at + j, get_u64(moved, 4 * k + j))
        g -= 1


@helper
def grow_middle(cache: CacheWindow) -> None:
    """The same for the middle table, slot by slot: a group is read completely before its two successors are written."""
    bits = get_i64(cache.state, MIDDLE_BITS)
    put_i64(cache.state, MIDDLE_BITS, bits + 1)
    table, moved = cache.middle, cache.scratch
    slot = (1 << bits) - 1
    # an entry moves to group 2g or 2g + 1; for g > 0 these are above all groups that are still to be read;
    # group 0 is its own successor, so its entries may be moved twice
    while slot >= 0:
        _move_middle(table, moved, slot, bits)
        slot -= 1


@helper
def _move_middle(table: Window, moved: Window, slot: int, bits: int) -> None:
    for k in range(8):
        put_u64(moved, k, get_u64(table, 8 * slot + k))
    if get_u64(moved, 3) == _0:
        return
    h = hash_middle(get_u64(moved, 0), get_u64(moved, 1), get_u64(moved, 2), get_u64(moved, 3))
    own = middle_slot(h, bits + 1)
    put_u64(table, 8 * slot + 3, _0)
    at = own
    for k in range(4):
        if get_u64(table, at + 3) == _0:
            break
        at = (own & ~31) + 8 * k
    for k in range(8):
        put_u64(table, at + k, get_u64(moved, k))

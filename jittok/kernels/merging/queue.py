"""Merging a list of symbols pair by pair, lowest rank first, leftmost among equals: the heart of BPE and of SPM.

Both of llama.cpp's sessions are this: a queue of adjacent pairs ordered by (rank, position); SPM's rank is the position
of a pair's score in the order of all scores. Nearly every word has at most 16 symbols. Their ranks fit one vector
register, and its smallest element is the next merge. A longer list is scanned after each merge, which beats any queue
up to some 40 symbols. Beyond that a heap is used, so that the cost is n log n for any text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.kernels.jit import OutI32, OutU8, OutU32, OutU64, helper
from jittok.kernels.memory import (
    Window,
    get_i32,
    get_u8,
    get_u64,
    lowest_16,
    put_i32,
    put_u8,
    put_u32,
    put_u64,
    set_three_lowest_16,
    window,
)
from jittok.kernels.structures.pages import scratch
from jittok.kernels.structures.pair_table import NO_PAIR, PairTable, find_pair

SIXTEEN = 16
"""Symbols whose ranks fit one vector."""
SCAN_SYMBOLS = 40
"""Symbols up to which a scan beats the heap."""
NONE, NOWHERE = -1, 255
NO_WORD = 0xFFFFFFFF
"""Above each rank << 8 | position: a file holds 1 << 23 merges or 1 << 22 scores at most; a rank fits 24 bits."""
_32 = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


class MergeWork(NamedTuple):
    """Scratch for lists of up to m symbols. The queue can merge up to n <= m of them."""

    symbols: OutI32  # [m + 1]
    positions: OutI32  # [m + 1] the start of each symbol's text; one more for the end
    links: OutI32  # [2 * n] left and right neighbor, for the heap
    found: OutU64  # [n] rank and result of each symbol's pair with its right neighbor
    heap: OutU64  # [2 * n]
    ranks: OutU32  # [16] rank << 8 | position of each pair, for up to 16 symbols
    merged: OutI32  # [16] the symbol that each pair becomes
    neighbours: OutU8  # [64] next symbol; from 32 on the previous one


class MergeWindow(NamedTuple):
    """MergeWork and the pair table as windows."""

    symbols: Window
    positions: Window
    links: Window
    found: Window
    heap: Window
    ranks: Window
    merged: Window
    neighbours: Window
    slots: Window
    filter: Window
    slot_bits: int
    filter_bits: int
    capacity: int  # symbols that the queue may merge


def make_merge_work(longest: int, queued: int | None = None) -> MergeWork:
    """Scratch for up to `longest` symbols. queued: symbols that the queue has capacity for, all by default.

    Pages that no text needs are never touched, but they take address space, which may be limited for a process.
    """
    room = longest if queued is None else min(longest, queued)
    return MergeWork(
        scratch(longest + 1, np.int32, huge=False),
        scratch(longest + 1, np.int32, huge=False),
        scratch(2 * room + 2, np.int32, huge=False),
        scratch(room + 1, np.uint64, huge=False),
        scratch(2 * room + 2, np.uint64, huge=False),
        np.empty(16, np.uint32),
        np.empty(16, np.int32),
        np.empty(64, np.uint8),
    )


@helper
def open_merge(work: MergeWork, pairs: PairTable) -> MergeWindow:
    """Windows onto the arrays."""
    return MergeWindow(
        window(work.symbols),
        window(work.positions),
        window(work.links),
        window(work.found),
        window(work.heap),
        window(work.ranks),
        window(work.merged),
        window(work.neighbours),
        window(pairs.slots),
        window(pairs.filter),
        pairs.slot_bits,
        pairs.filter_bits,
        work.found.size - 1,
    )


@helper
def merge_symbols(work: MergeWindow, count: int) -> int:
    """Merge symbols[0 .. count) in place until no neighbors have a rank; returns how many are left.

    positions[k] stays the start of symbol k; positions[count] is set by the caller and moves to positions[returned].
    O(n^2) up to SCAN_SYMBOLS symbols, O(n log n) beyond.
    """
    for k in range(count - 1):
        put_u64(work.found, k, _pair_at(work, get_i32(work.symbols, k), get_i32(work.symbols, k + 1)))
    return merge_found(work, count)


@helper
def merge_found(work: MergeWindow, count: int) -> int:
    """The same if found[k] is already the look-up of symbols k and k + 1."""
    end = get_i32(work.positions, count)
    if count < 2:
        return count
    if count <= SIXTEEN:
        left = _merge_sixteen(work, count)
    elif count <= SCAN_SYMBOLS:
        left = _merge_few(work, count)
    else:
        left = _merge_many(work, count)
    put_i32(work.positions, left, end)
    return left


@helper
def _pair_at(work: MergeWindow, left: int, right: int) -> np.uint64:
    return find_pair(work.slots, work.filter, work.slot_bits, work.filter_bits, left, right)


@helper
def _word_of(work: MergeWindow, f: np.uint64, position: int) -> int:
    """rank << 8 | position of a pair, NO_WORD if it does not merge; records the merged symbol."""
    if f == NO_PAIR:
        return NO_WORD
    put_i32(work.merged, position, np.int64(f & _LOW))
    return np.int64(f >> _32) << 8 | position


@helper
def clear_sixteen(work: MergeWindow) -> None:
    """Initialize for up to 16 symbols: no pair merges, each symbol's neighbors are the adjacent ones."""
    for k in range(16):
        put_u32(work.ranks, k, NO_WORD)
        put_u8(work.neighbours, k, k + 1)
        put_u8(work.neighbours, 32 + k, (k - 1) & NOWHERE)  # nowhere before the first


@helper
def note_pair(work: MergeWindow, f: np.uint64, position: int) -> None:
    """Record the pair of symbols `position` and `position` + 1 (f: see `find_pair`), after `clear_sixteen`."""
    put_u32(work.ranks, position, _word_of(work, f, position))


@helper
def merge_noted(work: MergeWindow, count: int) -> int:
    """Merge up to 16 symbols whose pairs are recorded, and their positions. Returns how many are left."""
    symbols, neighbours = work.symbols, work.neighbours
    best = lowest_16(work.ranks, 0)
    while best != NO_WORD:
        k = best & 0xFF
        new = get_i32(work.merged, k)
        right = get_u8(neighbours, k)
        after = get_u8(neighbours, right)
        before = get_u8(neighbours, 32 + k)
        put_i32(symbols, k, new)
        put_u8(neighbours, k, after)
        put_u8(neighbours, 32 + after, k)  # after == count: an element that no one reads
        own = other = NO_WORD
        if after < count:
            own = _word_of(work, _pair_at(work, new, get_i32(symbols, after)), k)
        if before != NOWHERE:
            other = _word_of(work, _pair_at(work, get_i32(symbols, before), new), before)
        best = set_three_lowest_16(work.ranks, 0, right, NO_WORD, k, own, before, other)
    left, k = 0, 0
    while k < count:
        put_i32(symbols, left, get_i32(symbols, k))
        put_i32(work.positions, left, get_i32(work.positions, k))
        left += 1
        k = get_u8(neighbours, k)
    return left


@helper
def _merge_sixteen(work: MergeWindow, count: int) -> int:
    clear_sixteen(work)
    for k in range(count - 1):
        note_pair(work, get_u64(work.found, k), k)
    return merge_noted(work, count)


@helper
def _merge_few(work: MergeWindow, count: int) -> int:
    symbols, positions, found = work.symbols, work.positions, work.found
    while count > 1:
        best, at = NO_PAIR, NONE
        for k in range(count - 1):
            f = get_u64(found, k)
            if f >> _32 < best >> _32:
                best, at = f, k
        if at == NONE:
            break
        put_i32(symbols, at, np.int64(best & _LOW))
        count -= 1
        for k in range(at + 1, count):
            put_i32(symbols, k, get_i32(symbols, k + 1))
            put_i32(positions, k, get_i32(positions, k + 1))
        for k in range(at + 1, count - 1):
            put_u64(found, k, get_u64(found, k + 1))
        if at > 0:
            put_u64(found, at - 1, _pair_at(work, get_i32(symbols, at - 1), get_i32(symbols, at)))
        if at + 1 < count:
            put_u64(found, at, _pair_at(work, get_i32(symbols, at), get_i32(symbols, at + 1)))
    return count


@helper
def _push(heap: Window, size: int, value: np.uint64) -> None:
    """Add to a binary min-heap of `size` entries."""
    k = size
    while k > 0:
        up = (k - 1) >> 1
        above = get_u64(heap, up)
        if above <= value:
            break
        put_u64(heap, k, above)
        k = up
    put_u64(heap, k, value)


@helper
def _pop(heap: Window, size: int) -> np.uint64:
    """Remove and return the smallest of `size` > 0 entries."""
    top = get_u64(heap, 0)
    size -= 1
    value = get_u64(heap, size)
    k = 0
    while True:
        down = 2 * k + 1
        if down >= size:
            break
        below = get_u64(heap, down)
        if down + 1 < size and get_u64(heap, down + 1) < below:
            down += 1
            below = get_u64(heap, down)
        if below >= value:
            break
        put_u64(heap, k, below)
        k = down
    put_u64(heap, k, value)
    return top


@helper
def _offer(work: MergeWindow, size: int, left: int, right: int) -> int:
    """Look up the pair at two positions and queue it. Returns the heap's size."""
    f = _pair_at(work, get_i32(work.symbols, left), get_i32(work.symbols, right))
    put_u64(work.found, left, f)
    if f != NO_PAIR:
        _push(work.heap, size, (f & ~_LOW) | np.uint64(left))
        size += 1
    return size


@helper
def _merge_many(work: MergeWindow, count: int) -> int:
    """Merge by a heap. Entries are rank << 32 | position. An entry is stale if there is no pair at its position any
    more, or one of another rank. If the rank is the same, it equals the entry of the present pair.

    There are fewer than count entries at first, and fewer than count merges. Each merge removes an entry and adds at
    most two, so a capacity of 2 * count entries is enough.
    """
    symbols, positions, links, found, heap = work.symbols, work.positions, work.links, work.found, work.heap
    size = 0
    for k in range(count):
        put_i32(links, 2 * k, k - 1)
        put_i32(links, 2 * k + 1, k + 1 if k + 1 < count else NONE)
    put_u64(found, count - 1, NO_PAIR)
    for k in range(count - 1):
        f = get_u64(found, k)
        if f != NO_PAIR:
            _push(heap, size, (f & ~_LOW) | np.uint64(k))
            size += 1
    while size > 0:
        top = _pop(heap, size)
        size -= 1
        k = np.int64(top & _LOW)
        f = get_u64(found, k)
        if f == NO_PAIR or f >> _32 != top >> _32:
            continue
        right = get_i32(links, 2 * k + 1)
        put_i32(symbols, k, np.int64(f & _LOW))
        put_u64(found, k, NO_PAIR)
        put_u64(found, right, NO_PAIR)
        after = get_i32(links, 2 * right + 1)
        put_i32(links, 2 * k + 1, after)
        if after != NONE:
            put_i32(links, 2 * after, k)
            size = _offer(work, size, k, after)
        before = get_i32(links, 2 * k)
        if before != NONE:
            size = _offer(work, size, before, k)
    left, k = 0, 0
    while k != NONE:
        put_i32(symbols, left, get_i32(symbols, k))
        put_i32(positions, left, get_i32(positions, k))
        left += 1
        k = get_i32(links, 2 * k + 1)
    return left

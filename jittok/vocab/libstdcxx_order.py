"""The two unstable orders in llama.cpp that its C++ library (libstdc++) determines, exactly.

`std_sort` orders special tokens of equal length; `unordered_map_order` decides which of several texts names an id. The
latter reads every token of the vocabulary, so it is vectorized.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

BUCKETS = (
    13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061, 712697, 1447153,
    2938679, 5967347,
)  # fmt: skip
"""Bucket counts that an unordered_map grows through."""
INSERTION = 16
"""Ranges up to this length are left to the final insertion sort."""
_MUL, _SEED, _SHIFT = np.uint64(0xC6A4A7935BD1E995), np.uint64(0xC70F6907), np.uint64(47)


def std_hashes(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    """uint64[n]: std::hash<std::string> of each text on 64-bit machines, which is MurmurHash64A.

    data: uint8[bytes], offsets: int64[n + 1]. Takes one step per eight bytes of the longest text, for all texts that
    still have eight bytes at once.
    """
    lengths = np.diff(offsets)
    longest_first = np.argsort(-lengths, kind="stable")
    lengths, starts = lengths[longest_first], offsets[:-1][longest_first]
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    words, eight = lengths // 8, np.arange(8)

    def load(positions: NDArray[np.int64]) -> NDArray[np.uint64]:
        loaded: NDArray[np.uint64] = padded[positions[:, None] + eight].view("<u8").ravel()
        return loaded

    h = _SEED ^ (lengths.astype(np.uint64) * _MUL)
    for word in range(int(words.max(initial=0))):
        count = int(np.searchsorted(-words, -word))  # texts of more than `word` words
        k = load(starts[:count] + 8 * word) * _MUL
        h[:count] = (h[:count] ^ ((k ^ (k >> _SHIFT)) * _MUL)) * _MUL
    rest = np.flatnonzero(lengths % 8)
    past = (64 - 8 * (lengths[rest] % 8)).astype(np.uint64)  # bits after the text
    h[rest] = (h[rest] ^ (load(starts[rest] + 8 * words[rest]) << past >> past)) * _MUL
    h = (h ^ (h >> _SHIFT)) * _MUL
    hashes = np.empty_like(h)
    hashes[longest_first] = h ^ (h >> _SHIFT)
    return hashes


def unordered_map_order(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n]: the texts (distinct, inserted in order) in the iteration order of the map.

    All nodes form one list. A node whose bucket is empty goes to the list's front; another one goes to the front of its
    bucket's run. So the list holds the buckets from the last one that was first filled to the first one, and in
    each the nodes from the last to the first. Growing re-inserts all nodes in list order.
    """
    hashes = std_hashes(data, offsets)
    order = np.zeros(0, np.int64)
    for count in BUCKETS:  # at most one element a bucket
        inserted = np.concatenate([order, np.arange(order.size, min(count, hashes.size))])
        buckets = (hashes[inserted] % np.uint64(count)).astype(np.int64)
        times = np.arange(inserted.size)
        first = np.empty(count, np.int64)  # of a bucket: the time of its first node
        first[buckets[::-1]] = times[::-1]  # of equal indices the last assignment counts
        order = inserted[np.argsort(-(first[buckets] * inserted.size + times))]
        if order.size == hashes.size:
            break
    return order


def std_sort(items: list[int], less: Callable[[int, int], bool]) -> None:
    """Sort in place with the permutation of std::sort: introsort, then one insertion sort."""
    if len(items) > 1:
        _introsort(items, 0, len(items), 2 * (len(items).bit_length() - 1), less)
        for i in range(1, len(items)):
            _insert(items, i, less, guarded=i < INSERTION)


def _introsort(a: list[int], low: int, high: int, depth: int, less: Callable[[int, int], bool]) -> None:
    while high - low > INSERTION:
        if depth == 0:
            _heap_sort(a, low, high, less)
            return
        depth -= 1
        cut = _partition(a, low, high, less)
        _introsort(a, cut, high, depth, less)
        high = cut


def _partition(a: list[int], low: int, high: int, less: Callable[[int, int], bool]) -> int:
    """Median of three to the front, then scan from both ends."""
    x, y, z = low + 1, low + (high - low) // 2, high - 1
    if less(a[x], a[y]):
        middle = y if less(a[y], a[z]) else z if less(a[x], a[z]) else x
    else:
        middle = x if less(a[x], a[z]) else z if less(a[y], a[z]) else y
    a[low], a[middle] = a[middle], a[low]
    left, right, pivot = low + 1, high, a[low]
    while True:
        while less(a[left], pivot):
            left += 1
        right -= 1
        while less(pivot, a[right]):
            right -= 1
        if left >= right:
            return left
        a[left], a[right] = a[right], a[left]
        left += 1


def _insert(a: list[int], i: int, less: Callable[[int, int], bool], *, guarded: bool) -> None:
    value = a[i]
    if guarded and less(value, a[0]):
        a[1 : i + 1] = a[0:i]
        a[0] = value
        return
    while less(value, a[i - 1]):
        a[i] = a[i - 1]
        i -= 1
    a[i] = value


def _heap_sort(a: list[int], low: int, high: int, less: Callable[[int, int], bool]) -> None:
    n = high - low
    for parent in range((n - 2) // 2, -1, -1):
        _adjust_heap(a, low, parent, n, a[low + parent], less)
    for end in range(n - 1, 0, -1):
        value, a[low + end] = a[low + end], a[low]
        _adjust_heap(a, low, 0, end, value, less)


def _adjust_heap(a: list[int], low: int, hole: int, n: int, value: int, less: Callable[[int, int], bool]) -> None:
    top = child = hole
    while child < (n - 1) // 2:
        child = 2 * (child + 1)
        if less(a[low + child], a[low + child - 1]):
            child -= 1
        a[low + hole] = a[low + child]
        hole = child
    if n % 2 == 0 and child == (n - 2) // 2:
        child = 2 * child + 1
        a[low + hole] = a[low + child]
        hole = child
    parent = (hole - 1) // 2
    while hole > top and less(a[low + parent], value):
        a[low + hole] = a[low + parent]
        hole, parent = parent, (parent - 1) // 2
    a[low + hole] = value

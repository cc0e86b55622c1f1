"""The two unstable orders that llama.cpp takes from its C++ library (libstdc++), exactly.

`std_sort` orders special tokens of equal length; `unordered_map_order` decides which of several texts names an id.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

BUCKETS = (
    13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061, 712697, 1447153,
    2938679, 5967347,
)  # fmt: skip
"""Bucket counts that an unordered_map grows through."""
INSERTION = 16
"""Ranges up to this length are left to the final insertion sort."""
_MUL, _MASK, _SEED = 0xC6A4A7935BD1E995, (1 << 64) - 1, 0xC70F6907


def std_hash(text: bytes) -> int:
    """std::hash<std::string> on 64-bit machines: MurmurHash64A."""
    h = _SEED ^ (len(text) * _MUL & _MASK)
    whole = len(text) & ~7
    for (k,) in struct.iter_unpack("<Q", text[:whole]):
        k = k * _MUL & _MASK  # noqa: PLW2901
        k = (k ^ k >> 47) * _MUL & _MASK  # noqa: PLW2901
        h = (h ^ k) * _MUL & _MASK
    if len(text) != whole:
        h = (h ^ int.from_bytes(text[whole:], "little")) * _MUL & _MASK
    h = (h ^ h >> 47) * _MUL & _MASK
    return h ^ h >> 47


def unordered_map_order(keys: Sequence[bytes]) -> list[int]:
    """Places of `keys` (distinct, inserted in order) in the order that iterating over the map meets them.

    All nodes form one list. A node whose bucket is empty goes to the list's front; another one goes to the front of its
    bucket's stretch. Growing re-inserts all nodes in list order.
    """
    hashes = [std_hash(key) for key in keys]
    head = -1
    after: dict[int, int | None] = {head: None}
    before_bucket: dict[int, int] = {}
    count, growth = 1, iter(BUCKETS)

    def place(node: int) -> None:
        bucket = hashes[node] % count
        if bucket in before_bucket:
            before = before_bucket[bucket]
            after[node], after[before] = after[before], node
            return
        old = after[head]
        after[node], after[head], before_bucket[bucket] = old, node, head
        if old is not None:
            before_bucket[hashes[old] % count] = node

    def chain() -> list[int]:
        nodes, node = [], after[head]
        while node is not None:
            nodes.append(node)
            node = after[node]
        return nodes

    for node in range(len(keys)):
        if node + 1 > (0 if count == 1 else count):  # at most one element a bucket
            nodes = chain()
            count, before_bucket, after = next(growth), {}, {head: None}
            for old in nodes:
                place(old)
        place(node)
    return chain()


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

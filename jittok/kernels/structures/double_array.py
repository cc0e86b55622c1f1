"""The trie of the package: byte strings -> values, in one flat array, one 16-byte unit a node.

A double array (Aoe 1989) with XOR: the child of node s under byte c is slot t = base(s) ^ c, and it exists if and only
if parent(t) == s. XOR keeps the children of a node inside one block of 256 slots, so no index can leave the array and
the builder only looks at the last few blocks. A step reads one unit more: the one found is where the next step starts.

    trie = build_double_array(data, offsets, values)        keys in any order, as flat bytes
    node = child(trie, ROOT, byte)                          in kernels: one step, NO_NODE when there is none
    node = walk(trie, ROOT, text, start, stop)              several steps
    value_at(trie, node), score_at(trie, node)              of the key that ends there; NO_VALUE and -inf if none does
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, as_int64, frozen, helper, kernel

ROOT = 0
NO_NODE = -1
NO_VALUE = -1
UNIT = 4
"""int32s a node: BASE, PARENT, VALUE, SCORE."""
BASE, PARENT, VALUE, SCORE = 0, 1, 2, 3

BLOCK = 256
LABELS = 257
"""Labels a node can have: a byte, or the end of a key."""
OPEN_BLOCKS = 16
"""Blocks that still accept children; older ones are closed, which keeps building linear (and fills over 99 %)."""
FREE = -1
NO_PARENT = -2
NO_SCORE = int(np.float32(-np.inf).view(np.int32))
INSERTION_SORT_KEYS = 16
"""Up to this many keys are sorted by insertion, more by counting."""
FEW_BYTES = 1 << 15
"""For keys of up to this many bytes the builder is not compiled: interpreting takes a third of a second at most,
compiling a second."""

OUT_OF_CAPACITY = -1
LOST_KEY = -2
"""A key is not found again with its value: impossible, the builder is broken."""


class DoubleArray(NamedTuple):
    """Invariants, by construction and in `is_sound`: the number of slots is a multiple of 256 and 0 <= base < slots for
    every slot, in use or not. So base ^ byte < slots, and no walk leaves the array, whatever the text is."""

    units: I32  # [4 * slots] slot t: base, parent (FREE when unused), value or NO_VALUE, bits of the float32 score


def build_double_array(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    scores: NDArray[np.float32] | None = None,
) -> DoubleArray:
    """The trie of the keys data[offsets[k]:offsets[k + 1]], in any order.

    data: uint8[bytes], offsets: int64[keys + 1]
    values: int32[keys] >= 0; of equal keys the last one counts
    scores: float32[keys] read with the value; 0 when left out

    There may be no keys. An empty key gives the root a value, which no walk of a byte or more reaches.
    Linear in bytes (250,000 tokens: 0.2 s). Every key is looked up again before the trie is returned.
    """
    data, offsets, values = frozen(data, np.uint8), frozen(offsets, np.int64), frozen(values, np.int32)
    bits = frozen(np.zeros(values.size) if scores is None else scores, np.float32).view(np.int32)
    if offsets.size != values.size + 1 or bits.size != values.size or int(values.min(initial=0)) < 0:
        raise AssertionError("a trie needs one value >= 0 (and one score) a key")
    order, stack = np.empty(2 * values.size, np.int64), np.empty(4 * values.size + 4, np.int64)
    groups = np.empty(3 * LABELS, np.int64)
    size = int(offsets[-1] - offsets[0])
    capacity = (size // BLOCK + 2) * BLOCK  # np.empty: pages that are never touched cost nothing
    # for a few keys, interpreting is much faster than compiling the kernel
    fill = fill_double_array if size > FEW_BYTES or fill_double_array.at_hand() else fill_double_array.python
    while True:
        links, units = np.empty(2 * capacity + 2, np.int32), np.empty(UNIT * capacity, np.int32)
        slots = fill(data, offsets, values, bits, order, stack, groups, links, units)
        if slots >= 0:
            return DoubleArray(frozen(units[: UNIT * slots].copy(), np.int32))
        if slots == LOST_KEY:
            raise AssertionError("a key of the trie is not found again")
        capacity *= 2


def is_sound(trie: DoubleArray) -> bool:
    """Whether the invariants of DoubleArray hold (for arrays that were on disk)."""
    units = trie.units
    if units.size == 0 or units.size % (UNIT * BLOCK):
        return False
    base = units[BASE::UNIT]
    return bool(base.min() >= 0) and bool(base.max() < base.size)


@helper
def child(trie: DoubleArray, node: int, byte: int) -> int:
    """The node under `byte` (0 .. 255), or NO_NODE. In bounds by the invariant of DoubleArray."""
    position = as_int64(trie.units[UNIT * node]) ^ byte
    return position if trie.units[UNIT * position + PARENT] == node else NO_NODE


@helper
def walk(trie: DoubleArray, node: int, text: U8, start: int, stop: int) -> int:
    """The node that text[start:stop] leads to from `node`, or NO_NODE."""
    for i in range(start, stop):
        node = child(trie, node, as_int64(text[i]))
        if node == NO_NODE:
            return NO_NODE
    return node


@helper
def value_at(trie: DoubleArray, node: int) -> int:
    """Value of the key that ends at `node` (a node, not NO_NODE), or NO_VALUE."""
    return as_int64(trie.units[UNIT * node + VALUE])


@helper
def score_at(trie: DoubleArray, node: int) -> float:
    """float32 score of the key that ends at `node`, as float64; -inf when none does."""
    return float(np.int32(trie.units[UNIT * node + SCORE]).view(np.float32))


@kernel
def fill_double_array(
    data: U8,
    offsets: I64,
    values: I32,
    scores: I32,
    order: OutI64,
    stack: OutI64,
    groups: OutI64,
    links: OutI32,
    units: OutI32,
) -> int:
    """Place every key, depth first, the children of a node together at the first base where they fit.

    data, offsets, values: the keys, as for build_double_array; scores: int32[keys] the bits of their float32
    order: int64[2 * keys] scratch: keys in order (sorted as the walk goes), and capacity for sorting
    stack: int64[4 * (keys + 1)] scratch: (node, first key, end of keys, depth); enough, as the ranges are disjoint
    groups: int64[3 * 257] scratch: labels of the children, where their keys start, counts
    links: int32[2 * (capacity + 1)] scratch: (next, previous) of free slots; slot `capacity` closes the ring
    units: int32[4 * capacity] the trie

    Returns the number of slots, OUT_OF_CAPACITY or LOST_KEY.
    """
    ring = units.size // UNIT
    links[2 * ring], links[2 * ring + 1] = ring, ring
    lowest, top = 0, 0
    if not _open_block(links, units, ring, top):
        return OUT_OF_CAPACITY
    top += BLOCK
    _take(links, units, ROOT, NO_PARENT)
    for k in range(values.size):
        order[k] = k
    stack[0], stack[1], stack[2], stack[3] = ROOT, 0, values.size, 0
    depth_top = 4 if values.size else 0
    while depth_top:
        depth_top -= 4
        node, low, high, depth = stack[depth_top], stack[depth_top + 1], stack[depth_top + 2], stack[depth_top + 3]
        _sort(data, offsets, order, groups, low, high, depth)
        low = _end_keys(data, offsets, values, scores, order, units, node, low, high, depth)
        if low == high:
            continue
        count = _group(data, offsets, order, groups, low, high, depth)
        base = _find_base(links, units, ring, groups, count)
        if base == NO_NODE:
            if top // BLOCK - lowest >= OPEN_BLOCKS:
                _close_block(links, units, lowest * BLOCK)
                lowest += 1
            if not _open_block(links, units, ring, top):
                return OUT_OF_CAPACITY
            base = top
            top += BLOCK
        units[UNIT * node] = base
        for k in range(count - 1, -1, -1):
            position = base ^ as_int64(groups[k])
            _take(links, units, position, node)
            stack[depth_top], stack[depth_top + 1] = position, groups[LABELS + k]
            stack[depth_top + 2], stack[depth_top + 3] = groups[LABELS + k + 1], depth + 1
            depth_top += 4
    return top if _all_found(data, offsets, values, order, units) else LOST_KEY


@helper
def _open_block(links: OutI32, units: OutI32, ring: int, top: int) -> bool:
    """Append slots top .. top + 255 to the ring of free slots; False when there is no capacity for them."""
    if top + BLOCK > ring:
        return False
    for t in range(top, top + BLOCK):
        units[UNIT * t], units[UNIT * t + PARENT] = 0, FREE
        units[UNIT * t + VALUE], units[UNIT * t + SCORE] = NO_VALUE, NO_SCORE
        links[2 * t], links[2 * t + 1] = t + 1, t - 1
    last = as_int64(links[2 * ring + 1])
    links[2 * last], links[2 * top + 1] = top, last
    links[2 * (top + BLOCK - 1)], links[2 * ring + 1] = ring, top + BLOCK - 1
    return True


@helper
def _close_block(links: OutI32, units: OutI32, start: int) -> None:
    """Take the free slots of a block out of the ring."""
    for t in range(start, start + BLOCK):
        if units[UNIT * t + PARENT] == FREE:
            _unlink(links, t)


@helper
def _unlink(links: OutI32, t: int) -> None:
    after, before = as_int64(links[2 * t]), as_int64(links[2 * t + 1])
    links[2 * before], links[2 * after + 1] = after, before


@helper
def _take(links: OutI32, units: OutI32, t: int, parent: int) -> None:
    units[UNIT * t + PARENT] = parent
    _unlink(links, t)


@helper
def _find_base(links: OutI32, units: OutI32, ring: int, groups: OutI64, count: int) -> int:
    """The first base whose slots for all labels groups[:count] are free, or NO_NODE."""
    t = as_int64(links[2 * ring])
    while t != ring:
        base = t ^ as_int64(groups[0])
        fits = True
        for k in range(1, count):
            if units[UNIT * (base ^ as_int64(groups[k])) + PARENT] != FREE:
                fits = False
                break
        if fits:
            return base
        t = as_int64(links[2 * t])
    return NO_NODE


@helper
def _end_keys(
    data: U8,
    offsets: I64,
    values: I32,
    scores: I32,
    order: OutI64,
    units: OutI32,
    node: int,
    low: int,
    high: int,
    depth: int,
) -> int:
    """Set the node's value from those of the sorted keys order[low:high] that end at `depth`. Returns the start of the
    others."""
    while low < high and _label(data, offsets, order[low], depth) < 0:
        units[UNIT * node + VALUE] = values[order[low]]
        units[UNIT * node + SCORE] = scores[order[low]]
        low += 1
    return low


@helper
def _group(data: U8, offsets: I64, order: OutI64, groups: OutI64, low: int, high: int, depth: int) -> int:
    """Write the labels of the sorted keys order[low:high] to groups[0:], and the start of each to groups[257:] (then
    `high`). Returns the number of labels."""
    count, last = 0, -1
    for k in range(low, high):
        label = _label(data, offsets, order[k], depth)
        if label != last:
            groups[count], groups[LABELS + count] = label, k
            count, last = count + 1, label
    groups[LABELS + count] = high
    return count


@helper
def _label(data: U8, offsets: I64, key: int, depth: int) -> int:
    """Byte `depth` of a key, or -1 when it ends there."""
    position = as_int64(offsets[key]) + depth
    return as_int64(data[position]) if position < offsets[key + 1] else -1


@helper
def _sort(data: U8, offsets: I64, order: OutI64, groups: OutI64, low: int, high: int, depth: int) -> None:
    """Sort order[low:high] by label, ended keys first; stable, so that the last of equal keys stays last."""
    if high - low <= INSERTION_SORT_KEYS:
        for k in range(low + 1, high):
            key, at = order[k], k
            label = _label(data, offsets, key, depth)
            while at > low and _label(data, offsets, order[at - 1], depth) > label:
                order[at] = order[at - 1]
                at -= 1
            order[at] = key
        return
    counts, spare = 2 * LABELS, order.size // 2
    for c in range(counts, counts + LABELS):
        groups[c] = 0
    for k in range(low, high):
        order[spare + k] = order[k]
        groups[counts + 1 + _label(data, offsets, order[k], depth)] += 1
    at = low
    for c in range(counts, counts + LABELS):
        at, groups[c] = at + groups[c], at
    for k in range(low, high):
        c = counts + 1 + _label(data, offsets, order[spare + k], depth)
        order[groups[c]] = order[spare + k]
        groups[c] += 1


@helper
def _all_found(data: U8, offsets: I64, values: I32, order: OutI64, units: OutI32) -> bool:
    """Whether every key leads to its value, or to that of the last key equal to it, which follows it in `order`."""
    expected, previous = as_int64(NO_VALUE), as_int64(NO_NODE)
    for k in range(values.size - 1, -1, -1):
        key, node = order[k], as_int64(ROOT)
        for i in range(offsets[key], offsets[key + 1]):
            position = as_int64(units[UNIT * node]) ^ as_int64(data[i])
            if units[UNIT * position + PARENT] != node:
                return False
            node = position
        if node != previous:
            expected, previous = as_int64(values[key]), node
        if units[UNIT * node + VALUE] != expected:
            return False
    return True

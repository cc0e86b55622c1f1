"""Find every way to make a token from two symbols, in time linear in the tokens' bytes.

Both parts of a token are symbols too: one is a prefix of it, the other a suffix. Each text has a link to its longest
proper prefix that is also a text. All shorter prefixes are prefixes of that one, so following links lists them all.
Another link does the same for suffixes. To find a link, the lengths that occur are tried, the longest first: a
polynomial hash modulo a prime decides quickly whether the bytes may be a text, and only then are they compared. The
base of the hash is secret, so no file can provoke collisions; no result depends on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import I64, OutI32, OutU8, OutU64, as_int64, frozen, helper, kernel
from jittok.kernels.memory import Window, add, get_i32, get_i64, get_u8, get_u64, multiply, put_i32, put_u64, window
from jittok.kernels.structures.bytes_table import ABSENT, BytesTable, slot_count
from jittok.kernels.structures.utf8 import lead_length

FIRST_CAPACITY = 1 << 12
"""Initial capacity for pairs."""
PRIME = np.uint64((1 << 61) - 1)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_1, _30, _31, _61 = (np.uint64(k) for k in (1, 30, 31, 61))
_LOW30, _LOW31 = np.uint64((1 << 30) - 1), np.uint64((1 << 31) - 1)


class PairWork(NamedTuple):
    """Scratch for `rows` texts of up to n bytes. Of duplicate texts, only the first row has a slot."""

    hashes: OutU64  # [n + 1] hash of the first k bytes of the current text
    powers: OutU64  # [n + 1] powers of the secret base
    begins: OutU8  # [n + 1] whether a character begins at byte k of the current text, or the text ends there
    chain: OutI32  # [n + 1] the rows that are prefixes of the current text, the longest first
    known: OutU64  # [slot_count(rows)] hash of a text
    slots: OutI32  # [slot_count(rows)] its row + 1, or 0 if free; at least half are free
    prefix: OutI32  # [rows] the longest other text that is a prefix of a row, or ABSENT
    suffix: OutI32  # [rows] the same for suffixes


def all_pairs(
    texts: BytesTable, tokens: int
) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """(uint8[tokens] whether merging can make a token; int32 left, right and merged of each pair, by rising length of
    the tokens)."""
    lengths = np.diff(texts.offsets)
    order, longest = np.argsort(lengths, kind="stable"), int(np.max(lengths, initial=0))
    sizes = np.zeros(longest + 2, np.int64)  # the next smaller length that occurs, 0 if none does
    sizes[1:] = np.maximum.accumulate(np.where(np.isin(np.arange(longest + 1), lengths), np.arange(longest + 1), 0))
    slots = slot_count(lengths.size)
    work = PairWork(
        np.zeros(longest + 1, np.uint64),
        np.ones(longest + 1, np.uint64),
        np.zeros(longest + 1, np.uint8),
        np.zeros(longest + 1, np.int32),
        np.zeros(slots, np.uint64),
        np.zeros(slots, np.int32),
        np.full(lengths.size, ABSENT, np.int32),
        np.full(lengths.size, ABSENT, np.int32),
    )
    link_texts(texts, frozen(order, np.int64), frozen(sizes, np.int64), work)
    order = frozen(order[order < tokens], np.int64)
    reachable, capacity = np.zeros(tokens, np.uint8), FIRST_CAPACITY
    while True:
        left, right, merged = (np.empty(capacity, np.int32) for _ in range(3))
        count = find_pairs(texts, tokens, order, work, reachable, left, right, merged)
        if count <= capacity:
            return reachable, left[:count].copy(), right[:count].copy(), merged[:count].copy()
        capacity = count


@helper
def _reduced(x: np.uint64) -> np.uint64:
    """x modulo PRIME."""
    x = add(x & PRIME, x >> _61)
    return x - PRIME if x >= PRIME else x


@helper
def times(a: np.uint64, b: np.uint64) -> np.uint64:
    """a * b modulo PRIME, both below it, by halves of 31 bits."""
    a_high, a_low, b_high, b_low = a >> _31, a & _LOW31, b >> _31, b & _LOW31
    middle = add(multiply(a_high, b_low), multiply(a_low, b_high))
    high = add(multiply(a_high, b_high) << _1, middle >> _30)
    return _reduced(add(add(high, (middle & _LOW30) << _31), multiply(a_low, b_low)))


@helper
def _of_stretch(hashes: Window, powers: Window, i: int, j: int) -> np.uint64:
    """The hash of bytes i .. j - 1 of the current text."""
    return _reduced(add(get_u64(hashes, j), PRIME - times(get_u64(hashes, i), get_u64(powers, j - i))))


@helper
def _find(work: PairWork, texts: BytesTable, key: np.uint64, start: int, size: int) -> int:
    """The slot of the text data[start:start + size], which has this hash, or a free slot for it."""
    mask = work.slots.size - 1
    known, slots, data, offsets = window(work.known), window(work.slots), window(texts.data), window(texts.offsets)
    at = np.int64(multiply(key, _MIX) >> np.uint64(20)) & mask
    while True:
        row = get_i32(slots, at) - 1
        if row == ABSENT:
            return at
        if get_u64(known, at) == key:
            there, k = get_i64(offsets, row), 0
            if get_i64(offsets, row + 1) - there == size:
                while k < size and get_u8(data, there + k) == get_u8(data, start + k):
                    k += 1
                if k == size:
                    return at
        at = (at + 1) & mask


@kernel
def link_texts(texts: BytesTable, order: I64, sizes: I64, work: PairWork) -> int:
    """Fill the slots, and prefix and suffix of all rows. Linear in the bytes.

    order: int64[rows] rows by rising length; sizes: int64[longest + 2] for each length the next smaller that occurs
    """
    hashes, powers, data = window(work.hashes), window(work.powers), window(texts.data)
    base = _reduced(texts.keys[1])
    for k in range(1, work.powers.size):
        put_u64(powers, k, times(get_u64(powers, k - 1), base))
    for k in range(order.size):
        row = order[k]
        start = texts.offsets[row]
        size = texts.offsets[row + 1] - start
        for i in range(size):
            byte = np.uint64(get_u8(data, start + i) + 1)
            put_u64(hashes, i + 1, _reduced(add(times(get_u64(hashes, i), base), byte)))
        n = sizes[size]
        while n > 0 and work.prefix[row] == ABSENT:
            position = _find(work, texts, get_u64(hashes, n), start, n)
            work.prefix[row] = as_int64(work.slots[position]) - 1
            n = sizes[n]
        n = sizes[size]
        while n > 0 and work.suffix[row] == ABSENT:
            position = _find(work, texts, _of_stretch(hashes, powers, size - n, size), start + size - n, n)
            work.suffix[row] = as_int64(work.slots[position]) - 1
            n = sizes[n]
        position = _find(work, texts, get_u64(hashes, size), start, size)
        if work.slots[position] == 0:
            work.slots[position] = row + 1
            work.known[position] = get_u64(hashes, size)
    return order.size


@kernel
def find_pairs(
    texts: BytesTable, tokens: int, order: I64, work: PairWork, reachable: OutU8,
    left: OutI32, right: OutI32, merged: OutI32,
) -> int:  # fmt: skip
    """Find every way to make a token from two symbols that are characters or can be made themselves.

    texts: of all symbols; order: int64[tokens] ids by rising length; work: as filled by `link_texts`
    reachable: uint8[tokens] output; left, right, merged: int32[capacity] output

    Returns their number; if that is above the capacity, only the first ones were written. Linear in the bytes.
    """
    count, data = 0, window(texts.data)
    offsets, prefix, suffix, chain = window(texts.offsets), window(work.prefix), window(work.suffix), window(work.chain)
    for at in range(tokens):
        token = order[at]
        start, stop = get_i64(offsets, token), get_i64(offsets, token + 1)
        size = stop - start
        for k in range(1, size + 1):
            work.begins[k] = 0
        first = min(lead_length(get_u8(data, start)), size) if size > 0 else 0
        reachable[token] = first == size
        i, last = first, 0
        while i < size:
            work.begins[i] = 1
            last = i
            i = min(i + lead_length(get_u8(data, start + i)), size)
        depth, a = 0, get_i32(prefix, token)
        while a != ABSENT:
            put_i32(chain, depth, a)
            depth += 1
            a = get_i32(prefix, a)
        b = get_i32(suffix, token)
        while depth > 0 and b != ABSENT:  # prefixes from the shortest, suffixes from the longest
            a = get_i32(chain, depth - 1)
            i, rest = get_i64(offsets, a + 1) - get_i64(offsets, a), get_i64(offsets, b + 1) - get_i64(offsets, b)
            if i + rest > size:
                b = get_i32(suffix, b)
                continue
            depth -= 1
            if (
                i + rest == size
                and work.begins[i] != 0
                and (i == first or (a < tokens and reachable[a] != 0))
                and (i == last or (b < tokens and reachable[b] != 0))
            ):
                reachable[token] = 1
                if count < left.size:
                    left[count], right[count], merged[count] = a, b, token
                count += 1
    return count

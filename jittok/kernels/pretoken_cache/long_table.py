"""Long pre-tokens in the cache: a table of hashes, with texts and ids in stores of their own."""

from __future__ import annotations

import numpy as np

from jittok.kernels.jit import helper
from jittok.kernels.memory import (
    Window,
    add,
    copy_four,
    get_i64,
    get_u8,
    get_u64,
    get_word,
    multiply,
    put_i64,
    put_u8,
    put_u64,
)
from jittok.kernels.pretoken_cache.tables import (
    K1,
    K2,
    K3,
    LONG_COUNT,
    LONGEST_KEPT,
    TEXT_USED,
    CacheWindow,
    drop_stores,
    keep_ids,
)

_0, _1, _29, _30, _32 = (np.uint64(k) for k in (0, 1, 29, 30, 32))
_LOW32 = np.uint64(0xFFFFFFFF)


@helper
def hash_long(text: Window, i: int, n: int) -> np.uint64:
    """Hash of n >= 16 bytes, never 0."""
    a, b = multiply(np.uint64(n), K3), K1
    k = 0
    while k < n - 16:
        a = multiply(a ^ get_word(text, i + k), K1)
        b = multiply(b ^ get_word(text, i + k + 8), K2)
        a ^= a >> _29
        b ^= b >> np.uint64(31)
        k += 16
    a = multiply(a ^ get_word(text, i + n - 16), K1)
    b = multiply(b ^ get_word(text, i + n - 8), K2)
    h = add(multiply(a ^ (a >> _32), K3), b)
    return (h ^ (h >> _30)) | _1


@helper
def find_long(cache: CacheWindow, text: Window, i: int, n: int, h: np.uint64, ids: Window, count: int) -> int:
    """Write the ids of a long pre-token to ids[count:]. Returns the new count, or -1 on a miss."""
    at = np.int64(h >> _32) & (cache.long_slots - 1)
    while True:
        found = get_u64(cache.long, 3 * at)
        if found == _0:
            return -1
        if found == h:
            where, what = get_u64(cache.long, 3 * at + 1), get_u64(cache.long, 3 * at + 2)
            if np.int64(where >> _32) == n and same_bytes(cache.text, np.int64(where & _LOW32), text, i, n):
                position, number = np.int64(what & _LOW32), np.int64(what >> _32)
                for k in range(0, number, 4):
                    copy_four(ids, count + k, cache.ids, position + k)
                return count + number
        at = (at + 1) & (cache.long_slots - 1)


@helper
def keep_long(
    cache: CacheWindow, text: Window, i: int, n: int, h: np.uint64, ids: Window, start: int, stop: int
) -> None:
    """Insert the ids of a long pre-token, after a miss of `find_long`."""
    if n > LONGEST_KEPT or stop - start > cache.ids_size:
        return
    used = get_i64(cache.state, TEXT_USED)
    if used + n > cache.text_size or 2 * get_i64(cache.state, LONG_COUNT) >= cache.long_slots:
        drop_stores(cache)
    position = keep_ids(cache, ids, start, stop)  # may drop the stores itself
    used = get_i64(cache.state, TEXT_USED)
    for k in range(n):
        put_u8(cache.text, used + k, get_u8(text, i + k))
    at = np.int64(h >> _32) & (cache.long_slots - 1)
    while get_u64(cache.long, 3 * at) != _0:
        at = (at + 1) & (cache.long_slots - 1)
    put_u64(cache.long, 3 * at, h)
    put_u64(cache.long, 3 * at + 1, np.uint64(used) | np.uint64(n) << _32)
    put_u64(cache.long, 3 * at + 2, np.uint64(position) | np.uint64(stop - start) << _32)
    put_i64(cache.state, TEXT_USED, used + n)
    put_i64(cache.state, LONG_COUNT, get_i64(cache.state, LONG_COUNT) + 1)


@helper
def same_bytes(kept: Window, at: int, text: Window, i: int, n: int) -> bool:
    """Whether n >= 8 bytes are equal."""
    k = 0
    while k + 8 <= n:
        if get_word(kept, at + k) != get_word(text, i + k):
            return False
        k += 8
    return bool(get_word(kept, at + n - 8) == get_word(text, i + n - 8))

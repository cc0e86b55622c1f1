"""A cache for spans of a sentencepiece model whose best path depends on rounding.

Every sum in a span is a float: the base, which is the sum of the text before the span, plus some scores. While all sums
are between 2 ** e and 2 ** (e + 1), they are multiples of the same unit in the last place, and so is their distance
from the base. Adding a score to any of them adds the same multiple, because the score is rounded to units; only exactly
half a unit is rounded to the even one of two multiples. So the distances of all sums, and the path, depend only on e,
the sign, and whether the base is an even multiple: its *context*. A path is stored for the context in which it was
found. If the next float as the base gives the same path, it is stored for even and odd bases.
"""

from __future__ import annotations

import numpy as np

from jittok.kernels.jit import helper
from jittok.kernels.memory import Window, get_f64, get_i32, get_u64, leading_zeros, multiply, put_i32, put_u64
from jittok.kernels.models.ugm.decided_prefix import HIGHEST, LOWEST
from jittok.kernels.models.ugm.files.arrays import DOUBT, DOUBT_BITS, DOUBT_IDS
from jittok.kernels.models.ugm.files.lattice import EXACT, FileLattice, best_paths
from jittok.kernels.pretoken_cache.tables import Key

LEAST_BASE, MOST_BASE = float(2**7), float(2**17)
"""Only a base between these has a context: a span changes a smaller one too much, and larger ones do not occur."""
NO_CONTEXT = 0
ODD, ANY = 1, 2
"""Bits of a context; the others are e and the sign."""
_DIGITS = 24
"""Significant bits of a float."""
_K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_FF, _8, _32, _REST = (np.uint64(k) for k in (0xFF, 8, 32, 64 - DOUBT_BITS))
_MOST_REACH = 1 << 20


@helper
def _unit(base: float) -> int:
    """The number of units in 1.0 at this base, or 0 if it has no context."""
    if not LEAST_BASE <= abs(base) < MOST_BASE:
        return 0
    return 1 << (_DIGITS - 1 - (63 - leading_zeros(np.uint64(np.int64(abs(base))))))


@helper
def context_of(base: float, reach: int) -> int:
    """The context of a span whose sums differ from its base by at most `reach`; NO_CONTEXT unless e is certainly the
    same for all."""
    scale = _unit(base)
    if scale == 0:  # also if the sum is NaN
        return NO_CONTEXT
    units, low = np.int64(abs(base) * scale), 1 << (_DIGITS - 1)
    if units - reach * scale < low or units + reach * scale >= 2 * low:
        return NO_CONTEXT
    return (leading_zeros(np.uint64(scale)) - 32) << 3 | np.int64(base < 0.0) << 2 | units & ODD


@helper
def _slot_of(key: Key, context: int) -> int:
    h = multiply(key[0] ^ multiply(key[1] ^ np.uint64(context | ODD), _K1), _K2)
    h = multiply(h ^ key[2] ^ multiply(key[3], _K1), _K2)
    return np.int64(h >> _REST)


@helper
def lookup(own: FileLattice, key: Key, base: float, ids: Window, count: int) -> int:
    """Write the ids of a span to ids[count:] if its path from this base is stored; the new count, or -1."""
    context = context_of(base, 0)
    if context == NO_CONTEXT:
        return -1
    slot = _slot_of(key, context)
    at = DOUBT * slot
    head = get_u64(own.doubts, at + 4)
    there = np.int64(head & _FF)
    if (
        (there != context and there != context & ~ODD | ANY)
        or get_u64(own.doubts, at) != key[0]
        or get_u64(own.doubts, at + 1) != key[1]
        or get_u64(own.doubts, at + 2) != key[2]
        or get_u64(own.doubts, at + 3) != key[3]
        or context_of(base, np.int64(head >> _32)) == NO_CONTEXT
    ):
        return -1
    number = np.int64(head >> _8 & _FF)
    for k in range(number):
        put_i32(ids, count + k, get_i32(own.doubt_ids, DOUBT_IDS * slot + k))
    return count + number


@helper
def _reach(own: FileLattice, size: int, base: float) -> int:
    """An upper bound of how far sums were from the base in the span own.text[:size], whose path was just found: the
    best sums, and one step from each."""
    most = 0.0
    for k in range(size):  # offset 0 has the sum of the last one
        total = get_f64(own.sums, k)
        if total > LOWEST:
            most = max(most, abs(total - base))
    return np.int64(most + max(abs(own.unk_score), HIGHEST)) + 2


@helper
def store(own: FileLattice, key: Key, base: float, size: int, ids: Window, count: int, done: int) -> None:
    """Store ids[count:done] as the path of the span own.text[:size] from this base. It was just found."""
    reach, number = _reach(own, size, base), done - count
    if number > DOUBT_IDS or reach > _MOST_REACH or context_of(base, reach) == NO_CONTEXT:
        return
    context = context_of(base, reach)
    slot = _slot_of(key, context)
    at, kept = DOUBT * slot, DOUBT_IDS * slot
    put_u64(own.doubts, at, key[0])
    put_u64(own.doubts, at + 1, key[1])
    put_u64(own.doubts, at + 2, key[2])
    put_u64(own.doubts, at + 3, key[3])
    for k in range(number):
        put_i32(own.doubt_ids, kept + k, get_i32(ids, count + k))
    same = best_paths(own, size, base + 1.0 / _unit(base), EXACT, False, ids, count) == done
    for k in range(number):
        same = same and get_i32(ids, count + k) == get_i32(own.doubt_ids, kept + k)
        put_i32(ids, count + k, get_i32(own.doubt_ids, kept + k))
    if same:
        context = context & ~ODD | ANY
    put_u64(own.doubts, at + 4, np.uint64(context) | np.uint64(number) << _8 | np.uint64(reach) << _32)

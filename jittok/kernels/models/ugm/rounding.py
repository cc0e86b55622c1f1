"""Paths that rounding decides, in files whose own library adds scores as they come: doubles in a tokenizer.json, floats
in a sentencepiece model.

Sums start at the actual sum of the text, which is 0 where a word begins (tokenizer.json) or a text (sentencepiece). A
span for the cache is always computed from 0. That is correct if at each offset of its path the best sum exceeds all
others by more than rounding can change (`near`); otherwise the result is ROUNDING_SENSITIVE, the span is not cached,
and its path is found again from the sum that the text actually has there.

For example, floats from 1024 to 2048 are multiples of 2**-13 = 0.00012. From a sum of 0, "ab" may be the token ab
(-3.00001) or a (-1) and b (-2): the latter is better by 0.00001. From -1024.0, both end at -1027.0, and of equal sums
the first stays: the token ab, which is tried first. So this span has two answers, and `near` is larger than 0.00001.

For such spans of a sentencepiece model there is a cache of its own. Every sum in a span is a float: the base, which is
the sum of the text before the span, plus some scores. While all sums are between 2 ** e and 2 ** (e + 1), they are
multiples of the same unit in the last place, and so is their distance from the base. Adding a score to any of them adds
the same multiple, because the score is rounded to units; only exactly half a unit is rounded to the even one of two
multiples. So the distances of all sums, and the path, depend only on e, the sign, and whether the base is an even
multiple: its *context*. A path is stored for the context in which it was found. If the next float as the base gives the
same path, it is stored for even and odd bases.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.common.unicode.characters import SPACE_BYTE
from jittok.kernels.jit import helper
from jittok.kernels.memory import (
    Window,
    get_f64,
    get_i32,
    get_i64,
    get_u8,
    get_u64,
    leading_zeros,
    multiply,
    put_f64,
    put_i32,
    put_i64,
    put_u64,
    window,
)
from jittok.kernels.models.ugm.file_arrays import (
    DOUBT,
    DOUBT_BITS,
    DOUBT_IDS,
    LARGEST,
    SETTLED,
    SUM,
    UnigramFileArrays,
    UnigramFileWork,
)
from jittok.kernels.models.ugm.lattice import (
    EXACT,
    HIGHEST,
    LOWEST,
    MOST_CHARACTER,
    OUT_OF_CACHE,
    ROUNDING_SENSITIVE,
    Lattice,
    file_score,
    make_lattice,
)
from jittok.kernels.pretoken_cache.tables import Key
from jittok.kernels.structures.double_array import SCORE, UNIT
from jittok.kernels.structures.long_keys import open_long

MOST_OF_SPAN = float(2**12)
"""The largest sum of a span for the cache."""
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


class FileSums(NamedTuple):
    """The lattice of a file, the sums of the ids written so far, and the cache of paths that rounding decides."""

    lattice: Lattice
    steps: Window
    begins: Window
    state: Window
    positions: Window
    near: float
    most_sum: float
    doubts: Window
    doubt_ids: Window


@helper
def open_sums(arrays: UnigramFileArrays, work: UnigramFileWork) -> FileSums:
    """Windows onto the arrays."""
    lattice = Lattice(
        window(arrays.trie.units),
        window(arrays.scores),
        window(arrays.byte_ids),
        1 if arrays.byte_ids[0] >= 0 else 0,
        arrays.literal,
        arrays.unk_id,
        arrays.unk_score,
        arrays.single,
        0,
        max(arrays.longest, MOST_CHARACTER),
        open_long(arrays.long),
        window(work.text),
        window(work.sums),
        window(work.arcs),
        window(work.long),
        window(work.found),
        1 if arrays.trie.units.size > OUT_OF_CACHE else 0,
    )
    return FileSums(
        lattice,
        window(arrays.steps),
        window(arrays.begins),
        window(work.state),
        window(work.positions),
        arrays.near,
        arrays.most_sum,
        window(work.doubts),
        window(work.doubt_ids),
    )


@helper
def _score(own: Lattice, token: int, node: int) -> float:
    return file_score(own, token, get_i32(own.units, UNIT * node + SCORE))


find_path, extend, write_path = make_lattice(_score, rounds=True, marked=True)


@helper
def best_paths(own: FileSums, size: int, base: float, near: float, whole: bool, ids: Window, count: int) -> int:
    """Ids of own.lattice.text[:size], for a tokenizer.json word by word; the new count, ROUNDING_SENSITIVE or WHOLE."""
    lattice, begin = own.lattice, 0
    while begin < size:
        end = size
        if lattice.single == 0:
            if get_u8(lattice.text, begin) == SPACE_BYTE:
                base, near = 0.0, EXACT
            end = begin + 1
            while end < size and get_u8(lattice.text, end) != SPACE_BYTE:
                end += 1
        total = find_path(lattice, lattice.text, 0, begin, end, base, near)
        if near != EXACT and abs(total) >= MOST_OF_SPAN:
            return ROUNDING_SENSITIVE
        count = write_path(lattice, lattice.text, 0, begin, end, whole, False, ids, count)
        if count < 0:
            return count
        if whole and lattice.single != 0:
            go_back(own, total, count)
        begin = end
    return count


# ---- sums of the ids written so far


@helper
def sum_here(own: FileSums, ids: Window, count: int) -> float:
    """The sum of the text after ids[:count]; NaN if ids do not determine it."""
    return settle(own, ids, count) if own.lattice.single != 0 else _sum_of_word(own, ids, count)


@helper
def _sum_of_word(own: FileSums, ids: Window, count: int) -> float:
    k = count - 1
    while k >= 0 and (get_i32(ids, k) >= own.lattice.literal or get_u8(own.begins, get_i32(ids, k)) == 0):
        k -= 1
    if k < 0:
        return np.nan
    total = 0.0
    while k < count:
        token = get_i32(ids, k)
        total += get_f64(own.steps, token) if token < own.lattice.literal else np.nan
        k += 1
    return total


@helper
def go_back(own: FileSums, total: float, count: int) -> None:
    """Discard the ids after ids[:count], where the sum is `total`."""
    put_f64(own.state, SUM, total)
    put_f64(own.state, LARGEST, abs(total))
    put_i64(own.positions, SETTLED, count)


@helper
def total_here(own: FileSums) -> float:
    """The sum of the settled ids."""
    return get_f64(own.state, SUM)


@helper
def settle(own: FileSums, ids: Window, count: int) -> float:
    """The sum after ids[:count], added as sentencepiece adds; NaN if it was too large on the way."""
    # adding as doubles and rounding gives the same floats, but takes three times as long in this serial chain
    total, largest = np.float32(get_f64(own.state, SUM)), np.float32(get_f64(own.state, LARGEST))
    for k in range(get_i64(own.positions, SETTLED), count):
        total = np.float32(total + np.float32(get_f64(own.steps, get_i32(ids, k))))
        largest = max(largest, abs(total))
    put_f64(own.state, SUM, np.float64(total))
    put_f64(own.state, LARGEST, np.float64(largest))
    put_i64(own.positions, SETTLED, count)
    return np.float64(total) if largest < own.most_sum else np.nan


# ---- the cache of paths that rounding decides


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
def lookup(own: FileSums, key: Key, base: float, ids: Window, count: int) -> int:
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
def _reach(own: FileSums, size: int, base: float) -> int:
    """An upper bound of how far sums were from the base in the span of `size` bytes whose path was just found: the best
    sums, and one step from each."""
    most = 0.0
    for k in range(size):  # offset 0 has the sum of the last one
        total = get_f64(own.lattice.sums, k)
        if total > LOWEST:
            most = max(most, abs(total - base))
    return np.int64(most + max(abs(own.lattice.unk_score), HIGHEST)) + 2


@helper
def store(own: FileSums, key: Key, base: float, size: int, ids: Window, count: int, done: int) -> None:
    """Store ids[count:done] as the path of the span own.lattice.text[:size] from this base. It was just found."""
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

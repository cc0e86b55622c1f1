"""Characters that become several, in a copy of the fragments that have any; the others stay where they are.

What one character becomes as one other is no matter of this: models look that up as they read. Characters are *odd*
where what they become depends on their neighbours: fragments with one are told, and somebody else rewrites them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import I32, I64, U8, OutI64, OutU8, frozen, helper, kernel, wide
from jittok._raw import window
from jittok.normalize.quick import QuickTable, next_any, open_quick, quick_table
from jittok.structures.utf8 import decode
from jittok.structures.valid import is_malformed

GROWTH = 3
"""Bytes that a byte becomes at most."""


class CharacterMap(NamedTuple):
    """What becomes of characters that become several. Odd ones become nothing."""

    quick: QuickTable
    points: I32  # [n] rising
    offsets: I32  # [n + 1]
    texts: U8


def character_map(points: NDArray[np.int64], texts: list[bytes], matters: NDArray[np.bool_]) -> CharacterMap:
    """points: int64[n] rising; texts: what they become, b"" for odd ones; matters: bool[0x110000] the same points."""
    ends = np.cumsum([0, *map(len, texts)])
    data = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
    return CharacterMap(quick_table(matters), frozen(points, np.int32), frozen(ends, np.int32), frozen(data, np.uint8))


@kernel
def find_mapped(table: CharacterMap, data: U8, starts: I64, stops: I64, tokens: I32, count: int, places: OutI64) -> int:
    """How many bytes the fragments have together that hold such characters; -1 - k where k is the first no UTF-8.

    starts, stops: int64[count], tokens: int32[count] as `jittok.fragments` says
    places: int64[count] receives where the first of them stands in each fragment, or -1
    """
    text, quick, total = window(data), open_quick(table.quick), wide(0)
    for k in range(count):
        places[k] = -1
        start, stop = wide(starts[k]), wide(stops[k])
        if tokens[k] < 0 and start < stop:
            place = next_any(quick, text, start, stop)
            if place < stop:
                if is_malformed(text, place, stop):
                    return -1 - k
                places[k] = place
                total += stop - start
    return total


@kernel
def write_mapped(
    table: CharacterMap, data: U8, starts: I64, stops: I64, found: I64, count: int, out: OutU8, places: OutI64,
    odd: OutU8,
) -> int:  # fmt: skip
    """Those fragments to `out`, behind each other; how many bytes.

    found: int64[count] as `find_mapped` left it; out: uint8[GROWTH * what it returned]
    places: int64[2 * count] receives where each begins and ends in `out`; odd: uint8[count] 1 where one has odd ones
    """
    text, quick, at = window(data), open_quick(table.quick), wide(0)
    for k in range(count):
        places[2 * k], odd[k] = at, 0
        if found[k] >= 0:
            done, stop, i = wide(starts[k]), wide(stops[k]), wide(found[k])
            while i < stop:
                at = _copy(data, done, i, out, at)
                c, size = decode(data, i, stop, 1)
                row = _row(table.points, c)
                if row >= 0:
                    first, behind = wide(table.offsets[row]), wide(table.offsets[row + 1])
                    if first == behind:
                        odd[k] = 1
                    at = _copy(table.texts, first, behind, out, at)
                else:
                    at = _copy(data, i, i + size, out, at)
                done = i + size
                i = done if done == stop else next_any(quick, text, done, stop)
            at = _copy(data, done, stop, out, at)
        places[2 * k + 1] = at
    return at


@helper
def _copy(data: U8, start: int, stop: int, out: OutU8, at: int) -> int:
    for k in range(stop - start):
        out[at + k] = data[start + k]
    return at + stop - start


@helper
def _row(points: I32, wanted: int) -> int:
    """The row of a code point, -1 where it has none."""
    low, high = 0, points.size
    while low < high:
        middle = (low + high) >> 1
        if wide(points[middle]) < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < points.size and wide(points[low]) == wanted else -1

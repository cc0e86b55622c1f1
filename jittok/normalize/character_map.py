"""Characters that become several, in a copy of the fragments that have any; the others stay where they are.

What one character becomes as one other is no matter of this: models look that up as they read. Characters are *odd*
where what they become depends on their neighbours: fragments with one are told, and somebody else rewrites them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import I32, I64, U8, OutI64, OutU8, frozen, helper, kernel, wide
from jittok._raw import Window, window
from jittok.normalize.quick import (
    QuickTable,
    QuickWindow,
    known_by_lead,
    next_any,
    next_that_matters,
    open_quick,
    quick_table,
)
from jittok.structures.utf8 import decode
from jittok.structures.valid import is_malformed
from jittok.unicode.nfc import S_BASE, S_COUNT
from jittok.unicode.tables import UNICODE_SIZE

DRY = 8
"""Characters that stay, one after the other, behind which many are passed over at once."""
GROWTH = 3
"""Bytes that a byte becomes at most."""


class CharacterMap(NamedTuple):
    """What becomes of characters that become several. Odd ones become nothing."""

    quick: QuickTable
    points: I32  # [n] rising
    offsets: I32  # [n + 1]
    texts: U8
    least: int  # the first of the points
    by_lead: int  # 1 where `quick.LEADS` are the first bytes of all of them
    hangul: int  # the row of the first syllable, those of the others follow; -1 where there are none


def character_map(points: NDArray[np.int64], sizes: NDArray[np.int64], texts: bytes) -> CharacterMap:
    """points: int64[n] rising; sizes: int64[n] bytes that each becomes, 0 of odd ones; texts: these bytes."""
    matters = np.zeros(UNICODE_SIZE, np.bool_)
    matters[points] = True
    row = int(np.searchsorted(points, S_BASE))
    syllables = points[row : row + S_COUNT]
    hangul = row if syllables.size == S_COUNT and syllables[-1] == S_BASE + S_COUNT - 1 else -1
    quick = quick_table(matters)
    return CharacterMap(
        quick, frozen(points, np.int32), frozen(np.append(0, np.cumsum(sizes)), np.int32),
        frozen(np.frombuffer(texts or b"\0", np.uint8), np.uint8),
        int(points[0]) if points.size else UNICODE_SIZE, int(known_by_lead(quick)), hangul,
    )  # fmt: skip


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
            place = _next(table, quick, text, start, stop)
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
    places: int64[2 * count] receives where each begins and ends in `out`; odd: uint8[count] 1 where one has odd ones,
    which stay as they are
    """
    text, quick, at = window(data), open_quick(table.quick), wide(0)
    for k in range(count):
        places[2 * k], odd[k] = at, 0
        if found[k] >= 0:
            i, stop, dry = wide(found[k]), wide(stops[k]), 0
            at = _copy(data, wide(starts[k]), i, out, at)
            while i < stop:
                c, size = decode(data, i, stop, 1)
                row = _row(table, c)
                if row >= 0:
                    first, behind, dry = wide(table.offsets[row]), wide(table.offsets[row + 1]), 0
                    if first == behind:
                        odd[k] = 1
                        at = _copy_one(data, i, size, out, at)
                    while first < behind:  # mostly jamo, of three bytes each
                        step = min(behind - first, 3)
                        at = _copy_one(table.texts, first, step, out, at)
                        first += step
                else:
                    at = _copy_one(data, i, size, out, at)
                    dry += 1
                i += size
                if dry == DRY and i < stop:
                    place = _next(table, quick, text, i, stop)
                    at = _copy(data, i, place, out, at)
                    i, dry = place, 0
        places[2 * k + 1] = at
    return at


@helper
def _next(table: CharacterMap, quick: QuickWindow, text: Window, i: int, stop: int) -> int:
    if table.by_lead != 0:
        return next_that_matters(quick, text, i, stop)
    return next_any(quick, text, i, stop)


@helper
def _copy(data: U8, start: int, stop: int, out: OutU8, at: int) -> int:
    for k in range(stop - start):
        out[at + k] = data[start + k]
    return at + stop - start


@helper
def _copy_one(data: U8, start: int, size: int, out: OutU8, at: int) -> int:
    """The same of a character, without a loop."""
    out[at] = data[start]
    if size > 1:
        out[at + 1] = data[start + 1]
    if size > 2:
        out[at + 2] = data[start + 2]
    if size > 3:
        out[at + 3] = data[start + 3]
    return at + size


@helper
def _row(table: CharacterMap, wanted: int) -> int:
    """The row of a code point, -1 where it has none."""
    points = table.points
    if S_BASE <= wanted < S_BASE + S_COUNT and table.hangul >= 0:
        return table.hangul + wanted - S_BASE
    if wanted < wide(table.least):
        return -1
    low, high = 0, points.size
    while low < high:
        middle = (low + high) >> 1
        if wide(points[middle]) < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < points.size and wide(points[low]) == wanted else -1

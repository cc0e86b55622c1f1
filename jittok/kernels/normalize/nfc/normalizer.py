"""NFC of Unicode 16.0, bytes to bytes: a quick check, then a copy of the fragments that change, with a map of offsets.

A text consists of *segments*: a code point begins a new one if nothing before it can change it, or be changed by it
(`unicode.nfc.begins_anew`). A segment in NFC is copied byte for byte. In a segment that changes, each output byte maps
to all of the input bytes. Bytes that are invalid UTF-8 become U+FFFD, one each; surrogates stay. Linear, also for
thousands of marks in a row.

Independent of vocabularies: callers run `find_changed`, allocate the output, and run `normalize_changed`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.common.unicode.nfc import (
    L_BASE,
    L_COUNT,
    S_BASE,
    S_COUNT,
    T_BASE,
    T_COUNT,
    V_BASE,
    V_COUNT,
)
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, OutU8, as_int64, helper, kernel
from jittok.kernels.memory import Window, get_u8, get_u16, window
from jittok.kernels.normalize.nfc.quick_check import next_that_matters, open_quick
from jittok.kernels.normalize.nfc.tables import CLASS, CONTINUES, MAY_CHANGE, Nfc
from jittok.kernels.structures.utf8 import decode, encode
from jittok.kernels.structures.utf8_check import is_malformed

GROWTH = 3
"""Limit of bytes that one byte becomes."""
NOT_UTF8 = -1
"""Returned instead of an offset: the text is invalid UTF-8."""
SURROGATES = 0xD800 >> 11
NO_MAP = 0
"""Size of `map_starts` and `map_stops` if no map of offsets is needed."""
SHORT_RUN = 24
"""Limit of marks that are sorted by insertion; longer runs are sorted class by class."""


class NfcWork(NamedTuple):
    """Scratch for fragments of up to `longest` bytes."""

    points: OutI32  # [2 * longest + 8] a segment, decomposed
    marks: OutI32  # [2 * longest + 8] while marks are sorted


def make_nfc_work(longest: int) -> NfcWork:
    """Scratch for fragments of up to `longest` bytes: a code point of two bytes decomposes to at most three."""
    return NfcWork(np.empty(2 * longest + 8, np.int32), np.empty(2 * longest + 8, np.int32))


@kernel
def find_changed(
    tables: Nfc, data: U8, starts: I64, stops: I64, tokens: I32, count: int, strict: int, positions: OutI64
) -> int:
    """The total bytes of the fragments that NFC changes.

    starts, stops: int64[count], tokens: int32[count] as in `jittok.kernels.fragments`; ids are skipped
    strict: 0 or 1: return -1 - k where fragment k is the first that is invalid UTF-8
    positions: int64[count] receives for each fragment where its first segment that changes begins, or -1
    """
    text, total = window(data), as_int64(0)
    for k in range(count):
        positions[k] = -1
        if tokens[k] < 0:
            stop = as_int64(stops[k])
            position = first_change(tables, text, data, as_int64(starts[k]), stop, strict)
            if position == NOT_UTF8 or (strict and position < stop and is_malformed(text, position, stop)):
                return -1 - k
            if position < stop:
                positions[k] = position
                total += stop - as_int64(starts[k])
    return total


@kernel
def normalize_changed(
    tables: Nfc, work: NfcWork, data: U8, starts: I64, stops: I64, changes: I64, count: int, out: OutU8,
    map_starts: OutI64, map_stops: OutI64, positions: OutI64,
) -> int:  # fmt: skip
    """Write the fragments that change, normalized, to `out`, one after the other; how many bytes.

    changes: int64[count] `positions` of `find_changed`
    out: uint8[GROWTH * what `find_changed` returned]
    map_starts, map_stops: int64[the same] or int64[NO_MAP]: byte k of `out` comes from data[map_starts[k]:map_stops[k]]
    positions: int64[2 * count] receives where each begins and ends in `out`; fragments that do not change are empty
    """
    text, at = window(data), as_int64(0)
    for k in range(count):
        positions[2 * k], positions[2 * k + 1] = at, at
        if changes[k] < 0:
            continue
        i, stop = as_int64(changes[k]), as_int64(stops[k])
        at = _copy(data, as_int64(starts[k]), i, out, at, map_starts, map_stops)
        while i < stop:
            end = _stretch_end(tables, data, i, stop)
            at = _put_stretch(tables, work, data, i, end, out, at, map_starts, map_stops)
            i = end
            position = first_change(tables, text, data, i, stop, 0)
            at = _copy(data, i, position, out, at, map_starts, map_stops)
            i = position
        positions[2 * k + 1] = at
    return at


@helper
def first_change(tables: Nfc, text: Window, data: U8, start: int, stop: int, strict: int) -> int:
    """Where the first segment of data[start:stop] that NFC changes begins, or stop; a segment begins at `start`. If
    `strict`, NOT_UTF8 if the text up to there is invalid UTF-8; else bad bytes count as changes, and surrogates
    stay."""
    pages, blocks, facts = window(tables.pages), window(tables.blocks), window(tables.facts)
    quick, done = open_quick(tables.quick), start
    while done < stop:
        floor, i = done, next_that_matters(quick, text, done, stop)
        if i == stop:
            break
        # its segment begins before it; `last` is the combining class of the code point before, in this segment
        first, done = i, stop
        while i > floor:
            i -= 1
            while i > floor and get_u8(text, i) & 0xC0 == 0x80:
                i -= 1
            c, size = decode(data, i, stop, 1)
            if get_u16(facts, get_u8(blocks, get_u16(pages, c >> 7) << 7 | c & 127)) & CONTINUES == 0:
                break
        begin, last = i, 0
        while i < stop:
            c, size = decode(data, i, stop, 1)
            if size == 1 and c >= 0x80:  # a bad byte begins a segment that changes
                return NOT_UTF8 if strict else i
            if strict and c >> 11 == SURROGATES:
                return NOT_UTF8
            fact = get_u16(facts, get_u8(blocks, get_u16(pages, c >> 7) << 7 | c & 127))
            if fact & CONTINUES == 0:
                begin, last = i, 0
            if fact != 0:
                own = fact & CLASS
                if (fact & MAY_CHANGE and _changes(tables, data, begin, i, c)) or (own != 0 and own < last):
                    return begin
                last = own
            elif i > first:  # the next code point may combine with this one
                done = i
                break
            i += size
    return stop


@helper
def _changes(tables: Nfc, data: U8, begin: int, i: int, c: int) -> bool:
    """Whether the code point c at i, which may change, changes the segment that begins at `begin`: it decomposes for
    good, or composes with a code point before it. Hard cases count as changes: then the result may be the same."""
    if _find(tables.decomposed, c) >= 0:
        return True
    if i == begin:
        return False
    first, size = decode(data, begin, i, 1)
    alone = begin + size == i and not S_BASE <= first < S_BASE + S_COUNT and _find(tables.decomposed, first) < 0
    return not alone or _pair(tables, first, c) >= 0


@helper
def _fact(tables: Nfc, c: int) -> int:
    return as_int64(tables.facts[as_int64(tables.blocks[as_int64(tables.pages[c >> 7]) << 7 | c & 127])])


@helper
def _stretch_end(tables: Nfc, data: U8, i: int, stop: int) -> int:
    """Where the segment that begins at i < stop ends."""
    _, size = decode(data, i, stop, 1)
    i += size
    while i < stop:
        c, size = decode(data, i, stop, 1)
        if _fact(tables, c) & CONTINUES == 0:
            break
        i += size
    return i


@helper
def _copy(data: U8, i: int, stop: int, out: OutU8, at: int, starts: OutI64, stops: OutI64) -> int:
    """Copy data[i:stop]; returns the offset after it."""
    for k in range(stop - i):
        out[at + k] = data[i + k]
    if starts.size > NO_MAP:
        for k in range(stop - i):
            starts[at + k], stops[at + k] = i + k, i + k + 1
    return at + stop - i


@helper
def _put_stretch(
    tables: Nfc, work: NfcWork, data: U8, start: int, stop: int, out: OutU8, at: int, starts: OutI64, stops: OutI64
) -> int:
    """Write one segment, normalized; returns the offset after it."""
    points, size, i, same = work.points, as_int64(0), start, as_int64(0)
    while i < stop:
        c, length = decode(data, i, stop, 1)
        size = _decompose(tables, c, points, size)
        i += length
    _sort_marks(tables, points, work.marks, size)
    size = _compose(tables, points, size)
    end = at
    for k in range(size):
        end = encode(as_int64(points[k]), out, end)
    while same < stop - start and same < end - at and out[at + same] == data[start + same]:
        same += 1
    changed = end - at != stop - start or same < end - at
    if starts.size > NO_MAP:
        for k in range(end - at):
            starts[at + k] = start if changed else start + k
            stops[at + k] = stop if changed else start + k + 1
    return end


@helper
def _decompose(tables: Nfc, c: int, points: OutI32, size: int) -> int:
    """Append the decomposition of a code point to the first `size` points; returns the new size."""
    syllable = c - S_BASE
    if 0 <= syllable < S_COUNT:
        points[size] = L_BASE + syllable // (V_COUNT * T_COUNT)
        points[size + 1] = V_BASE + syllable % (V_COUNT * T_COUNT) // T_COUNT
        points[size + 2] = T_BASE + syllable % T_COUNT
        return size + (3 if syllable % T_COUNT else 2)
    row = _find(tables.decomposed, c) if c >= 0xC0 else -1
    if row < 0:
        points[size] = c
        return size + 1
    for k in range(as_int64(tables.parts_at[row]), as_int64(tables.parts_at[row + 1])):
        points[size] = tables.parts[k]
        size += 1
    return size


@helper
def _find(sorted_: I32, wanted: int) -> int:
    """The index of a number, -1 if it is missing."""
    low, high = 0, sorted_.size
    while low < high:
        middle = (low + high) >> 1
        if as_int64(sorted_[middle]) < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < sorted_.size and as_int64(sorted_[low]) == wanted else -1


@helper
def _sort_marks(tables: Nfc, points: OutI32, marks: OutI32, size: int) -> None:
    """Sort each run of marks by combining class; stable."""
    i = as_int64(0)
    while i < size:
        if _fact(tables, as_int64(points[i])) & CLASS == 0:
            i += 1
            continue
        stop = i + 1
        while stop < size and _fact(tables, as_int64(points[stop])) & CLASS:
            stop += 1
        if stop - i <= SHORT_RUN:
            for k in range(i + 1, stop):
                c, j = as_int64(points[k]), k
                own = _fact(tables, c) & CLASS
                while j > i and _fact(tables, as_int64(points[j - 1])) & CLASS > own:
                    points[j] = points[j - 1]
                    j -= 1
                points[j] = c
        else:
            _sort_long(tables, points, marks, i, stop)
        i = stop


@helper
def _sort_long(tables: Nfc, points: OutI32, marks: OutI32, i: int, stop: int) -> None:
    """Sort a long run of marks: for each class that occurs, ascending, all its marks."""
    own = as_int64(0)
    at = as_int64(0)
    while at < stop - i:
        least = as_int64(CLASS + 1)
        for k in range(i, stop):
            found = _fact(tables, as_int64(points[k])) & CLASS
            if found > own and found < least:
                least = found
        own = least
        for k in range(i, stop):
            if _fact(tables, as_int64(points[k])) & CLASS == own:
                marks[at] = points[k]
                at += 1
    for k in range(at):
        points[i + k] = marks[k]


@helper
def _compose(tables: Nfc, points: OutI32, size: int) -> int:
    """Compose each point with the last starter if they compose and nothing between blocks it; returns the new size."""
    starter, last, kept = (
        as_int64(-1),
        as_int64(-1),
        as_int64(0),
    )  # last: class of what is kept after the starter, -1 for nothing
    for k in range(size):
        c = as_int64(points[k])
        own = _fact(tables, c) & CLASS
        if starter >= 0 and (last == -1 or last < own):
            whole = _pair(tables, as_int64(points[starter]), c)
            if whole >= 0:
                points[starter] = whole
                continue
        if own == 0:
            starter, last = kept, -1
        else:
            last = own
        points[kept] = c
        kept += 1
    return kept


@helper
def _pair(tables: Nfc, first: int, second: int) -> int:
    """The composition of two code points, or -1."""
    if L_BASE <= first < L_BASE + L_COUNT and V_BASE <= second < V_BASE + V_COUNT:
        return S_BASE + ((first - L_BASE) * V_COUNT + second - V_BASE) * T_COUNT
    syllable = first - S_BASE
    if 0 <= syllable < S_COUNT and syllable % T_COUNT == 0 and T_BASE < second < T_BASE + T_COUNT:
        return first + second - T_BASE
    wanted = first << 21 | second
    low, high = 0, tables.pairs.size
    while low < high:
        middle = (low + high) >> 1
        if tables.pairs[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return as_int64(tables.composed[low]) if low < tables.pairs.size and tables.pairs[low] == wanted else -1

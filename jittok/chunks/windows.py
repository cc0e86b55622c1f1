"""The kernel that cuts encoded texts into rows. The rules are those of `jittok.reference.chunks.windows`.

A row is a line of a table: which parts of a template it has, and which ids of the first and the second text stand
there. So texts are cut without copying an id; `written` writes rows once, in the form that is asked for.
"""

from __future__ import annotations

from typing import NamedTuple

from jittok.kernels.jit import I64, OutI64, helper, kernel
from jittok.kernels.memory import Window, get_i64, put_i64, window

ROW = 7
"""Numbers of a line of the table:"""
TEXT, FIRST_START, FIRST_STOP, SECOND_START, SECOND_STOP, PARTS, LENGTH = range(ROW)
"""Number of the text; ids of the first and of the second text, in all ids of these; parts of the template, the first of
them and, times PART, the one after the last; ids of the row."""
PART = 1 << 16
TOO_SHORT, NO_STEP = -1, -2
WHOLE, LONGEST_FIRST, ONLY_FIRST, ONLY_SECOND = range(4)
"""Strategies; WHOLE: nothing is cut."""


class Cutting(NamedTuple):
    """How texts are cut."""

    strategy: int
    room: int  # ids of texts in a row; with `document` ids of the row
    overlap: int
    left: int  # 1: windows begin at the end of the text
    every: int  # 1: all windows, 0: the first one of each text
    paired: int  # 1: there are second texts
    swapped: int  # 1: which are before the first ones in the template
    parts: int  # of the template
    before: int  # of these, before the first text
    document: int  # 1: special tokens are once around all windows of a text


@kernel
def cut_rows(how: Cutting, first: I64, second: I64, table: OutI64, report: OutI64) -> int:
    """Write the rows of all texts to `table`: int64[ROW * capacity]; once it is full they are only counted.

    first, second: int64[texts + 1] where the ids of the texts begin and end; `second` is not read unless how.paired
    report: int64[3]

    Returns the number of rows, or a code. TOO_SHORT: in the text report[0] a strategy for one text would have to remove
    all of its report[1] ids, or more; report[2]: how many. NO_STEP: in the text report[0] a window of report[1] ids
    would overlap the next one in all of them. Linear in texts and rows.
    """
    firsts, seconds, out, count = window(first), window(second), window(table), 0
    capacity = table.size // ROW
    for text in range(first.size - 1):
        a = get_i64(firsts, text + 1) - get_i64(firsts, text)
        b = get_i64(seconds, text + 1) - get_i64(seconds, text) if how.paired else 0
        report[0] = text
        if how.document:
            count = _cut_document(how, get_i64(firsts, text), a, text, out, count, capacity, report)
        else:
            keep_a, keep_b = _kept(how, a, b, report)
            if keep_a < 0:
                return TOO_SHORT
            if not _moves(how, a, keep_a, report) or not _moves(how, b, keep_b, report):
                return NO_STEP
            at = get_i64(firsts, text), get_i64(seconds, text) if how.paired else 0
            count = _cut_text(how, at, (a, b), (keep_a, keep_b), text, out, count, capacity)
        if count < 0:
            return count
    return count


@helper
def _kept(how: Cutting, a: int, b: int, report: OutI64) -> tuple[int, int]:
    """How many ids of each text stay; negative if that is none where one should."""
    excess = a + b - how.room
    if how.strategy == WHOLE or excess <= 0:
        return a, b
    if how.room == 0:
        return 0, 0
    if how.strategy == LONGEST_FIRST:
        if not how.paired:
            return how.room, 0
        small, large = min(a, b), max(a, b)
        large = small if small > how.room else max(small, how.room - small)
        if small + large > how.room:
            small = how.room // 2
            large = how.room - small
        return (small, large) if a <= b else (large, small)
    shortened = a if how.strategy == ONLY_FIRST else b
    report[1], report[2] = shortened, excess
    if shortened <= excess:
        return -1, -1
    return (a - excess, b) if how.strategy == ONLY_FIRST else (a, b - excess)


@helper
def _moves(how: Cutting, count: int, size: int, report: OutI64) -> bool:
    """Whether windows of `size` of `count` ids come to an end."""
    report[1] = size
    return count <= size or size == 0 or how.overlap < size


@helper
def _number(how: Cutting, count: int, size: int) -> int:
    """How many windows there are."""
    if count <= size:
        return 1
    if size == 0:
        return 2
    return 1 + (count - size + size - how.overlap - 1) // (size - how.overlap)


@helper
def _window(how: Cutting, count: int, size: int, k: int) -> tuple[int, int]:
    """Where window number k begins and ends."""
    if count <= size or (size == 0 and k):
        return 0, count
    if size == 0:
        return 0, 0
    skipped = k * (size - how.overlap)
    if how.left:
        return max(0, count - skipped - size), count - skipped
    return skipped, min(count, skipped + size)


@helper
def _cut_text(
    how: Cutting, at: tuple[int, int], counts: tuple[int, int], keep: tuple[int, int], text: int, out: Window,
    row: int, capacity: int,
) -> int:  # fmt: skip
    """Write the rows of one text or pair. Returns the number of rows now."""
    of_first, of_second = _number(how, counts[0], keep[0]), _number(how, counts[1], keep[1])
    total = of_first * of_second if how.every else 1
    if row + total > capacity:
        return row + total
    around = how.parts - 1 - how.paired
    outer, inner = (of_second, of_first) if how.swapped else (of_first, of_second)
    for k in range(total):
        i, j = 0, 0
        if 0 < k <= (outer - 1) * inner:
            i, j = 1 + (k - 1) // inner, (k - 1) % inner
        elif k > 0:
            j = k - (outer - 1) * inner
        if how.swapped:
            i, j = j, i
        a, a_stop = _window(how, counts[0], keep[0], i)
        b, b_stop = _window(how, counts[1], keep[1], j)
        line = ROW * (row + k)
        put_i64(out, line + TEXT, text)
        put_i64(out, line + FIRST_START, at[0] + a)
        put_i64(out, line + FIRST_STOP, at[0] + a_stop)
        put_i64(out, line + SECOND_START, at[1] + b)
        put_i64(out, line + SECOND_STOP, at[1] + b_stop)
        put_i64(out, line + PARTS, PART * how.parts)
        put_i64(out, line + LENGTH, around + a_stop - a + b_stop - b)
    return row + total


@helper
def _cut_document(
    how: Cutting, at: int, count: int, text: int, out: Window, row: int, capacity: int, report: OutI64
) -> int:
    """Write the rows of a text with its special tokens once around all of them. Returns the number of rows now."""
    whole = how.parts - 1 + count
    size = whole if how.strategy == WHOLE else how.room
    if not _moves(how, whole, size, report):
        return NO_STEP
    total = _number(how, whole, size) if how.every else 1
    if row + total > capacity:
        return row + total
    for k in range(total):
        start, stop = _window(how, whole, size, k)
        line = ROW * (row + k)
        begins, ends = start - how.before, stop - how.before  # in the text, which is one part whatever its length
        put_i64(out, line + TEXT, text)
        put_i64(out, line + FIRST_START, at + min(max(begins, 0), count))
        put_i64(out, line + FIRST_STOP, at + min(max(ends, 0), count))
        put_i64(out, line + SECOND_START, 0)
        put_i64(out, line + SECOND_STOP, 0)
        from_part = start if begins < 0 else how.before if begins < count else how.before + 1 + begins - count
        to_part = stop if ends <= 0 else how.before + 1 + max(ends - count, 0)
        put_i64(out, line + PARTS, from_part + PART * to_part)
        put_i64(out, line + LENGTH, stop - start)
    return row + total

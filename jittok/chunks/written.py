"""Kernels that write the rows of a table (see `windows`): flat or padded ids, types and sequences, spans."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.chunks.windows import FIRST_START, LENGTH, PART, PARTS, ROW
from jittok.common.pipeline.pipeline import FIRST_TEXT
from jittok.kernels.jit import I32, I64, OutI32, OutI64, OutU8, helper, kernel
from jittok.kernels.memory import (
    Window,
    copy_four,
    get_i32,
    get_i64,
    put_i32,
    put_i64,
    put_u8,
    put_word,
    window,
)

RUN = 4
"""A constant is written so many times at once."""
SPECIAL = -1
"""The sequence of a special token."""
_ONES, _NONE = np.uint64(0x0101010101010101), np.uint64(0)


class Template(NamedTuple):
    """What a row consists of."""

    parts: I32  # [parts] ids, FIRST_TEXT, SECOND_TEXT
    types: I32  # [RUN * parts] the type of each, RUN times
    sequences: I32  # [RUN * parts] 0, 1 or SPECIAL, RUN times


class Padding(NamedTuple):
    """How rows are filled up to one length."""

    length: int
    left: int  # 1: before the row
    typed: int  # 1: types are written, 0: they are all 0, and there already
    ids: I32  # [RUN] the id of padding, RUN times
    types: I32  # [RUN] its type


@kernel
def write_rows(
    template: Template, first: I32, second: I32, table: I64, offsets: I64, begin: int, end: int, ids: OutI32
) -> int:
    """Write the ids of rows begin .. end - 1, one after the other.

    first, second: int32[] the ids of all first and of all second texts; table: int64[ROW * rows], whose lines are
    inside these; offsets: int64[rows + 1] where the rows begin in ids: int32[offsets[rows]]. Linear in ids.
    """
    lines, ends, out = window(table), window(offsets), window(ids)
    for row in range(begin, end):
        _write_ids(template, window(first), window(second), lines, row, out, get_i64(ends, row))
    return end


@kernel
def write_padded(
    template: Template, first: I32, second: I32, table: I64, begin: int, end: int, padding: Padding, ids: OutI32,
    mask: OutU8, types: OutI32,
) -> int:  # fmt: skip
    """Write rows begin .. end - 1 to lines of padding.length, which no row exceeds.

    ids, types: int32[rows * length]; mask: uint8[rows * length], 1 for what is of the row. The other arrays are those
    of `write_rows`. Linear in what is written.
    """
    lines, out, marks, kinds = window(table), window(ids), window(mask), window(types)
    parts, of_parts = window(template.types), window(template.parts)
    for row in range(begin, end):
        count = get_i64(lines, ROW * row + LENGTH)
        rest = padding.length - count
        at = padding.length * row
        pad_at = at if padding.left else at + count
        at = at + rest if padding.left else at
        _write_ids(template, window(first), window(second), lines, row, out, at)
        _fill(out, pad_at, window(padding.ids), 0, rest)
        _fill_bytes(marks, at, 1, count)
        _fill_bytes(marks, pad_at, 0, rest)
        if padding.typed:
            _write_kinds(of_parts, parts, lines, row, kinds, at)
            _fill(kinds, pad_at, window(padding.types), 0, rest)
    return end


@kernel
def write_types(template: Template, sequences: int, table: I64, offsets: I64, begin: int, end: int, out: OutI32) -> int:
    """Write the types of rows begin .. end - 1, or, if asked so, the sequences: 0 or 1 for the texts, SPECIAL.

    out: int32[offsets[rows]]; the other arrays are those of `write_rows`.
    """
    lines, ends, kinds = window(table), window(offsets), window(out)
    parts = window(template.parts)
    of_parts = window(template.sequences) if sequences else window(template.types)
    for row in range(begin, end):
        _write_kinds(parts, of_parts, lines, row, kinds, get_i64(ends, row))
    return end


@kernel
def write_spans(
    template: Template, first: I64, second: I64, table: I64, offsets: I64, begin: int, end: int, spans: OutI64
) -> int:
    """Write the spans of rows begin .. end - 1: 0 and 0 for special tokens.

    first, second: int64[2 * n] start and stop of each id of the texts; spans: int64[2 * offsets[rows]]. The other
    arrays are those of `write_rows`.
    """
    lines, ends, out, parts = window(table), window(offsets), window(spans), window(template.parts)
    for row in range(begin, end):
        line, at = ROW * row, get_i64(ends, row)
        bounds = get_i64(lines, line + PARTS)
        for part in range(bounds % PART, bounds // PART):
            what = get_i32(parts, part)
            if what >= 0:
                put_i64(out, 2 * at, 0)
                put_i64(out, 2 * at + 1, 0)
                at += 1
                continue
            source = window(first) if what == FIRST_TEXT else window(second)
            column = line + FIRST_START + 2 * (FIRST_TEXT - what)
            start, stop = get_i64(lines, column), get_i64(lines, column + 1)
            for k in range(2 * start, 2 * stop):
                put_i64(out, 2 * (at - start) + k, get_i64(source, k))
            at += stop - start
    return end


@helper
def _write_ids(
    template: Template, first: Window, second: Window, lines: Window, row: int, out: Window, at: int
) -> None:
    line, parts = ROW * row, window(template.parts)
    bounds = get_i64(lines, line + PARTS)
    for part in range(bounds % PART, bounds // PART):
        what = get_i32(parts, part)
        if what >= 0:
            put_i32(out, at, what)
            at += 1
            continue
        column = line + FIRST_START + 2 * (FIRST_TEXT - what)
        start = get_i64(lines, column)
        count = get_i64(lines, column + 1) - start
        _copy(out, at, first if what == FIRST_TEXT else second, start, count)
        at += count


@helper
def _write_kinds(parts: Window, of_parts: Window, lines: Window, row: int, out: Window, at: int) -> None:
    """Write a constant of each part for all of its ids."""
    line = ROW * row
    bounds = get_i64(lines, line + PARTS)
    for part in range(bounds % PART, bounds // PART):
        what = get_i32(parts, part)
        count = 1
        if what < 0:
            column = line + FIRST_START + 2 * (FIRST_TEXT - what)
            count = get_i64(lines, column + 1) - get_i64(lines, column)
        _fill(out, at, of_parts, RUN * part, count)
        at += count


@helper
def _copy(out: Window, at: int, source: Window, start: int, count: int) -> None:
    """source[start : start + count] to out[at :], both int32."""
    k = 0
    while k + 4 <= count:
        copy_four(out, at + k, source, start + k)
        k += 4
    while k < count:
        put_i32(out, at + k, get_i32(source, start + k))
        k += 1


@helper
def _fill(out: Window, at: int, run: Window, start: int, count: int) -> None:
    """run[start], which is there RUN times, to out[at : at + count]."""
    k = 0
    while k + 4 <= count:
        copy_four(out, at + k, run, start)
        k += 4
    while k < count:
        put_i32(out, at + k, get_i32(run, start))
        k += 1


@helper
def _fill_bytes(out: Window, at: int, bit: int, count: int) -> None:
    """0 or 1 to out[at : at + count]."""
    k, word = 0, _ONES if bit else _NONE
    while k + 8 <= count:
        put_word(out, at + k, word)
        k += 8
    while k < count:
        put_u8(out, at + k, bit)
        k += 1

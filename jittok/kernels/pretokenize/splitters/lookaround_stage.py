"""Stages whose patterns look behind, or ahead by more than a character, or are not linear. Each look-around is
evaluated at all offsets of a piece first, in one pass each; then the matches are searched for.

    pass of a look-ahead, from the piece's end      . . . . <- state: nodes from which the body matches the text read
    pass of a look-behind, from its beginning       state -> . . . .  state: nodes that the body has reached
    the search                                      a state, a class, and the bits that passes have set there

There are a byte or two of bits per offset. The pass of a look-around reads the bits of those nested in it, which run
before it.

A failed search is not repeated. In each state in which a search may read on without a limit, it leaves a bit at the
offset; a later search that reaches this offset in this state stops. So the time is linear in the text.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jittok.kernels.jit import I32, I64, U8, U16, frozen, helper
from jittok.kernels.memory import (
    Window,
    get_i32,
    get_i64,
    get_u8,
    get_u16,
    get_u64,
    leading_zeros,
    put_u8,
    trailing_zeros,
    window,
)
from jittok.kernels.pretokenize.splitters.search_stages import IS_REST, cut_at, looked_for, next_cut

PLAN = 8
"""Numbers of a plan:"""
BIT, AHEAD, DEAD, FIRST, COLUMNS, ANSWERS, ANSWERED = range(7)
"""the bit that a pass sets, or SEARCH; 1 for a pass from the end; the offsets of the dead row and of the first one; the
offsets of its columns and answers; the number of answers."""
SEARCH = -1
BYTE = 8
"""Limit of look-arounds of a stage: their bits are in the first byte of an offset."""
MOST_BITS = 16
"""Limit of look-arounds and remembered states together."""
NOT_FOUND = -1
BLOCK = 64
ONE, NONE = np.uint64(1), np.uint64(0)
SplitWindow = Any  # of `general.py`


class LookaroundTables(NamedTuple):
    """The automata of stages of this kind. Invariants: rows lead to rows of their own plan; columns are inside of a
    row; the last plan of a stage is its search."""

    at: I64  # [stages + 1] plans at[s] .. at[s + 1] - 1 are those of stage s; of other kinds there are none
    plans: I64  # [plans * PLAN]
    rows: I32  # a row: bit of a state that is remembered, or -1; then next row's offset << 1 | holds, or match
    columns: U16  # [(classes + 2) * answers] of a plan: column in a row; after the classes continuation bytes, the end
    answers: U8  # [256] of a plan: the number of the answer that bits hold
    strides: I64  # [stages] bytes of notes per offset
    noted: int  # the most of them; 0 without such a stage


class LookaroundWindow(NamedTuple):
    """The same as windows."""

    at: Window
    plans: Window
    rows: Window
    columns: Window
    answers: Window
    strides: Window


class _Search(NamedTuple):
    """What a search reads."""

    dead: int
    first: int
    columns: int
    answers: int
    answered: int
    stride: int
    ends: int  # the class of the end


def no_lookarounds() -> LookaroundTables:
    """The tables of a splitter without such a stage."""
    none = [frozen([], kind) for kind in (np.int64, np.int64, np.int32, np.uint16, np.uint8, np.int64)]
    return LookaroundTables(*none, 0)


@helper
def open_lookarounds(looks: LookaroundTables) -> LookaroundWindow:
    """Windows onto the arrays."""
    return LookaroundWindow(
        window(looks.at),
        window(looks.plans),
        window(looks.rows),
        window(looks.columns),
        window(looks.answers),
        window(looks.strides),
    )


@helper
def run_lookarounds(looks: LookaroundWindow, stage: int, rest: int, size: int, work: SplitWindow) -> None:
    """Every match is a piece, and so is every gap between matches. rest: the class of continuation bytes."""
    end = 0
    for at in range(0, size, BLOCK):
        if end - at >= BLOCK:
            continue
        found = looked_for(work, stage, at, size)
        if end > at:  # of a piece that is done
            found &= ~((ONE << np.uint64(end - at)) - ONE)
        while found != NONE:
            i = at + trailing_zeros(found)
            end = next_cut(work.cuts, i)
            piece = _last_cut(work.cuts, i)
            search = look_around(looks, stage, rest, piece, end, work)
            while i < end:
                begun = get_u8(work.begun, i)
                match = NOT_FOUND
                if begun & IS_REST == 0 and begun >> stage & 1 != 0:
                    match = match_end(looks, search, i, end, work)
                if match != NOT_FOUND:
                    cut_at(work, i)
                    cut_at(work, match)
                i = max(i + 1, match)
            if end - at >= BLOCK:
                break
            found &= ~((ONE << np.uint64(end - at)) - ONE)


@helper
def _last_cut(cuts: Window, i: int) -> int:
    """The last cut up to byte i; the beginning of the text is one."""
    word = i // BLOCK
    rest = get_u64(cuts, word) << np.uint64(63 - (i & 63)) >> np.uint64(63 - (i & 63))
    while rest == NONE:
        word -= 1
        rest = get_u64(cuts, word)
    return word * BLOCK + 63 - leading_zeros(rest)


@helper
def look_around(looks: LookaroundWindow, stage: int, rest: int, piece: int, end: int, work: SplitWindow) -> _Search:
    """Evaluate the look-arounds of a stage at offsets piece .. end, into the notes, in which no state is remembered
    yet. Returns the arguments of `match_end`."""
    plan, last = get_i64(looks.at, stage), get_i64(looks.at, stage + 1) - 1
    stride = get_i64(looks.strides, stage)
    for i in range(piece * stride, (end + 1) * stride):
        put_u8(work.notes, i, 0)
    while plan < last:
        _run_pass(looks, plan * PLAN, stride, rest + 1, piece, end, work)
        plan += 1
    at = plan * PLAN
    return _Search(
        get_i64(looks.plans, at + DEAD),
        get_i64(looks.plans, at + FIRST),
        get_i64(looks.plans, at + COLUMNS),
        get_i64(looks.plans, at + ANSWERS),
        get_i64(looks.plans, at + ANSWERED),
        stride,
        rest + 1,
    )


@helper
def no_search() -> _Search:
    """A placeholder where no search is done."""
    return _Search(0, 0, 0, 0, 0, 0, 0)


@helper
def _run_pass(
    looks: LookaroundWindow, plan: int, stride: int, ends: int, piece: int, end: int, work: SplitWindow
) -> None:
    """Set the bit of a look-around at the offsets of piece .. end where its body matches."""
    bit, ahead = get_i64(looks.plans, plan + BIT), get_i64(looks.plans, plan + AHEAD)
    columns, sayings = get_i64(looks.plans, plan + COLUMNS), get_i64(looks.plans, plan + ANSWERS)
    said, row = get_i64(looks.plans, plan + ANSWERED), get_i64(looks.plans, plan + FIRST)
    i, step = piece, 1
    if ahead != 0:
        i, step = end, -1
    for _ in range(end - piece + 1):
        kind = ends
        if i != end:
            kind = get_u8(work.classes, i) >> 1
        bits = get_u8(work.notes, i * stride)
        column = get_u16(looks.columns, columns + kind * said + get_u8(looks.answers, sayings + bits))
        entry = get_i32(looks.rows, row + column)
        put_u8(work.notes, i * stride, bits | (entry & 1) << bit)
        row = entry >> 1
        i += step


@helper
def _entry(looks: LookaroundWindow, search: _Search, row: int, j: int, end: int, work: SplitWindow) -> int:
    """The entry of a row for the character at byte j."""
    kind = search.ends
    if j != end:
        kind = get_u8(work.classes, j) >> 1
    saying = get_u8(looks.answers, search.answers + get_u8(work.notes, j * search.stride))
    return get_i32(looks.rows, row + get_u16(looks.columns, search.columns + kind * search.answered + saying))


@helper
def match_end(looks: LookaroundWindow, search: _Search, i: int, end: int, work: SplitWindow) -> int:
    """Where the match that begins at byte i ends, NOT_FOUND if none does. It may be empty."""
    row, j, match, reads_on = search.first, i, NOT_FOUND, False
    since, since_row = i, search.first
    while row != search.dead:
        entry = _entry(looks, search, row, j, end, work)
        row = entry >> 1
        if entry & 1 != 0:
            match = since = j
            since_row, reads_on = row, False
        j += 1
        bit = get_i32(looks.rows, row)
        if bit >= 0:
            if get_u8(work.notes, j * search.stride + (bit >> 3)) >> (bit & 7) & 1 != 0:
                break  # no match ends after byte j for a search that reads it in this state
            reads_on = True
    if reads_on:
        _remember(looks, search, since, since_row, match == since, j, end, work)
    return match


@helper
def _remember(
    looks: LookaroundWindow, search: _Search, j: int, row: int, matched: bool, stop: int, end: int, work: SplitWindow
) -> None:
    """Repeat a search that failed from byte j to `stop`, and leave a bit for each remembered state. matched: the row is
    the one after byte j, where the last match ended; else the one before it."""
    while j < stop and row != search.dead:
        if not matched:
            row = _entry(looks, search, row, j, end, work) >> 1
        matched = False
        j += 1
        bit = get_i32(looks.rows, row)
        if bit >= 0:
            position = j * search.stride + (bit >> 3)
            put_u8(work.notes, position, get_u8(work.notes, position) | 1 << (bit & 7))

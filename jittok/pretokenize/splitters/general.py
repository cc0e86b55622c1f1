"""The one splitter that every pre type has: its list of patterns as automata, one pass a pattern.

A text's cuts are marks, one a byte. Each stage cuts every piece that the stages before have left, as if the piece were
the whole text, and only ever adds marks; so the list of pieces never needs to be built.

Linear in bytes times stages: an automaton reads on behind the end of its match by a bounded number of characters, or
over one run of white space that the next match takes whole.
"""

from __future__ import annotations

from typing import NamedTuple

from jittok._jit import I64, U8, U16, helper
from jittok._raw import Window, get_i64, get_u8, get_u16, put_u8, window
from jittok.pretokenize.automaton import DEAD, START

AUTOMATON, DIGIT_GROUPS, DIGIT_THREES, TRAILING_SPACE = 0, 1, 2, 3
"""Kinds of stages; the last three are what one look-ahead cannot say (see `program.py`)."""
MEMBER = 1
"""Class of the characters that the stages without an automaton ask for."""
PAGES = 8704
ASCII = 128


class Splitter(NamedTuple):
    """A list of stages. Invariant: page numbers < blocks of their stage, classes < width - 1, next states < states."""

    kinds: I64  # [stages]
    widths: I64  # [stages] character classes, the end of the piece included
    transitions: U16  # all stages' transitions, behind each other
    transitions_at: I64  # [stages]
    pages: U16  # [stages * 8704]
    blocks: U8  # all stages' blocks of 128 classes
    blocks_at: I64  # [stages]
    ascii: U8  # [stages * 128] the classes of ASCII characters once more


class SplitterWindow(NamedTuple):
    """The same as windows."""

    kinds: Window
    widths: Window
    transitions: Window
    transitions_at: Window
    pages: Window
    blocks: Window
    blocks_at: Window
    ascii: Window
    stages: int


@helper
def open_splitter(splitter: Splitter) -> SplitterWindow:
    """Windows onto the arrays."""
    return SplitterWindow(
        window(splitter.kinds),
        window(splitter.widths),
        window(splitter.transitions),
        window(splitter.transitions_at),
        window(splitter.pages),
        window(splitter.blocks),
        window(splitter.blocks_at),
        window(splitter.ascii),
        splitter.kinds.size,
    )


@helper
def sequence_length(byte: int) -> int:
    """Bytes of the well-formed character that begins with this byte."""
    return 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4


@helper
def code_point(text: Window, i: int) -> int:
    """The character at i of well-formed text."""
    byte = get_u8(text, i)
    if byte < 0x80:
        return byte
    if byte < 0xE0:
        return (byte & 0x1F) << 6 | get_u8(text, i + 1) & 0x3F
    if byte < 0xF0:
        return (byte & 0xF) << 12 | (get_u8(text, i + 1) & 0x3F) << 6 | get_u8(text, i + 2) & 0x3F
    return (
        (byte & 7) << 18
        | (get_u8(text, i + 1) & 0x3F) << 12
        | (get_u8(text, i + 2) & 0x3F) << 6
        | get_u8(text, i + 3) & 0x3F
    )


@helper
def _class_at(splitter: SplitterWindow, stage: int, text: Window, i: int) -> int:
    byte = get_u8(text, i)
    if byte < ASCII:
        return get_u8(splitter.ascii, stage * ASCII + byte)
    c = code_point(text, i)
    page = get_u16(splitter.pages, stage * PAGES + (c >> 7))
    return get_u8(splitter.blocks, get_i64(splitter.blocks_at, stage) + (page << 7 | c & 127))


@helper
def mark_pieces(splitter: SplitterWindow, text: Window, start: int, stop: int, marks: Window) -> None:
    """Set marks[i - start] where a piece of text[start:stop] begins, and marks[stop - start]; clear all others.

    text: well-formed UTF-8 (three-byte surrogates allowed) with no character above U+10FFFF
    marks: uint8[stop - start + 1] room
    """
    for i in range(stop - start):
        put_u8(marks, i, 0)
    put_u8(marks, 0, 1)
    put_u8(marks, stop - start, 1)
    for stage in range(splitter.stages):
        kind = get_i64(splitter.kinds, stage)
        piece = start
        while piece < stop:
            end = piece + 1
            while get_u8(marks, end - start) == 0:
                end += 1
            if kind == AUTOMATON:
                _cut_by_automaton(splitter, stage, text, start, piece, end, marks)
            elif kind == DIGIT_GROUPS:
                _cut_digit_groups(splitter, stage, text, start, piece, end, marks)
            elif kind == DIGIT_THREES:
                _cut_digit_threes(splitter, stage, text, start, piece, end, marks)
            else:
                _cut_trailing_space(splitter, stage, text, start, piece, end, marks)
            piece = end


@helper
def _cut_by_automaton(
    splitter: SplitterWindow, stage: int, text: Window, start: int, piece: int, end: int, marks: Window
) -> None:
    """Every match is a piece, and so is every gap between matches."""
    width = get_i64(splitter.widths, stage)
    table = get_i64(splitter.transitions_at, stage)
    at = piece
    while at < end:
        state, i, match = START, at, -1
        while state != DEAD:
            symbol = width - 1
            if i < end:
                symbol = _class_at(splitter, stage, text, i)
            entry = get_u16(splitter.transitions, table + state * width + symbol)
            if entry & 1:
                match = i
            state = entry >> 1
            if i < end:
                i += sequence_length(get_u8(text, i))
        if match >= 0:
            put_u8(marks, at - start, 1)
            put_u8(marks, match - start, 1)
            at = match
        else:
            at += sequence_length(get_u8(text, at))


@helper
def _run(splitter: SplitterWindow, stage: int, text: Window, i: int, end: int) -> int:
    """End of the run of MEMBER characters at i."""
    while i < end and _class_at(splitter, stage, text, i) == MEMBER:
        i += sequence_length(get_u8(text, i))
    return i


@helper
def _cut_digit_groups(
    splitter: SplitterWindow, stage: int, text: Window, start: int, piece: int, end: int, marks: Window
) -> None:
    """Runs of numbers in threes from their right ends; what stands before a run belongs to its first group."""
    i = piece
    while i < end:
        if _class_at(splitter, stage, text, i) != MEMBER:
            i += sequence_length(get_u8(text, i))
            continue
        run = _run(splitter, stage, text, i, end)
        i = _cut_threes(text, start, i, run, marks)
        put_u8(marks, run - start, 1)


@helper
def _cut_threes(text: Window, start: int, i: int, run: int, marks: Window) -> int:
    """Marks between groups of three characters, counted from the right end of text[i:run]; returns run."""
    left = 0
    j = i
    while j < run:
        j += sequence_length(get_u8(text, j))
        left += 1
    j = i
    while j < run:
        if j > i and left % 3 == 0:
            put_u8(marks, j - start, 1)
        j += sequence_length(get_u8(text, j))
        left -= 1
    return run


@helper
def _cut_digit_threes(
    splitter: SplitterWindow, stage: int, text: Window, start: int, piece: int, end: int, marks: Window
) -> None:
    """A cut wherever a multiple of three ASCII digits, and then none, follows; no cut leaves an empty piece."""
    i = piece
    while i < end:
        if _class_at(splitter, stage, text, i) != MEMBER:
            i += sequence_length(get_u8(text, i))
            continue
        run = _run(splitter, stage, text, i, end)
        if (run - i) % 3 == 0:
            put_u8(marks, i - start, 1)
        i = _cut_threes(text, start, i, run, marks)


@helper
def _cut_trailing_space(
    splitter: SplitterWindow, stage: int, text: Window, start: int, piece: int, end: int, marks: Window
) -> None:
    """One cut before the run of white space that ends the piece."""
    i, first = piece, -1
    while i < end:
        if _class_at(splitter, stage, text, i) != MEMBER:
            first = -1
        elif first < 0:
            first = i
        i += sequence_length(get_u8(text, i))
    if first >= 0:
        put_u8(marks, first - start, 1)

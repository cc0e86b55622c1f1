"""Unigram's normalization step by step, on windows; `unigram_normalizer` does the same on arrays.

For vocabularies that escape spaces and whose character map was checked as a whole (`charsmap_keys`), so that no link in
it leads outside.
"""

from __future__ import annotations

from typing import NamedTuple

from jittok.align.inert_characters import InertWindow, is_hidden, is_inert
from jittok.align.unigram_normalizer import BAD, BAD_TEXT, SAME, Normal, UnigramRules
from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_BYTES
from jittok.kernels.jit import helper
from jittok.kernels.memory import Window, get_i32, get_u8, get_u32, put_i64, put_u8, window
from jittok.kernels.models.bpe.text_reader import BAD as ILL
from jittok.kernels.models.bpe.text_reader import decode
from jittok.kernels.normalize.charsmap_steps import longest_known_key, user_path
from jittok.kernels.normalize.xcda import base_of
from jittok.kernels.structures.double_array import BASE, NO_VALUE, PARENT, ROOT, UNIT
from jittok.kernels.structures.double_array import VALUE as VALUE_OF_NODE


class StepWindow(NamedTuple):
    """The tables that steps read, as windows."""

    user: Window
    map_units: Window
    map_size: int
    map_root: int
    replacements: Window
    characters: Window  # tokens that are one character
    merge: int  # 1: runs of spaces become one space before the next word
    shortest: int  # Vocab.shortest_utf8


class NormalizerCursor(NamedTuple):
    """The state of normalization."""

    i: int  # next offset in the text; -1: no capacity, or the result depends on text far before
    size: int  # bytes written
    inside: bool  # inside a word; if spaces are not merged: after the prepended space, if there is one
    gap_start: int  # start of the blanks that were skipped since the last word; -1: none
    gap_stop: int


@helper
def open_steps(rules: UnigramRules) -> StepWindow:
    """Windows onto the arrays."""
    units, root = rules.charsmap.units, 0
    if units.size > 0:
        root = base_of(get_u32(window(units), 0))
    return StepWindow(
        window(rules.user.units),
        window(units),
        units.size,
        root,
        window(rules.charsmap.replacements),
        window(rules.characters.units),
        rules.spaces.merge,
        rules.shortest,
    )


@helper
def _step(steps: StepWindow, text: Window, i: int, stop: int) -> tuple[int, int, int]:
    """(SAME, BAD or the offset of a replacement; bytes read; bytes to write) of one step."""
    end = user_path(steps.user, text, i, stop)[0]
    if end > i:  # a path of user-defined tokens is copied unchanged
        return SAME, end - i, end - i
    used, value = longest_known_key(steps.map_units, steps.map_size, steps.map_root, text, i, stop)
    if used > 0:
        size, same = 0, True
        byte = get_u8(steps.replacements, value)
        while byte != 0:
            same = same and size < used and byte == get_u8(text, i + size)
            size += 1
            byte = get_u8(steps.replacements, value + size)
        return SAME if same and size == used else value, used, size
    c, used = decode(text, i, stop, steps.shortest)
    return (BAD, 1, 3) if c == ILL else (SAME, used, used)


@helper
def _put(out: Normal, at: int, byte: int, start: int, stop: int) -> int:
    """Write one byte that comes from text[start:stop]; the offset after it."""
    put_u8(out.text, at, byte)
    put_i64(out.starts, at, start)
    put_i64(out.stops, at, stop)
    return at + 1


@helper
def normalize_more(
    steps: StepWindow,
    inert: InertWindow,
    out: Normal,
    text: Window,
    start: int,
    stop: int,
    cursor: NormalizerCursor,
    need: int,
) -> NormalizerCursor:
    """Normalize the fragment text[start:stop] until `need` bytes are written, or all; returns the cursor."""
    i, at, inside, gap_start, gap_stop = cursor
    while i >= 0 and i < stop and at < need:
        source, used, size = SAME, 0, is_inert(inert, text, i, stop)
        if size == 0 and i > start and is_hidden(inert, text, i, stop):
            return NormalizerCursor(-1, at, inside, gap_start, gap_stop)
        if size == 0:
            source, used, size = _step(steps, text, i, stop)
        else:
            used = size
        if at + (len(SPACE_MARK_BYTES) + 1) * size > out.capacity:
            i, used, size = -1, 0, 0
        for k in range(size):
            low, high = i, i + used
            if source == SAME:
                low, high, byte = i + k, i + k + 1, get_u8(text, i + k)
            elif source == BAD:
                byte = BAD_TEXT[k]
            else:
                byte = get_u8(steps.replacements, source + k)
            if byte == SPACE_BYTE and steps.merge == 0:
                for mark in SPACE_MARK_BYTES:
                    at = _put(out, at, mark, low, high)
                continue
            if byte == SPACE_BYTE:
                gap_start, gap_stop, inside = low if gap_start < 0 else gap_start, high, False
                continue
            if not inside:
                if gap_start < 0:  # the space before a later character of a replacement has its span
                    gap_start, gap_stop = low, high if source != SAME and k > 0 else low
                for mark in SPACE_MARK_BYTES:
                    at = _put(out, at, mark, gap_start, gap_stop)
            inside, gap_start = True, -1
            at = _put(out, at, byte, low, high)
        i += used
    return NormalizerCursor(i, at, inside, gap_start, gap_stop)


@helper
def is_character(steps: StepWindow, out: Normal, at: int, stop: int) -> bool:
    """Whether out.text[at:stop], a character or the rest of the text, is a token by itself."""
    node = ROOT
    for i in range(at, stop):
        position = get_i32(steps.characters, UNIT * node + BASE) ^ get_u8(out.text, i)
        if get_i32(steps.characters, UNIT * position + PARENT) != node:
            return False
        node = position
    return bool(get_i32(steps.characters, UNIT * node + VALUE_OF_NODE) != NO_VALUE)

"""Where grapheme clusters begin, as a bitmap over the bytes of a text: one pass, whatever the text.

The rules are those of UAX #29 (GB3 to GB13, with GB9c for Indic conjuncts). Each needs the class of the character
before and three facts about what is before that: whether an odd number of regional indicators ends there, an emoji that
may be continued, a linker of conjuncts. As in the package `regex`, a linker joins the next consonant whether or not it
has a consonant before it.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from jittok.common.unicode.graphemes import CLASSES, grapheme_classes
from jittok.kernels.jit import I64, U8, U16, OutU64, frozen, helper, kernel
from jittok.kernels.memory import Window, any_bit_mask, equal_mask, get_u8, get_u16, get_u64, put_u64, window
from jittok.kernels.pretokenize.classes import two_stage_of

(
    OTHER, CR, LF, CONTROL, EXTEND, ZWJ, REGIONAL, PREPEND, SPACING, L, V, T, LV, LVT, PICTURE, CONSONANT, LINKER,
    PLAIN_EXTEND,
) = range(len(CLASSES))  # fmt: skip
NONE, BEGUN, JOINED = 0, 1, 2
"""An emoji, or a conjunct: there is none; it may be continued; the next picture, or consonant, belongs to it."""
_1, _63 = np.uint64(1), np.uint64(63)


class ClusterTable(NamedTuple):
    """A two-stage table of the classes; invariants of `pretokenize.classes`."""

    pages: U16
    blocks: U8


class ClusterWindow(NamedTuple):
    """The same as windows."""

    pages: Window
    blocks: Window


@cache
def cluster_table() -> ClusterTable:
    """The table of all characters."""
    pages, blocks = two_stage_of(grapheme_classes())
    return ClusterTable(frozen(pages, np.uint16), frozen(blocks, np.uint8))


@helper
def character(text: Window, i: int) -> tuple[int, int]:
    """(code point, bytes) of the character at i, of valid UTF-8."""
    byte = get_u8(text, i)
    if byte < 0x80:
        return byte, 1
    second = get_u8(text, i + 1) & 0x3F
    if byte < 0xE0:
        return (byte & 0x1F) << 6 | second, 2
    third = get_u8(text, i + 2) & 0x3F
    if byte < 0xF0:
        return (byte & 0xF) << 12 | second << 6 | third, 3
    return (byte & 7) << 18 | second << 12 | third << 6 | get_u8(text, i + 3) & 0x3F, 4


@helper
def _extends(c: int) -> bool:
    return c in (EXTEND, ZWJ, LINKER, PLAIN_EXTEND)


@helper
def _breaks(before: int, c: int, odd: bool, emoji: int, conjunct: int) -> bool:
    """Whether a cluster begins between characters of classes `before` and c."""
    if before == CR and c == LF:
        return False
    if before in (CR, LF, CONTROL) or c in (CR, LF, CONTROL):
        return True
    if before == L and c in (L, V, LV, LVT):
        return False
    if before in (LV, V) and c in (V, T):
        return False
    if before in (LVT, T) and c == T:
        return False
    if _extends(c) or c == SPACING or before == PREPEND:
        return False
    if c == CONSONANT and conjunct == JOINED:
        return False
    if c == PICTURE and emoji == JOINED:
        return False
    return not (before == REGIONAL and c == REGIONAL and odd)


@kernel
def mark_clusters(table: ClusterTable, data: U8, starts: I64, stops: I64, bits: OutU64) -> int:
    """Set bit i of `bits` where a cluster begins at byte i of data, and at the end of each text; other bits of texts
    stay as they are (0). Returns the number of texts.

    data[starts[k]:stops[k]] is text k, valid UTF-8; 64 bytes after it are readable. bits: uint64[data.size // 64 + 2].
    Linear in bytes.
    """
    text, out = window(data), window(bits)
    own = ClusterWindow(window(table.pages), window(table.blocks))
    for k in range(starts.size):
        _mark_text(own, text, starts[k], stops[k], out)
    return starts.size


@helper
def _mark_text(table: ClusterWindow, text: Window, i: int, stop: int, out: Window) -> None:
    before, odd, emoji, conjunct = CONTROL, False, NONE, NONE
    at, word = i >> 6, get_u64(out, i >> 6)
    while i < stop:
        if i >> 6 != at:
            put_u64(out, at, word)
            at = i >> 6
            word = get_u64(out, at)
        if i & 63 == 0 and i + 64 <= stop and any_bit_mask(text, i, 0x80) == np.uint64(0) and before != PREPEND:
            word |= _ascii_marks(text, i, before)
            i += 64
            before, odd, emoji, conjunct = _ascii_class(get_u8(text, i - 1)), False, NONE, NONE
            continue
        code, size = character(text, i)
        c = (
            _ascii_class(code)
            if code < 0x80
            else get_u8(table.blocks, get_u16(table.pages, code >> 7) << 7 | code & 127)
        )
        if c == OTHER and before == OTHER:
            word |= _1 << (np.uint64(i) & _63)
            odd, emoji, conjunct = False, NONE, NONE
            i += size
            continue
        if _breaks(before, c, odd, emoji, conjunct):
            word |= _1 << (np.uint64(i) & _63)
        odd = c == REGIONAL and not (before == REGIONAL and odd)
        if c == PICTURE:
            emoji = BEGUN
        elif emoji == BEGUN and c == ZWJ:
            emoji = JOINED
        elif not (emoji == BEGUN and _extends(c)):
            emoji = NONE
        if c == LINKER:
            conjunct = JOINED
        elif c not in (EXTEND, ZWJ):
            conjunct = NONE
        before = c
        i += size
    put_u64(out, at, word)
    put_u64(out, stop >> 6, get_u64(out, stop >> 6) | _1 << (np.uint64(stop) & _63))


@helper
def _ascii_class(byte: int) -> int:
    if byte == 13:
        return CR
    if byte == 10:
        return LF
    return CONTROL if byte < 0x20 or byte == 0x7F else OTHER


@helper
def _ascii_marks(text: Window, i: int, before: int) -> np.uint64:
    """The marks of 64 ASCII bytes from i on: all but an LF after a CR begin a cluster."""
    after_cr = equal_mask(text, i, 13) << _1
    if before == CR:
        after_cr |= _1
    return ~(equal_mask(text, i, 10) & after_cr)

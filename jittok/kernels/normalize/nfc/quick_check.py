"""Finds the next code point of a text that a normal form may change, 64 bytes at a time.

Nearly all texts hold none, or few; other characters are skipped without decoding. Malformed bytes count as code points
that matter: callers check them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.tables import UNICODE_SIZE
from jittok.kernels.jit import U8, U16, Deferred, frozen, helper
from jittok.kernels.memory import (
    FAST,
    Window,
    any_bit_mask,
    composed_mask,
    composing_leads,
    get_u8,
    get_u16,
    popcount,
    trailing_zeros,
    utf8_masks,
    window,
)
from jittok.kernels.pretokenize.classes import two_stage_of
from jittok.kernels.structures.prefetch import prefetch_text

if TYPE_CHECKING or not FAST:
    from jittok.kernels.memory.indic import settled_mask
else:  # fetched when a kernel is compiled, see `jittok.kernels.memory`
    settled_mask = Deferred("jittok.kernels.memory.indic", "settled_mask")

NONE, ONE, B2, B3 = (np.uint64(n) for n in (0, 1, 2, 3))
LEADS = (0xC0, 0xC1, 0xCC, 0xCD, 0xCE, 0xD2, *range(0xD6, 0xE4), *range(0xEA, 0xEE), *range(0xEF, 0x100))
"""First bytes that `composing_leads` finds: no character that begins with another byte matters to NFC."""
HIGH = 0x80
FEW_CHARACTERS = 3
"""Up to so many characters of 64 bytes are looked up without first filtering by their second and third bytes."""
INDIC, AA, LAST_INDIC = 0xE0, 0xBE, 0xB5
"""The sign AA of Bengali, Oriya, Tamil and Malayalam: first and third byte, and the greatest second byte; second bytes
are even."""
COMPOSES, COMPOSES_MASK = 0x86, 0xFE
"""The last byte, except for one bit, of all vowel signs that it composes with."""
SURROGATES = slice(0xD800, 0xE000)


class QuickTable(NamedTuple):
    """Which code points matter: not 0 for those, and for overlong forms."""

    two: U8  # [2048] by the 11 bits of a two-byte form
    three: U8  # [65536] by the 16 bits of a three-byte form
    pages: U16  # [8704] two-stage table, for four-byte forms
    blocks: U8


class QuickWindow(NamedTuple):
    """The same as windows."""

    two: Window
    three: Window
    pages: Window
    blocks: Window


def quick_table(matters: NDArray[np.bool_]) -> QuickTable:
    """The table of bool[0x110000]; surrogates always matter."""
    table = matters.astype(np.uint8)
    table[SURROGATES] = 1
    two, three = table[:0x800].copy(), table[:0x10000].copy()
    two[:0x80] = 1
    three[:0x800] = 1
    table[:0x10000] = 1  # of four bytes, none of these is the shortest form
    pages, blocks = two_stage_of(table)
    return QuickTable(
        frozen(two, np.uint8), frozen(three, np.uint8), frozen(pages, np.uint16), frozen(blocks, np.uint8)
    )


@helper
def open_quick(table: QuickTable) -> QuickWindow:
    """Windows onto the arrays."""
    return QuickWindow(window(table.two), window(table.three), window(table.pages), window(table.blocks))


@helper
def next_that_matters(table: QuickWindow, text: Window, i: int, stop: int) -> int:
    """The offset of the first character of text[i:stop] that matters to NFC or is malformed, or stop; a character
    begins at i < stop. Reads nothing outside."""
    begin = i
    while i + 64 <= stop:
        prefetch_text(text, i)
        if any_bit_mask(text, i, HIGH) == NONE:
            i += 64
            continue
        follower, first, e0, f0, f8 = utf8_masks(text, i)
        size = _whole(first, e0, f0)
        promised = first << ONE | e0 << B2 | f0 << B3
        if (promised ^ follower) | f8 != NONE:
            return _scan(table, text, i, stop)
        first, _ = composing_leads(text, i)
        if popcount(first) > FEW_CHARACTERS and i + 64 < stop:
            first &= ~composed_mask(text, i)
            if popcount(first) > FEW_CHARACTERS and i + 66 <= stop:
                first &= ~settled_mask(text, i)
        first &= (ONE << np.uint64(size)) - ONE if size < 64 else ~NONE
        while first != NONE:
            k = i + trailing_zeros(first)
            first &= first - ONE
            if _matters(table, text, k) != 0 and _may_compose(text, begin, k) != 0:
                return k
        i += size
    return _scan(table, text, i, stop)


@helper
def _whole(first: np.uint64, e0: np.uint64, f0: np.uint64) -> int:
    """How many of 64 bytes are whole characters, without a last one that continues after them."""
    if first >> np.uint64(63) != NONE:
        return 63
    if e0 >> np.uint64(62) & ONE != NONE:
        return 62
    if f0 >> np.uint64(61) & ONE != NONE:
        return 61
    return 64


@helper
def _may_compose(text: Window, begin: int, k: int) -> int:
    """0 for a sign AA at k that composes with nothing, as no vowel sign is before it in text[begin:]; else 1.
    Any mark between them would separate the two."""
    second = get_u8(text, k + 1)
    if get_u8(text, k) != INDIC or get_u8(text, k + 2) != AA or second > LAST_INDIC or second & 1 != 0:
        return 1
    return 1 if k > begin and get_u8(text, k - 1) & COMPOSES_MASK == COMPOSES else 0


@helper
def _matters(table: QuickWindow, text: Window, k: int) -> int:
    """The table's entry for the character of two bytes or more at k, all of whose bytes are in the text."""
    byte, second = get_u8(text, k), get_u8(text, k + 1) & 0x3F
    if byte < 0xE0:
        return get_u8(table.two, (byte & 0x1F) << 6 | second)
    third = get_u8(text, k + 2) & 0x3F
    if byte < 0xF0:
        return get_u8(table.three, (byte & 0xF) << 12 | second << 6 | third)
    c = (byte & 7) << 18 | second << 12 | third << 6 | get_u8(text, k + 3) & 0x3F
    return 1 if c >= UNICODE_SIZE else get_u8(table.blocks, get_u16(table.pages, c >> 7) << 7 | c & 127)


@helper
def _scan(table: QuickWindow, text: Window, i: int, stop: int) -> int:
    """The same, character by character."""
    while i < stop:
        byte = get_u8(text, i)
        size = 1 if byte < 0x80 else 0 if byte < 0xC0 or byte >= 0xF8 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        if size == 0 or i + size > stop:
            return i
        for k in range(1, size):
            if get_u8(text, i + k) & 0xC0 != 0x80:
                return i
        if size > 1 and _matters(table, text, i) != 0:
            return i
        i += size
    return stop

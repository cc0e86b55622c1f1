"""Grapheme clusters, as far as normalization needs them: those shorter than SHORT_CLUSTER bytes may be keys of a map.

A cluster is taken to be a character and the combining marks after it. Everything else that joins characters (Hangul,
conjuncts of Indic scripts, characters that prepend to the next) makes clusters of SHORT_CLUSTER bytes or more, so it
only matters whether a character with a mark is part of one.
"""

from __future__ import annotations

from typing import Any

from jittok.common.unicode.nfc import S_BASE, S_COUNT, T_COUNT
from jittok.kernels.jit import helper
from jittok.kernels.memory import Window, get_u8, get_u16

MAPPED, EXTENDS, IS_KEY, CONTROL, PICTURE, ODD, JOINS, BEGINS_KEY = (1 << k for k in range(8))
"""Flags of characters. MAPPED: its normal form differs; EXTENDS: it extends the grapheme cluster before it (U+200D
joins a PICTURE to the next); IS_KEY: it is a key of the character map; CONTROL: nothing extends it; JOINS: it may
belong to the cluster before it, see `is_joined`; ODD: texts with it are left to the reference."""
PREPENDS = BEGINS_KEY
"""With keys of clusters, this flag means: it belongs to the cluster of the character after it."""
LINKS, PARTS = EXTENDS | JOINS, EXTENDS | PREPENDS
"""Combinations with EXTENDS: a linker that may join two consonants; a mark that keeps them apart."""
HANGUL_L, HANGUL_V, HANGUL_T, NO_JAMO = range(4)
"""The kinds of jamo that a Hangul character begins or ends with."""
ZERO_WIDTH_JOINER = 0x200D


@helper
def character_at(own: Any, text: Window, i: int) -> tuple[int, int, int]:
    """(code point, length, flags) of the character at i."""
    c = get_u8(text, i)
    size = 1
    if c >= 0x80:
        size = 2 if c < 0xE0 else 3 if c < 0xF0 else 4
        c &= 0x7F >> size
        for k in range(1, size):
            c = c << 6 | get_u8(text, i + k) & 0x3F
    return c, size, get_u8(own.blocks, get_u16(own.pages, c >> 7) << 7 | c & 127)


@helper
def cluster_end(own: Any, text: Window, end: int, stop: int, flags: int) -> int:
    """The end of the cluster of a character that ends at `end` and has these flags."""
    joined = 1 if flags & PICTURE else 0
    while end < stop and get_u8(text, end) >= 0x80:
        c, size, flags = character_at(own, text, end)
        if flags & EXTENDS:
            joined = 0 if joined != 1 else 2 if c == ZERO_WIDTH_JOINER else 1
        elif joined == 2 and flags & PICTURE:
            joined = 1
        else:
            break
        end += size
    return end


@helper
def is_joined(own: Any, text: Window, start: int, i: int, c: int, flags: int) -> bool:
    """Whether the character at i, with these flags, belongs to the grapheme cluster of the character before it."""
    if i <= start or get_u8(text, i - 1) < 0x80:
        return False
    i = character_before(text, start, i)
    before, _, back = character_at(own, text, i)
    if back & PARTS == PREPENDS:
        return True
    if flags & LINKS != JOINS:
        return False
    _, begins = _jamo(c)
    if begins != NO_JAMO:
        ends, _ = _jamo(before)
        if ends == HANGUL_L:
            return begins != HANGUL_T
        return ends != NO_JAMO and (begins == HANGUL_T or (begins == HANGUL_V and ends == HANGUL_V))
    linked = False
    while back & EXTENDS and back & PARTS != PARTS and i > start:
        linked = linked or back & LINKS == LINKS
        i = character_before(text, start, i)
        before, _, back = character_at(own, text, i)
    _, begins = _jamo(before)
    return linked and back & LINKS == JOINS and begins == NO_JAMO


@helper
def character_before(text: Window, start: int, i: int) -> int:
    """The offset of the character that ends at i."""
    i -= 1
    while i > start and get_u8(text, i) & 0xC0 == 0x80:
        i -= 1
    return i


@helper
def is_placed(text: Window, begin: int, end: int) -> bool:
    """Whether text[begin:end] has the length that its first byte requires, so that it is a character if the text is
    valid UTF-8."""
    byte = get_u8(text, begin)
    size = 1 if byte < 0x80 else 0 if byte < 0xC2 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
    return end - begin == size and (byte < 0xF4 or (byte == 0xF4 and get_u8(text, begin + 1) < 0x90))


@helper
def _jamo(c: int) -> tuple[int, int]:
    """(kind of jamo that a character ends with, kind that it begins with)."""
    if S_BASE <= c < S_BASE + S_COUNT:
        return (HANGUL_V if (c - S_BASE) % T_COUNT == 0 else HANGUL_T), HANGUL_L
    if 0x1100 <= c < 0x1160 or 0xA960 <= c < 0xA980:
        return HANGUL_L, HANGUL_L
    if 0x1160 <= c < 0x11A8 or 0xD7B0 <= c < 0xD7CB:
        return HANGUL_V, HANGUL_V
    if 0x11A8 <= c < 0x1200 or 0xD7CB <= c < 0xD800:
        return HANGUL_T, HANGUL_T
    return NO_JAMO, NO_JAMO

"""Where a text may be cut without changing one id: rules about neighboring characters, computed from a vocabulary.

A cut between two characters is safe when no token can reach across it. Each model says which neighbors its tokens
hold. There are two levels. ASCII characters fall into classes, and rules say which class may be cut from which, so that
64 bytes are decided by a few masks. Every other character has flags: with what kind of neighbor it is in some
token, on its left and on its right. Characters of three bytes or more are also looked up pair by pair in a bit filter:
two ideographs that no token holds side by side are cut apart. `pretokenize.splitters.spans` reads all this.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok._jit import I64, U8, U16, U64, helper
from jittok._raw import Window, get_i32, get_u8, get_u16, get_u64, multiply, trailing_zeros, window
from jittok.pretokenize.classes import UNICODE_SIZE
from jittok.structures.double_array import BASE, PARENT, ROOT, UNIT, DoubleArray
from jittok.structures.sequences import Sequences, SequenceWindow, open_sequences

CONTROL, LETTER, DIGIT, OTHER, TIED, BLANK, WIDE = range(7)
"""Classes. APART: up to APART_BYTES printable bytes or controls that a vocabulary ties to classes that the rest of
their own class is free of; BLANK: the space, and controls that count as one; WIDE: everything that is not ASCII."""
CLASSES = 7
APART_BYTES, BLANK_BYTES = 6, 5
MOST_PAIRS = 16
"""Pairs of bytes that are searched for in 64 places at once."""
PAIR_ROW, ANY_BYTE = 3, 0x100
"""Words such a pair takes: first and second byte, where paths begin. ANY_BYTE: the one before them may be any."""
LONGEST_PATH = 63
ANYWHERE = np.uint64(0xFFFFFFFFFFFFFFFF)
"""Paths may begin at any place before a cut."""

LEFT_WIDE, LEFT_ASCII, LEFT_BLANK, RIGHT_WIDE, RIGHT_ASCII = 1, 2, 4, 8, 16
"""Flags of a wide character: some token has such a neighbor on that side of it."""
JOINS = LEFT_WIDE | LEFT_ASCII | LEFT_BLANK | RIGHT_WIDE | RIGHT_ASCII
"""A character that is never cut from anything but by the rules about classes."""
STICKY = 32
"""Never cut from a wide character, whatever that says; JOINS are its other flags."""
LIKE_BLANK = 64
"""Counts as a blank (U+2581, which is what a space becomes)."""
ILL = 128
"""No character at all: an overlong form."""
PAIR_K1, PAIR_K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_6, _63 = np.uint64(6), np.uint64(63)


class SpanRules(NamedTuple):
    """Invariants: blocks has 128 entries for every page; pairs.size << 6 == 1 << pair_bits."""

    cuts: U64  # [CLASSES * CLASSES] all ones where class a, then class b (place CLASSES * a + b) may be cut, else 0
    apart: I64  # [APART_BYTES] 0xFF, which no well-formed text holds, where unused
    blanks: I64  # [BLANK_BYTES] bytes that count as a space; 0x20 where unused
    last_blank: (
        int  # 1: of a run of blanks only the last one belongs to what follows; the others are a span of their own
    )
    two: U8  # [2048] flags of wide characters, by the 11 bits of a two-byte form
    three: U8  # [65536] by the 16 bits of a three-byte form
    pages: U16  # [8704] two-stage table, for four-byte forms
    blocks: U8
    pairs: U64  # bit filter of pairs of wide characters that stand side by side in some token
    pair_bits: int
    not_before_wide: int  # 1: an ASCII character before a wide one is not cut from what is before it
    crossings: U64  # [1024] a bit for each pair of bytes that a cut may come between though a path below crosses it
    crossing_pairs: U64  # [PAIR_ROW * n] these pairs, see PAIR_ROW and `crosses_path`; none for more than MOST_PAIRS
    forbidden: Sequences  # those that a path begins with, with the byte before them where it is the same in all paths:
    # a cut between the last two of these bytes crosses one
    sought: Sequences  # the others, likewise
    any_crossings: int  # whether there is such a pair
    paths: DoubleArray  # texts that no cut may come inside of, wherever a beginning of one is in a text
    longest_path: int  # bytes of the longest of them
    lines: int  # 1: runs of newlines are spans of their own, whatever the classes say
    odd: U64  # [4] a bit for each byte that may not stand for itself: no cut so near that a path may hold both


class SpanWindow(NamedTuple):
    """The same as windows."""

    cuts: Window
    apart: Window
    blanks: Window
    last_blank: int
    any_apart: int
    any_blanks: int
    two: Window
    three: Window
    pages: Window
    blocks: Window
    pairs: Window
    pair_bits: int
    not_before_wide: int
    crossings: Window
    crossing_pairs: Window
    pairs_size: int
    forbidden: SequenceWindow
    sought: SequenceWindow
    any_crossings: int
    paths: Window
    longest_path: int
    lines: int
    odd: Window


@helper
def open_rules(rules: SpanRules) -> SpanWindow:
    """Windows onto the arrays."""
    return SpanWindow(
        window(rules.cuts),
        window(rules.apart),
        window(rules.blanks),
        rules.last_blank,
        1 if rules.apart[0] != 0xFF else 0,
        1 if rules.blanks[0] != 0x20 else 0,
        window(rules.two),
        window(rules.three),
        window(rules.pages),
        window(rules.blocks),
        window(rules.pairs),
        rules.pair_bits,
        rules.not_before_wide,
        window(rules.crossings),
        window(rules.crossing_pairs),
        rules.crossing_pairs.size,
        open_sequences(rules.forbidden),
        open_sequences(rules.sought),
        rules.any_crossings,
        window(rules.paths.units),
        rules.longest_path,
        rules.lines,
        window(rules.odd),
    )


@helper
def wide_character(rules: SpanWindow, text: Window, i: int) -> tuple[int, int, int]:
    """(code point, bytes, flags) of the character whose first byte, C0 and up, is at i; three more are readable."""
    byte = get_u8(text, i)
    second = get_u8(text, i + 1) & 0x3F
    if byte < 0xE0:
        code = (byte & 0x1F) << 6 | second
        return code, 2, get_u8(rules.two, code)
    third = get_u8(text, i + 2) & 0x3F
    if byte < 0xF0:
        code = (byte & 0xF) << 12 | second << 6 | third
        return code, 3, get_u8(rules.three, code)
    code = (byte & 7) << 18 | second << 12 | third << 6 | get_u8(text, i + 3) & 0x3F
    if code < 0x10000 or code >= UNICODE_SIZE:
        return code, 4, ILL
    return code, 4, get_u8(rules.blocks, get_u16(rules.pages, code >> 7) << 7 | code & 127)


@helper
def pair_slot(left: int, right: int, bits: int) -> np.uint64:
    """The bit of a pair of code points in a filter of 2 ** bits."""
    h = multiply(multiply(np.uint64(left), PAIR_K1) ^ np.uint64(right), PAIR_K2)
    return h >> np.uint64(64 - bits)


@helper
def may_join(rules: SpanWindow, left: int, right: int) -> bool:
    """Whether some token may hold these wide characters side by side."""
    position = pair_slot(left, right, rules.pair_bits)
    return bool((get_u64(rules.pairs, np.int64(position >> _6)) >> (position & _63)) & np.uint64(1))


@helper
def may_cross(rules: SpanWindow, text: Window, at: int) -> bool:
    """Whether the bytes on both sides of `at` > 0 are such a pair."""
    pair = get_u8(text, at - 1) << 8 | get_u8(text, at)
    return bool((get_u64(rules.crossings, pair >> 6) >> np.uint64(pair & 63)) & np.uint64(1))


@helper
def crosses_path(rules: SpanWindow, text: Window, begin: int, at: int, stop: int, starts: np.uint64) -> bool:
    """Whether a beginning of one of the paths is in text[begin:stop] so that it goes on across `at` > begin.

    starts: bit d for paths that begin at at - d; bit 0 for some that odd bytes may become part of, so that none of
    these may be near.
    """
    if starts & np.uint64(1) != np.uint64(0):
        for i in range(max(begin, at - rules.longest_path), min(stop, at + rules.longest_path)):
            byte = get_u8(text, i)
            if (get_u64(rules.odd, byte >> 6) >> np.uint64(byte & 63)) & np.uint64(1) != np.uint64(0):
                return True
    starts &= ~np.uint64(1)
    while starts != np.uint64(0):
        i = at - trailing_zeros(starts)
        if i < begin:
            return False
        starts &= starts - np.uint64(1)
        node = ROOT
        while i < stop and i <= at:
            position = get_i32(rules.paths, UNIT * node + BASE) ^ get_u8(text, i)
            if get_i32(rules.paths, UNIT * position + PARENT) != node:
                break
            node = position
            i += 1
        if i > at:
            return True
    return False

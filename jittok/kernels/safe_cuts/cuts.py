"""The tables of safe cuts: rules about adjacent characters, computed from a vocabulary.

A cut between two characters is safe if no token can contain both. There are two levels. ASCII characters belong to
classes, and a table decides which class may be cut from which, so that a few masks decide 64 bytes at once. Every wide
(non-ASCII) character has flags for the kinds of neighbors that it has in some token, on its left and on its right.
Pairs of characters of three bytes or more are also looked up in a bit filter: two ideographs that are adjacent in no
token are cut apart. `pretokenize.splitters.spans` reads these tables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.kernels.jit import I64, U8, U16, U64, helper
from jittok.kernels.memory import Window, get_i32, get_u8, get_u16, get_u64, multiply, trailing_zeros, window
from jittok.kernels.pretokenize.classes import UNICODE_SIZE
from jittok.kernels.structures.double_array import BASE, PARENT, ROOT, UNIT, DoubleArray
from jittok.kernels.structures.sequences import Sequences, SequenceWindow, open_sequences

CONTROL, LETTER, DIGIT, OTHER, TIED, BLANK, WIDE = range(7)
"""Classes. TIED: up to APART_BYTES printable or control characters that some token joins with a class which the rest
of their own class is never joined with; BLANK: the space, and control characters that become one; WIDE: non-ASCII."""
CLASSES = 7
APART_BYTES, BLANK_BYTES = 6, 5
MOST_PAIRS = 16
"""The most pairs of bytes that are searched for in 64 bytes at once."""
PAIR_ROW, ANY_BYTE = 3, 0x100
"""Words of such a pair: first byte, second byte, where paths begin. ANY_BYTE: the byte before the pair may be any."""
LONGEST_PATH = 63
ANYWHERE = np.uint64(0xFFFFFFFFFFFFFFFF)
"""Paths may begin at any offset before a cut."""

LEFT_WIDE, LEFT_ASCII, LEFT_BLANK, RIGHT_WIDE, RIGHT_ASCII = 1, 2, 4, 8, 16
"""Flags of a wide character: some token has such a neighbor on that side of it."""
JOINS = LEFT_WIDE | LEFT_ASCII | LEFT_BLANK | RIGHT_WIDE | RIGHT_ASCII
"""All of these flags: only the table of classes may cut this character from another."""
STICKY = 32
"""Never cut from a wide character, whatever the flags of that are; its other flags are JOINS."""
LIKE_BLANK = 64
"""Counts as a blank: U+2581, which spaces become."""
ILL = 128
"""Not a character: an overlong form."""
PAIR_K1, PAIR_K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_6, _63 = np.uint64(6), np.uint64(63)


class SpanRules(NamedTuple):
    """Invariants: blocks has 128 entries for every page; pairs.size << 6 == 1 << pair_bits."""

    cuts: U64  # [CLASSES * CLASSES] at CLASSES * a + b: all ones if class a may be cut from class b after it, else 0
    apart: I64  # [APART_BYTES] 0xFF, which never occurs in UTF-8, where unused
    blanks: I64  # [BLANK_BYTES] bytes that count as a space; 0x20 where unused
    last_blank: (
        int  # 1: only the last one of a run of blanks belongs to the span after it; the others are a separate span
    )
    two: U8  # [2048] flags of wide characters, by the 11 bits of a two-byte sequence
    three: U8  # [65536] by the 16 bits of a three-byte sequence
    pages: U16  # [8704] two-stage table, for four-byte sequences
    blocks: U8
    pairs: U64  # bit filter of pairs of wide characters that are adjacent in some token
    pair_bits: int
    not_before_wide: int  # 1: an ASCII character before a wide one is not cut from the character before it
    crossings: U64  # [1024] a bit for each pair of bytes that classes would cut although some path contains it
    crossing_pairs: U64  # [PAIR_ROW * n] these pairs, see PAIR_ROW and `crosses_path`; none for more than MOST_PAIRS
    forbidden: Sequences  # pairs that some path begins with, and the byte before them if all paths have the same one:
    # a cut between the last two of these bytes always crosses a path
    sought: Sequences  # the other pairs, likewise
    any_crossings: int  # whether there is such a pair
    paths: DoubleArray  # texts that must not be cut, wherever a prefix of one is in a text
    longest_path: int  # bytes of the longest path
    lines: int  # 1: runs of newlines are separate spans, whatever the classes are
    odd: U64  # [4] a bit for each byte that normalization may change: no cut so near that a path may contain both


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
    """(code point, length, flags) of the wide character at i, whose first byte is C0 or above. Three bytes after it are
    readable."""
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
    """The index of a pair of code points in a filter of 2 ** bits bits."""
    h = multiply(multiply(np.uint64(left), PAIR_K1) ^ np.uint64(right), PAIR_K2)
    return h >> np.uint64(64 - bits)


@helper
def may_join(rules: SpanWindow, left: int, right: int) -> bool:
    """Whether these wide characters may be adjacent in some token."""
    position = pair_slot(left, right, rules.pair_bits)
    return bool((get_u64(rules.pairs, np.int64(position >> _6)) >> (position & _63)) & np.uint64(1))


@helper
def may_cross(rules: SpanWindow, text: Window, at: int) -> bool:
    """Whether the bytes on both sides of `at` > 0 are a pair of `crossings`."""
    pair = get_u8(text, at - 1) << 8 | get_u8(text, at)
    return bool((get_u64(rules.crossings, pair >> 6) >> np.uint64(pair & 63)) & np.uint64(1))


@helper
def crosses_path(rules: SpanWindow, text: Window, begin: int, at: int, stop: int, starts: np.uint64) -> bool:
    """Whether a prefix of some path is in text[begin:stop] and crosses the offset `at` > begin.

    starts: bit d for paths that begin at at - d; bit 0 for paths that odd bytes may become part of: then no odd byte
    may be near.
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

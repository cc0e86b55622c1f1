"""Classes of bytes as bit masks, 64 bytes at a time: the input of the fast splitters.

Bit k of a mask is for byte k of the block. All bytes of a character have its class. So "the character before is a
letter" is "the byte before is a letter". Bytes after the end of the text count as spaces, because `\\s+(?!\\S)` matches
all white space at the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode import tables
from jittok.kernels.jit import U8, U16, frozen, helper, inlined
from jittok.kernels.memory import (
    Window,
    add,
    class_masks,
    contraction_masks,
    get_u8,
    get_u16,
    trailing_zeros,
    utf8_masks,
    window,
)
from jittok.kernels.pretokenize.classes import UNICODE_SIZE, two_stage_of
from jittok.kernels.structures.prefetch import prefetch_text

OTHER, LETTER, DIGIT, SPACE, BAD, CAPITAL, SMALL, MARK = range(8)
"""Classes of code points. BAD: an overlong form, which is invalid UTF-8. The last three are letters, except to a
splitter
that distinguishes them: there, LETTER is a letter that is neither capital nor small, and a mark is a letter after
one."""
ONE, NONE, ALL = np.uint64(1), np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF)
B2, B3, B61, B62, B63 = (np.uint64(n) for n in (2, 3, 61, 62, 63))


class CharacterClasses(NamedTuple):
    """Classes of code points beyond ASCII, by the bits of their UTF-8 forms."""

    two: U8  # [2048] by the 11 bits of a two-byte form
    three: U8  # [65536] by the 16 bits of a three-byte form
    pages: U16  # [8704] two-stage table, read for four-byte forms
    blocks: U8


class ClassWindow(NamedTuple):
    """The same as windows."""

    two: Window
    three: Window
    pages: Window
    blocks: Window


def character_classes(letter_flags: int) -> CharacterClasses:
    """The tables if characters with one of these flags count as letters (marks do in some patterns)."""
    flags = tables.flag_table()
    classes = np.zeros(UNICODE_SIZE, np.uint8)
    classes[flags & letter_flags > 0] = LETTER
    classes[flags & tables.NUMBER > 0] = DIGIT
    classes[flags & tables.WHITESPACE > 0] = SPACE
    return class_tables(classes)


def class_tables(classes: NDArray[np.uint8]) -> CharacterClasses:
    """The tables of classes: uint8[0x110000], one per code point. Text with a character of class BAD is malformed."""
    pages, blocks = two_stage_of(classes)
    two, three = classes[:0x800].copy(), classes[:0x10000].copy()
    two[:0x80] = BAD
    three[:0x800] = BAD
    return CharacterClasses(
        *(frozen(a, np.uint8) for a in (two, three)), frozen(pages, np.uint16), frozen(blocks, np.uint8)
    )


@helper
def open_classes(classes: CharacterClasses) -> ClassWindow:
    """Windows onto the arrays."""
    return ClassWindow(window(classes.two), window(classes.three), window(classes.pages), window(classes.blocks))


class Block(NamedTuple):
    """Masks of one block, and the continuation bytes of its last character that are in the next block."""

    letter: np.uint64
    digit: np.uint64
    white: np.uint64
    space: np.uint64  # the byte 20
    line: np.uint64  # CR and LF
    quote: np.uint64
    capital: np.uint64  # ASCII
    slash: np.uint64
    follower: np.uint64  # continuation bytes, which never begin anything
    white_two: np.uint64  # first bytes of white space of two bytes, of three
    white_three: np.uint64
    wide_letter: np.uint64  # letters beyond ASCII
    wide_digit: np.uint64
    wide_capital: np.uint64  # letters beyond ASCII that are capitals, small, marks: by the tables, none by most
    wide_small: np.uint64
    mark: np.uint64
    owed: int  # bytes of the next block that belong to this block's last character
    owed_class: int
    bad: np.uint64  # not 0: invalid UTF-8


@inlined
def no_block() -> Block:
    """The block before a text: empty."""
    return Block(
        NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 0, LETTER, NONE
    )  # fmt: skip


@inlined
def read_block(classes: ClassWindow, text: Window, i: int, stop: int, owed: int, owed_class: int) -> Block:
    """Masks of text[i:i + 64]; from `stop` on all is space. owed, owed_class: from the block before.

    Inlined: masks that the caller's pattern does not use are not computed, and the others stay in registers. Always
    reads 64 bytes, so PAD bytes must be readable after the text.
    """
    if i >= stop:  # nothing is read; a character that continues here is truncated
        bad = NONE
        if owed != 0:
            bad = ONE
        return Block(
            NONE, NONE, ALL, ALL, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 0, LETTER, bad
        )  # fmt: skip
    prefetch_text(text, i)
    high, letter, digit, white, space, line, quote, capital, slash = class_masks(text, i)
    inside = ALL
    if stop - i < 64:
        inside = (ONE << np.uint64(stop - i)) - ONE
        high &= inside
        letter &= inside
        digit &= inside
        white |= ~inside
        space |= ~inside
        line &= inside
        quote &= inside
        capital &= inside
        slash &= inside
    follower = white_two = white_three = wide_letter = wide_digit = bad = NONE
    wide_capital = wide_small = mark = NONE
    if (high != NONE) | (owed != 0):
        (
            wide_letter, wide_digit, wide_white, white_two, white_three, wide_capital, wide_small, mark, follower, owed,
            owed_class, bad,
        ) = _wide(classes, text, i, high, inside, owed, owed_class)  # fmt: skip
        letter |= wide_letter
        digit |= wide_digit
        white |= wide_white
    else:
        owed, owed_class = 0, LETTER
    return Block(
        letter,
        digit,
        white,
        space,
        line,
        quote,
        capital,
        slash,
        follower,
        white_two,
        white_three,
        wide_letter,
        wide_digit,
        wide_capital,
        wide_small,
        mark,
        owed,
        owed_class,
        bad,
    )


_WideBlock = tuple[
    np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, int, int,
    np.uint64,
]  # fmt: skip
"""The masks of the classes and of followers, bytes of the next block that are the last character's, its class, BAD."""


@helper
def _wide(
    classes: ClassWindow, text: Window, i: int, high: np.uint64, inside: np.uint64, owed: int, owed_class: int
) -> _WideBlock:
    """Classes of the characters beyond ASCII in one block. One loop over their masks, which stay in registers.

    A first byte determines how many continuation bytes follow. A missing or an extra one makes the text malformed, and
    so does an overlong form (class BAD).
    """
    follower, c0, e0, f0, f8 = utf8_masks(text, i)
    follower &= inside
    first = c0 & inside
    head = (ONE << np.uint64(owed)) - ONE
    promised = (first << ONE) | (e0 & inside) << B2 | (f0 & inside) << B3 | head
    bad = (promised ^ follower) | f8 & inside
    letter, digit, white, white_two, white_three = high, NONE, NONE, NONE, NONE
    capital = small = mark = NONE
    if owed_class != LETTER:
        if owed_class == SMALL:
            small |= head
        elif owed_class == CAPITAL:
            capital |= head
        elif owed_class == MARK:
            mark |= head
        else:
            letter &= ~head
        if owed_class == DIGIT:
            digit |= head
        elif owed_class == SPACE:
            white |= head
    kind, size, k = LETTER, 0, 0
    while first != NONE:
        k = trailing_zeros(first)
        first &= first - ONE
        kind, size = _class_at(classes, text, i + k)
        if kind != LETTER:
            mask = ((ONE << np.uint64(size)) - ONE) << np.uint64(k)
            if kind == SMALL:
                small |= mask
                continue
            if kind == CAPITAL:
                capital |= mask
                continue
            if kind == MARK:
                mark |= mask
                continue
            letter &= ~mask
            if kind == DIGIT:
                digit |= mask
            elif kind == SPACE:
                white |= mask
                if size == 2:
                    white_two |= ONE << np.uint64(k)
                else:
                    white_three |= ONE << np.uint64(k)
            elif kind == BAD:
                bad |= ONE
    owed = 0
    if size != 0 and k + size > 64:
        owed = k + size - 64
    return letter, digit, white, white_two, white_three, capital, small, mark, follower, owed, kind, bad


@helper
def _class_at(classes: ClassWindow, text: Window, i: int) -> tuple[int, int]:
    """(class, bytes) of the character whose first byte, C0 or more, is at i; PAD makes the reads safe."""
    byte = get_u8(text, i)
    second = get_u8(text, i + 1) & 0x3F
    if byte < 0xE0:
        return get_u8(classes.two, (byte & 0x1F) << 6 | second), 2
    third = get_u8(text, i + 2) & 0x3F
    if byte < 0xF0:
        return get_u8(classes.three, (byte & 0xF) << 12 | second << 6 | third), 3
    c = (byte & 7) << 18 | second << 12 | third << 6 | get_u8(text, i + 3) & 0x3F
    if c < 0x10000 or c >= UNICODE_SIZE:
        return BAD, 4
    return get_u8(classes.blocks, get_u16(classes.pages, c >> 7) << 7 | c & 127), 4


@helper
def class_of_letter(classes: ClassWindow, text: Window, i: int) -> int:
    """Class of the character beyond ASCII at i."""
    kind, _ = _class_at(classes, text, i)
    return kind


@helper
def letters_after_quotes(text: Window, i: int, stop: int, fold: np.uint64) -> tuple[np.uint64, np.uint64]:
    """`contraction_masks` of text[i:i + 64], of letters before `stop` only: later bytes are not part of the text."""
    one, two = contraction_masks(text, i, fold)
    left = stop - i
    if left < 66:  # the last bytes of the text have no second one after them, or not even a first
        if left == 65:
            two &= ALL >> ONE
        else:
            beyond = np.uint64(64 - left)
            one &= ALL >> ONE >> beyond
            two &= ALL >> B2 >> beyond
    return one, two


@helper
def carry_out(a: np.uint64, b: np.uint64, carry: np.uint64) -> np.uint64:
    """The carry of a + b + carry out of bit 63; carry is 0 or 1."""
    half = add(a, b)
    return np.uint64(half < a) | np.uint64(add(half, carry) < half)


@helper
def more_lines(classes: ClassWindow, text: Window, i: int, stop: int) -> bool:
    """Whether the run of white space at i holds CR or LF; i may be inside a character."""
    while i < stop and get_u8(text, i) & 0xC0 == 0x80:
        i += 1
    while i < stop:
        byte = get_u8(text, i)
        if byte in (10, 13):
            return True
        if byte == 32 or 9 <= byte <= 12:
            i += 1
        elif byte < 0xC2:
            return False
        else:
            kind, size = _class_at(classes, text, i)
            if kind != SPACE:
                return False
            i += size
    return False

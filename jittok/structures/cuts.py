"""Where a text may be cut without changing one id: rules about neighbouring characters, computed from a vocabulary.

A cut between two characters is safe when no token can reach across it; each model says which neighbours its tokens
hold. There are two levels. ASCII characters fall into classes, and rules say which class may be cut from which, so that
64 bytes are decided by a few masks. Every other character has flags: with what kind of neighbour it stands in some
token, on its left and on its right; and characters of three bytes or more are looked up pair by pair in a bit filter
(two ideographs that no token holds side by side are cut apart). `pretokenize.splitters.spans` reads all this.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import I64, U8, U16, U64, frozen, helper
from jittok._raw import Window, get_i32, get_u8, get_u16, get_u64, multiply, trailing_zeros, window
from jittok.pretokenize.classes import UNICODE_SIZE, two_stage
from jittok.structures.double_array import BASE, PARENT, ROOT, UNIT, DoubleArray, build_double_array

CONTROL, LETTER, DIGIT, OTHER, APART, BLANK, WIDE = range(7)
"""Classes. APART: up to APART_BYTES printable bytes or controls that a vocabulary ties to classes that the rest of
their own class is free of; BLANK: the space, and controls that count as one; WIDE: everything that is not ASCII."""
CLASSES = 7
APART_BYTES, BLANK_BYTES = 6, 5
MOST_PAIRS = 16
"""Pairs of bytes that are looked for in 64 places at once."""
LONGEST_PATH = 63
ANYWHERE = np.uint64(0xFFFFFFFFFFFFFFFF)
"""Paths may begin at any place in front of a cut."""

LEFT_WIDE, LEFT_ASCII, LEFT_BLANK, RIGHT_WIDE, RIGHT_ASCII = 1, 2, 4, 8, 16
"""Flags of a wide character: some token has such a neighbour on that side of it."""
JOINS = LEFT_WIDE | LEFT_ASCII | LEFT_BLANK | RIGHT_WIDE | RIGHT_ASCII
"""A character that is never cut from anything but by the rules about classes."""
STICKY = 32
"""Never cut from a wide character, whatever that says; JOINS are its other flags."""
LIKE_BLANK = 64
"""Counts as a blank (U+2581, which is what a space becomes)."""
ILL = 128
"""No character at all: an overlong form."""
_ALL = (1 << 64) - 1
_K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
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
    not_before_wide: int  # 1: an ASCII character in front of a wide one is not cut from what stands before it
    crossings: U64  # [1024] a bit for each pair of bytes that a cut may come between though a path below crosses it
    crossing_pairs: (
        U64  # [3 * n] these pairs, and where paths begin (see `crosses_path`); none for more than MOST_PAIRS
    )
    any_crossings: int  # whether there is such a pair
    paths: DoubleArray  # texts that no cut may come inside of, wherever a beginning of one stands in a text
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
def pair_place(left: int, right: int, bits: int) -> np.uint64:
    """The bit of a pair of code points in a filter of 2 ** bits."""
    h = multiply(multiply(np.uint64(left), _K1) ^ np.uint64(right), _K2)
    return h >> np.uint64(64 - bits)


@helper
def may_join(rules: SpanWindow, left: int, right: int) -> bool:
    """Whether some token may hold these wide characters side by side."""
    place = pair_place(left, right, rules.pair_bits)
    return bool((get_u64(rules.pairs, np.int64(place >> _6)) >> (place & _63)) & np.uint64(1))


@helper
def may_cross(rules: SpanWindow, text: Window, at: int) -> bool:
    """Whether the bytes on both sides of `at` > 0 are such a pair."""
    pair = get_u8(text, at - 1) << 8 | get_u8(text, at)
    return bool((get_u64(rules.crossings, pair >> 6) >> np.uint64(pair & 63)) & np.uint64(1))


@helper
def crosses_path(rules: SpanWindow, text: Window, begin: int, at: int, stop: int, starts: np.uint64) -> bool:
    """Whether a beginning of one of the paths stands in text[begin:stop] so that it goes on across `at` > begin.

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
            place = get_i32(rules.paths, UNIT * node + BASE) ^ get_u8(text, i)
            if get_i32(rules.paths, UNIT * place + PARENT) != node:
                break
            node = place
            i += 1
        if i > at:
            return True
    return False


# ---- building


class Paths(NamedTuple):
    """Texts that no cut may come inside of, of up to LONGEST_PATH bytes."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    pairs: NDArray[np.int64]  # neighbours in them, first << 8 | second, that the classes would cut, each once,
    starts: NDArray[np.uint64]  # and where texts begin that hold them, see `crosses_path`
    odd: NDArray[np.int64]  # bytes that may become part of such a text without being in it


_NO_TEXTS = np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int32)


class Neighbours(NamedTuple):
    """Characters that stand side by side in tokens; blanks are 0x20."""

    left: NDArray[np.int64]  # code points
    right: NDArray[np.int64]


def characters(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """(code points, the text that each stands in, texts that are no UTF-8 and have no characters here) of chosen texts.

    data: uint8[bytes], offsets: int64[texts + 1], chosen: bool[texts]
    """
    lengths = np.diff(offsets)
    data = data[offsets[0] : offsets[-1]][np.repeat(chosen, lengths)]
    owner = np.repeat(np.flatnonzero(chosen), lengths[chosen])
    follower = (data & 0xC0) == 0x80
    size = 1 + (data >= 0xC0) + (data >= 0xE0) + (data >= 0xF0)
    promised, ill = np.zeros(data.size, bool), data >= 0xF8
    for k in (1, 2, 3):
        there = np.append(owner[k:] == owner[:-k], np.zeros(min(k, data.size), bool))
        promises = size > k
        ill |= promises & ~there
        promised[k:] |= (promises & there)[:-k]
    ill |= promised != follower
    bad = np.zeros(chosen.size, bool)
    bad[owner[ill]] = True
    first = np.flatnonzero(~follower & ~bad[owner])
    padded = np.append(data, np.zeros(3, np.uint8)).astype(np.int64)
    code = padded[first] & np.array([0, 0x7F, 0x1F, 0x0F, 0x07])[size[first]]
    for k in (1, 2, 3):
        code = np.where(size[first] > k, code << 6 | padded[first + k] & 0x3F, code)
    bad[owner[first[code >= UNICODE_SIZE]]] = True
    good = ~bad[owner[first]]
    return code[good], owner[first[good]], bad


def neighbours(data: NDArray[np.uint8], offsets: NDArray[np.int64], chosen: NDArray[np.bool_]) -> Neighbours:
    """All pairs of neighbouring characters of the chosen texts that are UTF-8 (others match nothing in UTF-8).

    data: uint8[bytes], offsets: int64[texts + 1], chosen: bool[texts]
    """
    code, owner, _ = characters(data, offsets, chosen)
    same = owner[1:] == owner[:-1]
    return Neighbours(code[:-1][same], code[1:][same])


def class_of(apart: Iterable[int] = (), blanks: Iterable[int] = ()) -> NDArray[np.int64]:
    """int64[129]: the class of each ASCII byte, and of wide characters at place 128."""
    found = np.full(129, OTHER, np.int64)
    found[:0x20], found[0x7F] = CONTROL, CONTROL
    found[0x30:0x3A], found[0x41:0x5B], found[0x61:0x7B] = DIGIT, LETTER, LETTER
    found[list(apart)] = APART
    found[[0x20, *blanks]] = BLANK
    found[128] = WIDE
    return found


def tied_classes(table: NDArray[np.bool_], classes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[CLASSES, CLASSES]: some member of class a may stand in front of one of class b.

    table: bool[129, 129] the same for ASCII bytes and wide characters, classes: as from `class_of`
    """
    left, right = np.nonzero(table)
    found = np.zeros((CLASSES, CLASSES), bool)
    found[classes[left], classes[right]] = True
    return found


def choose_apart(table: NDArray[np.bool_], never: Iterable[int] = ()) -> list[int]:
    """Up to APART_BYTES bytes whose leaving their class frees the most pairs of classes; in order of their use."""
    weights = np.ones((CLASSES, CLASSES))
    weights[:, BLANK] = 8  # words end at blanks: nothing is worth more
    weights[APART], weights[:, APART] = 0, 0
    chosen: list[int] = []
    candidates = [b for b in range(128) if class_of()[b] in (CONTROL, OTHER) and b not in set(never)]
    cost = float((tied_classes(table, class_of()) * weights).sum())
    while len(chosen) < APART_BYTES:
        costs = [float((tied_classes(table, class_of([*chosen, b])) * weights).sum()) for b in candidates]
        best = int(np.argmin(costs))
        if costs[best] >= cost:
            break
        cost = costs[best]
        chosen.append(candidates.pop(best))
    return chosen


def pair_table(pairs: Neighbours) -> NDArray[np.bool_]:
    """bool[129, 129]: which ASCII bytes (128: wide characters) stand side by side."""
    table = np.zeros((129, 129), bool)
    table[np.minimum(pairs.left, 128), np.minimum(pairs.right, 128)] = True
    return table


def wide_flags(pairs: Neighbours) -> NDArray[np.uint8]:
    """uint8[UNICODE_SIZE]: the flags of every wide character."""
    flags = np.zeros(UNICODE_SIZE, np.uint8)
    sides = (
        (pairs.left, pairs.right, RIGHT_WIDE, RIGHT_ASCII, RIGHT_ASCII),
        (pairs.right, pairs.left, LEFT_WIDE, LEFT_ASCII, LEFT_BLANK),
    )
    for own, other, wide, ascii_, blank in sides:
        kind = np.where(other >= 0x80, wide, np.where(other == 0x20, blank, ascii_))
        for bit in (wide, ascii_, blank):
            flags[own[kind == bit]] |= bit
    return flags


def build_rules(
    cuts: NDArray[np.bool_],
    apart: Iterable[int],
    blanks: Iterable[int],
    flags: NDArray[np.uint8],
    pairs: Neighbours | None,
    last_blank: bool,
    not_before_wide: bool = False,
    paths: Paths | None = None,
    lines: bool = False,
) -> SpanRules:
    """The rules as arrays.

    cuts: bool[CLASSES, CLASSES] which class may be cut from which (wide from wide never is, by this table)
    flags: uint8[UNICODE_SIZE]; pairs: of tokens, for the filter (None: any two may stand side by side)
    """
    cuts = cuts.copy()
    cuts[WIDE, WIDE] = False
    pages, blocks = two_stage(np.arange(UNICODE_SIZE), flags)
    two, three = flags[:0x800].copy(), flags[:0x10000].copy()
    two[:0x80], three[:0x800] = ILL, ILL
    if pairs is None:
        bits, pair_words = 9, np.full(8, _ALL, np.uint64)
    else:
        checked = (pairs.left >= 0x800) & (pairs.right >= 0x800)
        joined = np.unique(pairs.left[checked] << 21 | pairs.right[checked])
        bits = max(9, int(8 * joined.size).bit_length())
        pair_words = _pair_filter(joined >> 21, joined & (1 << 21) - 1, bits)
    crossings, trie, longest = np.zeros(1024, np.uint64), build_double_array(*_NO_TEXTS), 0
    odd, few = np.zeros(4, np.uint64), np.zeros((0, 3), np.uint64)
    if paths is not None:
        np.bitwise_or.at(odd, paths.odd >> 6, np.uint64(1) << (paths.odd & 63).astype(np.uint64))
        np.bitwise_or.at(crossings, paths.pairs >> 6, np.uint64(1) << (paths.pairs & 63).astype(np.uint64))
        if paths.pairs.size:
            trie = build_double_array(paths.data, paths.offsets, np.zeros(paths.offsets.size - 1, np.int32))
            longest = int(np.diff(paths.offsets).max())
        if paths.pairs.size <= MOST_PAIRS:
            few = np.stack([paths.pairs >> 8, paths.pairs & 0xFF, paths.starts.view(np.int64)], 1).view(np.uint64)
    return SpanRules(
        frozen(np.where(cuts, np.uint64(_ALL), np.uint64(0)).reshape(-1), np.uint64),
        frozen(_filled(apart, APART_BYTES, 0xFF), np.int64),
        frozen(_filled(blanks, BLANK_BYTES, 0x20), np.int64),
        int(last_blank),
        frozen(two, np.uint8),
        frozen(three, np.uint8),
        frozen(pages, np.uint16),
        frozen(blocks, np.uint8),
        frozen(pair_words, np.uint64),
        bits,
        int(not_before_wide),
        frozen(crossings, np.uint64),
        frozen(few.reshape(-1), np.uint64),
        int(longest > 0),
        trie,
        longest,
        int(lines),
        frozen(odd, np.uint64),
    )


def no_cuts() -> SpanRules:
    """Rules under which a text is one span."""
    return build_rules(
        np.zeros((CLASSES, CLASSES), bool),
        (),
        (),
        np.full(UNICODE_SIZE, JOINS | STICKY, np.uint8),
        None,
        last_blank=False,
    )


def _filled(values: Iterable[int], size: int, unused: int) -> NDArray[np.int64]:
    found = [*values]
    return np.array(found + [unused] * (size - len(found)), np.int64)


def _pair_filter(left: NDArray[np.int64], right: NDArray[np.int64], bits: int) -> NDArray[np.uint64]:
    """The bit filter of pairs of code points; the same hash as `pair_place`."""
    with np.errstate(over="ignore"):
        places = ((left.astype(np.uint64) * _K1) ^ right.astype(np.uint64)) * _K2 >> np.uint64(64 - bits)
    words = np.zeros(1 << bits - 6, np.uint64)
    np.bitwise_or.at(words, (places >> _6).astype(np.int64), np.uint64(1) << (places & _63))
    return words

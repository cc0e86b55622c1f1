"""Compute the tables of safe cuts from a vocabulary: which characters are adjacent in some token."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.characters import SPACE_MARK_CODE
from jittok.kernels.jit import U64, frozen
from jittok.kernels.pretokenize.classes import UNICODE_SIZE, distinct, two_stage_of
from jittok.kernels.safe_cuts.cuts import (
    ANY_BYTE,
    APART_BYTES,
    BLANK,
    BLANK_BYTES,
    CLASSES,
    CONTROL,
    DIGIT,
    ILL,
    JOINS,
    LEFT_ASCII,
    LEFT_BLANK,
    LEFT_WIDE,
    LETTER,
    LIKE_BLANK,
    MOST_PAIRS,
    OTHER,
    PAIR_K1,
    PAIR_K2,
    PAIR_ROW,
    RIGHT_ASCII,
    RIGHT_WIDE,
    STICKY,
    TIED,
    WIDE,
    SpanRules,
)
from jittok.kernels.structures.double_array import DoubleArray, build_double_array
from jittok.kernels.structures.sequences import Sequences, make_sequences

_ALL = (1 << 64) - 1


class Paths(NamedTuple):
    """Texts of up to LONGEST_PATH bytes that must not be cut."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    pairs: NDArray[np.int64]  # adjacent bytes in them, first << 8 | second, that the classes would cut; no duplicates
    before: NDArray[np.int64]  # [pairs] the byte before such a pair in all texts, or cuts.ANY_BYTE
    starts: NDArray[np.uint64]  # [pairs] where the texts that contain it begin, see `crosses_path`
    odd: NDArray[np.int64]  # bytes that normalization may turn into a part of such a text


_NO_TEXTS = np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int32)


class Neighbours(NamedTuple):
    """Pairs of characters that are adjacent in tokens; blanks are 0x20."""

    left: NDArray[np.int64]  # code points
    right: NDArray[np.int64]


def characters(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """(code points of the chosen texts, the text that each is in, bool[texts] whether a text is invalid UTF-8). Invalid
    texts have no code points here.

    data: uint8[bytes], offsets: int64[texts + 1], chosen: bool[texts]
    """
    lengths, data = np.diff(offsets), data[offsets[0] : offsets[-1]]
    if not chosen.all():
        data = data[np.repeat(chosen, lengths)]
    follower = (data & 0xC0) == 0x80
    quick = _all_well_formed(data, lengths[chosen], follower)
    if quick is not None:
        return quick[0], np.repeat(np.flatnonzero(chosen), quick[1]), np.zeros(chosen.size, bool)
    owner = np.repeat(np.flatnonzero(chosen), lengths[chosen])
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


def _all_well_formed(
    data: NDArray[np.uint8], lengths: NDArray[np.int64], follower: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """(all code points, how many each text has) if all texts are valid UTF-8, as in nearly all vocabularies; else None.
    Python's decoder is ten times as fast."""
    full = lengths > 0
    begins = (np.cumsum(lengths) - lengths)[full]
    if follower[begins].any():
        return None
    try:
        text = data.tobytes().decode("utf-8")
    except UnicodeDecodeError:
        return None
    counts = lengths.copy()
    counts[full] -= np.add.reduceat(follower, begins, dtype=np.int64) if begins.size else 0
    return np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.int64), counts


def neighbours(data: NDArray[np.uint8], offsets: NDArray[np.int64], chosen: NDArray[np.bool_]) -> Neighbours:
    """All pairs of adjacent characters in those chosen texts that are valid UTF-8; others match nothing in valid UTF-8.

    data: uint8[bytes], offsets: int64[texts + 1], chosen: bool[texts]
    """
    code, owner, _ = characters(data, offsets, chosen)
    same = owner[1:] == owner[:-1]
    return Neighbours(code[:-1][same], code[1:][same])


def class_of(apart: Iterable[int] = (), blanks: Iterable[int] = ()) -> NDArray[np.int64]:
    """int64[129]: the class of each ASCII byte; at index 128, that of wide characters."""
    found = np.full(129, OTHER, np.int64)
    found[:0x20], found[0x7F] = CONTROL, CONTROL
    found[0x30:0x3A], found[0x41:0x5B], found[0x61:0x7B] = DIGIT, LETTER, LETTER
    found[list(apart)] = TIED
    found[[0x20, *blanks]] = BLANK
    found[128] = WIDE
    return found


def tied_classes(table: NDArray[np.bool_], classes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[CLASSES, CLASSES]: whether some member of class a is before one of class b in a token.

    table: bool[129, 129] the same for ASCII bytes and wide characters; classes: from `class_of`
    """
    left, right = np.nonzero(table)
    found = np.zeros((CLASSES, CLASSES), bool)
    found[classes[left], classes[right]] = True
    return found


def choose_apart(table: NDArray[np.bool_], never: Iterable[int] = ()) -> list[int]:
    """Up to APART_BYTES bytes to move to the class TIED so that the most pairs of classes may be cut; the most useful
    first."""
    weights = np.ones((CLASSES, CLASSES))
    weights[:, BLANK] = 8  # words end at blanks: nothing is worth more
    weights[TIED], weights[:, TIED] = 0, 0
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
    """bool[129, 129]: which ASCII bytes (128: wide characters) are adjacent."""
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

    cuts: bool[CLASSES, CLASSES] which class may be cut from which (this table never cuts wide from wide)
    flags: uint8[UNICODE_SIZE]
    pairs: the adjacent characters of tokens, for the filter (None: any two may be adjacent)
    """
    cuts = cuts.copy()
    cuts[WIDE, WIDE] = False
    pages, blocks = two_stage_of(flags)
    two, three = flags[:0x800].copy(), flags[:0x10000].copy()
    two[:0x80], three[:0x800] = ILL, ILL
    if pairs is None:
        bits, pair_words = 9, np.full(8, _ALL, np.uint64)
    else:
        checked = (pairs.left >= 0x800) & (pairs.right >= 0x800)
        joined = distinct(pairs.left[checked] << 21 | pairs.right[checked])
        bits = max(9, int(8 * joined.size).bit_length())
        pair_words = _pair_filter(joined >> 21, joined & (1 << 21) - 1, bits)
    crossings, odd, few, forbidden, sought, trie, longest = _path_tables(paths)
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
        crossings,
        few,
        forbidden,
        sought,
        int(longest > 0),
        trie,
        longest,
        int(lines),
        odd,
    )


def _path_tables(paths: Paths | None) -> tuple[U64, U64, U64, Sequences, Sequences, DoubleArray, int]:
    """The fields of `SpanRules` about paths: crossings, odd, few, forbidden, sought, their trie, the longest."""
    crossings, trie, longest = np.zeros(1024, np.uint64), build_double_array(*_NO_TEXTS), 0
    odd, few = np.zeros(4, np.uint64), np.zeros((0, PAIR_ROW), np.uint64)
    forbidden, sought = list[bytes](), list[bytes]()
    if paths is not None:
        np.bitwise_or.at(odd, paths.odd >> 6, np.uint64(1) << (paths.odd & 63).astype(np.uint64))
        np.bitwise_or.at(crossings, paths.pairs >> 6, np.uint64(1) << (paths.pairs & 63).astype(np.uint64))
        if paths.pairs.size:
            trie = build_double_array(paths.data, paths.offsets, np.zeros(paths.offsets.size - 1, np.int32))
            longest = int(np.diff(paths.offsets).max())
        if paths.pairs.size <= MOST_PAIRS:
            first, second = paths.pairs >> 8, paths.pairs & 0xFF
            few = np.stack([first, second, paths.starts.view(np.int64)], 1).view(np.uint64)
            for starts, *row in zip(
                paths.starts.tolist(), *(x.tolist() for x in (paths.before, first, second)), strict=True
            ):
                sequence = bytes(row[row[0] == ANY_BYTE :])
                (forbidden if starts >> len(sequence) - 1 & 1 else sought).append(sequence)
    return (
        frozen(crossings, np.uint64), frozen(odd, np.uint64), frozen(few.reshape(-1), np.uint64),
        make_sequences(forbidden), make_sequences(sought), trie, longest,
    )  # fmt: skip


@functools.cache
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


def rules_of(found: Neighbours, lines: bool = False) -> SpanRules:
    """The rules of models that only merge and have U+2581 for spaces: cuts between characters that are not adjacent in
    `found`.

    lines: see SpanRules
    """
    pairs = Neighbours(*(np.where(side == SPACE_MARK_CODE, ord(" "), side) for side in found))
    flags = wide_flags(pairs)
    flags[SPACE_MARK_CODE] = LIKE_BLANK
    table = pair_table(pairs)
    apart = choose_apart(table)
    free = ~tied_classes(table, class_of(apart))
    return build_rules(free, apart, (), flags, pairs, last_blank=False, lines=lines)


def _filled(values: Iterable[int], size: int, unused: int) -> NDArray[np.int64]:
    found = [*values]
    return np.array(found + [unused] * (size - len(found)), np.int64)


def _pair_filter(left: NDArray[np.int64], right: NDArray[np.int64], bits: int) -> NDArray[np.uint64]:
    """The bit filter of these pairs of code points, with the hash of `pair_slot`."""
    with np.errstate(over="ignore"):
        positions = ((left.astype(np.uint64) * PAIR_K1) ^ right.astype(np.uint64)) * PAIR_K2 >> np.uint64(64 - bits)
    words = np.zeros(1 << bits - 6, np.uint64)
    np.bitwise_or.at(words, (positions >> np.uint64(6)).astype(np.int64), np.uint64(1) << (positions & np.uint64(63)))
    return words

"""Build the tables of `merge_boundaries` from the merges of a vocabulary.

With `ignore_merges`, a pre-token that is a token becomes it without merging, and a part of a pre-token must not: then
any two neighbors count as joined. So do characters next to a space (where a space inside a pre-token is an error), and
runs of newlines, which gemma4 looks up as a whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.characters import NEWLINE, SPACE_BYTE, SPACE_MARK_CODE
from jittok.kernels.jit import I32, I64, U8, OutI32, as_int64, frozen, helper, kernel
from jittok.kernels.models.bpe.words.merge_boundaries import (
    BYTE_BITS,
    CHARACTER_BITS,
    CONTEXT_K,
    FIRST_SHARED,
    JOINED,
    LEFT_LONGER,
    LOOSE,
    NUMBER_OF_ESCAPED,
    PAIRED,
    RIGHT_LONGER,
    MergeBoundaries,
    context,
    shared_number,
)
from jittok.kernels.pretokenize.classes import distinct
from jittok.kernels.safe_cuts import cuts, rules
from jittok.kernels.structures.bytes_table import BytesTable

BITS_PER_CONTEXT = 32
"""Bits of the filter for each context: one of 32 other contexts is a false positive. Vocabularies have about ten
thousand."""
NOTHING = -1
"""The number of a neighbor that does not exist."""
LEAST_BITS = 12
"""The smallest size of a filter, as the logarithm of its bits."""
NO_CONTEXTS = frozen(np.zeros(1 << LEAST_BITS - 6), np.uint64)
LARGEST_CODE_POINT = 0x1FFFFF
"""The largest code point that llama.cpp reads. Malformed sequences in tokens become values up to this one, which do not
occur in texts."""


def all_joined(characters: bool) -> MergeBoundaries:
    """Tables that allow no cut."""
    words = 1 << 2 * CHARACTER_BITS - 6 if characters else PAIRED + 1 << BYTE_BITS - 5
    return MergeBoundaries(frozen(np.full(words, ~np.uint64(0)), np.uint64), NO_CONTEXTS, LEAST_BITS)


def byte_boundaries(texts: BytesTable, left: I32, right: I32, rank: I32, byte_of: I32, space: int) -> MergeBoundaries:
    """The tables of joined bytes.

    texts: of all symbols, byte-level; left, right, rank: int32[merges] the symbols and rank of each merge
    byte_of: int32[512] the byte of each character of the alphabet; space: the symbol of a space
    """
    neighbours = _neighbours(texts, left, right)
    beyond = (neighbours >= byte_of.size) | (neighbours != NOTHING) & (byte_of[neighbours % byte_of.size] < 0)
    # a merge with a character outside the alphabet never happens
    known = neighbours[:, ~beyond.any(axis=0)]
    kind = np.where(known[0] == NOTHING, 0, LEFT_LONGER) | np.where(known[3] == NOTHING, 0, RIGHT_LONGER)
    before, first, second, after = np.where(known == NOTHING, 0, byte_of[known]).astype(np.int64)
    pair = first << BYTE_BITS | second
    states = np.zeros(PAIRED + 1 << BYTE_BITS, np.uint64)
    states[pair] = LOOSE
    states[pair[kind == 0]] = JOINED
    if _paired_first(left == space, right == space, rank):
        of_two = (kind & LEFT_LONGER > 0) & (before == SPACE_BYTE) & (first == SPACE_BYTE)
        states[PAIRED << BYTE_BITS | second[of_two]] = JOINED
    else:
        states[PAIRED << BYTE_BITS :] = states[SPACE_BYTE << BYTE_BITS : SPACE_BYTE + 1 << BYTE_BITS]
    loose = states[pair] == LOOSE
    keys = context(kind[loose], before[loose], first[loose], second[loose], after[loose])
    shifts = 2 * np.arange(32, dtype=np.uint64)
    packed = np.bitwise_or.reduce(states.reshape(-1, 32) << shifts, axis=1)
    return MergeBoundaries(frozen(packed, np.uint64), *_filter(keys))


def _paired_first(left: NDArray[np.bool_], right: NDArray[np.bool_], rank: I32) -> bool:
    """Whether two spaces are merged before a space is merged with anything else. left, right: that side of the merge is
    a space."""
    two, one = rank[left & right], rank[left ^ right]
    return two.size > 0 and int(two.max()) < int(one.min(initial=two.max() + 1))


def _filter(keys: NDArray[np.int64]) -> tuple[NDArray[np.uint64], int]:
    """(a bit filter of these contexts, the logarithm of its bits)."""
    keys = distinct(keys)
    bits = max(LEAST_BITS, (BITS_PER_CONTEXT * keys.size - 1).bit_length())
    positions = keys.astype(np.uint64) * CONTEXT_K >> np.uint64(64 - bits)
    there = np.zeros(1 << bits, np.uint8)
    there[positions] = 1
    return frozen(np.packbits(there, bitorder="little").view(np.uint64), np.uint64), bits


def character_boundaries(texts: BytesTable, left: I32, right: I32) -> MergeBoundaries:
    """The tables of joined characters, by their numbers. A space is joined to everything."""
    _, last, first, _ = _neighbours(texts, left, right)
    joined = np.zeros((1 << CHARACTER_BITS, 1 << CHARACTER_BITS), np.uint8)
    joined[_numbers(last), _numbers(first)] = 1
    joined[SPACE_BYTE], joined[:, SPACE_BYTE], joined[NEWLINE, NEWLINE] = 1, 1, 1
    return MergeBoundaries(
        frozen(np.packbits(joined, bitorder="little").view(np.uint64), np.uint64), NO_CONTEXTS, LEAST_BITS
    )


def _numbers(points: NDArray[np.int32]) -> NDArray[np.int64]:
    """The number of each code point, as in `merge_boundaries`."""
    c = points.astype(np.int64)
    return np.where(c < FIRST_SHARED, c, np.where(c == SPACE_MARK_CODE, NUMBER_OF_ESCAPED, shared_number(c)))


def _neighbours(texts: BytesTable, left: I32, right: I32) -> NDArray[np.int32]:
    """int32[4, merges]: the last two characters of each left symbol and the first two of each right symbol, in the
    order of the text; NOTHING where there is none."""
    out = np.empty((4, left.size), np.int32)
    merge_neighbours(texts.data, texts.offsets, left, right, out.reshape(-1))
    return out


@kernel
def merge_neighbours(data: U8, offsets: I64, left: I32, right: I32, out: OutI32) -> int:
    """See `_neighbours`; out: int32[4 * merges]. Returns the number of merges."""
    count = left.size
    for k in range(count):
        begin, end = offsets[left[k]], offsets[left[k] + 1]
        last = _character_before(data, begin, end)
        out[k] = _character(data, _character_before(data, begin, last), last)
        out[count + k] = _character(data, last, end)
        begin, end = offsets[right[k]], offsets[right[k] + 1]
        after = _character_after(data, begin, end)
        out[2 * count + k] = _character(data, begin, after)
        out[3 * count + k] = _character(data, after, _character_after(data, after, end))
    return count


@helper
def _character_before(data: U8, begin: int, end: int) -> int:
    """The offset where the last character of data[begin:end] begins; `begin` if it is empty."""
    i = max(end - 1, begin)
    while i > begin and as_int64(data[i]) & 0xC0 == 0x80:
        i -= 1
    return i


@helper
def _character_after(data: U8, i: int, end: int) -> int:
    """The offset where the first character of data[i:end] ends; `end` if it is empty."""
    if i < end:
        i += 1
    while i < end and as_int64(data[i]) & 0xC0 == 0x80:
        i += 1
    return i


@helper
def _character(data: U8, i: int, end: int) -> int:
    """The code point of the one character data[i:end], or NOTHING if it is empty."""
    if i == end:
        return NOTHING
    c = as_int64(data[i])
    if c >= 0xC0:
        c &= 0x7F >> (2 if c < 0xE0 else 3 if c < 0xF0 else 4)
    for k in range(i + 1, end):
        c = c << 6 | as_int64(data[k]) & 0x3F
    return c & LARGEST_CODE_POINT


def line_boundaries(symbols: BytesTable, left: I32, right: I32) -> cuts.SpanRules:
    """The rules for texts whose spaces become U+2581 and whose runs of newlines are pre-tokens.

    symbols: texts; left, right: int32[merges] the symbols of each merge. Any two adjacent characters inside a symbol
    were joined by a merge whose symbols end and begin with them. Symbols that are invalid UTF-8 or contain a space do
    not occur.
    """
    rows = symbols.offsets.size - 1
    code, owner, _ = rules.characters(symbols.data, symbols.offsets, np.ones(rows, bool))
    first, last = np.full(rows, NOTHING, np.int64), np.full(rows, NOTHING, np.int64)
    if code.size:
        begins = np.append(True, owner[1:] != owner[:-1])
        first[owner[begins]] = code[begins]
        ends = np.append(begins[1:], True)
        last[owner[ends]] = code[ends]
    a, b = last[left], first[right]
    possible = (a != NOTHING) & (b != NOTHING) & (a != SPACE_BYTE) & (b != SPACE_BYTE) & (a != NEWLINE) & (b != NEWLINE)
    both = distinct(a[possible] << 21 | b[possible])
    return rules.rules_of(rules.Neighbours(both >> 21, both & (1 << 21) - 1), lines=True)

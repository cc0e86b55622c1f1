"""A byte encoding for the characters of one WordPiece vocabulary, which makes its trie small and the walks short.

UTF-8 gives the letters of most scripts two or three bytes, and each byte is a step through the trie. Here every
non-ASCII character of the tokens gets a *code*: one byte for the most frequent, two for others, three beyond some
15,000. A word with any other character is unknown. No code is a prefix of another, so the longest match is the same.

A token that is invalid UTF-8 may match a part of a character. In a vocabulary with such a token, the code of a
character is its UTF-8 (`byte_alphabet`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.characters import SPACE_MARK_BYTES, SPACE_MARK_CODE
from jittok.common.unicode.tables import UNICODE_SIZE
from jittok.kernels.jit import I32, U8, U64, frozen
from jittok.kernels.pretokenize.classes import shared_rows
from jittok.kernels.safe_cuts.rules import characters
from jittok.kernels.structures.double_array import (
    BASE,
    NO_NODE,
    NO_VALUE,
    PARENT,
    ROOT,
    UNIT,
    VALUE,
    build_double_array,
)
from jittok.kernels.structures.long_keys import LONG, LongKeys, long_keys

LETTER, BLANK, DROPPED, ALONE = 0, 1, 2, 3
"""Kinds of code points: part of a word; ends the word; dropped, and the word continues; a word by itself."""
ENDS_WORD = 1
"""The bit of the kinds that end the word before them: BLANK and ALONE."""
ONE_BYTE, TWO_BYTES, THREE_BYTES = 0x80, 0xC0, 0xFC
"""The lowest first bytes of codes of these lengths; lower bytes are ASCII, unchanged."""
SHORT_CODES = TWO_BYTES - ONE_BYTE
MIDDLE_CODES = SHORT_CODES + ((THREE_BYTES - TWO_BYTES) << 8)
ALL_CODES = MIDDLE_CODES + ((0x100 - THREE_BYTES) << 16)
"""How many characters fit into codes of up to one, two and three bytes."""
LENGTH_BIT, UNKNOWN, ENDS, SEVERAL, ODD = 24, *(1 << k for k in range(26, 30))
"""The entry of a character: its code, first byte lowest | the code's length << LENGTH_BIT | flags.

UNKNOWN: no token contains it. ENDS: it ends the word before it; with a code or UNKNOWN, it is also a word by itself.
SEVERAL: the code's bits are an index into `Alphabet.several`. ODD: it is a combining mark, or ends with one, that may
be reordered with a mark after it. A word of known characters with two of them in a row is left to Python.
"""
CODE = (1 << LENGTH_BIT) - 1
NODE_BITS, VALUE_BITS = 22, 20
"""A node is base | parent << NODE_BITS | (value + 1) << 2 * NODE_BITS, so that a step needs one load."""
MOST_NODES, MOST_TOKENS = (1 << NODE_BITS) - 2, (1 << VALUE_BITS) - 2


class AlphabetKeys(NamedTuple):
    """The input of an alphabet: the keys of all tokens, by id; empty for a token that no word contains."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]  # [keys + 1]

    @property
    def size(self) -> int:
        """The number of keys."""
        return self.offsets.size - 1


class Several(NamedTuple):
    """The characters that are normalized to several."""

    points: NDArray[np.int64]
    counts: NDArray[np.int64]  # [points] how many characters each becomes
    parts: NDArray[np.int64]  # these characters, concatenated


NONE = Several(*(frozen([], np.int64) for _ in range(3)))


class Alphabet(NamedTuple):
    """Invariant, from the trie that `units` is packed from: a base ^ a byte is a node's index, so walks stay inside."""

    units: U64  # [nodes] the trie of the tokens' codes
    pages: I32  # [0x1100] code point >> 8 -> block of `codes`
    codes: I32  # [256 * blocks] entry of each character, normalized first; see LENGTH_BIT
    first: int  # bytes of U+2581 that each word begins with: 0, or all, where codes are UTF-8
    marker_node: int  # where a walk through a word begins: the node of U+2581, or NO_NODE; ROOT if words begin with it
    marker_value: int  # the token that is U+2581, or NO_VALUE
    several: U8  # for each character that becomes several: number of bytes, number of characters, the bytes
    long: LongKeys  # the long tokens again, for linear time


NO_ALPHABET = Alphabet(
    frozen([0], np.uint64),
    frozen([0], np.int32),
    frozen([0], np.int32),
    0,
    NO_NODE,
    NO_VALUE,
    frozen([0], np.uint8),
    long_keys({}),
)
"""For vocabularies without an alphabet; it is never read."""


def build_alphabet(
    keys: AlphabetKeys,
    mapped: NDArray[np.int64],
    becoming: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    several: Several = NONE,
    odd: NDArray[np.int64] = NONE.points,
    ids: NDArray[np.int32] | None = None,
) -> Alphabet | None:
    """The alphabet of a vocabulary; None if a token is invalid UTF-8 (it may match a part of a character), or if there
    are too many tokens or characters.

    mapped, becoming: int64[n] code points and what they are normalized to; of duplicates the last is used
    kinds: uint8[UNICODE_SIZE] LETTER, BLANK, DROPPED or ALONE
    several: code points that become several, at most as many as their bytes; odd: code points, rising, see ODD
    ids: int32[keys] the keys' ids, if these are not their indices
    """
    read = _code_points(keys)
    codes = None if read is None else _codes(read[0])
    if read is None or codes is None or keys.size > MOST_TOKENS:
        return None
    data, offsets = _coded(codes[read[0]], read[1])
    if ids is None:
        ids = np.arange(keys.size, dtype=np.int32)
    trie = build_double_array(data, offsets, ids).units.reshape(-1, UNIT)
    if len(trie) > MOST_NODES:
        return None
    images, entries = _written(codes, several)
    pages, blocks = _pages(codes, mapped, becoming, kinds, (several.points, entries, odd))
    node, value = _marker(trie, int(_code_of(codes, np.array([SPACE_MARK_CODE]))[0]))
    return Alphabet(
        _packed(trie),
        frozen(pages, np.int32),
        frozen(blocks.reshape(-1), np.int32),
        0,
        node,
        value,
        images,
        long_of(data, offsets, ids),
    )


def byte_alphabet(
    keys: AlphabetKeys, mapped: NDArray[np.int64], becoming: NDArray[np.int64], kinds: NDArray[np.uint8]
) -> Alphabet | None:
    """The same for tokens of any bytes: the code of a character is its UTF-8, and words begin with U+2581. None if
    there are too many tokens."""
    ids = np.arange(keys.size, dtype=np.int32)
    trie = build_double_array(keys.data, keys.offsets, ids).units.reshape(-1, UNIT)
    if keys.size > MOST_TOKENS or len(trie) > MOST_NODES:
        return None
    c = np.arange(UNICODE_SIZE)
    low = [0x80 | c >> 6 * k & 0x3F for k in range(3)]
    codes = np.full(UNICODE_SIZE + 1, UNKNOWN, np.int32)
    codes[:0x80] = c[:0x80] | 1 << LENGTH_BIT
    codes[0x80:0x800] = (0xC0 | c >> 6 | low[0] << 8 | 2 << LENGTH_BIT)[0x80:0x800]
    codes[0x800:0x10000] = (0xE0 | c >> 12 | low[1] << 8 | low[0] << 16 | 3 << LENGTH_BIT)[0x800:0x10000]
    codes[0x10000:-1] = SEVERAL | 6 * (c[0x10000:] - 0x10000)
    size, count = np.full(UNICODE_SIZE, 4), np.ones(UNICODE_SIZE, np.int64)
    several = np.stack([size, count, 0xF0 | c >> 18, low[2], low[1], low[0]], 1)[0x10000:].reshape(-1)
    nothing = np.zeros(0, np.int64)
    pages, blocks = _pages(codes, mapped, becoming, kinds, (nothing, np.zeros(0, np.int32), nothing))
    return Alphabet(
        _packed(trie), frozen(pages, np.int32), frozen(blocks.reshape(-1), np.int32), len(SPACE_MARK_BYTES), ROOT,
        NO_VALUE, frozen(several, np.uint8), long_of(keys.data, keys.offsets, ids),
    )  # fmt: skip


def _packed(trie: NDArray[np.int32]) -> U64:
    """The nodes of a trie as `Alphabet.units`."""
    fields = trie.astype(np.uint64)
    parents = fields[:, PARENT] & np.uint64((1 << NODE_BITS) - 1)  # a free slot has a parent that is no node
    values = (trie[:, VALUE].astype(np.int64) + 1).astype(np.uint64)
    return frozen(fields[:, BASE] | parents << np.uint64(NODE_BITS) | values << np.uint64(2 * NODE_BITS), np.uint64)


def long_of(data: NDArray[np.uint8], offsets: NDArray[np.int64], ids: NDArray[np.int32]) -> LongKeys:
    """The long ones of these tokens; of duplicates the last."""
    long = np.flatnonzero(np.diff(offsets) > LONG).tolist()
    return long_keys({data[offsets[k] : offsets[k + 1]].tobytes(): int(ids[k]) for k in long})


def _code_points(keys: AlphabetKeys) -> tuple[NDArray[np.uint32] | NDArray[np.int64], NDArray[np.int64]] | None:
    """(code points of all tokens, int64[keys + 1] their offsets), or None if a token is invalid UTF-8."""
    data, offsets = keys
    followers = np.flatnonzero((data & 0xC0) == 0x80)
    begins = offsets[:-1][offsets[:-1] < data.size]
    try:
        text = data.tobytes().decode()
    except UnicodeDecodeError:  # surrogates count as characters here
        points, owner, bad = characters(data, offsets, np.ones(keys.size, bool))
        lengths = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
        if bad.any() or lengths.sum() != data.size:
            return None
        return points, np.append(0, np.cumsum(np.bincount(owner, minlength=keys.size)))
    if (data[begins] & 0xC0 == 0x80).any():
        return None
    return np.frombuffer(text.encode("utf-32-le"), np.uint32), offsets - np.searchsorted(followers, offsets)


def _written(codes: NDArray[np.int32], several: Several) -> tuple[U8, NDArray[np.int32]]:
    """(`Alphabet.several`, the entries of these characters)."""
    if not several.points.size:
        return frozen([0], np.uint8), np.zeros(0, np.int32)
    counts, parts = several.counts, _code_of(codes, several.parts)
    firsts, sizes = np.cumsum(counts) - counts, (parts >> LENGTH_BIT & 3).astype(np.int64)
    totals = np.add.reduceat(sizes, firsts)
    positions = 1 + np.cumsum(totals + 2) - totals - 2
    before = np.cumsum(sizes) - sizes
    begins = before + np.repeat(positions + 2 - before[firsts], counts)
    out = np.zeros(int(positions[-1] + 2 + totals[-1]), np.uint8)
    out[positions], out[positions + 1] = totals, counts
    for k in range(3):
        out[begins[sizes > k] + k] = parts[sizes > k] >> 8 * k & 0xFF
    known = np.bitwise_or.reduceat(parts & UNKNOWN, firsts) == 0
    return frozen(out, np.uint8), np.where(known, SEVERAL | positions, UNKNOWN).astype(np.int32)


def _pages(
    codes: NDArray[np.int32],
    mapped: NDArray[np.int64],
    becoming: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    changes: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """(pages, blocks) of the entries of all characters. Most pages are one of four: no token has one of their
    characters, none is mapped, and all are of one kind. changes: (characters that become several, their entries, odd
    characters)."""
    several, entries, odd = changes
    own = np.zeros(UNICODE_SIZE >> 8, np.bool_)
    own[np.flatnonzero(codes != UNKNOWN) >> 8], own[mapped >> 8] = True, True
    own[several >> 8], own[odd >> 8] = True, True
    words, first = kinds.view(np.uint64).reshape(own.size, -1), kinds[::256]
    own |= (words != words[:, :1]).any(1) | (words[:, 0] != first * np.uint64(0x0101010101010101))
    pages = np.array([1, 2, 0, 3])[first]
    pages[own] = 4 + np.arange(np.count_nonzero(own))
    rows = np.empty((4 + np.count_nonzero(own), 256), np.int32)
    rows[:4] = np.array([[0], [UNKNOWN], [ENDS], [UNKNOWN | ENDS]])
    points = np.flatnonzero(own)[:, None] << 8 | np.arange(256)
    rows[4:] = _code_of(codes, points)
    rows[pages[mapped >> 8], mapped & 0xFF] = _code_of(codes, becoming)
    mine = kinds.reshape(own.size, -1)[own]
    rows[4:] = np.where((mine == LETTER) | (mine == ALONE), rows[4:], 0) | np.where(mine & ENDS_WORD, ENDS, 0)
    rows[pages[several >> 8], several & 0xFF] = entries
    rows[pages[odd >> 8], odd & 0xFF] |= ODD
    numbers, blocks = shared_rows(rows)
    return numbers[pages], blocks


def _code_of(codes: NDArray[np.int32], points: NDArray[np.int64]) -> NDArray[np.int32]:
    """The entries of these code points."""
    last = codes.size - 1  # UNKNOWN, like all after it
    return codes[np.minimum(points, last)]


def _codes(points: NDArray[np.uint32] | NDArray[np.int64]) -> NDArray[np.int32] | None:
    """The entries of code points before normalization, indexed by code point, up to one past the last that a token has.
    points: the code points of all tokens."""
    counts = np.bincount(points)
    there = np.flatnonzero(counts)
    beyond = there[there >= 0x80]
    beyond = beyond[np.argsort(-counts[beyond], kind="stable")]
    if beyond.size > ALL_CODES:
        return None
    codes = np.full(counts.size + 1, UNKNOWN, np.int32)
    codes[there[there < 0x80]] = there[there < 0x80] | 1 << LENGTH_BIT
    short, middle, rest = np.split(beyond, [SHORT_CODES, MIDDLE_CODES])
    k = np.arange(beyond.size)
    codes[short] = ONE_BYTE + k[: short.size] | 1 << LENGTH_BIT
    codes[middle] = TWO_BYTES + (k[: middle.size] >> 8) | (k[: middle.size] & 0xFF) << 8 | 2 << LENGTH_BIT
    lead, second, third = (k[: rest.size] >> shift & 0xFF for shift in (16, 8, 0))
    codes[rest] = THREE_BYTES + lead | second << 8 | third << 16 | 3 << LENGTH_BIT
    return codes


def _coded(codes: NDArray[np.int32], begins: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(bytes, offsets) of the tokens in the alphabet. codes: of all their characters; begins: [keys + 1] offsets into
    these."""
    longer = np.flatnonzero(codes >= 2 << LENGTH_BIT)  # few in most vocabularies
    more = (codes[longer] >> LENGTH_BIT) - 1
    after = np.repeat(longer, more)
    number = np.arange(after.size) - np.repeat(np.cumsum(more) - more, more)
    data = np.insert(codes.astype(np.uint8), after + 1, (codes[after] >> 8 * (number + 1)).astype(np.uint8))
    return data, begins + np.searchsorted(after, begins)


def _marker(trie: NDArray[np.int32], code: int) -> tuple[int, int]:
    """(node, value) in the trie of the character with this entry."""
    node = NO_NODE if code & UNKNOWN else ROOT
    for k in range(code >> LENGTH_BIT & 3):
        position = int(trie[node, BASE]) ^ code >> 8 * k & 0xFF
        node = position if trie[position, PARENT] == node else NO_NODE
    return node, NO_VALUE if node == NO_NODE else int(trie[node, VALUE])

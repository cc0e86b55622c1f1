"""A WordPiece vocabulary in an alphabet of its own, which makes its trie small and the walks through it short.

UTF-8 gives the letters of most scripts two or three bytes, and each byte is a step through the trie. Here every
character beyond ASCII that the tokens have gets a *code* of one byte, the most frequent ones, or of two. A word that
holds any other character is unknown. As no code begins another one, the longest token that matches is the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import I32, U64, frozen
from jittok.structures.cut_rules import characters
from jittok.structures.double_array import BASE, NO_NODE, NO_VALUE, PARENT, ROOT, UNIT, VALUE, build_double_array
from jittok.unicode.tables import UNICODE_SIZE
from jittok.vocab.vocab import SPACE, Vocab

ONE_BYTE, TWO_BYTES, END = 0x80, 0xC0, 0x100
"""Codes begin with a byte below 0x80 (ASCII, which stays what it is), with one below 0xC0, or with another of two."""
CODES = (TWO_BYTES - ONE_BYTE) + (END - TWO_BYTES) * 256
LENGTH, UNKNOWN, ENDS = 16, 1 << 18, 1 << 19
"""What becomes of a character: the bytes of its code, the first one lowest | their number << LENGTH | UNKNOWN where no
token has it | ENDS where it ends a word; a character that ends a word and has a code, or is UNKNOWN, is a word too."""
CODE = (1 << LENGTH) - 1
NODE_BITS, VALUE_BITS = 22, 20
"""A node is base | parent << NODE_BITS | (value + 1) << 2 * NODE_BITS, so that a step is one load."""
MOST_NODES, MOST_TOKENS = (1 << NODE_BITS) - 2, (1 << VALUE_BITS) - 2


class Alphabet(NamedTuple):
    """Invariant, from the trie that `units` is packed from: a base ^ a byte is a node's place, so no walk leaves it."""

    units: U64  # [nodes] the trie of the tokens' codes
    pages: I32  # [0x1100] code point >> 8 -> block of `codes`
    codes: I32  # [256 * blocks] what becomes of a character: normalized first, then see LENGTH
    marker_node: int  # the node of U+2581, or NO_NODE
    marker_value: int  # the token that is U+2581, or NO_VALUE


NO_ALPHABET = Alphabet(frozen([0], np.uint64), frozen([0], np.int32), frozen([0], np.int32), NO_NODE, NO_VALUE)
"""Of a vocabulary that has none; nothing is looked up in it."""


def build_alphabet(
    vocab: Vocab, image: NDArray[np.int64], joins: NDArray[np.bool_], ends: NDArray[np.bool_]
) -> Alphabet | None:
    """The alphabet of a vocabulary; None where a token is no UTF-8 (it may match a part of a character) or there are
    too many tokens or characters.

    image: int64[UNICODE_SIZE] what each code point becomes; joins, ends: bool[UNICODE_SIZE] whether that stands in a
    word, and whether it ends the word in front of it
    """
    points, owner, bad = characters(vocab.key_bytes, vocab.key_offsets, np.ones(len(vocab), bool))
    lengths = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
    codes = _codes(points)
    if bad.any() or lengths.sum() != vocab.key_bytes.size or codes is None or len(vocab) > MOST_TOKENS:
        return None
    data, offsets = _coded(codes[points], owner, len(vocab))
    trie = build_double_array(data, offsets, np.arange(len(vocab), dtype=np.int32)).units.reshape(-1, UNIT)
    if len(trie) > MOST_NODES:
        return None
    fields = trie.astype(np.uint64)
    parents = fields[:, PARENT] & np.uint64((1 << NODE_BITS) - 1)  # a slot that is free has a parent that no node is
    values = (trie[:, VALUE].astype(np.int64) + 1).astype(np.uint64)
    units = fields[:, BASE] | parents << np.uint64(NODE_BITS) | values << np.uint64(2 * NODE_BITS)
    becomes = np.where(joins, codes[image], 0) | np.where(ends, ENDS, 0)
    # Equal blocks share one entry; a block is compared as one opaque value of 1024 bytes.
    blocks = becomes.astype(np.int32).reshape(-1, 256)
    _, where, pages = np.unique(blocks.view("V1024").reshape(-1), return_index=True, return_inverse=True)
    node, value = _marker(trie, codes[ord(SPACE)])
    return Alphabet(
        frozen(units, np.uint64),
        frozen(pages.reshape(-1), np.int32),
        frozen(blocks[where].reshape(-1), np.int32),
        node,
        value,
    )


def _codes(points: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """What becomes of every code point that nothing normalizes, from the code points of all tokens."""
    counts = np.bincount(points, minlength=UNICODE_SIZE)
    there = np.flatnonzero(counts)
    beyond = there[there >= 0x80]
    beyond = beyond[np.argsort(-counts[beyond], kind="stable")]
    if beyond.size > CODES:
        return None
    codes = np.full(UNICODE_SIZE, UNKNOWN)
    ascii_there, few = there[there < 0x80], TWO_BYTES - ONE_BYTE
    codes[ascii_there] = ascii_there | 1 << LENGTH
    codes[beyond[:few]] = ONE_BYTE + np.arange(beyond[:few].size) | 1 << LENGTH
    rest = np.arange(beyond[few:].size)
    codes[beyond[few:]] = TWO_BYTES + (rest >> 8) | (rest & 0xFF) << 8 | 2 << LENGTH
    return codes


def _coded(
    codes: NDArray[np.int64], owner: NDArray[np.int64], tokens: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(bytes, offsets) of the tokens, whose characters' codes and numbers are given."""
    sizes = codes >> LENGTH
    ends = np.cumsum(sizes)
    data = np.zeros(int(sizes.sum()), np.uint8)
    data[ends - sizes] = codes & 0xFF
    data[ends[sizes == 2] - 1] = codes[sizes == 2] >> 8 & 0xFF
    offsets = np.zeros(tokens + 1, np.int64)
    np.add.at(offsets, owner + 1, sizes)
    return data, np.cumsum(offsets)


def _marker(trie: NDArray[np.int32], code: int) -> tuple[int, int]:
    """(node, value) of the character with this code."""
    node = NO_NODE if code & UNKNOWN else ROOT
    for k in range(code >> LENGTH & 3):
        place = int(trie[node, BASE]) ^ code >> 8 * k & 0xFF
        node = place if trie[place, PARENT] == node else NO_NODE
    return node, NO_VALUE if node == NO_NODE else int(trie[node, VALUE])

"""Tables for walking the ids of WordPiece over words.

For each code point it suffices to know its kind (part of a word, ends it, dropped, or a word by itself) and the length
of its normal form.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok._jit import I32, U8, U16, frozen, helper
from jittok._raw import Window, get_u8, get_u16, put_i64
from jittok.align.lengths import find_key
from jittok.models.bpe.text_reader import BAD, decode
from jittok.models.wpm import normal_table
from jittok.pretokenize.classes import PAGES, UNICODE_SIZE, shared_rows
from jittok.structures.double_array import DoubleArray, build_double_array
from jittok.unicode.characters import SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2, SPACE_MARK_BYTES, SPACE_MARK_CODE
from jittok.unicode.tables import LAST_CODE_POINT
from jittok.vocab import Vocab

LETTER, BLANK, DROPPED, ALONE = 0, 1, 2, 3
"""Kinds of code points: part of a word; ends the word; dropped, and the word continues; a word by itself."""
KIND, IMAGE = 24, 0xFFFFFF
"""An entry of `normal_table` is kind << KIND | (code point ^ image)."""
KIND_BITS, LENGTH, SAME = 3, 2, 16
"""A fact is kind | (length of the image - 1) << LENGTH | SAME if the image is the code point itself."""
PLAIN_BLANK, PLAIN_ALONE, ODD = 1, 2, 4
"""Kinds of bytes besides LETTER. ODD: not in plain text, because it is not ASCII or is dropped."""
BEGINS = 1
"""The lowest bit of a step: the token begins a word. The other bits are the length of its text without the marker."""
MARKER = len(SPACE_MARK_BYTES)


class WordRules(NamedTuple):
    """Facts of code points, and tables for vocabularies whose unknown token may match as a text."""

    pages: U16  # [8704] two-stage table of facts
    blocks: U8
    ascii: U8  # [256] kinds of bytes
    steps: U16  # [tokens + 1] for plain text; see BEGINS
    plain: int  # 1: `steps` is usable, so the fast path may be used
    unk_id: int  # may be -1
    shortest: int  # Vocab.shortest_utf8
    ambiguous: int  # 1: the text of the unknown token can begin a word
    trie: DoubleArray  # all tokens, if ambiguous
    entry_pages: I32  # `normal_table`, if ambiguous
    entries: I32


def word_rules(vocab: Vocab) -> WordRules:
    """The rules of a vocabulary of type "wpm"."""
    pages, entries = normal_table(bool(vocab.lowercase), bool(vocab.strip_accents))
    full = entries.reshape(-1, 256)[pages].reshape(-1)
    image = full & IMAGE ^ np.arange(UNICODE_SIZE, dtype=np.int32)
    lengths = 1 + (image >= 0x80).view(np.uint8) + (image >= 0x800) + (image >= 0x10000)  # of single bytes: faster
    same = (full & IMAGE == 0).view(np.uint8) * np.uint8(SAME)
    facts = (full >> KIND).astype(np.uint8) | lengths - 1 << LENGTH | same
    kinds = np.full(256, ODD, np.uint8)
    kinds[:0x80] = np.array([LETTER, PLAIN_BLANK, ODD, PLAIN_ALONE])[full[:0x80] >> KIND]
    if (lengths[:0x80] != 1).any():
        raise AssertionError("normal_table: some ASCII character maps to a character beyond ASCII")
    if not np.array_equal(kinds, [_plain_kind(byte) for byte in range(256)]):
        raise AssertionError("normal_table: the kinds of ASCII characters differ from those in `_plain_kind`")
    if np.flatnonzero(image == SPACE_MARK_CODE).tolist() != [SPACE_MARK_CODE]:
        raise AssertionError("normal_table: some other character maps to U+2581")
    steps, plain = _steps(vocab)
    fact_pages, blocks = shared_rows(facts.reshape(PAGES, -1))
    unknown = vocab.tokens[vocab.unk_id] if vocab.unk_id >= 0 else b""
    # words begin with U+2581, and the unknown token may be a prefix of one
    ambiguous = bool(unknown) and (unknown[:3] == SPACE_MARK_BYTES[: len(unknown)]) and find_key(vocab, unknown) >= 0
    nothing = frozen([], np.int32)
    data, offsets = frozen(vocab.key_bytes, np.uint8), frozen(vocab.key_offsets, np.int64)
    if not ambiguous:
        data, offsets = data[:0], frozen([0], np.int64)
    return WordRules(
        frozen(fact_pages, np.uint16), frozen(blocks.reshape(-1), np.uint8), frozen(kinds, np.uint8), steps,
        int(plain and not ambiguous), vocab.unk_id, int(vocab.shortest_utf8), int(ambiguous),
        build_double_array(data, offsets, np.arange(offsets.size - 1, dtype=np.int32)),
        *((frozen(pages, np.int32), frozen(entries, np.int32)) if ambiguous else (nothing, nothing)),
    )  # fmt: skip


def _plain_kind(byte: int) -> int:
    """The kind of a byte, computed without the table."""
    if not (0x20 <= byte < 0x7F or 9 <= byte < 14):
        return ODD
    return LETTER if chr(byte).isalnum() else PLAIN_BLANK if chr(byte).isspace() else PLAIN_ALONE


def _steps(vocab: Vocab) -> tuple[U16, bool]:
    """(the step of each token from -1 on, whether all tokens that begin a word are marked as such)."""
    offsets = vocab.key_offsets
    lengths = np.diff(offsets)
    padded = np.append(vocab.key_bytes, np.zeros(MARKER, np.uint8))
    head = [padded[offsets[:-1] + k] for k in range(MARKER)]
    begins = (lengths >= MARKER) & (head[0] == SPACE_MARK_0) & (head[1] == SPACE_MARK_1) & (head[2] == SPACE_MARK_2)
    # a token that is the marker or a part of it is followed by a token without a marker in the same word
    parts = (head[0] == SPACE_MARK_0) & ((lengths == 1) | ((lengths == 2) & (head[1] == SPACE_MARK_1)))
    plain = not (parts.any() or (begins & (lengths == MARKER)).any() or lengths.max(initial=0) >= 1 << 14)
    steps = np.where(begins, lengths - MARKER << 1 | BEGINS, lengths << 1)
    if vocab.unk_id >= 0:
        # a token of only such bytes can match inside a word
        plain = plain and any(byte < 0x80 and not chr(byte).isalnum() for byte in vocab.tokens[vocab.unk_id])
        steps[vocab.unk_id] = BEGINS
    return frozen(np.concatenate([[BEGINS], np.minimum(steps, 0xFFFF)]), np.uint16), plain


class WordPieceWindow(NamedTuple):
    """The same as windows, with the text and the ids of a walk."""

    text: Window
    sizes: Window
    ids: Window
    spans: Window
    pages: Window
    blocks: Window
    ascii: Window
    steps: Window
    unk_id: int
    shortest: int
    origin: int


@helper
def put_span(w: WordPieceWindow, k: int, start: int, stop: int) -> None:
    """Write text[start:stop] as the span of id k."""
    put_i64(w.spans, 2 * k, start - w.origin)
    put_i64(w.spans, 2 * k + 1, stop - w.origin)


@helper
def fact_at(w: WordPieceWindow, i: int, stop: int) -> tuple[int, int]:
    """(fact, length) of the code point at i. Invalid bytes and values above U+10FFFF are dropped."""
    c, size = decode(w.text, i, stop, w.shortest)
    if c == BAD or c > LAST_CODE_POINT:
        return DROPPED, 1
    return get_u8(w.blocks, get_u16(w.pages, c >> 7) << 7 | c & 127), size

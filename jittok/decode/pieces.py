"""The piece of each token (the bytes that it prints), in one byte array, and laid out so that joining them is fast."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.steps import BYTE_ALPHABET, SPACES, TEXT
from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2
from jittok.common.unicode.tables import code_points
from jittok.kernels.jit import I32, I64, U8, U64, OutI32, OutI64, OutU8, frozen, helper, kernel
from jittok.kernels.memory import get_i32, get_u8, put_u8, window
from jittok.kernels.vocab_cache import load_arrays, save_arrays
from jittok.vocab import Vocab
from jittok.vocab.types import type_of

UNKNOWN, NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 4, 8, 16, 32
"""llama.cpp's attribute bits that matter here."""
QUOTE = 0x27
AS_IS, SPACED, BYTE_LEVEL = range(3)
"""What `fill_pieces` makes of a token's text: unchanged; a space for each U+2581; a byte for each character."""
_SPELLINGS = {TEXT: AS_IS, SPACES: SPACED, BYTE_ALPHABET: BYTE_LEVEL}

_HEX = re.compile(rb"[ \t\n\v\f\r]*([+-]?)(?:0[xX](?=[0-9a-fA-F]))?([0-9a-fA-F]*)")
_BYTE_TOKEN = re.compile(rb"<0x([0-9a-fA-F]{2})>", re.DOTALL)


class PieceTable(NamedTuple):
    """The pieces of all tokens.

    Invariants: there are facts.size tokens; 0 <= offsets[i] <= offsets[i + 1] <= blob.size. The words 2 * i and
    2 * i + 1 are the first 16 bytes of the piece of token i, zero-padded, so a short piece takes two loads and two
    stores.
    """

    blob: U8  # [bytes] pieces of all tokens, special ones included, concatenated
    offsets: I64  # [tokens + 1]
    words: U64  # [2 * tokens]
    facts: I32  # [tokens] length of the piece, and the bits below
    longest: int  # bytes of the longest piece

    def hides(self, token: int) -> bool:
        """Whether a token prints nothing unless special tokens are requested."""
        return bool(self.facts[token] & HIDDEN)


HIDDEN, ENDS_SPACE, HOLDS_MOVER = 1 << 24, 1 << 25, 1 << 26
"""The token prints nothing unless special tokens are requested; its piece ends with a space, or has one before ? ! . ,
or an apostrophe. `clean_spaces` is needed only where a space is before one of these."""
LENGTH = HIDDEN - 1
SHORT_PIECE = 16
"""Bytes of a piece in its words. The rest of longer pieces is in the blob. Words are written whole, so outputs have
this much spare capacity."""


def build_pieces(vocab: Vocab) -> PieceTable:
    """The pieces of all tokens. Source: llama.cpp, `token_to_piece`, with the attributes that it has at that moment."""
    count = len(vocab)
    data, offsets = frozen(vocab.token_bytes, np.uint8), frozen(vocab.token_offsets, np.int64)
    blob, ends = np.empty(data.size, np.uint8), np.zeros(count + 1, np.int64)
    kind = type_of(vocab)
    how = _SPELLINGS.get(kind.prints(vocab))
    if how is None:
        blob, ends = importlib.import_module(kind.module).pieces(vocab)
    else:
        odd = np.empty(count, np.int32)
        attributes = frozen(vocab.piece_attributes, np.int32)
        least = 0xC2 if vocab.shortest_utf8 else 0xC0
        odd = odd[: fill_pieces(data, offsets, attributes, how, BYTE_OF_CHARACTER, least, blob, ends, odd)]
        blob, ends = _with_odd_pieces(vocab, how, blob, ends, odd.tolist())
    hidden = frozen((vocab.attributes & (UNKNOWN | CONTROL)) != 0, np.uint8)
    return _laid_out(frozen(blob[: ends[-1]], np.uint8), frozen(ends, np.int64), hidden)


def kept_pieces(vocab: Vocab, key: str | None) -> PieceTable:
    """The pieces of all tokens, from the cache of compiled vocabularies where it has them. key: the vocabulary's name
    there."""
    if key is None:
        return build_pieces(vocab)
    kept = load_arrays(key, "pieces")
    known = kept and kept.part("pieces")
    if not known:
        known = {"pieces": build_pieces(vocab)}
        save_arrays(key, "pieces", known)
    return known["pieces"]  # type: ignore[no-any-return]


def pieces_of(texts: Sequence[bytes], hidden: U8) -> PieceTable:
    """The table of these pieces. hidden: uint8[tokens] 1 for a token that prints nothing unless special tokens are
    requested."""
    ends = np.cumsum([0, *map(len, texts)])
    return _laid_out(frozen(np.frombuffer(b"".join(texts), np.uint8), np.uint8), frozen(ends, np.int64), hidden)


def _laid_out(blob: U8, ends: I64, hidden: U8) -> PieceTable:
    count = ends.size - 1
    words, facts = np.zeros(2 * count, np.uint64), np.zeros(count, np.int32)
    longest = fill_words(blob, ends, hidden, words.view(np.uint8), facts)
    if longest > LENGTH:
        raise AssertionError(f"a piece of {longest} bytes; vocabularies have none above {LENGTH}")
    return PieceTable(blob, ends, frozen(words, np.uint64), frozen(facts, np.int32), longest)


def _with_odd_pieces(
    vocab: Vocab, how: int, blob: NDArray[np.uint8], ends: NDArray[np.int64], odd: list[int]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Insert the pieces of the ids `odd` (in rising order), which the kernel has left empty."""
    if not odd:
        return blob, ends
    parts, lengths, raw, at = [], np.diff(ends), blob[: ends[-1]].tobytes(), 0
    for i in odd:
        text = vocab.token_bytes[vocab.token_offsets[i] : vocab.token_offsets[i + 1]].tobytes()
        if vocab.piece_attributes[i] & BYTE:
            piece = byte_piece(text, strict=how == AS_IS)
        else:
            piece = marked_piece(text, vocab.shortest_utf8)
        parts += [raw[at : ends[i]], piece]
        lengths[i], at = len(piece), int(ends[i])
    parts.append(raw[at:])
    offsets = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return np.frombuffer(b"".join(parts), np.uint8), offsets


def byte_piece(text: bytes, strict: bool) -> bytes:
    """The byte of a byte token, as C's strtol reads its two digits, which accepts anything. strict: only <0xXX> is a
    byte token."""
    if strict:
        match = _BYTE_TOKEN.fullmatch(text)
        return bytes([int(match[1], 16)]) if match else text
    sign, digits = _HEX.match(text[3:5]).groups()  # type: ignore[union-attr]  # it matches the empty text too
    return bytes([(-1 if sign == b"-" else 1) * int(digits or b"0", 16) & 0xFF])


def marked_piece(text: bytes, shortest: bool = True) -> bytes:
    """A byte-level token with characters outside the byte alphabet: each of them prints a marker with the whole
    text."""
    out = bytearray()
    for c in code_points(text, shortest):
        byte = int(BYTE_OF_CHARACTER[c]) if c < BYTE_OF_CHARACTER.size else -1
        if byte >= 0:
            out.append(byte)
        else:
            out += b"[UNK_BYTE_0x" + chr(c).encode("utf-8", "surrogatepass").hex().encode() + text + b"]"
    return bytes(out)


def _byte_of_character() -> NDArray[np.int32]:
    """int32[0x144]: the byte of each character of GPT-2's byte alphabet, or -1."""
    table = np.full(0x144, -1, np.int32)
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table[own] = own
    table[0x100:] = sorted(set(range(256)) - set(own))
    return frozen(table, np.int32)


BYTE_OF_CHARACTER = _byte_of_character()


@kernel
def fill_pieces(
    data: U8, offsets: I64, attributes: I32, how: int, byte_of: I32, least: int, blob: OutU8, ends: OutI64, odd: OutI32
) -> int:
    """Write the pieces of all tokens but the odd ones, which are left empty and listed.

    data, offsets: texts; attributes: int32[tokens]; how: AS_IS, SPACED or BYTE_LEVEL; byte_of: int32[0x144]
    least: the lowest byte that begins a character of two bytes
    blob: uint8[data.size], as no piece here is longer than its text; ends: int64[tokens + 1]; odd: int32[tokens]

    Returns the number of odd ones: byte tokens, and byte-level ones with characters outside the byte alphabet.
    """
    text, out, count, at = window(data), window(blob), 0, 0
    for token in range(attributes.size):
        ends[token] = at
        i, stop, bits = offsets[token], offsets[token + 1], attributes[token]
        known = bits & (UNKNOWN | CONTROL | USER_DEFINED)
        if bits & BYTE and (how == AS_IS or not (known or bits & NORMAL)):
            odd[count] = token
            count += 1
        elif how == AS_IS or known:
            for k in range(i, stop):
                put_u8(out, at, get_u8(text, k))
                at += 1
        elif bits & NORMAL:
            first = at
            while i < stop:
                byte = get_u8(text, i)
                if how == SPACED:
                    if (
                        byte == SPACE_MARK_0
                        and i + 2 < stop
                        and get_u8(text, i + 1) == SPACE_MARK_1
                        and get_u8(text, i + 2) == SPACE_MARK_2
                    ):
                        byte, i = SPACE_BYTE, i + 2
                else:
                    if least <= byte < 0xE0 and i + 1 < stop and get_u8(text, i + 1) & 0xC0 == 0x80:
                        byte, i = (byte & 0x1F) << 6 | get_u8(text, i + 1) & 0x3F, i + 1
                    elif byte >= 0x80:
                        byte = byte_of.size
                    byte = get_i32(window(byte_of), byte) if byte < byte_of.size else -1
                    if byte < 0:
                        odd[count] = token
                        count += 1
                        at = first
                        break
                put_u8(out, at, byte)
                at, i = at + 1, i + 1
    ends[attributes.size] = at
    return count


@helper
def moves(byte: int) -> bool:
    """Whether a space before this byte may be removed: ? ! . , or an apostrophe."""
    return byte in (0x3F, 0x21, 0x2E, 0x2C, QUOTE)


@kernel
def fill_words(blob: U8, offsets: I64, hidden: U8, words: OutU8, facts: OutI32) -> int:
    """Write the words (uint8[16 * tokens], zeroed) and facts (int32[tokens]) of `PieceTable`. Returns the length of the
    longest piece."""
    text, longest = window(blob), 0
    for token in range(facts.size):
        start, stop = offsets[token], offsets[token + 1]
        bits = HIDDEN if hidden[token] else 0
        for i in range(start, stop):
            byte = get_u8(text, i)
            if i - start < SHORT_PIECE:
                words[SHORT_PIECE * token + i - start] = byte
            if i > start and get_u8(text, i - 1) == SPACE_BYTE and moves(byte):
                bits |= HOLDS_MOVER
        if start < stop and get_u8(text, stop - 1) == SPACE_BYTE:
            bits |= ENDS_SPACE
        facts[token] = bits | (stop - start)
        longest = max(longest, stop - start)
    return longest

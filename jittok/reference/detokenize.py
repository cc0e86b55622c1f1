"""Ids back to bytes: the piece of each token, and the cleaning of spaces."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jittok.common.pipeline.steps import BYTE_ALPHABET, ESCAPES, ID, TEXT, JoinLlama
from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_BYTES
from jittok.common.unicode.tables import BYTE_OF_CHARACTER, code_points, utf8
from jittok.errors import InvalidToken
from jittok.reference.rwkv import unescape
from jittok.reference.vocab_tables import attributes, piece_attributes
from jittok.vocab import Vocab
from jittok.vocab.types import type_of

UNKNOWN, NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 4, 8, 16, 32
QUOTE = ord("'")
_STRTOL = re.compile(rb"[ \t\n\v\f\r]*([+-]?)(?:0[xX](?=[0-9a-fA-F]))?([0-9a-fA-F]*)")
_BYTE_TOKEN = re.compile(rb"<0x([0-9a-fA-F]{2})>", re.DOTALL)


def detokenize(
    vocab: Vocab,
    ids: Sequence[int],
    *,
    remove_special: bool = False,
    unparse_special: bool = False,
    clean: bool = True,
) -> bytes:
    """The text of ids. InvalidToken: an id outside the vocabulary.

    remove_special: drop one BOS and one EOS, if the vocabulary adds them; unparse_special: special tokens print
    their text; clean: remove spaces if the vocabulary cleans; False keeps all. Source: llama.cpp,
    `llama_vocab::impl::detokenize`, with `clean`.
    """
    if not type_of(vocab).has_tokens:
        return b""
    ids = list(ids)
    strip = vocab.add_space_prefix
    if remove_special and vocab.add_bos and ids and ids[0] == vocab.bos_id:
        del ids[0]
        strip = False
    if remove_special and vocab.add_eos and ids and ids[-1] == vocab.eos_id:
        del ids[-1]
    text = bytearray()
    for position, token in enumerate(ids):
        text += token_to_piece(vocab, token, lstrip=int(strip and position == 0), special=unparse_special)
    return clean_spaces(text) if clean and vocab.clean_spaces else bytes(text)


def token_to_piece(vocab: Vocab, token: int, *, lstrip: int = 0, special: bool = False) -> bytes:
    """The piece of one token, without up to `lstrip` leading spaces. InvalidToken: an id outside the vocabulary.

    special: control and unknown tokens print their text. Source: llama.cpp, `llama_vocab::impl::token_to_piece`.
    """
    if not 0 <= token < len(vocab):
        raise InvalidToken(token, len(vocab))
    if not special and attributes(vocab)[token] & (UNKNOWN | CONTROL):
        return b""
    piece = full_piece(vocab, token)
    while lstrip > 0 and piece.startswith(b" "):
        piece, lstrip = piece[1:], lstrip - 1
    return piece


def full_piece(vocab: Vocab, token: int) -> bytes:
    """The piece, special or not; llama.cpp computes all pieces while loading."""
    text, attribute = vocab.tokens[token], piece_attributes(vocab)[token]
    (how,) = vocab.pipeline.decode
    assert isinstance(how, JoinLlama)
    prints = how.prints
    if prints == ESCAPES:
        return unescape(text)
    if prints == ID:
        return b"%x" % token
    if prints == TEXT:
        match = _BYTE_TOKEN.fullmatch(text)
        return bytes([int(match[1], 16)]) if match and attribute & BYTE else text
    if attribute & (UNKNOWN | CONTROL | USER_DEFINED):
        return text
    if attribute & NORMAL:
        if prints == BYTE_ALPHABET:
            return decode_bytes(text, vocab.shortest_utf8)
        return text.replace(SPACE_MARK_BYTES, b" ")
    return bytes([strtol16(text[3:5]) & 0xFF]) if attribute & BYTE else b""


def decode_bytes(text: bytes, shortest: bool = True) -> bytes:
    """The bytes of a byte-level token; a character outside the byte alphabet gives a long marker."""
    out = bytearray()
    for c in code_points(text, shortest):
        if c in BYTE_OF_CHARACTER:
            out.append(BYTE_OF_CHARACTER[c])
        else:
            out += b"[UNK_BYTE_0x" + utf8(c).hex().encode() + text + b"]"
    return bytes(out)


def strtol16(text: bytes) -> int:
    """C's strtol(text, 16): white space, a sign and 0x may precede; the first other character ends it."""
    sign, digits = _STRTOL.match(text).groups()  # type: ignore[union-attr]  # it matches the empty text too
    return (-1 if sign == b"-" else 1) * int(digits or b"0", 16)


def clean_spaces(text: bytearray) -> bytes:
    """Three passes, each over the result of the one before; byte 0 is always kept.

    Literally llama.cpp's: a pass reads ahead of where it writes, in one buffer.
    """
    size = _drop_before_punctuation(text, len(text))
    size = _drop_around_quotes(text, size)
    return bytes(text[: _drop_before_contractions(text, size)])


def _drop_before_punctuation(text: bytearray, size: int) -> int:
    """Remove a space before ? ! . or ,"""
    out = min(1, size)
    for i in range(1, size):
        byte = text[i]
        if text[i - 1] == SPACE_BYTE and byte in b"?!.,":
            out -= 1
        text[out] = byte
        out += 1
    return out


def _drop_around_quotes(text: bytearray, size: int) -> int:
    """Remove the spaces around an apostrophe between two; the second one does not count for the next apostrophe."""
    out, i = min(1, size), 1
    while i < size:
        byte = text[i]
        if byte == QUOTE and i + 1 < size and text[i - 1] == SPACE_BYTE and text[i + 1] == SPACE_BYTE:
            out -= 1
            i += 1
            text[i] = 0
        text[out] = byte
        out += 1
        i += 1
    return out


def _drop_before_contractions(text: bytearray, size: int) -> int:
    """Remove a space before 's 'm 're or 've."""
    out = min(1, size)
    for i in range(1, size):
        byte = text[i]
        if byte == QUOTE and text[i - 1] == SPACE_BYTE:
            following = bytes(text[i + 1 : min(i + 3, size)])
            if following[:1] in (b"s", b"m") or following in (b"re", b"ve"):
                out -= 1
        text[out] = byte
        out += 1
    return out

"""The text of each token, in one spelling for all kinds of files, so that tokens can be compared."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import Longest, LongestText, Ranks, WordPiece
from jittok.common.pipeline.steps import JoinBytes
from jittok.common.unicode.characters import SPACE_MARK_BYTES
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.vocab import NO_TOKEN, Vocab

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

UNKNOWN = b"\xff<unknown>"
"""The unknown token, whatever its text; no valid text has this byte."""
CONTINUATION = b"##"
"""Before WordPiece's tokens that do not begin a word."""
CONTROL, USER_DEFINED = 8, 16
_BYTE_OF = {chr(c): byte for byte, c in enumerate(CHARACTER_OF_BYTE)}
_BYTE_TOKEN = re.compile(rb"<0x([0-9A-Fa-f]{2})>")


class SpelledTokens(NamedTuple):
    """The texts of the tokens of a vocabulary."""

    texts: list[bytes]
    sizes: NDArray[np.int64]


def spelled(tok: Tokenizer) -> SpelledTokens:
    """The text of each token, and its bytes."""
    texts = spellings(tok)
    return SpelledTokens(texts, np.fromiter(map(len, texts), np.int64, len(texts)))


def spellings(tok: Tokenizer) -> list[bytes]:
    """id -> the bytes of the token's text; U+2581 is a space, `##` begins WordPiece's inner parts."""
    vocab = tok.vocab
    rows = _of_file(vocab) if isinstance(vocab, Pipeline) else _of_gguf(tok, vocab)
    if 0 <= vocab.unknown_id < len(rows):
        rows[vocab.unknown_id] = UNKNOWN
    return rows


def shared_numbers(a: list[bytes], b: list[bytes]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """A number for each id of both, the same for tokens with the same bytes."""
    numbers: dict[bytes, int] = {}
    of_a = np.array([numbers.setdefault(text, len(numbers)) for text in a], np.int32)
    return of_a, np.array([numbers.setdefault(text, len(numbers)) for text in b], np.int32)


def cut_out(tok: Tokenizer) -> NDArray[np.bool_]:
    """For each id: whether the token is found in a text before the model runs."""
    found = np.zeros(tok.vocab_size, np.bool_)
    found[list(tok.special_ids)] = True
    if isinstance(tok.vocab, Vocab):
        found &= (tok.attributes & (CONTROL | USER_DEFINED)) != 0
    if tok.vocab.unknown_id != NO_TOKEN:
        found[tok.vocab.unknown_id] = False
    return found


def _of_gguf(tok: Tokenizer, vocab: Vocab) -> list[bytes]:
    if isinstance(vocab.pipeline.model, LongestText):
        mark = SPACE_MARK_BYTES
        special = cut_out(tok)
        return [
            text if special[token] else text[len(mark) :] if text.startswith(mark) else CONTINUATION + text
            for token, text in enumerate(vocab.tokens)
        ]
    pieces = tok._pieces
    blob, offsets = pieces.blob.tobytes(), pieces.offsets.tolist()
    return [blob[start:stop] for start, stop in pairwise(offsets)]


def _of_file(pipeline: Pipeline) -> list[bytes]:
    if any(isinstance(step, JoinBytes) for step in pipeline.decode):
        rows = [_from_alphabet(text) for text in pipeline.model_tokens]
    elif isinstance(pipeline.model, WordPiece):
        prefix = pipeline.model.prefix.encode()
        rows = [
            CONTINUATION + text[len(prefix) :] if text and prefix and text.startswith(prefix) else text or b""
            for text in pipeline.model_tokens
        ]
    elif isinstance(pipeline.model, Ranks | Longest):
        rows = [text or b"" for text in pipeline.model_tokens]
    else:
        mark = SPACE_MARK_BYTES
        rows = [_from_bytes(text or b"").replace(mark, b" ") for text in pipeline.model_tokens]
    rows += [b""] * (len(pipeline) - len(rows))
    for token in pipeline.added:
        rows[token.id] = token.content.encode().replace(SPACE_MARK_BYTES, b" ")
    return rows


def _from_alphabet(text: bytes | None) -> bytes:
    """The bytes of a byte-level token; a token with another character becomes its UTF-8."""
    raw = (text or b"").decode()
    try:
        return bytes([_BYTE_OF[c] for c in raw])
    except KeyError:
        return raw.encode()


def _from_bytes(text: bytes) -> bytes:
    found = _BYTE_TOKEN.fullmatch(text)
    return bytes([int(found[1], 16)]) if found else text

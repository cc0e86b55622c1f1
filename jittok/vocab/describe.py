"""Facts about a token as plain data, for displays and traces."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.pipeline import ragged_bytes
from jittok.vocab.types import type_named
from jittok.vocab.vocab import Vocab, split_merge

ATTRIBUTES = (
    "unknown", "unused", "normal", "control", "user_defined", "byte", "normalized", "lstrip", "rstrip", "single_word",
)  # fmt: skip
"""Names of llama.cpp's attribute bits, from bit 0 on."""
_RANKS: WeakKeyDictionary[Vocab, dict[bytes, int]] = WeakKeyDictionary()


def shown(raw: bytes | bytearray) -> str:
    """Bytes as text; invalid UTF-8 is escaped."""
    return bytes(raw).decode("utf-8", "backslashreplace")


def spaced(raw: bytes | bytearray) -> str:
    """Bytes as pairs of hex digits: "e2 96 81"."""
    return bytes(raw).hex(" ")


def attribute_names(bits: int) -> list[str]:
    """The names of the attribute bits that are set."""
    return [name for bit, name in enumerate(ATTRIBUTES) if bits >> bit & 1]


def merge_rank(vocab: Vocab, token: int) -> int | None:
    """The lowest rank of a merge that results in this token of a BPE vocabulary; None if there is none."""
    if vocab not in _RANKS:
        ranks: dict[bytes, int] = {}
        for rank, line in enumerate(ragged_bytes(vocab.merge_bytes, vocab.merge_offsets)):
            ranks.setdefault(b"".join(split_merge(line)), rank)
        _RANKS[vocab] = ranks
    return _RANKS[vocab].get(vocab.tokens[token])


def describe(vocab: Vocab, token: int, piece: bytes) -> dict[str, Any]:
    """One token as plain data. piece: its bytes when printed, special or not. An id outside the vocabulary has no
    text."""
    known = 0 <= token < len(vocab)
    return {
        "id": int(token),
        "piece": shown(piece),
        "bytes": spaced(piece),
        "text": shown(vocab.tokens[token]) if known else None,
        "attributes": attribute_names(int(vocab.attributes[token])) if known else [],
        "score": float(vocab.scores[token]) if known else None,
        "rank": merge_rank(vocab, token) if known and type_named(vocab.type).has_merges else None,
    }


def described(pipeline: Pipeline, token: int, piece: bytes) -> dict[str, Any]:
    """The same for a token of a file other than GGUF."""
    text = pipeline.tokens[token]
    return {
        "id": int(token),
        "piece": shown(piece),
        "bytes": spaced(piece),
        "text": None if text is None else shown(text),
        "attributes": attribute_names(int(pipeline.attributes[token])),
        "score": float(pipeline.scores[token]),
        "rank": pipeline.merge_rank(token),
    }

"""Tokenizers of other libraries' objects: read back from what the object can be written as."""

from __future__ import annotations

from typing import Any

from jittok.errors import IN_MEMORY, UnsupportedVocab
from jittok.files import read_pipeline
from jittok.files.ranks import ranked
from jittok.tokenizer import Tokenizer


def _check(found: Any, attribute: str, expected: str) -> None:
    """TypeError for an object of another kind."""
    if isinstance(found, type) or not hasattr(found, attribute):
        shown = repr(found) if isinstance(found, str) else type(found).__name__
        raise TypeError(f"found {shown}, expected {expected}")


def from_tokenizers(tokenizer: Any) -> Tokenizer:
    """The Tokenizer of a `tokenizers.Tokenizer`: what its tokenizer.json would say."""
    _check(tokenizer, "to_str", "a tokenizers.Tokenizer (jittok.load reads files)")
    return Tokenizer(read_pipeline(tokenizer.to_str().encode()))


def from_tiktoken(encoding: Any) -> Tokenizer:
    """The Tokenizer of a `tiktoken.Encoding`: its ranks, pattern and special tokens."""
    _check(encoding, "_mergeable_ranks", "a tiktoken.Encoding: tiktoken.get_encoding(name)")
    return Tokenizer(
        ranked(
            IN_MEMORY,
            "tiktoken",
            dict(encoding._mergeable_ranks),
            encoding._pat_str,
            dict(encoding._special_tokens),
            name=encoding.name,
        )
    )


def from_sentencepiece(processor: Any) -> Tokenizer:
    """The Tokenizer of a `sentencepiece.SentencePieceProcessor`: its model."""
    _check(processor, "serialized_model_proto", "a sentencepiece.SentencePieceProcessor (jittok.load reads files)")
    return Tokenizer(read_pipeline(processor.serialized_model_proto()))


def from_transformers(tokenizer: Any) -> Tokenizer:
    """The Tokenizer of a tokenizer of transformers: what it runs, which may not be what its files say.

    UnsupportedVocab for one that neither `tokenizers` nor sentencepiece stands behind.
    """
    if getattr(tokenizer, "backend_tokenizer", None) is not None:
        return from_tokenizers(tokenizer.backend_tokenizer)
    if getattr(tokenizer, "sp_model", None) is not None:
        return from_sentencepiece(tokenizer.sp_model)
    expected = "one with a backend_tokenizer or an sp_model; else load its files"
    raise UnsupportedVocab(IN_MEMORY, "tokenizer", type(tokenizer).__name__, expected)

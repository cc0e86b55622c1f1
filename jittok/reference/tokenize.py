"""The entry points of the reference, for every vocabulary type: text to ids and spans, ids to bytes."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from jittok.errors import EncodingFailed, UnsupportedVocab
from jittok.reference.detokenize import detokenize, token_to_piece
from jittok.reference.mapped_text import Mapped, Token, mapped
from jittok.reference.special import partition
from jittok.reference.steps import words
from jittok.vocab import NO_TOKEN, Vocab
from jittok.vocab.types import type_of

__all__ = ["align", "detokenize", "newline_id", "token_to_piece", "tokenize", "tokens"]


def tokenize(vocab: Vocab, text: bytes, *, add_special: bool = False, parse_special: bool = False) -> list[int]:
    """The ids of a text. Raises EncodingFailed where llama.cpp crashes, UnsupportedVocab for type "none".

    add_special: add BOS, EOS or SEP around it, as the vocabulary requires; parse_special: search for special tokens in
    the text. Source: llama.cpp, `llama_vocab::impl::tokenize`.
    """
    return [token.id for token in tokens(vocab, text, add_special=add_special, parse_special=parse_special)]


def align(
    vocab: Vocab, text: bytes, *, add_special: bool = False, parse_special: bool = False
) -> tuple[list[int], list[tuple[int, int]]]:
    """(ids, spans): the ids of `tokenize`, and the span of each in the text."""
    found = list(tokens(vocab, text, add_special=add_special, parse_special=parse_special))
    return [token.id for token in found], [(token.start, token.stop) for token in found]


def tokens(vocab: Vocab, text: bytes, *, add_special: bool = False, parse_special: bool = False) -> Iterator[Token]:
    """The tokens of a text with their spans."""
    if not type_of(vocab).has_tokens:
        raise UnsupportedVocab(vocab.source, "tokenizer.ggml.model", vocab.model, "a type that can tokenize")
    before, after = around(vocab) if add_special else (NO_TOKEN, NO_TOKEN)
    if before != NO_TOKEN:
        yield Token(before, 0, 0)
    after_special = True
    for token, start, stop in partition(vocab, text, parse_special):
        if token is not None:
            yield Token(token, start, stop)
        else:
            yield from session(vocab, mapped(text, start, stop), after_special)
        after_special = token is not None
    if after != NO_TOKEN:
        yield Token(after, len(text), len(text))


def session(vocab: Vocab, fragment: Mapped, after_special: bool) -> Iterator[Token]:
    """The tokens of the text between two special tokens: the steps of the vocabulary, then its model."""
    model = reference_of(vocab)
    for word in words(vocab, fragment, after_special):
        if isinstance(word, Token):
            yield word
        else:
            yield from model.tokens(vocab, word)


def around(vocab: Vocab) -> tuple[int, int]:
    """The ids before and after a text with `add_special`, NO_TOKEN for none.

    EncodingFailed: the vocabulary requires an id that it does not have.
    """
    found = []
    for needed, key, token in reference_of(vocab).around(vocab):
        if needed and token == NO_TOKEN:
            expected = f"a vocabulary with tokenizer.ggml.{key}_token_id, needed to add special tokens"
            raise EncodingFailed(0, 0, vocab, expected)
        found.append(token if needed else NO_TOKEN)
    return found[0], found[1]


def newline_id(vocab: Vocab) -> int:
    """The id of a newline, NO_TOKEN if there is none. Source: llama.cpp, `linefeed_id` in `llama_vocab::impl::load`.

    llama.cpp finds it early while loading: no special token is searched for, and special ids are the type's defaults.
    """
    if not type_of(vocab).has_tokens:
        return NO_TOKEN
    known = getattr(reference_of(vocab), "newline_id", None)
    if known is not None:
        return int(known(vocab))
    early = vocab._replace(
        attributes=vocab.file_attributes,
        special_tokens=vocab.special_tokens[:0],
        unk_id=vocab.default_unk_id,
    )
    ids = tokenize(early, b"\n")
    return ids[0] if ids else vocab.default_pad_id


def reference_of(vocab: Vocab) -> Any:
    """The module of the vocabulary's type: `tokens`, `around`, and `newline_id` where the vocabulary says it."""
    return importlib.import_module(type_of(vocab).reference)

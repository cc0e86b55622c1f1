"""The entry points of the reference, for every type of GGUF vocabulary: text to ids and spans, ids to bytes.

>>> import jittok
>>> vocab = jittok.bundled("mistral").vocab
>>> tokenize(vocab, b"Hello, world", add_special=True)
[1, 22557, 28725, 1526]
>>> align(vocab, b"Hello, world")
([22557, 28725, 1526], [(0, 5), (5, 6), (6, 12)])
>>> detokenize(vocab, tokenize(vocab, b"Hello, world"), remove_special=True)
b'Hello, world'
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any

from jittok.common.unicode.tables import REPLACEMENT, utf8
from jittok.errors import EncodingFailed, UnsupportedVocab
from jittok.kernels.pretokenize.spaces_in_words import spaces_in_words
from jittok.reference.decode import detokenize, token_to_piece
from jittok.reference.special import Literal, partition
from jittok.reference.steps import words
from jittok.reference.text import Mapped, Token, mapped
from jittok.vocab import NO_TOKEN, Vocab
from jittok.vocab.types import type_of

__all__ = ["align", "detokenize", "newline_id", "token_to_piece", "tokenize", "tokens"]

BEYOND = re.compile(rb"\xf4[\x90-\xbf][\x80-\xbf]{2}|[\xf5-\xf7][\x80-\xbf]{3}")
"""A code point above U+10FFFF."""


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


def tokens(
    vocab: Vocab, text: bytes, *, add_special: bool = False, parse_special: bool = False,
    literal: Literal | None = None,
) -> Iterator[Token]:  # fmt: skip
    """The tokens of a text with their spans. literal: the bytes that are no special tokens."""
    if not type_of(vocab).has_tokens:
        raise UnsupportedVocab(vocab.source, "tokenizer.ggml.model", vocab.model, "a type that can tokenize")
    before, after = around(vocab) if add_special else (NO_TOKEN, NO_TOKEN)
    if before != NO_TOKEN:
        yield Token(before, 0, 0)
    after_special = True
    for token, start, stop in partition(vocab, text, parse_special, literal=literal):
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
    """The module of the vocabulary's type: `tokens`, `around`, and `newline_id` where it is no token of a text."""
    return importlib.import_module(type_of(vocab).reference)


def replaced(vocab: Vocab, source: Mapped) -> Mapped:
    """A fragment that cannot be encoded, for errors="replace": U+FFFD for each byte of a code point above U+10FFFF,
    and if there is none, for each byte of a space inside a word."""
    text = bytes(source.text)
    found = [match.span() for match in BEYOND.finditer(text)] or spaces_in_words(vocab, text)
    out, at = Mapped(), 0
    for start, stop in found:
        out.put(text[at:start], source, at, start)
        for k in range(start, stop):
            out.put(utf8(REPLACEMENT), source, k, k + 1)
        at = stop
    out.put(text[at:], source, at, len(text))
    return out

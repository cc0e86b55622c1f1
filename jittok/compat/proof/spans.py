"""Spans of tokens as a file's own library counts them, made by jittok: what `prove` compares.

    tokenizers, transformers   the characters of each token, by the rules of `jittok.compat.tracing`
    tiktoken                   the character that each token begins in
    sentencepiece              the characters between where its normalized text begins and ends

The first and the last are made by the plain reference where lengths of tokens do not tell, which takes a hundred times
as long; such texts have a budget, and of a long one only its beginning is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jittok.compat.sentencepiece import as_sentencepiece
from jittok.compat.tiktoken import as_tiktoken
from jittok.compat.tokenizers import as_tokenizers

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

Spans = list[Any]
"""(start, stop) of each token, or where each starts, in characters."""
BUDGET = 16 << 10
"""Characters of texts whose spans the reference makes."""
CHEAP = 64
"""How many characters of texts whose spans lengths tell cost as much as one of the reference."""
HEAD = 1 << 10
"""Characters of a text of which the reference makes the spans."""


class OwnSpans:
    """Spans of a Tokenizer as one library counts them, within a budget."""

    def __init__(self, tok: Tokenizer, library: str) -> None:
        self._left = float(BUDGET)
        self._quick: Callable[[str], bool] = lambda _: True
        if library == "tiktoken":
            self._of = _starts(tok)
        elif library == "sentencepiece":
            self._of, self._quick = _between(tok), lambda _: False
        else:
            self._of, self._quick = _characters(tok)

    def part(self, text: str) -> str | None:
        """The part of a text to compare: all, its beginning, or None where the budget is spent."""
        if self._left <= 0:
            return None
        quick = self._quick(text)
        part = text if quick else text[:HEAD]
        self._left -= len(part) / (CHEAP if quick else 1)
        return part

    def __call__(self, text: str, way: tuple[bool, bool]) -> Spans:
        """The span of each token. way: (add special tokens, find special tokens)."""
        return self._of(text, *way)


def _characters(tok: Tokenizer) -> tuple[Callable[[str, bool, bool], Spans], Callable[[str], bool]]:
    backend = as_tokenizers(tok)
    quick = backend._source.quick

    def spans(text: str, around: bool, found: bool) -> Spans:
        backend.encode_special_tokens = not found
        return backend.encode(text, add_special_tokens=around).offsets

    def is_quick(text: str) -> bool:
        return quick is not None and quick.spans(text, tok.encode(text).tolist()) is not None

    return spans, is_quick


def _starts(tok: Tokenizer) -> Callable[[str, bool, bool], Spans]:
    encoding = as_tiktoken(tok)

    def spans(text: str, _around: bool, found: bool) -> Spans:
        return encoding.decode_with_offsets(tok.encode(text, parse_special=found).tolist())[1]

    return spans


def _between(tok: Tokenizer) -> Callable[[str, bool, bool], Spans]:
    model = as_sentencepiece(tok)
    return lambda text, *_: list(model.encode(text, out_type="offset_mapping")["offsets"])


__all__ = ["OwnSpans", "Spans"]

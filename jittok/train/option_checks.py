"""What a `pre` begins with that is no `tokenizer.ggml.pre`, and what numbers and texts options may be."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok.errors import CorpusError

REGEX = "regex:"
"""Begins a `pre` that is a pattern of one's own."""
FILE = "file:"
"""Begins a `pre` that is the `pre_tokenizer` of a tokenizer.json, as JSON."""
MOST_NUMBER = 1 << 40
"""Of an option: in units of weights it has 64 bits."""
MOST_IDS = 1 << 23
"""Of a vocabulary: a file of more tokens is not read."""


def check_number(option: str, value: Any, most: int = MOST_NUMBER, least: int = 0, expected: str = "") -> None:
    """CorpusError for what is no whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise CorpusError(option, value, expected or f"a whole number from {least} to {most}")


def _is_unicode(text: Any) -> bool:
    """Whether this is a str without lone surrogates."""
    return isinstance(text, str) and not any("\ud800" <= c <= "\udfff" for c in text)


def check_name(name: Any) -> None:
    """ValueError for what cannot be written as the name of a vocabulary."""
    if not _is_unicode(name):
        raise ValueError(f"name: found {name!r}, expected a text (str) in UTF-8")


def special_texts(special: Any) -> tuple[str, ...]:
    """Texts of special tokens, as they were given. CorpusError for what is no list of texts."""
    if isinstance(special, str | bytes | bytearray) or not np.iterable(special):
        raise CorpusError("--special", special, "a list of texts")
    found = tuple(special)
    for text in found:
        if not text or not _is_unicode(text):
            raise CorpusError("--special", text, "texts (str) of one character or more, without lone surrogates")
    return found

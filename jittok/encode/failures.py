"""Texts that crash llama.cpp: an error, or U+FFFD in place of the bytes that do."""

from __future__ import annotations

import re

from jittok.errors import EncodingFailed
from jittok.kernels.fragments import BEYOND_UNICODE, EXPECTED, SPACE_IN_SYMBOL, Failure, found_value
from jittok.kernels.inputs import Documents
from jittok.vocab import Vocab

REPLACEMENT = "\ufffd".encode()
BEYOND = re.compile(rb"\xf4[\x90-\xbf][\x80-\xbf]{2}|[\xf5-\xf7][\x80-\xbf]{3}")
"""The sequences that llama.cpp's decoder reads as a code point above U+10FFFF."""


def failure_of(docs: Documents, base: int, document: int, done: Failure) -> EncodingFailed:
    """The error of a document that cannot be encoded. document: its number in `docs`; base: the number of document
    0."""
    start, stop = int(docs.starts[document]), int(docs.stops[document])
    return EncodingFailed(
        base + document,
        done.offset - start,
        found_value(done, docs.between(done.offset, min(done.offset + 8, stop))),
        EXPECTED[done.code],
    )


def replace_unencodable(vocab: Vocab, code: int, text: bytes) -> bytes | None:
    """A fragment that failed with this code, with U+FFFD for what crashes llama.cpp; None if that does not help."""
    if code == BEYOND_UNICODE:
        return BEYOND.sub(4 * REPLACEMENT, text)
    if code == SPACE_IN_SYMBOL:
        from jittok.kernels.pretokenize.spaces_in_words import spaces_in_words, without_spaces

        spaces = spaces_in_words(vocab, text)
        return without_spaces(text, spaces) if spaces else None
    return None

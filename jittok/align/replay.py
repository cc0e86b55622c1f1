"""Find spans by encoding a fragment again with the Python reference: the fallback for what token lengths do not decide.

Such fragments are rare: they have bytes without a token, BPE symbols that are no token, or byte tokens that were found
as texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.models import ScoredMerges
from jittok.errors import EncodingFailed
from jittok.reference.models import spm
from jittok.reference.steps import words
from jittok.reference.text import Mapped, Token, mapped
from jittok.reference.tokenize import reference_of, replaced
from jittok.vocab import Vocab

LONG_FRAGMENT = 1 << 16
"""Fragments of this many bytes or more are aligned in parts."""
PART_BYTES = 1 << 15
"""The least bytes of a part, which ends between two words."""
BETWEEN_WORDS = re.compile(rb"(?<=[A-Za-z])(?= [A-Za-z])")


def replayed_tokens(vocab: Vocab, raw: bytes, start: int, prefixed: bool) -> list[Token]:
    """The tokens of a fragment `raw` that begins at `start`, with errors="replace". EncodingFailed: that does not help.

    prefixed: it is at the start or after a special token.
    """
    return _replaced_tokens(vocab, _located(raw, start), prefixed)


def _replaced_tokens(vocab: Vocab, source: Mapped, prefixed: bool) -> list[Token]:
    while True:
        try:
            return list(_tokens(vocab, source, prefixed))
        except EncodingFailed:
            found = replaced(vocab, source)
            if found.text == source.text:
                raise
        source = found


def replayed_parts(
    vocab: Vocab, raw: bytes, start: int, prefixed: bool, ids: NDArray[np.int32], spans: NDArray[np.int64]
) -> bool:
    """Write the spans of a long fragment's ids to `spans`, int64[n, 2], in parts, because Python lists take hundreds of
    bytes for each byte of text. Parts are cut before a space between letters; returns whether they gave these ids."""
    if len(raw) < LONG_FRAGMENT:
        return False
    at, done = 0, 0
    while at < len(raw):
        found = BETWEEN_WORDS.search(raw, at + PART_BYTES)
        stop = len(raw) if found is None else found.start()
        tokens = replayed_tokens(vocab, raw[at:stop], start + at, prefixed and at == 0)
        known = np.array(tokens, np.int64).reshape(-1, 3)
        if not np.array_equal(known[:, 0], ids[done : done + len(known)]):
            return False
        spans[done : done + len(known)] = known[:, 1:]
        at, done = stop, done + len(known)
    return done == ids.size


def _located(raw: bytes, start: int) -> Mapped:
    """`raw`, which begins at `start` of its document."""
    source = Mapped()
    source.text += raw
    source.starts += range(start, start + len(raw))
    source.stops += range(start + 1, start + len(raw) + 1)
    return source


def _tokens(vocab: Vocab, source: Mapped, prefixed: bool) -> Iterator[Token]:
    """The tokens of a fragment, each different pre-token encoded once."""
    model = _scored if isinstance(vocab.pipeline.model, ScoredMerges) else reference_of(vocab).tokens
    known: dict[bytes, list[Token]] = {}
    for word in words(vocab, source, prefixed):
        if isinstance(word, Token):
            yield word
            continue
        text = bytes(word.text)
        if text not in known:
            known[text] = list(model(vocab, mapped(text, 0, len(text))))
        for token, start, stop in known[text]:
            yield word.token(token, start, stop)


def _scored(vocab: Vocab, text: Mapped) -> Iterator[Token]:
    """`spm.tokens`, with the unknown token for a byte without a token."""
    at = 0
    for symbol in spm.merge(vocab, bytes(text.text)).pieces():
        for token, size in spm.resegment(vocab, symbol):
            yield text.token(vocab.unk_id if token is None else token, at, at + size)
            at += size

"""Splits a text at special tokens, one token after the other, each over the whole text; and the ids around a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from jittok.reference.vocab_tables import attributes
from jittok.vocab import Vocab

UNKNOWN, CONTROL, LSTRIP, RSTRIP = 1, 8, 128, 256
BLANKS = b" \t\n\v\f\r"
Around = tuple[tuple[bool, str, int], tuple[bool, str, int]]
"""Before and after a text: whether an id is added, the name of its metadata key, the id."""


class Fragment(NamedTuple):
    """document[start:stop]: a special token, or text (`token` is None)."""

    token: int | None
    start: int
    stop: int


Observe = Callable[[int, list[Fragment]], None]
"""Called with each special token that was searched for, and the fragments after it."""


def partition(vocab: Vocab, text: bytes, parse_special: bool, observe: Observe | None = None) -> list[Fragment]:
    """The fragments of a text in order; none is empty. White space that a token strips belongs to no fragment.

    parse_special: search for control and unknown tokens too. Source: llama.cpp, `tokenizer_st_partition`.
    """
    fragments = [Fragment(None, 0, len(text))] if text else []
    for token in vocab.special_tokens.tolist():
        if parse_special or not attributes(vocab)[token] & (CONTROL | UNKNOWN):
            fragments = [part for fragment in fragments for part in cut(vocab, text, fragment, token)]
            if observe:
                observe(token, fragments)
    return fragments


def cut(vocab: Vocab, text: bytes, fragment: Fragment, token: int) -> list[Fragment]:
    """Split one fragment at all occurrences of a special token, from the left."""
    if fragment.token is not None:
        return [fragment]
    attribute, raw = attributes(vocab)[token], vocab.tokens[token]
    parts, start = [], fragment.start
    while (at := text.find(raw, start, fragment.stop)) >= 0:
        left, right = at, at + len(raw)
        while attribute & LSTRIP and left > start and text[left - 1] in BLANKS:
            left -= 1
        if left > start:
            parts.append(Fragment(None, start, left))
        parts.append(Fragment(token, at, right))
        while attribute & RSTRIP and right < fragment.stop and text[right] in BLANKS:
            right += 1
        start = right
    if start < fragment.stop:
        parts.append(Fragment(None, start, fragment.stop))
    return parts


def by_flags(vocab: Vocab) -> Around:
    """BOS and EOS as the file's flags say, if the release of llama.cpp reads them for this model."""
    bos, eos = vocab.adds_around and vocab.add_bos, vocab.adds_around and vocab.add_eos
    return (bos, "bos", vocab.bos_id), (eos, "eos", vocab.eos_id)


def never(vocab: Vocab) -> Around:
    """Nothing, whatever the file's flags say."""
    return (False, "bos", vocab.bos_id), (False, "eos", vocab.eos_id)

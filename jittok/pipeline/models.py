"""Models of a Pipeline as data: what becomes of one word.

Token texts stand in the Pipeline; a model has what it knows beside them. Arrays go by id where nothing else is said.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NO_TOKEN = -1
MISSING = -2
"""An unknown token that is named and not in the vocabulary: a text that needs it cannot be encoded."""
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
"""Kinds of sentencepiece's pieces, by its numbers."""
UNIGRAM, BPE, WORD, CHAR = "unigram", "bpe", "word", "char"
"""Kinds of sentencepiece's models."""
KINDS = (UNIGRAM, BPE, WORD, CHAR)


class Merges(NamedTuple):
    """BPE: characters of a word to ids, then lowest rank first, leftmost among equals.

    A character is looked up with `prefix` in front (but for the first of a word) and `suffix` behind (the last). One
    without a token becomes the tokens of its bytes, if all are there and `byte_fallback` is set, else the unknown one.
    """

    left: NDArray[np.int32]  # [merges] ids, each pair once; rank k is the k-th
    right: NDArray[np.int32]
    merged: NDArray[np.int32]
    unknown: int  # or NO_TOKEN: such a character vanishes; or MISSING
    fuse_unknown: bool  # unknown characters in a row are one
    byte_fallback: bool
    whole_words: bool  # a word that is a token is that token
    prefix: str
    suffix: str


class Ranks(NamedTuple):
    """tiktoken's BPE over bytes: a word that is a token is that token, else the pair goes first whose joined text has
    the lowest id, leftmost among equals. `first`: the id of rank 0."""

    first: int


class Unigram(NamedTuple):
    """The best path by sums of doubles, the first found among equals; unknown characters in a row are one token."""

    scores: NDArray[np.float64]
    unknown: int  # or NO_TOKEN
    byte_fallback: bool


class WordPiece(NamedTuple):
    """The longest token from the left, those but the first with `prefix`; else the unknown one for the whole word."""

    unknown: int
    prefix: str
    longest: int  # characters of a word that is looked at


class Words(NamedTuple):
    """A word is a token, or unknown."""

    unknown: int


class Pieces(NamedTuple):
    """A sentencepiece model. Sums of scores are single precision."""

    kind: str
    types: NDArray[np.uint8]
    scores: NDArray[np.float32]
    unknown: int
    byte_fallback: bool


class Longest(NamedTuple):
    """RWKV: the longest token at each byte."""


Model = Merges | Ranks | Unigram | WordPiece | Words | Pieces | Longest

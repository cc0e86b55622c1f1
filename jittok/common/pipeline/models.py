"""Models of a Pipeline as data: how one pre-token is encoded.

Token texts are in the Pipeline; a model holds everything else. Arrays are indexed by token id unless noted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jittok.common.record import Record

NO_TOKEN = -1
MISSING = -2
"""An unknown token that is named and not in the vocabulary: a text that needs it cannot be encoded."""
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
"""Kinds of sentencepiece's pieces, by its numbers."""
UNIGRAM, BPE, WORD, CHAR = "unigram", "bpe", "word", "char"
"""Kinds of sentencepiece's models."""
KINDS = (UNIGRAM, BPE, WORD, CHAR)


class Merges(Record):
    """BPE: characters of a word to ids, then lowest rank first, leftmost among equals.

    A character is looked up with `prefix` before (but for the first of a word) and `suffix` after (the last). One
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


class Ranks(Record):
    """tiktoken's BPE over bytes: a word that is a token is that token, else the pair goes first whose joined text has
    the lowest id, leftmost among equals. `first`: the id of rank 0."""

    first: int


class Unigram(Record):
    """The best path by sums of doubles, the first found among equals; unknown characters in a row are one token."""

    scores: NDArray[np.float64]
    unknown: int  # or NO_TOKEN
    byte_fallback: bool


class WordPiece(Record):
    """The longest token from the left, those but the first with `prefix`; else the unknown one for the whole word."""

    unknown: int
    prefix: str
    longest: int  # characters of a word that is looked at


class Words(Record):
    """A word is a token, or unknown."""

    unknown: int


class Pieces(Record):
    """A sentencepiece model. Sums of scores are single precision."""

    kind: str
    types: NDArray[np.uint8]
    scores: NDArray[np.float32]
    unknown: int
    byte_fallback: bool

    @property
    def ranks(self) -> NDArray[np.int64]:
        """int64[pieces]: equal scores have equal ranks, the best has 0.

        sentencepiece compares the bits of scores: -0.0 is below 0.0, and what is no number has a place too.
        """
        bits = self.scores.view(np.int32).astype(np.int64)
        order = np.where(bits < 0, bits + (1 << 31) + 1, -bits)
        return np.unique(order, return_inverse=True)[1].reshape(-1)


class Longest(Record):
    """RWKV: the longest token at each byte."""


# ---- models of llama.cpp, over bytes


class PairMerges(Record):
    """BPE: the pair of texts with the lowest rank first, leftmost among equals. A symbol that is left and is no token
    becomes the tokens of its bytes, and a byte without one vanishes."""

    lines: NDArray[np.uint8]  # "left right", lowest rank first
    offsets: NDArray[np.int64]  # [merges + 1]
    whole_words: bool  # a word that is a token is that token
    whole_lines: bool  # so is a word of newlines
    byte_alphabet: bool  # a byte is written in the byte alphabet, else as <0xXX>


class ScoredMerges(Record):
    """SPM: the neighbors that make the token of the highest score first, leftmost among equals; a character that is no
    token becomes the tokens of its bytes, and a byte without one is an error."""

    scores: NDArray[np.float32]


class Lattice(Record):
    """llama.cpp's Unigram: the best path by sums of doubles, where a user-defined token costs nothing; unknown
    characters in a row are one token."""

    scores: NDArray[np.float32]
    attributes: NDArray[np.int32]  # as the file gives them: which tokens can match, and which of them are user-defined
    free: NDArray[np.bool_]  # tokens that cost nothing: user-defined by the attributes as llama.cpp changes them
    unknown: int  # or NO_TOKEN


class LongestText(Record):
    """llama.cpp's WordPiece: the longest token at each place of a word, else the unknown one for the whole word."""

    unknown: int
    longest: int  # bytes of a token


class LongestEscaped(Record):
    """llama.cpp's RWKV: the longest token at each byte, by texts whose escapes are resolved."""

    unknown: int  # a byte that no token begins with; or NO_TOKEN


class Suffixes(Record):
    """PLaMo: the segmentation with the lowest cost, found from the end of the text with a table of suffixes; characters
    without a token become the tokens of their bytes."""

    scores: NDArray[np.float32]
    attributes: NDArray[np.int32]  # as the file gives them


class Hashed(Record):
    """llama.cpp's type for tests: so many bytes are hashed to an id."""

    bytes: int


class NoModel(Record):
    """A file without a tokenizer: no text can be encoded."""


Model = (
    Merges | Ranks | Unigram | WordPiece | Words | Pieces | Longest
    | PairMerges | ScoredMerges | Lattice | LongestText | LongestEscaped | Suffixes | Hashed | NoModel
)  # fmt: skip

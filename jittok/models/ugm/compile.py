"""A Unigram vocabulary as flat arrays.

llama.cpp's `llm_tokenizer_ugm`: the tries hold tokens by the attributes that the file has, before any rewriting; only
"user-defined, so it costs nothing" looks at the final ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import OutF64, OutI32, OutU8
from jittok.normalize.spaces import SpaceRules, space_rules
from jittok.normalize.xcda import Charsmap, read_charsmap
from jittok.structures.double_array import DoubleArray, build_double_array
from jittok.vocab.vocab import Vocab

UNUSED, NORMAL, USER_DEFINED = 2, 4, 16
"""llama.cpp's attribute bits that matter here."""
UNKNOWN_PENALTY = 10.0
GROWTH = 2
"""Bytes of normalized text a byte of text that `make_work` has room for; more is asked for when a text needs it."""
ROOM = 64


class Arrays(NamedTuple):
    """A compiled Unigram vocabulary."""

    trie: DoubleArray  # normal, user-defined and unused tokens -> id and score
    user: DoubleArray  # user-defined tokens: the texts that are not normalized
    charsmap: Charsmap
    spaces: SpaceRules
    unk_id: int  # may be -1, and is then emitted as -1
    unk_score: float  # of a character that is no token; a float32


class Work(NamedTuple):
    """Scratch memory of one thread."""

    text: OutU8  # [GROWTH * longest + ROOM] normalized text
    sums: OutF64  # [that + 1] best sum of scores up to each place of `text`
    tokens: OutI32  # [that + 1] last token on the way there
    origins: OutI32  # [that + 1] where this token starts


def compile_vocab(vocab: Vocab) -> Arrays:
    """Flat arrays of a vocabulary of type "ugm"; MalformedVocab when its charsmap is spoiled."""
    attributes = vocab.file_attributes
    # A NaN stays what it is: it wins no comparison.
    scores = np.where(vocab.attributes & USER_DEFINED, np.float32(0), vocab.scores)
    return Arrays(
        _trie(vocab, attributes & (NORMAL | USER_DEFINED | UNUSED) != 0, scores),
        _trie(vocab, attributes & USER_DEFINED != 0, scores),
        read_charsmap(vocab.charsmap, vocab.source),
        space_rules(vocab),
        vocab.unk_id,
        unknown_score(vocab.scores[attributes & NORMAL != 0]),
    )


def unknown_score(scores: NDArray[np.float32]) -> float:
    """The score of an unknown character, from those of the normal tokens: the lowest less ten, in float32."""
    lowest = np.min(scores[~np.isnan(scores)], initial=np.finfo(np.float32).max)
    return float(np.float32(lowest) - np.float32(UNKNOWN_PENALTY))


def _trie(vocab: Vocab, chosen: NDArray[np.bool_], scores: NDArray[np.float32]) -> DoubleArray:
    """The trie of the chosen tokens, with their ids and scores."""
    lengths = np.diff(vocab.token_offsets)
    data = vocab.token_bytes[np.repeat(chosen, lengths)]
    offsets = np.zeros(int(chosen.sum()) + 1, np.int64)
    np.cumsum(lengths[chosen], out=offsets[1:])
    return build_double_array(data, offsets, np.flatnonzero(chosen).astype(np.int32), scores[chosen])


def make_work(_arrays: Arrays, longest: int) -> Work:
    """Scratch for fragments of up to `longest` bytes, if they do not grow more than GROWTH times."""
    room = GROWTH * longest + ROOM
    return Work(
        np.empty(room, np.uint8),
        np.empty(room + 1, np.float64),
        np.empty(room + 1, np.int32),
        np.empty(room + 1, np.int32),
    )

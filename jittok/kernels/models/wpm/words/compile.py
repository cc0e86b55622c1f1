"""Compile WordPiece over words that are split already: every character is part of the word, none is normalized."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import NO_TOKEN, WordPiece
from jittok.common.pipeline.pipeline import packed
from jittok.common.unicode.characters import SPACE_MARK_BYTES
from jittok.common.unicode.tables import UNICODE_SIZE
from jittok.kernels.models.wpm.alphabet import LETTER, Alphabet, AlphabetKeys, build_alphabet
from jittok.kernels.models.wpm.compile import WpmWork
from jittok.kernels.models.wpm.compile import make_work as _make_work
from jittok.kernels.models.wpm.compile import regrow as _regrow
from jittok.kernels.models.wpm.files import INSTEAD, MARK, STRANGER, STRANGEST
from jittok.kernels.pretoken_cache.span_loop import CHUNK


class WordPieceWordArrays(NamedTuple):
    """A compiled model."""

    alphabet: Alphabet  # tokens that begin a word begin with U+2581; those that continue one have no prefix
    unk_id: int
    longest: int  # characters of a word beyond which it is unknown
    tokens: int  # number of tokens
    marks: int  # offset of the bitmap of word starts in the data, set by each call


def compile_pipeline(pipeline: Pipeline) -> WordPieceWordArrays | None:
    """The arrays of a file's WordPiece model, whatever its splitter; None if it is not supported here."""
    model, whole = pipeline.model, pipeline.model_bytes.tobytes()
    if not isinstance(model, WordPiece) or model.unknown == NO_TOKEN:
        return None
    if STRANGER.encode() in whole or chr(STRANGEST).encode() in whole:
        return None
    prefix, keys, ids = model.prefix.encode(), list[bytes](), list[int]()
    for text, token in pipeline.vocabulary.items():
        own = text.replace(SPACE_MARK_BYTES, STRANGER.encode())
        if text:
            keys.append(SPACE_MARK_BYTES + own)
            ids.append(token)
        if text.startswith(prefix) and len(text) > len(prefix):
            keys.append(text[len(prefix) :].replace(SPACE_MARK_BYTES, STRANGER.encode()))
            ids.append(token)
    points, images = np.array([MARK, INSTEAD]), np.array([INSTEAD, STRANGEST])
    kinds = np.full(UNICODE_SIZE, LETTER, np.uint8)
    alphabet = build_alphabet(AlphabetKeys(*packed(keys)), points, images, kinds, ids=np.array(ids, np.int32))
    if alphabet is None:
        return None
    return WordPieceWordArrays(alphabet, model.unknown, model.longest, len(pipeline.model_tokens), 0)


def make_work(arrays: WordPieceWordArrays, longest: int, cache_bytes: int = 64 << 20, chunk: int = CHUNK) -> WpmWork:
    """Memory of one thread for fragments of up to `longest` bytes."""
    return _make_work(arrays, longest, cache_bytes, chunk)


def regrow(arrays: WordPieceWordArrays, work: WpmWork, longest: int) -> WpmWork:
    """The same memory for longer fragments, with the same cache."""
    return _regrow(arrays, work, longest)


def can_split_at_spaces(_arrays: WordPieceWordArrays, _size: int) -> bool:
    """Never: texts are not cut before their words are marked."""
    return False

"""WordPiece over words that were normalized and split before (see `pretokenize.splitters.word_bitmap`): every character
is part of the word, none is normalized. Ids of cached words are copied, new words are matched."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import NO_TOKEN, WordPiece
from jittok.common.pipeline.pipeline import packed
from jittok.common.unicode.characters import SPACE_MARK_BYTES
from jittok.common.unicode.tables import UNICODE_SIZE
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, helper, kernel
from jittok.kernels.memory import Window, get_u8
from jittok.kernels.models.wpm.alphabet import LETTER, UNKNOWN, Alphabet, AlphabetKeys, build_alphabet
from jittok.kernels.models.wpm.compile import WpmWork, make_work, regrow
from jittok.kernels.models.wpm.files import INSTEAD, MARK, STRANGER, STRANGEST
from jittok.kernels.models.wpm.kernel import (
    WpmSpanModel,
    becomes,
    encode_known,
    open_span_model,
    put_code,
    wide_code_point,
)
from jittok.kernels.pretoken_cache.fragment_loop import Spans, make_encode_by_spans, no_whole
from jittok.kernels.pretoken_cache.lookup import make_resolve
from jittok.kernels.pretoken_cache.span_loop import NO_LIMIT, open_word_work
from jittok.kernels.pretokenize.splitters.bitmap_starts import split_at_bitmap

IDS_PER_BYTE = 1


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


def can_split_at_spaces(_arrays: WordPieceWordArrays, _size: int) -> bool:
    """Never: texts are not cut before their words are marked."""
    return False


@helper
def _encode_word(
    model: WpmSpanModel, text: Window, start: int, stop: int, _low: np.uint64, _high: np.uint64, ids: Window, count: int
) -> int:
    i, size, unknown, characters = start, 0, 0, 0
    while i < stop:
        code, length = get_u8(text, i), 1
        if code >= 0x80:
            code, length = wide_code_point(text, i, code)
        entry = becomes(model, code)
        size = put_code(model, size, entry)
        unknown |= entry & UNKNOWN
        characters += 1
        i += length
    return encode_known(model, size, unknown | (characters > model.longest), ids, count)


@helper
def _open(model: WordPieceWordArrays, work: WpmWork, tokens: I32, ends: OutI64) -> Spans:
    words = open_word_work(work.spans, model.marks, tokens, ends)
    return Spans(words, open_span_model(model.alphabet, model.unk_id, model.longest, 1, work), 1, NO_LIMIT)


_encode_fragments = make_encode_by_spans(_open, split_at_bitmap, make_resolve(_encode_word), no_whole)


@kernel
def encode_fragments(
    model: WordPieceWordArrays,
    work: WpmWork,
    data: U8,
    starts: I64,
    stops: I64,
    tokens: I32,
    first: int,
    last: int,
    count: int,
    ids: OutI32,
    ends: OutI64,
    report: OutI64,
) -> int:
    """See jittok.kernels.fragments. Codes: OUT_OF_CAPACITY, OUT_OF_WORK. Linear in bytes (see `long_keys`)."""
    return _encode_fragments(model, work, data, starts, stops, tokens, first, last, count, ids, ends, report)


__all__ = [
    "IDS_PER_BYTE",
    "WordPieceWordArrays",
    "can_split_at_spaces",
    "compile_pipeline",
    "encode_fragments",
    "make_work",
    "regrow",
]

"""WordPiece over words with a bitmap of their starts: ids of cached words are copied, new words are matched."""

from __future__ import annotations

import numpy as np

from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, helper, kernel
from jittok.kernels.memory import Window, get_u8
from jittok.kernels.models.wpm.alphabet import UNKNOWN
from jittok.kernels.models.wpm.compile import WpmWork
from jittok.kernels.models.wpm.span import (
    WpmSpanModel,
    becomes,
    encode_known,
    open_span_model,
    put_code,
    wide_code_point,
)
from jittok.kernels.models.wpm.words.compile import WordPieceWordArrays
from jittok.kernels.pretoken_cache.fragment_loop import Spans, make_encode_by_spans, no_whole
from jittok.kernels.pretoken_cache.lookup import make_resolve
from jittok.kernels.pretoken_cache.span_loop import NO_LIMIT, open_word_work
from jittok.kernels.pretokenize.splitters.bitmap_starts import split_at_bitmap


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
    return Spans(
        words, open_span_model(model.alphabet, model.unk_id, model.longest, work.word, work.found), 1, NO_LIMIT
    )


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

"""Unigram of a tokenizer.json over words that were normalized and split before (see `splitters.word_bitmap`): ids of
cached words are copied, new words get their best path.

Sums start at zero in each word, so a word has the same ids everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import NO_TOKEN, Unigram
from jittok.common.pipeline.pipeline import packed
from jittok.kernels.jit import I32, I64, U8, OutF64, OutI32, OutI64, OutU64, frozen, helper, kernel
from jittok.kernels.memory import Window, get_f64, window
from jittok.kernels.models.ugm.file_arrays import F64
from jittok.kernels.models.ugm.file_compile import LEAST_SCORE, UNKNOWN_PENALTY, byte_tokens, may_be_joined
from jittok.kernels.models.ugm.lattice import EXACT, HIGHEST, MOST_CHARACTER, SUMS_KEPT, Lattice, make_lattice
from jittok.kernels.pretoken_cache.fragment_loop import Spans, make_encode_by_spans, no_whole
from jittok.kernels.pretoken_cache.lookup import make_resolve
from jittok.kernels.pretoken_cache.span_loop import (
    CHUNK,
    NO_LIMIT,
    SpanWork,
    make_span_work,
    open_word_work,
    regrow_span_work,
)
from jittok.kernels.pretokenize.splitters.bitmap_starts import split_at_bitmap
from jittok.kernels.structures.double_array import DoubleArray, build_double_array
from jittok.kernels.structures.long_keys import LONG, LongKeys, long_keys, open_long
from jittok.kernels.structures.pages import scratch

IDS_PER_BYTE = 1


class UnigramWordArrays(NamedTuple):
    """A compiled model."""

    trie: DoubleArray  # texts -> ids; the unknown token's own text -> `tokens`
    scores: F64  # [tokens + 1] by id; last that of the unknown token's own text
    byte_ids: I32  # [256] byte fallback: the id of each byte, or -1 if they become the unknown token
    tokens: int  # number of tokens
    unk_id: int
    unk_score: float
    longest: int  # bytes of the longest token, or of a character
    marks: int  # offset of the bitmap of word starts in the data, set by each call
    long: LongKeys  # the long tokens again, for linear time


class UnigramWordWork(NamedTuple):
    """Scratch memory of one thread, for words of up to `longest` bytes."""

    sums: OutF64  # best sums at some offsets, see `_work`
    arcs: OutU64  # [longest + 1] back-pointer of each offset: last token << 32 | where it begins
    found: OutI32  # [longest] which long tokens begin at each offset; empty where there are no long tokens
    spans: SpanWork


def compile_pipeline(pipeline: Pipeline, known: tuple[str, ...] = ()) -> UnigramWordArrays | None:
    """The arrays of a file's Unigram model, whatever its splitter; None if it is not supported here. known: the
    characters of words, if they are few; a model without an unknown token must have tokens for all of them."""
    model, tokens = pipeline.model, pipeline.model_tokens
    if not isinstance(model, Unigram):
        return None
    scores = np.array(model.scores, np.float64)
    ids = {text: token for text, token in pipeline.vocabulary.items() if text}
    # up to this score, a run of unknown characters that is a token always is a better path than the run
    if not ids or not np.isfinite(scores).all() or scores.max() > HIGHEST or scores.min() < LEAST_SCORE:
        return None
    if model.unknown == NO_TOKEN:
        if not known or not all(c.encode() in ids for c in known):
            return None
    else:
        unknown = tokens[model.unknown]
        if not unknown or pipeline.vocabulary[unknown] != model.unknown or may_be_joined(tokens, unknown):
            return None
        ids[unknown] = len(tokens)
    byte_ids = byte_tokens(pipeline, model.byte_fallback)
    if (byte_ids < 0).any() and (byte_ids >= 0).any():
        return None
    data, offsets = packed(ids)
    trie = build_double_array(data, offsets, np.array([*ids.values()], np.int32))
    every = np.append(scores, scores[model.unknown] if model.unknown != NO_TOKEN else 0.0)
    own_scores = {text: float(every[token]) for text, token in ids.items() if len(text) > LONG}
    return UnigramWordArrays(
        trie, frozen(every, np.float64), frozen(byte_ids, np.int32), len(tokens), model.unknown,
        float(scores.min()) - UNKNOWN_PENALTY, max(int(np.diff(offsets).max()), MOST_CHARACTER), 0,
        long_keys(ids, own_scores),
    )  # fmt: skip


def make_work(
    arrays: UnigramWordArrays, longest: int, cache_bytes: int = 64 << 20, chunk: int = CHUNK
) -> UnigramWordWork:
    """Memory of one thread for fragments of up to `longest` bytes. Pages that no text needs are not touched."""
    return _work(arrays, longest, make_span_work(longest, arrays.tokens, cache_bytes, chunk))


def regrow(arrays: UnigramWordArrays, work: UnigramWordWork, longest: int) -> UnigramWordWork:
    """The same memory for longer fragments, with the same cache."""
    return _work(arrays, longest, regrow_span_work(work.spans, longest))


def _work(arrays: UnigramWordArrays, longest: int, spans: SpanWork) -> UnigramWordWork:
    sums = min(longest, max(SUMS_KEPT, arrays.longest) + MOST_CHARACTER) + arrays.longest + 1
    found = scratch(longest if arrays.long.count else 0, np.int32)
    return UnigramWordWork(scratch(sums, np.float64), scratch(longest + 1, np.uint64), found, spans)


def can_split_at_spaces(_arrays: UnigramWordArrays, _size: int) -> bool:
    """Never: texts are not cut before their words are marked."""
    return False


@helper
def _score(own: Lattice, token: int, _node: int) -> float:
    return get_f64(own.scores, token)


_find_path, _, _write_path = make_lattice(_score, rounds=False, marked=False)


@helper
def _open_lattice(arrays: UnigramWordArrays, work: UnigramWordWork) -> Lattice:
    return Lattice(
        window(arrays.trie.units),
        window(arrays.scores),
        window(arrays.byte_ids),
        1 if arrays.byte_ids[0] >= 0 else 0,
        arrays.tokens,
        arrays.unk_id,
        arrays.unk_score,
        0,
        0,
        arrays.longest,
        open_long(arrays.long),
        window(work.spans.text),
        window(work.sums),
        window(work.arcs),
        window(work.found),
        window(work.found),
        0,
    )


@helper
def _encode_word(
    own: Lattice, text: Window, start: int, stop: int, _low: np.uint64, _high: np.uint64, ids: Window, count: int
) -> int:
    _find_path(own, text, start, 0, stop - start, 0.0, EXACT)
    return _write_path(own, text, start, 0, stop - start, True, False, ids, count)


@helper
def _open(model: UnigramWordArrays, work: UnigramWordWork, tokens: I32, ends: OutI64) -> Spans:
    return Spans(open_word_work(work.spans, model.marks, tokens, ends), _open_lattice(model, work), 1, NO_LIMIT)


_encode_fragments = make_encode_by_spans(_open, split_at_bitmap, make_resolve(_encode_word), no_whole)


@kernel
def encode_fragments(
    model: UnigramWordArrays,
    work: UnigramWordWork,
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
    "UnigramWordArrays",
    "UnigramWordWork",
    "can_split_at_spaces",
    "compile_pipeline",
    "encode_fragments",
    "make_work",
    "regrow",
]

"""Compile the Unigram model of a file, for words that are split already; and the memory of one thread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import NO_TOKEN, Unigram
from jittok.common.pipeline.pipeline import packed
from jittok.kernels.jit import I32, OutF64, OutI32, OutU64, frozen
from jittok.kernels.models.ugm.decided_prefix import HIGHEST
from jittok.kernels.models.ugm.files.arrays import F64
from jittok.kernels.models.ugm.files.compile import LEAST_SCORE, UNKNOWN_PENALTY, may_be_joined
from jittok.kernels.pretoken_cache.span_loop import CHUNK, SpanWork, make_span_work, regrow_span_work
from jittok.kernels.structures.double_array import DoubleArray, build_double_array
from jittok.kernels.structures.long_keys import LongKeys, long_keys
from jittok.kernels.structures.pages import scratch

SUMS_KEPT = 1 << 12
"""Offsets whose sums are kept at a time."""
MOST_CHARACTER = 4


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
    byte_ids = np.full(256, -1, np.int32)
    if model.byte_fallback:
        for byte in range(256):
            byte_ids[byte] = pipeline.vocabulary.get(b"<0x%02X>" % byte, -1)
        if (byte_ids < 0).any() and (byte_ids >= 0).any():
            return None
    data, offsets = packed(ids)
    trie = build_double_array(data, offsets, np.array([*ids.values()], np.int32))
    own = scores[model.unknown] if model.unknown != NO_TOKEN else 0.0
    return UnigramWordArrays(
        trie, frozen(np.append(scores, own), np.float64), frozen(byte_ids, np.int32), len(tokens), model.unknown,
        float(scores.min()) - UNKNOWN_PENALTY, max(int(np.diff(offsets).max()), MOST_CHARACTER), 0,
        long_keys(ids),
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

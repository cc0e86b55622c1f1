"""A file's Unigram over words as arrays, and the memory of one thread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok._jit import I32, OutF64, OutI32, OutU64, frozen
from jittok.models.ugm.common import HIGHEST
from jittok.models.ugm.files.arrays import F64
from jittok.models.ugm.files.compile import LEAST, UNKNOWN_PENALTY, may_be_joined
from jittok.piece_cache.span_loop import CHUNK, SpanWork, make_span_work, regrow_span_work
from jittok.pipeline import Pipeline
from jittok.pipeline.models import NO_TOKEN, Unigram
from jittok.pipeline.pipeline import packed
from jittok.structures.double_array import DoubleArray, build_double_array
from jittok.structures.long_keys import LongKeys, long_keys
from jittok.structures.pages import scratch

SUMS_KEPT = 1 << 12
"""Places whose sums are kept together."""
MOST_CHARACTER = 4


class Arrays(NamedTuple):
    """A compiled model."""

    trie: DoubleArray  # texts -> ids; the unknown token's own text -> `tokens`
    scores: F64  # [tokens + 1] by id; of the unknown token's own text at the end
    byte_ids: I32  # [256] ids of bytes without a token, or -1 where the unknown token stands for them
    tokens: int  # how many
    unk_id: int
    unk_score: float
    longest: int  # bytes of the longest token, or of a character
    marks: int  # where in the data the marks of words are, which each call says again
    long: LongKeys  # the long tokens once more


class Work(NamedTuple):
    """Scratch memory of one thread, for words of up to `longest` bytes."""

    sums: OutF64  # [SUMS_KEPT or the longest token, or less, + the longest token + ROOM] best sums up to some places
    arcs: OutU64  # [longest + 1] last token on the way to each place << 32 | where it begins
    found: OutI32  # [longest] what long tokens begin at each place; none where there are no long tokens
    spans: SpanWork


def compile_pipeline(pipeline: Pipeline, known: tuple[str, ...] = ()) -> Arrays | None:
    """The arrays of a file's Unigram, whatever its words; None for what is not covered. known: the characters that
    words are made of, if they are few. A model without an unknown token needs them all."""
    model, tokens = pipeline.model, pipeline.model_tokens
    if not isinstance(model, Unigram):
        return None
    scores = np.array(model.scores, np.float64)
    ids = {text: token for text, token in pipeline.vocabulary.items() if text}
    # a run of unknown characters that is a token would be a better path, unless scores are as high as this
    if not ids or not np.isfinite(scores).all() or scores.max() > HIGHEST or scores.min() < LEAST:
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
    return Arrays(
        trie, frozen(np.append(scores, own), np.float64), frozen(byte_ids, np.int32), len(tokens), model.unknown,
        float(scores.min()) - UNKNOWN_PENALTY, max(int(np.diff(offsets).max()), MOST_CHARACTER), 0,
        long_keys(ids),
    )  # fmt: skip


def make_work(arrays: Arrays, longest: int, cache_bytes: int = 64 << 20, chunk: int = CHUNK) -> Work:
    """Memory of one thread for fragments of up to `longest` bytes. Pages that no text needs are never touched."""
    return _work(arrays, longest, make_span_work(longest, arrays.tokens, cache_bytes, chunk))


def regrow(arrays: Arrays, work: Work, longest: int) -> Work:
    """The same memory for longer fragments: what the cache holds stays."""
    return _work(arrays, longest, regrow_span_work(work.spans, longest))


def _work(arrays: Arrays, longest: int, spans: SpanWork) -> Work:
    sums = min(longest, max(SUMS_KEPT, arrays.longest) + MOST_CHARACTER) + arrays.longest + 1
    found = scratch(longest if arrays.long.count else 0, np.int32)
    return Work(scratch(sums, np.float64), scratch(longest + 1, np.uint64), found, spans)


def may_part(_arrays: Arrays, _size: int) -> bool:
    """No text is cut between words before they are marked."""
    return False

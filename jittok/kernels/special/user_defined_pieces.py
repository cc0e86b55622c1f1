"""User-defined pieces of a sentencepiece model, cut out of documents: the longest at each offset, from left to right.

sentencepiece writes a space before a text, but not after such a piece. So only the first fragment is prefixed; if a
text begins with such a piece, the space is a fragment of its own. Source: sentencepiece 0.2.3, `Normalizer::Normalize`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import BPE, USER, Pieces
from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_BYTES
from jittok.kernels.fragments import FOUND, MIXED_TOKEN, NEED, OFFSET, OUT_OF_CAPACITY, TEXT, TEXT_PREFIXED
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, helper, kernel
from jittok.kernels.memory import get_i32
from jittok.kernels.special.documents import (
    Output,
    make_cut_documents,
    open_output,
    open_search,
    put_fragment,
    put_ids,
)
from jittok.kernels.special.partition import PartitionWork
from jittok.kernels.special.search import MIXED, REFUSED, SearchWindow, judged, longest_admitted, next_occurrence
from jittok.kernels.special.tables import SpecialTokens
from jittok.kernels.structures.double_array import NO_VALUE


class _Rule(NamedTuple):
    """What cutting a text needs besides the windows."""

    pieces: SpecialTokens
    alone: I32


@helper
def _cut_text(
    own: _Rule, w: SearchWindow, out: Output, at: int, start: int, stop: int, spare: int, report: OutI64
) -> int:
    """The fragments of one text; see `make_cut_documents`."""
    done, i = start, start
    block, mask = start - 64, np.uint64(0)
    while own.pieces.ids.size > 0 and i < stop:
        begin, rank, block, mask = next_occurrence(w, i, stop, block, mask)
        if rank == NO_VALUE:
            break
        verdict = judged(w, begin, rank)
        if verdict == REFUSED:
            rank = longest_admitted(w, begin, get_i32(w.lengths, rank))
            if rank == NO_VALUE:
                i = begin + 1
                continue
            verdict = judged(w, begin, rank)
        if verdict == MIXED:
            report[OFFSET], report[FOUND] = begin, get_i32(w.ids, rank)
            return MIXED_TOKEN
        if at + spare > out.capacity:
            report[NEED] = at + spare
            return OUT_OF_CAPACITY
        if done < begin:
            at = put_fragment(out, at, done, begin, TEXT_PREFIXED if done == start else TEXT)
        elif begin == start:
            at = put_ids(out, at, start, own.alone)
        done = i = begin + get_i32(w.lengths, rank)
        at = put_fragment(out, at, begin, done, get_i32(w.ids, rank))
    if at + spare > out.capacity:
        report[NEED] = at + spare
        return OUT_OF_CAPACITY
    if done < stop:
        at = put_fragment(out, at, done, stop, TEXT_PREFIXED if done == start else TEXT)
    return at


_cut_documents = make_cut_documents(_cut_text, put_ids)


@kernel
def cut_user_defined(
    pieces: SpecialTokens, alone: I32, work: PartitionWork, data: U8, starts: I64, stops: I64, first: int, last: int,
    before: I32, after: I32, out_starts: OutI64, out_stops: OutI64, out_tokens: OutI32, ends: OutI64, report: OutI64,
) -> int:  # fmt: skip
    """The fragments of documents first .. last - 1, in the form of `leftmost.cut_leftmost`.

    pieces: the user-defined ones; alone: int32[] ids of the space before a text, for a text that begins with a piece
    before, after: int32[] ids around each document
    out_starts, out_stops: int64[capacity], out_tokens: int32[capacity] the fragments, see `jittok.kernels.fragments`
    ends: int64[last - first] number of fragments up to the end of each document; report: int64[4]

    Returns the number of fragments, OUT_OF_CAPACITY with a larger capacity in report[NEED], OUT_OF_WORK with the bytes
    of a text for `make_work` there, or MIXED_TOKEN.
    """
    w, out = open_search(pieces, work, data, False), open_output(out_starts, out_stops, out_tokens)
    spare = before.size + after.size + alone.size + 2
    own = _Rule(pieces, alone)
    return _cut_documents(own, w, out, starts, stops, first, last, before, after, spare, ends, report)


def user_defined(pipeline: Pipeline) -> dict[bytes, int]:
    """text -> id of the user-defined pieces of a sentencepiece BPE model; Unigram's kernel handles its own."""
    model = pipeline.model
    if not isinstance(model, Pieces) or model.kind != BPE:
        return {}
    rows = ((pipeline.model_tokens[token], token) for token in np.flatnonzero(model.types == USER).tolist())
    return {text: token for text, token in rows if text}


def user_defined_normalized(pipeline: Pipeline) -> dict[bytes, int]:
    """The same as they are in normalized text, where all spaces are U+2581, written as a space here. A piece with a
    real space cannot occur in such a text."""
    found = user_defined(pipeline)
    mark, space = SPACE_MARK_BYTES, bytes([SPACE_BYTE])
    return {text.replace(mark, space): token for text, token in found.items() if space not in text}

"""Unused pieces (type UNUSED) of sentencepiece's BPE: they are merged like any other, then split again.

sentencepiece records for each such piece the two pieces that it was last made from. These are always the same: merges
inside a span that no merge crosses depend on scores and offsets alone, not on the text around it. So each piece is
split once, here, and a kernel replaces its id by those of its parts.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import BYTE, NORMAL, UNUSED, Pieces
from jittok.kernels.jit import I32, OutI32, OutI64, as_int64, frozen, kernel
from jittok.kernels.memory import get_i32, put_i32, window

MOST_SPLITS = 100
"""The depth to which sentencepiece splits unused parts again; below it they stay."""


class UnusedSplits(NamedTuple):
    """The ids that replace each unused piece."""

    offsets: I32  # [tokens + 1] where the parts of each id begin; an id that stays has none
    ids: I32


def parts_of(pipeline: Pipeline) -> UnusedSplits | None:
    """The parts of all pieces of type UNUSED, or None if there are none."""
    model = pipeline.model
    if not isinstance(model, Pieces) or UNUSED not in model.types:
        return None
    ids = {text.decode(): token for text, token in pipeline.vocabulary.items()}
    kinds, ranks = model.types.tolist(), model.ranks.tolist()
    ranked = {text: ranks[token] for text, token in ids.items() if kinds[token] in (NORMAL, UNUSED)}
    bytes_ = {int(text[3:5], 16): token for text, token in ids.items() if kinds[token] == BYTE}

    unused = {text.decode() for text, kind in zip(pipeline.model_tokens, kinds, strict=True) if text and kind == UNUSED}
    made = {piece: halves(piece, ranked) for piece in unused if len(piece) > 1}

    def parts(piece: str, depth: int) -> list[int]:
        token = ids.get(piece, model.unknown)
        if kinds[token] == NORMAL:
            return [token]
        if piece in made:
            return [token] if depth > MOST_SPLITS else [id_ for half in made[piece] for id_ in parts(half, depth + 1)]
        return [bytes_[byte] for byte in piece.encode()] if model.byte_fallback else [model.unknown]

    rows = [parts(text.decode(), 0) if text and kind == UNUSED and is_merged(text) else []
            for text, kind in zip(pipeline.model_tokens, kinds, strict=True)]  # fmt: skip
    offsets = np.cumsum([0, *map(len, rows)])
    return UnusedSplits(frozen(offsets, np.int32), frozen([token for row in rows for token in row], np.int32))


def is_merged(text: bytes) -> bool:
    """Whether a piece has more than one character."""
    return len(text.decode()) > 1


def halves(piece: str, ranks: dict[str, int]) -> list[str]:
    """The two symbols of a piece's last merge: the best pair is merged, the leftmost among equals, until two symbols
    are left. A piece that merging cannot make gives more. O(n log n)."""
    symbols = [*piece]  # a symbol is at the index of its first character; "" where it was merged into one before
    after, front = [*range(1, len(piece) + 1)], [*range(-1, len(piece) - 1)]
    heap: list[tuple[int, int, str]] = []

    def ask(left: int) -> None:
        if left >= 0 and after[left] < len(piece):
            joined = symbols[left] + symbols[after[left]]
            if joined in ranks and len(joined) < len(piece):
                heappush(heap, (ranks[joined], left, joined))

    for left in range(len(piece) - 1):
        ask(left)
    while heap:
        _, left, joined = heappop(heap)
        right = after[left]
        if right >= len(piece) or not symbols[left] or symbols[left] + symbols[right] != joined:
            continue  # one of the two was merged otherwise
        symbols[left], symbols[right], after[left] = joined, "", after[right]
        if after[left] < len(piece):
            front[after[left]] = left
        ask(left)
        ask(front[left])
    return [symbol for symbol in symbols if symbol]


@kernel
def count_parts(table: UnusedSplits, ids: I32, first: int, last: int) -> int:
    """The number of ids that replace ids[first:last], or -1 if all of them stay."""
    own, offsets, count, found = window(ids), window(table.offsets), as_int64(0), as_int64(0)
    for k in range(first, last):
        token = get_i32(own, k)
        size = as_int64(get_i32(offsets, token + 1) - get_i32(offsets, token))
        count += max(size, 1)
        found |= size
    return count if found else -1


@kernel
def write_parts(table: UnusedSplits, ids: OutI32, ends: OutI64, fragments: int, first: int, count: int) -> int:
    """Replace unused pieces in ids[first:] by their parts; returns the new end of the ids.

    ends: int64[fragments] the ends of fragments' ids, updated; count: ids after `first` then, from `count_parts`
    ids: int32[first + count] or more
    """
    own, offsets, parts = window(ids), window(table.offsets), window(table.ids)
    k, done = as_int64(ends[fragments - 1]), as_int64(first + count)
    at = done
    for fragment in range(fragments - 1, -1, -1):  # backwards, so that no id is overwritten before it is read
        begin = as_int64(first)
        if fragment > 0:
            begin = as_int64(ends[fragment - 1])
        ends[fragment] = at
        while k > begin:
            k -= 1
            token = get_i32(own, k)
            start, stop = as_int64(get_i32(offsets, token)), as_int64(get_i32(offsets, token + 1))
            if start == stop:
                at -= 1
                put_i32(own, at, token)
            while stop > start:
                stop -= 1
                at -= 1
                put_i32(own, at, get_i32(parts, stop))
    return done

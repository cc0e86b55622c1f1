"""Pieces of type UNUSED of sentencepiece's BPE: they are merged like any other, then split into what they were
merged of.

sentencepiece keeps for each such piece the two pieces that were asked for last. These are always the same: merges
inside of a stretch of text that none crosses go by scores and places alone, whatever is around. So a piece is taken
apart once, and a kernel writes its parts wherever it is.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from jittok._jit import I32, OutI32, OutI64, frozen, kernel, wide
from jittok._raw import get_i32, put_i32, window
from jittok.pipeline import Pipeline
from jittok.pipeline.models import BYTE, NORMAL, UNUSED, Pieces

MOST_SPLITS = 100
"""So often sentencepiece takes parts apart that are not used; what is left then stays."""


class Parts(NamedTuple):
    """The ids of which pieces are made that are not used."""

    offsets: I32  # [tokens + 1] where the parts of each begin; of a piece that stays there are none
    ids: I32


def parts_of(pipeline: Pipeline) -> Parts | None:
    """The parts of pieces of type UNUSED; None where there are none."""
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
    return Parts(frozen(offsets, np.int32), frozen([token for row in rows for token in row], np.int32))


def is_merged(text: bytes) -> bool:
    """Whether a piece has several characters."""
    return len(text.decode()) > 1


def halves(piece: str, ranks: dict[str, int]) -> list[str]:
    """What a piece is merged of at last: the best two neighbors are joined, of equally good ones the first, until two
    are left. A piece that is never merged stays in characters. Linear but for a heap's logarithm."""
    symbols = [*piece]  # a symbol is where its first character does; "" where one went into that before
    behind, front = [*range(1, len(piece) + 1)], [*range(-1, len(piece) - 1)]
    heap: list[tuple[int, int, str]] = []

    def ask(left: int) -> None:
        if left >= 0 and behind[left] < len(piece):
            joined = symbols[left] + symbols[behind[left]]
            if joined in ranks and len(joined) < len(piece):
                heappush(heap, (ranks[joined], left, joined))

    for left in range(len(piece) - 1):
        ask(left)
    while heap:
        _, left, joined = heappop(heap)
        right = behind[left]
        if right >= len(piece) or not symbols[left] or symbols[left] + symbols[right] != joined:
            continue  # one of the two is gone
        symbols[left], symbols[right], behind[left] = joined, "", behind[right]
        if behind[left] < len(piece):
            front[behind[left]] = left
        ask(left)
        ask(front[left])
    return [symbol for symbol in symbols if symbol]


@kernel
def count_parts(table: Parts, ids: I32, first: int, last: int) -> int:
    """How many ids replace ids[first:last], or -1 where they stay as they are."""
    own, offsets, count, found = window(ids), window(table.offsets), wide(0), wide(0)
    for k in range(first, last):
        token = get_i32(own, k)
        size = wide(get_i32(offsets, token + 1) - get_i32(offsets, token))
        count += max(size, 1)
        found |= size
    return count if found else -1


@kernel
def write_parts(table: Parts, ids: OutI32, ends: OutI64, fragments: int, first: int, count: int) -> int:
    """Parts in place of pieces, in ids[first:], which then are `count` (see `count_parts`); where they end now.

    ends: int64[fragments] where the ids of fragments end, put right; ids: int32[first + count] at least
    """
    own, offsets, parts = window(ids), window(table.offsets), window(table.ids)
    k, done = wide(ends[fragments - 1]), wide(first + count)
    at = done
    for fragment in range(fragments - 1, -1, -1):  # from the end: nothing is written over before it is read
        begin = wide(first)
        if fragment > 0:
            begin = wide(ends[fragment - 1])
        ends[fragment] = at
        while k > begin:
            k -= 1
            token = get_i32(own, k)
            start, stop = wide(get_i32(offsets, token)), wide(get_i32(offsets, token + 1))
            if start == stop:
                at -= 1
                put_i32(own, at, token)
            while stop > start:
                stop -= 1
                at -= 1
                put_i32(own, at, get_i32(parts, stop))
    return done

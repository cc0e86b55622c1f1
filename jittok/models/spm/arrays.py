"""The compiled SPM vocabulary, and the memory of one thread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok._jit import I32, U8, OutU8
from jittok.merging.chain import Chain, MergerWork, make_merger_work
from jittok.piece_cache.span_loop import CHUNK, SpanWork, make_span_work, regrow_span_work
from jittok.safe_cuts.cuts import SpanRules
from jittok.structures.bytes_table import BytesTable
from jittok.structures.char_table import CharTable
from jittok.structures.pages import scratch
from jittok.structures.pair_table import PairTable

GROWTH = 3
"""A space becomes the three bytes of U+2581."""


class Arrays(NamedTuple):
    """A compiled SPM vocabulary: everything that its kernels read."""

    pairs: PairTable  # symbols are token ids, and from `tokens` on characters that only occur inside tokens
    tokens: int
    texts: BytesTable  # texts of the tokens, then of those characters
    ascii: I32  # [128] the symbol of each ASCII character, or -1
    byte_ids: I32  # [256] byte fallback: the id of each byte of a character without a symbol, or -1
    reachable: U8  # [tokens] whether merging can make the token (a single character counts as made)
    add_space_prefix: int
    rules: SpanRules
    characters: CharTable  # characters beyond ASCII -> symbols
    span_ascii: I32  # [128] `ascii`, but a space has the symbol of U+2581
    span_byte_ids: I32  # [256] `byte_ids` as in the file; in those, a caller may replace -1 by another id
    chain: Chain  # for long spans
    room_per_byte: int  # the most ids of one byte of text


class Work(NamedTuple):
    """Memory of one thread, for fragments of up to `longest` bytes."""

    escaped: OutU8  # [3 * longest + 16] a whole fragment with U+2581 for its spaces
    merge: MergerWork
    spans: SpanWork


def make_work(arrays: Arrays, longest: int, cache_bytes: int = 64 << 20, chunk: int = CHUNK) -> Work:
    """Memory of one thread for fragments of up to `longest` bytes. Pages that no text needs are not touched."""
    room = GROWTH * longest + 16
    spans = make_span_work(longest, arrays.tokens, cache_bytes, chunk)
    return Work(scratch(room, np.uint8), make_merger_work(room), spans)


def regrow(arrays: Arrays, work: Work, longest: int) -> Work:
    """The same memory for longer fragments, with the same cache."""
    made = make_work(arrays, longest, 1 << 10, work.spans.chunk)
    return made._replace(spans=regrow_span_work(work.spans, longest))

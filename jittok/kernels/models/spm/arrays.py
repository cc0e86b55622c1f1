"""The compiled SPM vocabulary, and the memory of one thread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.kernels.jit import I32, U8, OutU8
from jittok.kernels.merging.left_to_right import LongWordTables, MergerWork, make_merger_work
from jittok.kernels.pretoken_cache.span_loop import CHUNK, SpanWork, make_span_work, regrow_span_work
from jittok.kernels.safe_cuts.cuts import SpanRules
from jittok.kernels.structures.bytes_table import BytesTable
from jittok.kernels.structures.char_table import CharTable
from jittok.kernels.structures.pages import scratch
from jittok.kernels.structures.pair_table import PairTable

BYTES_PER_BYTE = 3
"""A space becomes the three bytes of U+2581."""


class SpmArrays(NamedTuple):
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
    chain: LongWordTables  # for long spans
    ids_per_byte: int  # the most ids of one byte of text


class SpmWork(NamedTuple):
    """Memory of one thread, for fragments of up to `longest` bytes."""

    escaped: OutU8  # [3 * longest + 16] a whole fragment with U+2581 for its spaces
    merge: MergerWork
    spans: SpanWork


def make_work(
    arrays: SpmArrays, longest: int, cache_bytes: int = 64 << 20, chunk: int = CHUNK, queued: int | None = None
) -> SpmWork:
    """Memory of one thread for fragments of up to `longest` bytes. Pages that no text needs are not touched. queued:
    symbols that are merged without a chain (see `make_merge_work`)."""
    capacity = BYTES_PER_BYTE * longest + 16
    spans = make_span_work(longest, arrays.tokens, cache_bytes, chunk)
    return SpmWork(scratch(capacity, np.uint8), make_merger_work(capacity, queued), spans)


def regrow(arrays: SpmArrays, work: SpmWork, longest: int, queued: int | None = None) -> SpmWork:
    """The same memory for longer fragments, with the same cache."""
    made = make_work(arrays, longest, 1 << 10, work.spans.chunk, queued)
    return made._replace(spans=regrow_span_work(work.spans, longest))

"""The compiled Unigram model of a file, and the memory of one thread."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import I32, U8, U16, OutF64, OutI32, OutI64, OutU8, OutU64
from jittok.kernels.models.ugm.lattice import BUFFER_SIZE as FOUND
from jittok.kernels.models.ugm.lattice import DEPTH
from jittok.kernels.normalize.charsmap.xcda import Charsmap
from jittok.kernels.pretoken_cache.span_loop import CHUNK, SpanWork, make_span_work, regrow_span_work
from jittok.kernels.safe_cuts.cuts import BLANK, CLASSES, LETTER, SpanRules
from jittok.kernels.structures.double_array import DoubleArray
from jittok.kernels.structures.long_keys import LongKeys
from jittok.kernels.structures.pages import in_huge_pages, scratch

F64 = Annotated[NDArray[np.float64], ("f8", "in")]
BYTES_PER_BYTE = 2
"""The capacity for normalized text, as a multiple of the text; it is increased for texts that need more."""
SPARE_BYTES = 64
SUM, LARGEST, SETTLED = 0, 1, 1
"""Indices into `state` (SUM, LARGEST) and `positions` (SETTLED) of UnigramFileWork: see `rounding.settle`."""
DOUBT, DOUBT_IDS, DOUBT_BITS = 8, 16, 15
"""Words and ids of a slot of `rounding`, and the logarithm of the number of slots."""


class CharacterTable(NamedTuple):
    """The normal forms of characters in a tokenizer.json, see `normalizer_tables`."""

    pages: U16  # two-stage table of flags
    blocks: U8
    points: I32  # [n] rising: the characters that change
    offsets: I32  # [n + 1] offsets of what they become in `texts`
    texts: U8
    keys: DoubleArray  # texts of several characters -> row of key_offsets
    key_offsets: I32
    key_texts: U8
    clusters: int  # 1: keys must match a whole grapheme cluster, else any text that begins with them
    ends: I32  # white space, besides spaces, that is stripped from the end of normalized texts


class UnigramFileArrays(NamedTuple):
    """A compiled model. U+2581 in token texts is a space here, as in the normalized text."""

    trie: DoubleArray  # texts -> ids and scores as floats; the unknown token's own text -> `literal`
    scores: F64  # [tokens + 2] at id + 1; [0] is that of a node without a token, [literal + 1] of the unknown token
    steps: F64  # [tokens] what an id adds to a sum; NaN if the id does not determine it
    begins: U8  # [tokens] whether a token begins with a space
    byte_ids: I32  # [256] byte fallback: the id of each byte, or -1 if they become the unknown token
    literal: int  # number of tokens; the trie's value for the unknown token's own text
    unk_id: int
    unk_score: float
    single: int  # 1: a sentencepiece model; sums are floats, and a text is one word
    parts: int  # sums are floats, and a text may be cut at spaces: 1 between ASCII letters, 2 also next to wide ones
    merge: int  # 1: runs of spaces become one space before a word
    tail: int  # 1: a space at the end of a text is a word by itself
    mark: I32  # ids of that word
    prefix: int  # 1: a space is put before a text
    kinds: U8  # [256] kinds of bytes, see `charsmap.keys`
    table: CharacterTable
    charsmap: Charsmap
    map_root: int
    user: DoubleArray  # sentencepiece's user-defined pieces, whose texts are not normalized
    rules: SpanRules
    cut_limit: int  # longer fragments are not cut into spans
    first_span: int  # what is before the first span of a fragment, see `pretoken_cache.run_loop`
    ids_per_byte: int  # the most ids of one byte of text
    longest: int  # bytes of the longest token
    long: LongKeys  # the long tokens again, for linear time
    near: float  # times the characters of a span: the difference of sums that rounding may reverse
    most_sum: float  # sentencepiece: up to this sum of a text, no offset off its best path is reset


class UnigramFileWork(NamedTuple):
    """Scratch memory of one thread."""

    text: OutU8  # [BYTES_PER_BYTE * longest + SPARE_BYTES + DEPTH] normalized text, and bytes that walks may read
    sums: OutF64  # [BYTES_PER_BYTE * longest + SPARE_BYTES + 1] best sum of scores up to each offset
    arcs: OutU64  # [as many] back-pointers: last token, where it begins, whether another one is nearly as good
    state: OutF64  # [2] SUM; LARGEST
    positions: OutI64  # [2] unused; SETTLED
    spans: SpanWork
    doubts: OutU64  # [DOUBT << DOUBT_BITS] key of a span; context | ids << 8 | reach << 32, see `rounding`
    doubt_ids: OutI32  # [DOUBT_IDS << DOUBT_BITS]
    found: OutI32  # the tokens at the next offsets, see `lattice.find_tokens`
    long: OutI32  # [BYTES_PER_BYTE * longest + SPARE_BYTES] which long tokens begin at each offset; or empty


def make_work(
    arrays: UnigramFileArrays, longest: int, cache_bytes: int = 64 << 20, chunk: int = CHUNK
) -> UnigramFileWork:
    """Memory of one thread for fragments of up to `longest` bytes that grow at most BYTES_PER_BYTE times."""
    return _work(arrays, longest, make_span_work(longest, arrays.literal, cache_bytes, chunk))


def regrow(arrays: UnigramFileArrays, work: UnigramFileWork, longest: int) -> UnigramFileWork:
    """The same memory for longer fragments, with the same cache."""
    return _work(arrays, longest, regrow_span_work(work.spans, longest), work)


def _work(
    arrays: UnigramFileArrays, longest: int, spans: SpanWork, old: UnigramFileWork | None = None
) -> UnigramFileWork:
    """The scratch arrays. Pages that no text needs are not touched."""
    capacity = BYTES_PER_BYTE * longest + SPARE_BYTES
    doubts = np.zeros(DOUBT << DOUBT_BITS, np.uint64) if old is None else old.doubts
    doubt_ids = np.empty(DOUBT_IDS << DOUBT_BITS, np.int32) if old is None else old.doubt_ids
    return UnigramFileWork(
        scratch(capacity + DEPTH, np.uint8), scratch(capacity + 1, np.float64), scratch(capacity + 1, np.uint64),
        np.zeros(2, np.float64), np.zeros(2, np.int64), spans, doubts, doubt_ids, np.empty(FOUND, np.int32),
        scratch(capacity if arrays.long.count else 0, np.int32),
    )  # fmt: skip


def optimized_layout(arrays: UnigramFileArrays) -> UnigramFileArrays:
    """The same with a trie that is faster to read at random: takes milliseconds, which only much text is worth."""
    return arrays._replace(trie=DoubleArray(in_huge_pages(arrays.trie.units)))


def can_split_at_spaces(arrays: UnigramFileArrays, size: int) -> bool:
    """Whether a text of any size may be cut before a space between ASCII letters: if words are separate anyway."""
    free = arrays.rules.cuts[CLASSES * LETTER + BLANK] != 0
    return bool(size >= 0 and not arrays.single and arrays.merge and free)

"""BPE over the characters of lines (GEMMA4 and the like), span by span: ids of cached spans are copied, new spans are
merged.

A line is one pre-token in these vocabularies, and merging all of it would be slow. It may be cut where no merge joins
the characters on both sides, and always between a line and its newlines. `rules` has these safe cuts as tables, so that
spans are found by bit masks, without rewriting the text.
"""

from __future__ import annotations

from typing import Any

from jittok.common.unicode.characters import NEWLINE, SPACE_BYTE, SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2
from jittok.kernels.fragments import OUT_OF_WORK
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, helper, kernel
from jittok.kernels.memory import PAD, Window, get_u8, put_i32, put_u8
from jittok.kernels.models.bpe.arrays import BpeArrays
from jittok.kernels.models.bpe.scratch import (
    BYTES_PER_BYTE,
    BpeWork,
    WorkWindow,
    discard,
    flush,
    free_lanes,
    open_work,
    prefetch,
)
from jittok.kernels.models.bpe.words.batched_words import defer_characters
from jittok.kernels.models.bpe.words.single_token_words import LONGEST_KEY, NOT_FOUND, find_word
from jittok.kernels.models.bpe.words.word import encode_word
from jittok.kernels.pretoken_cache.fragment_loop import Spans, make_encode_by_spans
from jittok.kernels.pretoken_cache.lookup import DEFERRED, make_resolve
from jittok.kernels.pretoken_cache.span_loop import NO_LIMIT, SpanWorkWindow
from jittok.kernels.pretoken_cache.tables import Key
from jittok.kernels.pretokenize.splitters.gpt2 import MALFORMED
from jittok.kernels.pretokenize.splitters.spans import split_spans
from jittok.kernels.safe_cuts.cuts import open_rules

IDS_PER_BYTE = 3
"""A space may become the tokens of the three bytes of U+2581."""


@helper
def _encode_span(
    work: WorkWindow, text: Window, start: int, stop: int, _low: Any, _high: Any, ids: Window, count: int
) -> int:
    """Ids of a span of valid UTF-8; OUT_OF_WORK, LONG_WORD."""
    at = 0
    if BYTES_PER_BYTE * (stop - start) > work.longest:
        return OUT_OF_WORK
    for i in range(start, stop):
        byte = get_u8(text, i)
        if byte == SPACE_BYTE:
            put_u8(work.rewritten, at, SPACE_MARK_0)
            put_u8(work.rewritten, at + 1, SPACE_MARK_1)
            put_u8(work.rewritten, at + 2, SPACE_MARK_2)
            at += 3
        else:
            put_u8(work.rewritten, at, byte)
            at += 1
    return encode_word(work.words, work.merge, work.rewritten, 0, at, ids, count)


@helper
def _encode_or_defer(work: WorkWindow, text: Window, start: int, stop: int, key: Key, ids: Window, count: int) -> int:
    """The same for a span of up to 31 bytes: if it must be merged, it is deferred."""
    if stop - start <= LONGEST_KEY:
        token = find_word(work.seeds, key[0], key[1])
        if token != NOT_FOUND:
            put_i32(ids, count, token)
            return count + 1
    whole = work.words.ignore_merges != 0 or (work.words.newlines_whole != 0 and get_u8(text, start) == NEWLINE)
    if stop - start > 1 and not whole:
        done = defer_characters(work.deferred, work.words, work.run, text, start, stop, key, count)
        if done >= 0:
            return DEFERRED + done
    return _encode_span(work, text, start, stop, key[0], key[1], ids, count)


_resolve = make_resolve(_encode_span, prefetch, deferred=(_encode_or_defer, free_lanes))


@helper
def _open(model: BpeArrays, work: BpeWork, tokens: I32, ends: OutI64) -> Spans:
    own, longest = open_work(model, work, tokens, ends), (work.text.size - PAD - 16) // BYTES_PER_BYTE
    spans = SpanWorkWindow(
        open_rules(model.rules),
        own.text,
        longest,
        own.positions,
        own.run,
        own.records,
        own.cache,
        own.chunk,
        longest,
    )
    return Spans(spans, own, IDS_PER_BYTE, NO_LIMIT)


@helper
def _whole(
    _model: BpeArrays,
    _work: BpeWork,
    _own: Spans,
    _data: U8,
    _start: int,
    _stop: int,
    _prefixed: bool,
    _ids: OutI32,
    _count: int,
    _report: OutI64,
) -> int:
    return MALFORMED


_encode_fragments = make_encode_by_spans(_open, split_spans, _resolve, _whole, flush, discard)


@kernel
def encode_lines(
    model: BpeArrays,
    work: BpeWork,
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
    """`encode_fragments` for the family LINES; see `jittok.kernels.fragments`. MALFORMED: report[FRAGMENT] is invalid
    UTF-8, which `encode_general` has to encode."""
    return _encode_fragments(model, work, data, starts, stops, tokens, first, last, count, ids, ends, report)

"""Unigram, span by span: ids of cached spans are copied; new spans are normalized, and their best path is found.

`rules` describes where texts may be cut into spans, and why the ids of spans are those of the whole text.
"""

from __future__ import annotations

from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, helper, kernel
from jittok.kernels.models.ugm.compile import UgmArrays, UgmWork
from jittok.kernels.models.ugm.span import encode_span, open_span_model
from jittok.kernels.models.ugm.whole_fragment import encode_whole
from jittok.kernels.pretoken_cache.fragment_loop import Spans, make_encode_by_spans
from jittok.kernels.pretoken_cache.lookup import make_resolve
from jittok.kernels.pretoken_cache.span_loop import open_span_work
from jittok.kernels.pretokenize.splitters.spans import split_spans


@helper
def _open(arrays: UgmArrays, work: UgmWork, tokens: I32, ends: OutI64) -> Spans:
    spans = open_span_work(work.spans, arrays.rules, arrays.first_span, tokens, ends, arrays.cut_limit)
    return Spans(spans, open_span_model(arrays, work), arrays.ids_per_byte, arrays.cut_limit)


@helper
def _whole(
    arrays: UgmArrays,
    work: UgmWork,
    _own: Spans,
    data: U8,
    start: int,
    stop: int,
    _prefixed: bool,
    ids: OutI32,
    count: int,
    report: OutI64,
) -> int:
    return encode_whole(arrays, work, data, start, stop, ids, count, report)


_encode_fragments = make_encode_by_spans(_open, split_spans, make_resolve(encode_span), _whole)


@kernel
def encode_fragments(
    arrays: UgmArrays,
    work: UgmWork,
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
    """See jittok.kernels.fragments. Codes: OUT_OF_CAPACITY, OUT_OF_WORK, CHARSMAP_NODE, CHARSMAP_REPLACEMENT."""
    return _encode_fragments(arrays, work, data, starts, stops, tokens, first, last, count, ids, ends, report)

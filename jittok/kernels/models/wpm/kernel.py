"""WordPiece, span by span: ids of cached spans are copied, new spans are normalized and matched.

Blanks, punctuation and ideographs end a word whatever is around them, so no word crosses the border of a span.
"""

from __future__ import annotations

from jittok.kernels.fragments import NOT_UTF8
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, helper, kernel
from jittok.kernels.models.wpm.compile import WpmArrays, WpmWork
from jittok.kernels.models.wpm.span import encode_span, open_span_model
from jittok.kernels.models.wpm.whole_fragment import encode_whole
from jittok.kernels.pretoken_cache.fragment_loop import Spans, make_encode_by_spans
from jittok.kernels.pretoken_cache.lookup import make_resolve
from jittok.kernels.pretoken_cache.run_loop import NO_BLANK
from jittok.kernels.pretoken_cache.span_loop import open_span_work
from jittok.kernels.pretokenize.splitters.spans import split_spans


@helper
def _open(model: WpmArrays, work: WpmWork, tokens: I32, ends: OutI64) -> Spans:
    spans = open_span_work(work.spans, model.rules, NO_BLANK, tokens, ends, model.cut_limit)
    return Spans(
        spans,
        open_span_model(model.alphabet, model.unk_id, model.longest, work.word, work.found),
        model.ids_per_byte,
        model.cut_limit,
    )


@helper
def _whole(
    model: WpmArrays,
    work: WpmWork,
    _own: Spans,
    data: U8,
    start: int,
    stop: int,
    _prefixed: bool,
    ids: OutI32,
    count: int,
    report: OutI64,
) -> int:
    if model.pages.size == 1:  # not a GGUF: then only invalid UTF-8 cannot be cut
        return NOT_UTF8
    return encode_whole(model, work.word, work.found, data, start, stop, ids, count, report)


_encode_fragments = make_encode_by_spans(_open, split_spans, make_resolve(encode_span), _whole)


@kernel
def encode_fragments(
    model: WpmArrays,
    work: WpmWork,
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
    """See jittok.kernels.fragments. Codes: OUT_OF_CAPACITY, OUT_OF_WORK, BEYOND_UNICODE; for files other than GGUF also
    NOT_UTF8 and ODD_TEXT. Time: linear in bytes (`long_keys`)."""
    return _encode_fragments(model, work, data, starts, stops, tokens, first, last, count, ids, ends, report)

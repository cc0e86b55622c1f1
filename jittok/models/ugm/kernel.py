"""Unigram, span by span: what the cache holds is copied, what is new is normalized and gets its best path.

`rules` says where spans may be cut, and why their ids are those of the whole text.
"""

from __future__ import annotations

from jittok._jit import I32, I64, U8, OutI32, OutI64, kernel
from jittok._raw import window
from jittok.fragments import FRAGMENT, NEED, OUT_OF_ROOM, TEXT_PREFIXED
from jittok.models.ugm.compile import Arrays, Work
from jittok.models.ugm.span import encode_span, open_span_model
from jittok.models.ugm.whole import encode_whole
from jittok.piece_cache.lookup import make_resolve
from jittok.piece_cache.run_loop import Fragments
from jittok.piece_cache.span_loop import WHOLE, make_encode_spans, open_span_work
from jittok.pretokenize.splitters.spans import split_spans

_encode_run, _encode_spans = make_encode_spans(split_spans, make_resolve(encode_span))


@kernel
def encode_fragments(
    arrays: Arrays,
    work: Work,
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
    """See jittok.fragments. Codes: OUT_OF_ROOM, OUT_OF_WORK, CHARSMAP_NODE, CHARSMAP_REPLACEMENT."""
    text, out, notes = window(data), window(ids), window(report)
    fragments = Fragments(window(starts), window(stops), window(tokens))
    spans = open_span_work(work.spans, arrays.rules, arrays.first_span, tokens, ends, arrays.cut_limit)
    own, k = open_span_model(arrays, work), first
    while k < last:
        report[FRAGMENT] = k
        k, count = _encode_run(
            spans, own, arrays.room_per_byte, text, data.size, fragments, k, last, out, count, ids.size, notes
        )
        if count < 0:
            return count
        if k > report[FRAGMENT]:
            continue
        if tokens[k] >= 0:
            if count + 1 > ids.size:
                report[NEED] = 1
                return OUT_OF_ROOM
            ids[count] = tokens[k]
            count += 1
        else:
            start, stop, done = starts[k], stops[k], WHOLE
            if stop - start <= arrays.cut_limit:
                done = _encode_spans(
                    spans, own, arrays.room_per_byte, tokens[k] == TEXT_PREFIXED, text, data.size, start, stop, out,
                    count, ids.size, notes,
                )  # fmt: skip
            if done == WHOLE:
                done = encode_whole(arrays, work, data, start, stop, ids, count, report)
            if done < 0:
                return done
            count = done
        ends[k] = count
        k += 1
    return count

"""The loop over fragments that all vocabulary types with a pre-token cache share; each type provides the parts.

The protocol is in `jittok.kernels.fragments`. A part is a helper, so the loop and its parts are compiled as one kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jittok.kernels.fragments import FRAGMENT, NEED, NOT_UTF8, OUT_OF_CAPACITY, OUT_OF_WORK, TEXT_PREFIXED
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, helper
from jittok.kernels.memory import Window, window
from jittok.kernels.pretoken_cache.run_loop import Fragments
from jittok.kernels.pretoken_cache.span_loop import WHOLE, SpanWorkWindow, make_encode_spans


@helper
def no_run(
    _model: Any,
    _own: Any,
    _text: Window,
    _size: int,
    _fragments: Fragments,
    k: int,
    _last: int,
    _ids: Window,
    count: int,
    _room: int,
    _report: Window,
) -> tuple[int, int]:
    """For types that encode each fragment alone."""
    return k, count


@helper
def no_whole(
    _model: Any,
    _work: Any,
    _own: Any,
    _data: U8,
    _start: int,
    _stop: int,
    _prefixed: bool,
    _ids: OutI32,
    _count: int,
    _report: OutI64,
) -> int:
    """For types whose fragments can always be cut, such as marked words."""
    return NOT_UTF8


def make_encode_fragments(
    open_windows: Callable[..., Any], encode_run: Callable[..., Any], encode_text: Callable[..., Any]
) -> Callable[..., int]:
    """`encode_fragments` of one type, as a helper for its kernel. Its parts:

    open_windows(model, work, tokens, ends) -> own: windows onto the arrays that the other two need

    encode_run(model, own, text, size, fragments, k, last, ids, count, capacity, report) -> (the first fragment that is
    not done, the new count or a code). It writes the ids of several fragments from k on at once, and returns (k, count)
    if that is not possible

    encode_text(model, work, own, data, start, stop, prefixed, ids, count, report) -> the new count or a code: ids of
    the fragment data[start:stop]
    """

    @helper
    def encode_fragments(
        model: Any,
        work: Any,
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
        own = open_windows(model, work, tokens, ends)
        text, out, notes = window(data), window(ids), window(report)
        fragments = Fragments(window(starts), window(stops), window(tokens))
        k = first
        while k < last:
            report[FRAGMENT] = k
            k, count = encode_run(model, own, text, data.size, fragments, k, last, out, count, ids.size, notes)
            if count < 0:
                return count
            if k > report[FRAGMENT]:
                continue
            if tokens[k] >= 0:
                if count + 1 > ids.size:
                    report[NEED] = 1
                    return OUT_OF_CAPACITY
                ids[count] = tokens[k]
                count += 1
            else:
                prefixed = tokens[k] == TEXT_PREFIXED
                count = encode_text(model, work, own, data, starts[k], stops[k], prefixed, ids, count, report)
                if count < 0:
                    return count
            ends[k] = count
            k += 1
        return count

    return encode_fragments


class Spans(NamedTuple):
    """The windows of a type with safe cuts, for one call."""

    work: SpanWorkWindow
    model: Any  # the `model` argument of its encode_piece
    ids_per_byte: int
    limit: int  # bytes of the longest fragment for which the cuts are safe


def make_encode_by_spans(
    open_spans: Callable[..., Any],
    split: Callable[..., Any],
    resolve: Callable[..., Any],
    encode_whole: Callable[..., Any],
    *more: Callable[..., Any],
) -> Callable[..., int]:
    """`encode_fragments` of a type with safe cuts, as a helper for its kernel.

    open_spans(model, work, tokens, ends) -> Spans; split, resolve, more: see `make_encode_spans`

    encode_whole(model, work, own, data, start, stop, prefixed, ids, count, report) -> the new count or a code: ids of
    the fragment data[start:stop], which cannot be cut
    """
    run_of_spans, spans_of_one = make_encode_spans(split, resolve, *more)

    @helper
    def encode_run(
        _model: Any,
        own: Spans,
        text: Window,
        size: int,
        fragments: Fragments,
        k: int,
        last: int,
        ids: Window,
        count: int,
        capacity: int,
        report: Window,
    ) -> tuple[int, int]:
        return run_of_spans(
            own.work, own.model, own.ids_per_byte, text, size, fragments, k, last, ids, count, capacity, report
        )

    @helper
    def encode_text(
        model: Any,
        work: Any,
        own: Spans,
        data: U8,
        start: int,
        stop: int,
        prefixed: bool,
        ids: OutI32,
        count: int,
        report: OutI64,
    ) -> int:
        done = WHOLE
        if stop - start <= own.limit:
            done = spans_of_one(
                own.work, own.model, own.ids_per_byte, prefixed, window(data), data.size, start, stop, window(ids),
                count, ids.size, window(report),
            )  # fmt: skip
        if done == WHOLE:
            return encode_whole(model, work, own, data, start, stop, prefixed, ids, count, report)
        if done == OUT_OF_WORK:
            report[NEED] = stop - start
        return done

    return make_encode_fragments(open_spans, encode_run, encode_text)

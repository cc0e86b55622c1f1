"""The BPE kernels for nearly all text: a bit-parallel splitter, the pre-token cache, and merges for new pre-tokens.

A fragment is encoded chunk by chunk (see `pretoken_cache.chunks`). Invalid UTF-8 is left to the general kernel (code
MALFORMED), so that most processes never compile that one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jittok.kernels.fragments import NEED, OUT_OF_CAPACITY, OUT_OF_WORK
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, helper, kernel
from jittok.kernels.memory import (
    PAD,
    Window,
    get_i32,
    get_i64,
    put_i32,
    put_i64,
    readable_behind,
    window,
)
from jittok.kernels.models.bpe.arrays import BpeArrays
from jittok.kernels.models.bpe.scratch import BpeWork, WorkWindow, discard, flush, look_up, open_work, resolve
from jittok.kernels.pretoken_cache.chunks import TOO_LONG, make_next_chunk
from jittok.kernels.pretoken_cache.fragment_loop import make_encode_fragments
from jittok.kernels.pretoken_cache.run_loop import Fragments, make_encode_run
from jittok.kernels.pretoken_cache.span_loop import copy_bytes
from jittok.kernels.pretoken_cache.tables import SPARE_IDS
from jittok.kernels.pretokenize.splitters.bitmap_starts import split_at_bitmap
from jittok.kernels.pretokenize.splitters.blocks import ClassWindow, open_classes
from jittok.kernels.pretokenize.splitters.gpt2 import MALFORMED, split_as_gpt2
from jittok.kernels.pretokenize.splitters.llama3 import split_as_llama3


class _FastSplitting(NamedTuple):
    """What the splitters read."""

    model: BpeArrays
    classes: ClassWindow
    of_one: Window


@helper
def _split_marked(own: _FastSplitting, text: Window, begin: int, end: int, stop: int, positions: Window) -> int:
    return split_at_bitmap(own.model.group, text, begin, end, stop, positions)


def _make_encode_text(split: Callable[..., Any]) -> Callable[..., Any]:
    next_chunk = make_next_chunk(split)

    @helper
    def encode_text(
        own: _FastSplitting,
        work: WorkWindow,
        text: Window,
        start: int,
        stop: int,
        ids: Window,
        count: int,
        capacity: int,
        report: Window,
    ) -> int:
        """Ids of text[start:stop] to ids[count:capacity]; the new count, MALFORMED or a code. PAD bytes are readable
        after the text."""
        begin = start
        while begin < stop:
            number, cut = next_chunk(own, text, begin, stop, work.chunk, work.positions, work.places_size - 64)
            if number < 0:
                put_i64(report, NEED, cut - begin)
                return OUT_OF_WORK if number == TOO_LONG else MALFORMED
            if count + 2 * (cut - begin) + SPARE_IDS > capacity:
                put_i64(report, NEED, 2 * (stop - start) + SPARE_IDS)
                return OUT_OF_CAPACITY
            count = look_up(work.cache, work.records, work, text, begin, work.positions, number, 0, ids, count)
            if count < 0:
                put_i64(report, NEED, cut - begin)
                return count
            begin = cut
        return count

    return encode_text


def _make_split_run(split: Callable[..., Any]) -> Callable[..., Any]:
    @helper
    def split_run(
        own: _FastSplitting,
        text: Window,
        begin: int,
        _end: int,
        fragments: Fragments,
        k: int,
        last: int,
        positions: Window,
    ) -> int:
        """Write where the pre-tokens of the text fragments begin; returns their number or MALFORMED."""
        number = 0
        for fragment in range(k, last + 1):
            start, stop = get_i64(fragments.starts, fragment), get_i64(fragments.stops, fragment)
            if get_i32(fragments.tokens, fragment) < 0 and start < stop:
                pieces = split(own, text, start, stop, stop, own.of_one)
                if pieces < 0:
                    return MALFORMED
                for piece in range(pieces):
                    put_i32(positions, number + piece, get_i32(own.of_one, piece) + start - begin)
                number += pieces
        return number

    return split_run


class _Windows(NamedTuple):
    """The windows that the steps of the loop share."""

    own: WorkWindow
    splitting: _FastSplitting


@helper
def _open(model: BpeArrays, work: BpeWork, tokens: I32, ends: OutI64) -> _Windows:
    own = open_work(model, work, tokens, ends)
    return _Windows(own, _FastSplitting(model, open_classes(model.classes), own.of_one))


def _make_body(split: Callable[..., Any]) -> Callable[..., int]:
    encode_text, encode_run = _make_encode_text(split), make_encode_run(_make_split_run(split), resolve, flush, discard)

    @helper
    def run(
        _model: BpeArrays,
        w: _Windows,
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
        own = w.own
        return encode_run(
            w.splitting, own.cache, own.records, own.positions, own.run, own, 2, min(own.chunk, own.longest), text,
            size, fragments, k, last, ids, count, capacity, report,
        )  # fmt: skip

    @helper
    def text(
        _model: BpeArrays,
        work: BpeWork,
        w: _Windows,
        data: U8,
        start: int,
        stop: int,
        _prefixed: bool,
        ids: OutI32,
        count: int,
        report: OutI64,
    ) -> int:
        source, out, notes, own = window(data), window(ids), window(report), w.own
        if stop + PAD <= data.size or readable_behind(source, stop, PAD):
            return encode_text(w.splitting, own, source, start, stop, out, count, ids.size, notes)
        if stop - start + PAD <= work.text.size:
            copy_bytes(source, start, stop, own.text, 0)
            return encode_text(w.splitting, own, own.text, 0, stop - start, out, count, ids.size, notes)
        report[NEED] = stop - start
        return OUT_OF_WORK

    return make_encode_fragments(_open, run, text)


_body_gpt2 = _make_body(split_as_gpt2)
_body_llama3 = _make_body(split_as_llama3)
_body_marked = _make_body(_split_marked)


@kernel
def encode_gpt2(
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
    """`encode_fragments` for the GPT-2 family; MALFORMED at a fragment of invalid UTF-8."""
    return _body_gpt2(model, work, data, starts, stops, tokens, first, last, count, ids, ends, report)


@kernel
def encode_llama3(
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
    """`encode_fragments` for the Llama 3 family; MALFORMED at a fragment of invalid UTF-8."""
    return _body_llama3(model, work, data, starts, stops, tokens, first, last, count, ids, ends, report)


@kernel
def encode_marked(
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
    """`encode_fragments` for texts with a bitmap of word starts (see `splitters.word_bitmap`), at data[model.group]."""
    return _body_marked(model, work, data, starts, stops, tokens, first, last, count, ids, ends, report)

"""The BPE kernels for nearly all text: a bit-parallel splitter, the pre-token cache, and merges for new pre-tokens.

A fragment is encoded in chunks so small that their offsets stay in the first-level cache. A chunk ends where the last
pre-token that began in it begins, and the next chunk starts there: a pattern matches anew at each pre-token,
independently of the text before. Invalid UTF-8 is left to the general kernel (code MALFORMED), so that most processes
never compile that one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jittok.kernels.fragments import NEED, OUT_OF_CAPACITY, OUT_OF_WORK
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, helper, kernel
from jittok.kernels.memory import (
    PAD,
    Window,
    bit_places,
    get_i32,
    get_i64,
    get_word,
    put_i32,
    put_i64,
    readable_behind,
    window,
)
from jittok.kernels.models.bpe.arrays import BpeArrays
from jittok.kernels.models.bpe.scratch import BpeWork, WorkWindow, discard, flush, look_up, open_work, resolve
from jittok.kernels.pretoken_cache.fragment_loop import make_encode_fragments
from jittok.kernels.pretoken_cache.run_loop import Fragments, make_encode_run
from jittok.kernels.pretoken_cache.span_loop import copy_bytes
from jittok.kernels.pretoken_cache.tables import SPARE_IDS
from jittok.kernels.pretokenize.splitters.blocks import ClassWindow, open_classes
from jittok.kernels.pretokenize.splitters.gpt2 import MALFORMED, split_gpt2
from jittok.kernels.pretokenize.splitters.llama3 import split_llama3

ALL = ~np.uint64(0)


@helper
def _split_gpt2(
    model: BpeArrays, classes: ClassWindow, text: Window, begin: int, end: int, stop: int, positions: Window
) -> int:
    return split_gpt2(classes, text, begin, end, stop, positions, model.digits_alone)


@helper
def _split_llama3(
    model: BpeArrays, classes: ClassWindow, text: Window, begin: int, end: int, stop: int, positions: Window
) -> int:
    return split_llama3(classes, text, begin, end, stop, positions, model.group, model.cased, model.contractions)


@helper
def _split_marked(
    model: BpeArrays, _classes: ClassWindow, text: Window, begin: int, end: int, _stop: int, positions: Window
) -> int:
    """Write where the pre-tokens of text[begin:end] begin, from their bitmap; returns their number."""
    number, first, last = 0, begin >> 6, (end - 1) >> 6
    for word in range(first, last + 1):
        marks = get_word(text, model.group + 8 * word)
        if word == first:
            marks &= ALL << np.uint64(begin & 63)
        if word == last and end & 63 != 0:
            marks &= ~(ALL << np.uint64(end & 63))
        number = bit_places(positions, number, 64 * word - begin, marks)
    return number


def _make_encode_text(split: Callable[..., Any]) -> Callable[..., Any]:
    @helper
    def encode_text(
        model: BpeArrays,
        work: WorkWindow,
        classes: ClassWindow,
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
        begin, size = start, work.chunk
        while begin < stop:
            end = min(begin + size, stop)
            if end - begin + 64 > work.places_size:
                put_i64(report, NEED, end - begin)
                return OUT_OF_WORK
            number = split(model, classes, text, begin, end, stop, work.positions)
            if number == MALFORMED:
                return MALFORMED
            cut = stop
            if end < stop:
                number -= 1
                if number == 0:  # one pre-token fills the chunk: use a longer one
                    size *= 2
                    continue
                cut = begin + get_i32(work.positions, number)
            put_i32(work.positions, number, cut - begin)
            if count + 2 * (cut - begin) + SPARE_IDS > capacity:
                put_i64(report, NEED, 2 * (stop - start) + SPARE_IDS)
                return OUT_OF_CAPACITY
            count = look_up(work.cache, work.records, work, text, begin, work.positions, number, 0, ids, count)
            if count < 0:
                put_i64(report, NEED, cut - begin)
                return count
            begin, size = cut, work.chunk
        return count

    return encode_text


class _FastSplitting(NamedTuple):
    """The arguments of `split_run`."""

    model: BpeArrays
    classes: ClassWindow
    of_one: Window


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
                pieces = split(own.model, own.classes, text, start, stop, stop, own.of_one)
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
        model: BpeArrays,
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
        source, out, notes, own, classes = window(data), window(ids), window(report), w.own, w.splitting.classes
        if stop + PAD <= data.size or readable_behind(source, stop, PAD):
            return encode_text(model, own, classes, source, start, stop, out, count, ids.size, notes)
        if stop - start + PAD <= work.text.size:
            copy_bytes(source, start, stop, own.text, 0)
            return encode_text(model, own, classes, own.text, 0, stop - start, out, count, ids.size, notes)
        report[NEED] = stop - start
        return OUT_OF_WORK

    return make_encode_fragments(_open, run, text)


_body_gpt2 = _make_body(_split_gpt2)
_body_llama3 = _make_body(_split_llama3)
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

"""The sessions around plain BPE: model hybriddna, which splits DNA into words of six letters, and model whitespace."""

from __future__ import annotations

from typing import NamedTuple

from jittok.common.unicode.characters import KMER, KMER_MARK, SPACE_BYTE, SPACE_MARK_BYTES, SPACE_MARK_CODE
from jittok.kernels.fragments import BEYOND_UNICODE, FOUND, OFFSET, OUT_OF_CAPACITY, OUT_OF_WORK
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, as_int64, helper, kernel
from jittok.kernels.memory import PAD, Window, get_u8, put_i32, put_i64, put_u8, readable_behind, window
from jittok.kernels.models.bpe.arrays import HYBRIDDNA, BpeArrays
from jittok.kernels.models.bpe.general import REPLACEMENT, encode_text, encode_words, has_work
from jittok.kernels.models.bpe.scratch import BYTES_PER_BYTE, BpeWork, WorkWindow, open_work
from jittok.kernels.models.bpe.text_reader import BAD, decode, put_code_point
from jittok.kernels.normalize.case import LOWERED, ORDINARY, kind_of, lower_case
from jittok.kernels.normalize.case import SPACE as WHITE
from jittok.kernels.pretoken_cache.fragment_loop import make_encode_fragments, no_run
from jittok.kernels.pretokenize.splitters.general import SplitterWindow, open_splitter
from jittok.kernels.structures.bytes_table import find_bytes, open_bytes_table

A, LOWER_A, LOWER_Z = 0x41, 0x61, 0x7A
MARK_0, MARK_1, MARK_2 = KMER_MARK
_SPACE_MARK = tuple(SPACE_MARK_BYTES)
DNA_BEGIN, DNA_END = b"<dna>", b"</dna>"


@helper
def _find(text: Window, start: int, stop: int, what: bytes) -> int:
    """The offset of `what` in text[start:stop], or stop."""
    for i in range(start, stop - len(what) + 1):
        k = 0
        while k < len(what) and get_u8(text, i + k) == what[k]:
            k += 1
        if k == len(what):
            return i
    return stop


@helper
def _encode_dna(
    model: BpeArrays,
    work: WorkWindow,
    splitter: SplitterWindow,
    text: Window,
    start: int,
    stop: int,
    padded: int,
    ids: Window,
    count: int,
    capacity: int,
    report: Window,
) -> int:
    """Model hybriddna: BPE outside <dna> ... </dna>, words of six letters inside."""
    at = start
    while at < stop:
        begin = _find(text, at, stop, DNA_BEGIN)
        if begin > at:
            count = encode_text(model, work, splitter, text, at, begin, padded, ids, count, capacity, report)
            if count < 0:
                return count
        if begin == stop:
            break
        inner = begin + len(DNA_BEGIN)
        end = _find(text, inner, stop, DNA_END)
        letters = (end - inner) * (len(SPACE_MARK_BYTES) if model.escape != 0 else 1)
        if count + letters // KMER + 3 > capacity:
            return OUT_OF_CAPACITY
        put_i32(ids, count, as_int64(model.dna[0]))
        count += 1
        i, part = inner, 0
        while i < end:
            token, i, part = _kmer(model, work, text, i, part, end)
            put_i32(ids, count, token)
            count += 1
        if end == stop:
            break
        put_i32(ids, count, as_int64(model.dna[1]))
        count += 1
        at = end + len(DNA_END)
    return count


@helper
def _kmer(model: BpeArrays, work: WorkWindow, text: Window, i: int, part: int, end: int) -> tuple[int, int, int]:
    """(id of the six letters at i, as capitals, padded with A after `end`; the next i; the next part).

    part: if the space at i becomes U+2581, how many of its three bytes belong to the letters before.
    """
    for k in range(KMER):
        letter = A
        if i < end:
            letter = get_u8(text, i)
            if letter == SPACE_BYTE and model.escape != 0:
                letter = _SPACE_MARK[part]
                part = (part + 1) % len(SPACE_MARK_BYTES)
            elif LOWER_A <= letter <= LOWER_Z:
                letter -= 32
            i += part == 0
        put_u8(work.text, k, letter)
    put_u8(work.text, KMER, MARK_0)
    put_u8(work.text, KMER + 1, MARK_1)
    put_u8(work.text, KMER + 2, MARK_2)
    row = find_bytes(open_bytes_table(model.texts), work.text, 0, KMER + 3)
    return (row if 0 <= row < model.tokens else as_int64(model.dna[2])), i, part


@helper
def _encode_runs(
    model: BpeArrays,
    work: WorkWindow,
    splitter: SplitterWindow,
    text: Window,
    start: int,
    stop: int,
    ids: Window,
    count: int,
    capacity: int,
    report: Window,
) -> int:
    """Model whitespace: BPE on every run of characters other than white space, lower-cased if the vocabulary requires
    it."""
    i, at, origin = start, 0, start
    while i <= stop:
        kind, c, size = WHITE, SPACE_BYTE, 1
        if i < stop:
            c, size = decode(text, i, stop, model.shortest)
            if c > 0x10FFFF:
                put_i64(report, OFFSET, i)
                put_i64(report, FOUND, c)
                return BEYOND_UNICODE
            if c == BAD:
                c = REPLACEMENT
            kind = kind_of(model.case, c)
            if c == SPACE_BYTE and size == 1 and model.escape != 0:
                kind, c = ORDINARY, SPACE_MARK_CODE
        if kind != WHITE:
            if at == 0:
                origin = i
                if model.begin_lines != 0 and c != SPACE_MARK_CODE:
                    at = put_code_point(work.text, at, SPACE_MARK_CODE)
            if kind == LOWERED and model.lowercase != 0:
                c = lower_case(model.case, c)
            at = put_code_point(work.text, at, c)
        elif at > 0:
            count = encode_words(work, splitter, work.text, 0, at, origin, True, True, ids, count, capacity, report)
            if count < 0:
                return count
            at = 0
        i += size
    return count


class _Windows(NamedTuple):
    """The windows that the steps of the loop share."""

    own: WorkWindow
    splitter: SplitterWindow


@helper
def _open(model: BpeArrays, work: BpeWork, tokens: I32, ends: OutI64) -> _Windows:
    return _Windows(open_work(model, work, tokens, ends), open_splitter(model.splitter))


@helper
def _text(
    model: BpeArrays,
    _work: BpeWork,
    w: _Windows,
    data: U8,
    start: int,
    stop: int,
    _prefixed: bool,
    ids: OutI32,
    count: int,
    report: OutI64,
) -> int:
    source, out, notes = window(data), window(ids), window(report)
    if not has_work(w.own, start, stop, BYTES_PER_BYTE, notes):
        return OUT_OF_WORK
    if model.session == HYBRIDDNA:
        padded = int(stop + PAD <= data.size or readable_behind(source, stop, PAD))
        return _encode_dna(model, w.own, w.splitter, source, start, stop, padded, out, count, ids.size, notes)
    return _encode_runs(model, w.own, w.splitter, source, start, stop, out, count, ids.size, notes)


_encode_fragments = make_encode_fragments(_open, no_run, _text)


@kernel
def encode_session(
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
    """`encode_fragments` for sessions other than PLAIN, with the codes of `encode_general`."""
    return _encode_fragments(model, work, data, starts, stops, tokens, first, last, count, ids, ends, report)

"""The BPE kernel: fragments to words, words to symbols, symbols merged, symbols to ids."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok._jit import I32, I64, U8, OutI32, OutI64, OutU8, helper, kernel, wide
from jittok._raw import Window, get_i32, get_u8, put_i32, window
from jittok.fragments import (
    BEYOND_UNICODE,
    FOUND,
    FRAGMENT,
    NEED,
    OFFSET,
    OUT_OF_ROOM,
    OUT_OF_WORK,
    SPACE_IN_SYMBOL,
)
from jittok.models.bpe.compile import HYBRIDDNA, KMER_MARK, PLAIN, Arrays
from jittok.models.bpe.text import BAD, decode, first_malformed, put_code_point
from jittok.normalize.case import LOWERED, kind_of, lower_case
from jittok.normalize.case import SPACE as WHITE
from jittok.pretokenize.splitters.general import SplitterWindow, mark_pieces, open_splitter, sequence_length
from jittok.structures.bytes_table import ABSENT, find_bytes, open_bytes_table
from jittok.structures.merge_queue import MergeWindow, MergeWork, make_merge_work, merge_symbols, open_merge

IDS_PER_BYTE = 1
GROWTH = 3
"""Bytes that one byte of text becomes at most: a space or a bad byte three, a lowered character no more than three."""
SPACE, NEWLINE, A = 0x20, 0x0A, 0x41
LOWER_A, LOWER_Z = 0x61, 0x7A
REPLACEMENT = 0xFFFD
ESCAPED_SPACE = 0x2581
KMER = 6
MARK_0, MARK_1, MARK_2 = KMER_MARK
DNA_BEGIN, DNA_END = b"<dna>", b"</dna>"


class Work(NamedTuple):
    """Scratch for fragments of up to `marks.size - 1` bytes after rewriting."""

    text: OutU8  # [GROWTH * longest + 8] the fragment rewritten
    marks: OutU8  # [GROWTH * longest + 1] where words begin
    merge: MergeWork


def make_work(arrays: Arrays, longest: int) -> Work:
    """Scratch of one thread for fragments of up to `longest` bytes."""
    del arrays
    room = GROWTH * longest + 16
    return Work(np.empty(room, np.uint8), np.empty(room + 1, np.uint8), make_merge_work(room))


@kernel
def encode_fragments(
    model: Arrays,
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
    """Ids of fragments first .. last - 1; the protocol is in `jittok.fragments`.

    Codes: OUT_OF_ROOM, OUT_OF_WORK, BEYOND_UNICODE, SPACE_IN_SYMBOL. O(n log n) in the bytes of the longest word.
    """
    merge = open_merge(work.merge, model.pairs)
    splitter = open_splitter(model.splitter)
    for fragment in range(first, last):
        report[FRAGMENT] = fragment
        if tokens[fragment] >= 0:
            if count + 1 > ids.size:
                report[NEED] = 1
                return OUT_OF_ROOM
            ids[count] = tokens[fragment]
            count += 1
        else:
            start, stop = starts[fragment], stops[fragment]
            if GROWTH * (stop - start) + 16 > work.text.size:
                report[NEED] = stop - start
                return OUT_OF_WORK
            report[NEED] = 2 * GROWTH * (stop - start) + 16
            if model.session == PLAIN:
                count = _encode_text(model, work, merge, splitter, data, start, stop, count, ids, report)
            elif model.session == HYBRIDDNA:
                count = _encode_dna(model, work, merge, splitter, data, start, stop, count, ids, report)
            else:
                count = _encode_runs(model, work, merge, splitter, data, start, stop, count, ids, report)
            if count < 0:
                return count
        ends[fragment] = count
    return count


@helper
def _encode_text(
    model: Arrays,
    work: Work,
    merge: MergeWindow,
    splitter: SplitterWindow,
    data: U8,
    start: int,
    stop: int,
    count: int,
    ids: OutI32,
    report: OutI64,
) -> int:
    """Ids of the words of data[start:stop], which is rewritten first if it must be."""
    text = window(data)
    if model.escape == 0 and first_malformed(text, start, stop) == stop:
        return _encode_words(model, work, merge, splitter, data, start, stop, start, count, ids, report)
    length = _rewrite(text, start, stop, window(work.text), model.escape, report)
    if length < 0:
        return length
    return _encode_words(model, work, merge, splitter, work.text, 0, length, start, count, ids, report)


@helper
def _rewrite(text: Window, start: int, stop: int, out: Window, escape: int, report: OutI64) -> int:
    """text[start:stop] as llama.cpp reads it, into out; returns the length or BEYOND_UNICODE."""
    i, at = start, 0
    while i < stop:
        c, size = decode(text, i, stop)
        if c > 0x10FFFF:
            report[OFFSET], report[FOUND] = i, c
            return BEYOND_UNICODE
        if escape != 0 and c == SPACE and size == 1:
            c = ESCAPED_SPACE  # only the byte 20: an overlong space stays one
        at = put_code_point(out, at, REPLACEMENT if c == BAD else c)
        i += size
    return at


@helper
def _encode_words(
    model: Arrays,
    work: Work,
    merge: MergeWindow,
    splitter: SplitterWindow,
    data: U8,
    start: int,
    stop: int,
    origin: int,
    count: int,
    ids: OutI32,
    report: OutI64,
) -> int:
    """Ids of the words of well-formed data[start:stop]; origin: where the text stands in the caller's bytes."""
    if start == stop:
        return count
    marks = window(work.marks)
    mark_pieces(splitter, window(data), start, stop, marks)
    i = start
    while i < stop:
        j = i + 1
        while get_u8(marks, j - start) == 0:
            j += 1
        if count + 2 * (j - i) > ids.size:
            return OUT_OF_ROOM
        count = _encode_word(model, merge, data, i, j, count, ids)
        if count < 0:
            report[OFFSET], report[FOUND] = origin + i - start, SPACE
            return count
        i = j
    return count


@helper
def _encode_word(model: Arrays, merge: MergeWindow, data: U8, start: int, stop: int, count: int, ids: OutI32) -> int:
    """Ids of one word (at most two a byte); SPACE_IN_SYMBOL."""
    text = window(data)
    if model.ignore_merges != 0 or (model.newlines_whole != 0 and get_u8(text, start) == NEWLINE):
        row = find_bytes(open_bytes_table(model.whole), text, start, stop)
        if row != ABSENT:
            ids[count] = model.whole_ids[row]
            return count + 1
    symbols = 0
    if model.byte_encode != 0:
        for i in range(start, stop):
            put_i32(merge.symbols, symbols, wide(model.byte_symbols[get_u8(text, i)]))
            put_i32(merge.places, symbols, i - start)
            symbols += 1
    else:
        i, space, texts = start, False, open_bytes_table(model.texts)
        while i < stop:
            size = min(sequence_length(get_u8(text, i)), stop - i)
            space = space or get_u8(text, i) == SPACE
            put_i32(merge.symbols, symbols, find_bytes(texts, text, i, i + size))
            put_i32(merge.places, symbols, i - start)
            symbols += 1
            i += size
        if space and symbols > 1:
            return SPACE_IN_SYMBOL
    put_i32(merge.places, symbols, stop - start)
    symbols = merge_symbols(merge, symbols)
    for k in range(symbols):
        symbol = get_i32(merge.symbols, k)
        if 0 <= symbol < model.tokens:
            ids[count] = symbol
            count += 1
        elif model.byte_encode != 0:
            virtual = symbol - model.tokens
            for at in range(model.virtual_at[virtual], model.virtual_at[virtual + 1]):
                ids[count] = model.virtual_ids[at]
                count += 1
        else:
            for i in range(start + get_i32(merge.places, k), start + get_i32(merge.places, k + 1)):
                if model.byte_ids[get_u8(text, i)] != ABSENT:
                    ids[count] = model.byte_ids[get_u8(text, i)]
                    count += 1
    return count


@helper
def _find(data: U8, start: int, stop: int, what: bytes) -> int:
    """Where `what` begins in data[start:stop], or stop."""
    for i in range(start, stop - len(what) + 1):
        k = 0
        while k < len(what) and wide(data[i + k]) == what[k]:
            k += 1
        if k == len(what):
            return i
    return stop


@helper
def _encode_dna(
    model: Arrays,
    work: Work,
    merge: MergeWindow,
    splitter: SplitterWindow,
    data: U8,
    start: int,
    stop: int,
    count: int,
    ids: OutI32,
    report: OutI64,
) -> int:
    """Model hybriddna: BPE outside <dna> ... </dna>, words of six letters inside."""
    at = start
    while at < stop:
        begin = _find(data, at, stop, DNA_BEGIN)
        if begin > at:
            count = _encode_text(model, work, merge, splitter, data, at, begin, count, ids, report)
            if count < 0:
                return count
        if begin == stop:
            break
        inner = begin + len(DNA_BEGIN)
        end = _find(data, inner, stop, DNA_END)
        if count + (end - inner) // KMER + 3 > ids.size:
            return OUT_OF_ROOM
        ids[count] = model.dna[0]
        count += 1
        for i in range(inner, end, KMER):
            ids[count] = _kmer(model, work, data, i, end)
            count += 1
        if end == stop:
            break
        ids[count] = model.dna[1]
        count += 1
        at = end + len(DNA_END)
    return count


@helper
def _kmer(model: Arrays, work: Work, data: U8, i: int, end: int) -> int:
    """The id of six letters from i on, capitals, filled with A behind `end`."""
    for k in range(KMER):
        letter = A
        if i + k < end:
            letter = wide(data[i + k])
            if LOWER_A <= letter <= LOWER_Z:
                letter -= 32
        work.text[k] = letter
    work.text[KMER], work.text[KMER + 1], work.text[KMER + 2] = MARK_0, MARK_1, MARK_2
    row = find_bytes(open_bytes_table(model.texts), window(work.text), 0, KMER + 3)
    return row if 0 <= row < model.tokens else wide(model.dna[2])


@helper
def _encode_runs(
    model: Arrays,
    work: Work,
    merge: MergeWindow,
    splitter: SplitterWindow,
    data: U8,
    start: int,
    stop: int,
    count: int,
    ids: OutI32,
    report: OutI64,
) -> int:
    """Model whitespace: BPE on every run of characters that are no white space, lower-cased if the vocabulary says so."""
    text, out = window(data), window(work.text)
    i, at, origin = start, 0, start
    while i <= stop:
        kind, c, size = WHITE, SPACE, 1
        if i < stop:
            c, size = decode(text, i, stop)
            if c > 0x10FFFF:
                report[OFFSET], report[FOUND] = i, c
                return BEYOND_UNICODE
            if c == BAD:
                c = REPLACEMENT
            kind = kind_of(model.case, c)
        if kind != WHITE:
            if at == 0:
                origin = i
            if kind == LOWERED and model.lowercase != 0:
                c = lower_case(model.case, c)
            at = put_code_point(out, at, c)
        elif at > 0:
            count = _encode_words(model, work, merge, splitter, work.text, 0, at, origin, count, ids, report)
            if count < 0:
                return count
            at = 0
        i += size
    return count

"""BPE for every pre type and every text: the kernel around the general splitter, and the sessions around plain BPE."""

from __future__ import annotations

from typing import NamedTuple

from jittok._jit import I32, I64, U8, OutI32, OutI64, helper, kernel, wide
from jittok._raw import PAD, Window, bit_places, get_u8, get_u64, put_i32, put_i64, put_u8, readable_behind, window
from jittok.fragments import BEYOND_UNICODE, FOUND, FRAGMENT, NEED, OFFSET, OUT_OF_ROOM, OUT_OF_WORK
from jittok.models.bpe.arrays import HYBRIDDNA, KMER_MARK, PLAIN, Arrays
from jittok.models.bpe.joints import JointWindow, cut_joints
from jittok.models.bpe.plain import REPLACEMENT, encode_text, encode_words
from jittok.models.bpe.text import BAD, decode, put_code_point
from jittok.models.bpe.words import SPACE
from jittok.models.bpe.work import GROWTH, Work, WorkWindow, drop, finish, open_work, settle
from jittok.normalize.case import LOWERED, kind_of, lower_case
from jittok.normalize.case import SPACE as WHITE
from jittok.pretokenize.splitters.general import SplitterWindow, SplitWindow, open_splitter, split_run
from jittok.pretokenize.splitters.gpt2 import MALFORMED
from jittok.structures.bytes_table import find_bytes, open_bytes_table
from jittok.structures.piece_cache import SLACK
from jittok.structures.run_loop import Fragments, make_encode_run

A, LOWER_A, LOWER_Z = 0x41, 0x61, 0x7A
KMER = 6
MARK_0, MARK_1, MARK_2 = KMER_MARK
DNA_BEGIN, DNA_END = b"<dna>", b"</dna>"


class _Splitting(NamedTuple):
    """What splitting a run takes."""

    splitter: SplitterWindow
    split: SplitWindow
    joints: JointWindow


@helper
def _split_run(
    own: _Splitting, text: Window, begin: int, end: int, fragments: Fragments, k: int, last: int, places: Window
) -> int:
    """Where pieces of the fragments begin; MALFORMED."""
    if split_run(own.splitter, text, begin, end, fragments, k, last, own.split) < end:
        return MALFORMED
    cut_joints(own.joints, False, text, begin, end - begin, own.split.cuts)
    number = 0
    for word in range((end - begin) // 64 + 1):
        number = bit_places(places, number, word * 64, get_u64(own.split.cuts, word))
    return number - 1  # the last one is the end


_encode_run = make_encode_run(_split_run, settle, finish, drop)


@kernel
def encode_general(
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
    """`encode_fragments` for every vocabulary; see `jittok.fragments`.

    Codes: OUT_OF_ROOM, OUT_OF_WORK, BEYOND_UNICODE, SPACE_IN_SYMBOL. O(n log n) in the bytes of the longest word.
    """
    own, splitter = open_work(model, work, tokens, ends), open_splitter(model.splitter)
    text, out, notes = window(data), window(ids), window(report)
    fragments = Fragments(window(starts), window(stops), window(tokens))
    splitting, k = _Splitting(splitter, own.split, own.joints), first
    most = min(own.chunk, own.longest - PAD) if model.session == PLAIN and model.byte_encode and not model.escape else 0
    while k < last:
        report[FRAGMENT] = k
        k, count = _encode_run(
            splitting, own.cache, own.records, own.places, own.run, own, 2, most, text, data.size, fragments, k, last,
            out, count, ids.size, notes,
        )  # fmt: skip
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
            start, stop = starts[k], stops[k]
            padded = int(stop + PAD <= data.size or readable_behind(text, stop, PAD))
            count = encode_slowly(model, own, splitter, text, start, stop, padded, out, count, ids.size, notes)
            if count < 0:
                return count
        ends[k] = count
        k += 1
    return count


@helper
def encode_slowly(
    model: Arrays,
    work: WorkWindow,
    splitter: SplitterWindow,
    text: Window,
    start: int,
    stop: int,
    padded: int,
    ids: Window,
    count: int,
    room: int,
    report: Window,
) -> int:
    """Ids of one fragment text[start:stop] to ids[count:room]; padded: whether PAD bytes are readable behind it."""
    if GROWTH * (stop - start) > work.longest - 16:
        put_i64(report, NEED, stop - start)
        return OUT_OF_WORK
    # certainly enough: at most two ids a byte of the rewritten text
    put_i64(report, NEED, 2 * GROWTH * (stop - start) + SLACK + 16)
    if model.session == PLAIN:
        count = encode_text(model, work, splitter, text, start, stop, padded, ids, count, room, report)
    elif model.session == HYBRIDDNA:
        count = _encode_dna(model, work, splitter, text, start, stop, padded, ids, count, room, report)
    else:
        count = _encode_runs(model, work, splitter, text, start, stop, ids, count, room, report)
    return count


@helper
def _find(text: Window, start: int, stop: int, what: bytes) -> int:
    """Where `what` begins in text[start:stop], or stop."""
    for i in range(start, stop - len(what) + 1):
        k = 0
        while k < len(what) and get_u8(text, i + k) == what[k]:
            k += 1
        if k == len(what):
            return i
    return stop


@helper
def _encode_dna(
    model: Arrays,
    work: WorkWindow,
    splitter: SplitterWindow,
    text: Window,
    start: int,
    stop: int,
    padded: int,
    ids: Window,
    count: int,
    room: int,
    report: Window,
) -> int:
    """Model hybriddna: BPE outside <dna> ... </dna>, words of six letters inside."""
    at = start
    while at < stop:
        begin = _find(text, at, stop, DNA_BEGIN)
        if begin > at:
            count = encode_text(model, work, splitter, text, at, begin, padded, ids, count, room, report)
            if count < 0:
                return count
        if begin == stop:
            break
        inner = begin + len(DNA_BEGIN)
        end = _find(text, inner, stop, DNA_END)
        if count + (end - inner) // KMER + 3 > room:
            return OUT_OF_ROOM
        put_i32(ids, count, wide(model.dna[0]))
        count += 1
        for i in range(inner, end, KMER):
            put_i32(ids, count, _kmer(model, work, text, i, end))
            count += 1
        if end == stop:
            break
        put_i32(ids, count, wide(model.dna[1]))
        count += 1
        at = end + len(DNA_END)
    return count


@helper
def _kmer(model: Arrays, work: WorkWindow, text: Window, i: int, end: int) -> int:
    """The id of six letters from i on, as capitals, filled with A behind `end`."""
    for k in range(KMER):
        letter = A
        if i + k < end:
            letter = get_u8(text, i + k)
            if LOWER_A <= letter <= LOWER_Z:
                letter -= 32
        put_u8(work.text, k, letter)
    put_u8(work.text, KMER, MARK_0)
    put_u8(work.text, KMER + 1, MARK_1)
    put_u8(work.text, KMER + 2, MARK_2)
    row = find_bytes(open_bytes_table(model.texts), work.text, 0, KMER + 3)
    return row if 0 <= row < model.tokens else wide(model.dna[2])


@helper
def _encode_runs(
    model: Arrays,
    work: WorkWindow,
    splitter: SplitterWindow,
    text: Window,
    start: int,
    stop: int,
    ids: Window,
    count: int,
    room: int,
    report: Window,
) -> int:
    """Model whitespace: BPE on every run of characters that are no white space, lower-cased if the vocabulary says
    so."""
    i, at, origin = start, 0, start
    while i <= stop:
        kind, c, size = WHITE, SPACE, 1
        if i < stop:
            c, size = decode(text, i, stop)
            if c > 0x10FFFF:
                put_i64(report, OFFSET, i)
                put_i64(report, FOUND, c)
                return BEYOND_UNICODE
            if c == BAD:
                c = REPLACEMENT
            kind = kind_of(model.case, c)
        if kind != WHITE:
            if at == 0:
                origin = i
            if kind == LOWERED and model.lowercase != 0:
                c = lower_case(model.case, c)
            at = put_code_point(work.text, at, c)
        elif at > 0:
            count = encode_words(work, splitter, work.text, 0, at, origin, True, True, ids, count, room, report)
            if count < 0:
                return count
            at = 0
        i += size
    return count

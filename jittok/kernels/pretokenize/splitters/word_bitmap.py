"""Writes the words of any chain of stages one after the other, without dropped text, and a bitmap of their starts.

The stages of a splitter split at characters; stages over single bytes may follow. Pieces that begin with a dropped
character are left out, and so are matches that a stage removes. Each unit of the others is looked up: a character, or a
byte where words are byte-level. An unknown unit is written as UNKNOWN. GOES_ON is written before units that continue a
word, and ENDS after the last one: these bytes never occur in UTF-8, so the merger can distinguish them. Bit i of the
bitmap is set if a word begins at byte i.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.kernels.jit import I32, I64, U8, U16, OutI64, OutU8, OutU64, as_int64, helper, kernel
from jittok.kernels.memory import (
    Window,
    get_i32,
    get_i64,
    get_u8,
    get_u64,
    get_word,
    put_u8,
    put_u64,
    put_word,
    trailing_zeros,
    window,
)
from jittok.kernels.pretokenize.splitters.cutter_stage import ACTION_BITS
from jittok.kernels.pretokenize.splitters.general import (
    LOOKAROUND,
    Splitter,
    SplitterWindow,
    SplitWindow,
    SplitWork,
    classify,
    no_cuts,
    open_split,
    open_splitter,
    run_stages,
    split_text,
)
from jittok.kernels.pretokenize.splitters.lookaround_stage import NOT_FOUND, look_around, match_end, no_search
from jittok.kernels.pretokenize.splitters.search_stages import IS_REST, MATCHED, cut_at, next_cut
from jittok.kernels.structures.utf8 import decode

UNKNOWN, GOES_ON, ENDS = 0xFD, 0xFE, 0xFF
"""Bytes in words: an unknown unit; before a unit that does not begin the word; after its last unit."""
KEEPS, VANISHES, REPLACES, FUSES = 0, 1, 2, 3
"""An unknown unit is kept; dropped; written as UNKNOWN; or written as one UNKNOWN per run."""
NOT_FIRST, LAST = 1, 2
"""Bits of the position class of a unit in a word; a table has bit 1 << class if a unit is known there."""
BYTES, SPELLS = 1, 2
"""How words are spelled: units are bytes; or each byte is written as its character of the byte alphabet."""
ISOLATES, REMOVES, MERGES_BEFORE, MERGES_AFTER, JOINS, COUNTS = range(6)
INVERTS = 16
"""What a stage does with its matches: makes them pieces; removes them; merges them with the piece before, or after;
joins adjacent matches, and likewise the gaps. COUNTS makes pieces of a fixed number of characters instead."""
MARKS = 9
"""A buffer of 9 * n bytes holds 8 * n of text and then n of bitmap."""
NO_LIMIT = 1 << 62
"""More bytes than any word has: all are written."""
NONE, ONE = np.uint64(0), np.uint64(1)


class WordBitmap(NamedTuple):
    """The tables by which texts become words with a bitmap."""

    splitter: Splitter
    drops: U8  # [128] 1 for a class of the splitter that is dropped
    byte_at: I64  # [stages over bytes] where the rows of each begin in `byte_rows`: a dead one, then the first
    byte_rows: I32  # next row's offset << 1 | a match ends before this byte; as in `automaton`, the end is a class
    byte_widths: I64  # [stages over bytes]
    byte_classes: U8  # [stages over bytes, 256]
    behaves: I64  # [stages of the splitter] what each does, INVERTS more where to all but matches; [0] if all ISOLATE
    sizes: I64  # [stages of the splitter] how many characters a piece of those that COUNT has
    spelled: int  # 0, or BYTES, or SPELLS
    alphabet: U16  # [256] code points, all below U+0800, that bytes are written as
    plain: int  # 1 where all units are known and nothing is between them
    unknown: int  # KEEPS, VANISHES, REPLACES, FUSES
    goes_on: int  # 1 where GOES_ON is written
    ends: int  # 1 where ENDS is
    most: int  # bytes of a plain word that are written: of a list of words, one more than the longest has
    bytes: U8  # [256] the table of bytes that are units
    pages: U16  # [8704] two-stage table of characters
    blocks: U8


@helper
def _cut_bytes(m: WordBitmap, stage: int, text: Window, start: int, size: int, work: SplitWindow) -> None:
    """Run one stage over bytes: every match is a piece, and so is every gap."""
    rows, classes = window(m.byte_rows), window(m.byte_classes)
    dead, width = as_int64(m.byte_at[stage]), as_int64(m.byte_widths[stage])
    first, end, i = dead + width, 0, 0
    while i < size:
        if i >= end:
            end = next_cut(work.cuts, i)
        row = get_i32(rows, first + get_u8(classes, stage << 8 | get_u8(text, start + i))) >> 1
        j, match = i + 1, 0
        while row != dead:
            kind = width - 1
            if j < end:
                kind = as_int64(get_u8(classes, stage << 8 | get_u8(text, start + j)))
            entry = get_i32(rows, row + kind)
            if entry & 1 != 0:
                match = j
            row = entry >> 1
            j += 1
        if match > 0:
            cut_at(work, i)
            cut_at(work, match)
            i = match
        else:
            i += 1


@helper
def _run_behaved(
    m: WordBitmap, splitter: SplitterWindow, text: Window, start: int, size: int, work: SplitWindow, dropped: Window
) -> None:
    """Run all stages; bits of `dropped` are set for the bytes that a stage removes."""
    for word in range(size // 64 + 1):
        put_u64(dropped, word, NONE)
    for stage in range(m.behaves.size):
        how = as_int64(m.behaves[stage])
        if how == ISOLATES:
            run_stages(splitter, stage, stage + 1, text, start, size, work, True)
        else:
            piece = as_int64(0)
            while piece < size:
                end = next_cut(work.cuts, piece)
                if how == COUNTS:
                    _cut_counted(as_int64(m.sizes[stage]), splitter, piece, end, work)
                else:
                    _cut_behaved(how, splitter, stage, piece, end, work, dropped)
                piece = end


@helper
def _cut_counted(most: int, splitter: SplitterWindow, piece: int, end: int, work: SplitWindow) -> None:
    """Split a piece into pieces of `most` characters."""
    count = 0
    for i in range(piece, end):
        if get_u8(work.classes, i) & 254 != splitter.width - 2:
            if count == most:
                cut_at(work, i)
                count = 0
            count += 1


@helper
def _cut_behaved(
    how: int, splitter: SplitterWindow, stage: int, piece: int, end: int, work: SplitWindow, dropped: Window
) -> None:
    """One stage on one piece, see `reference.pipeline.split.words`."""
    first, gap, i, before = as_int64(get_i64(splitter.tables_at, stage)) + splitter.width, piece, piece, False
    last, looking = NOT_FOUND, get_i64(splitter.kinds, stage) == LOOKAROUND
    search = no_search()
    if looking:
        search = look_around(splitter.looks, stage, (splitter.width >> 1) - 1, piece, end, work)
    while i < end:
        begun = get_u8(work.begun, i)
        if begun & IS_REST != 0 or begun >> stage & 1 == 0:
            i += 1
            continue
        match = NOT_FOUND
        if looking:
            match = match_end(splitter.looks, search, i, end, work)
        else:
            row, j = get_i32(splitter.tables, first + (get_u8(work.classes, i) & 254)) >> ACTION_BITS, i + 1
            while row != first - splitter.width:
                entry = get_i32(splitter.tables, row + (get_u8(work.classes, j) | (j == end)))
                if entry & MATCHED != 0:
                    match = j
                row = entry >> ACTION_BITS
                j += 1
        if match == NOT_FOUND or (match == i and i == last):  # an empty match right after another is none
            i += 1
            continue
        if gap < i:
            before = _put_stretch(how, False, before, piece, gap, i, work, dropped)
        before = _put_stretch(how, True, before, piece, i, match, work, dropped)
        gap = last = match
        i = max(i + 1, match)
    if gap < end:
        _put_stretch(how, False, before, piece, gap, end, work, dropped)


@helper
def _put_stretch(
    how: int, matched: bool, before: bool, piece: int, start: int, stop: int, work: SplitWindow, dropped: Window
) -> bool:
    """Cut at a match or at a gap between matches; returns whether it counts as a match. before: whether the last one
    did."""
    matched = matched != (how & INVERTS != 0)
    kind = how & (INVERTS - 1)
    joined = False
    if kind == MERGES_AFTER:
        joined = before and not matched
    elif kind == MERGES_BEFORE:
        joined = matched and not before
    elif kind == JOINS:
        joined = matched == before
    if start > piece and not joined:
        cut_at(work, start)
    if kind == REMOVES and matched:
        cut_at(work, stop)
        for i in range(start, stop):
            put_u64(dropped, i // 64, get_u64(dropped, i // 64) | ONE << np.uint64(i & 63))
    return matched


@helper
def _copy(text: Window, i: int, j: int, out: Window, at: int) -> int:
    """Copy text[i:j] to out[at:], eight bytes at once: up to eight more are read and written."""
    size = j - i
    k = 0
    while k < size:
        put_word(out, at + k, get_word(text, i + k))
        k += 8
    return at + size


@helper
def _write_word(m: WordBitmap, data: U8, text: Window, i: int, stop: int, out: Window, at: int) -> int:
    """Write the units of a word; returns the offset after them."""
    position, before = 0, False
    while i < stop:
        if m.spelled != 0:
            size = 1
            known = as_int64(m.bytes[get_u8(text, i)])
        else:
            c, size = decode(data, i, stop, 1)
            known = as_int64(m.blocks[as_int64(m.pages[c >> 7]) << 7 | c & 127])
        last = i + size >= stop
        if known >> (position | LAST * last) & 1 != 0 or m.unknown == KEEPS:
            if m.goes_on != 0 and position != 0:
                put_u8(out, at, GOES_ON)
                at += 1
            for k in range(size):
                put_u8(out, at + k, get_u8(text, i + k))
            at += size
            if m.ends != 0 and last:
                put_u8(out, at, ENDS)
                at += 1
            before = False
        elif m.unknown != VANISHES:
            if not (before and m.unknown == FUSES):
                put_u8(out, at, UNKNOWN)
                at += 1
            before = True
        position = NOT_FIRST
        i += size
    return at


@helper
def _spell(m: WordBitmap, text: Window, i: int, stop: int, out: Window, at: int) -> int:
    """Write text[i:stop] byte-level; returns the offset after it."""
    while i < stop:
        code = as_int64(m.alphabet[get_u8(text, i)])
        if code < 0x80:
            put_u8(out, at, code)
            at += 1
        else:
            put_u8(out, at, 0xC0 | code >> 6)
            put_u8(out, at + 1, 0x80 | code & 0x3F)
            at += 2
        i += 1
    return at


@helper
def _mark(out: Window, marks: int, at: int) -> None:
    position = marks + (at >> 3)
    put_u8(out, position, get_u8(out, position) | 1 << (at & 7))


@helper
def _write_words(
    m: WordBitmap, data: U8, text: Window, start: int, size: int, work: SplitWindow, dropped: Window, out: Window,
    marks: int, at: int,
) -> int:  # fmt: skip
    begin, word = 0, 0
    cuts = get_u64(work.cuts, 0) & ~ONE
    while begin < size:
        while cuts == NONE:
            word += 1
            cuts = get_u64(work.cuts, word)
        end = word * 64 + trailing_zeros(cuts)
        cuts &= cuts - ONE
        gone = get_u8(window(m.drops), get_u8(work.classes, begin) >> 1) != 0
        if m.behaves.size > 0:
            gone = gone or get_u64(dropped, begin // 64) >> np.uint64(begin & 63) & ONE != NONE
        if not gone:
            position = at
            if m.spelled == SPELLS:
                at = _spell(m, text, start + begin, start + end, out, at)
            elif m.plain != 0:
                at = _copy(text, start + begin, start + begin + min(end - begin, m.most), out, at)
                if m.ends != 0:
                    put_u8(out, at, ENDS)
                    at += 1
            else:
                at = _write_word(m, data, text, start + begin, start + end, out, at)
            if at > position:
                _mark(out, marks, position)
        begin = end
    return at


@kernel
def mark_words(
    m: WordBitmap, split: SplitWork, dropped: OutU64, data: U8, starts: I64, stops: I64, tokens: I32, count: int,
    out: OutU8, out_starts: OutI64, out_stops: OutI64,
) -> int:  # fmt: skip
    """Write the words of fragments of UTF-8, one after the other, and their bitmap; how many bytes. Ids are empty.

    starts, stops: int64[count], tokens: int32[count] as in `jittok.kernels.fragments`; PAD bytes are after the last
    split: work for the longest fragment; dropped: uint64[its bytes // 64 + 1], if a stage behaves
    out: uint8[MARKS * n], zeroed where the bitmap is, with capacity for the words: 8 * n and 64 more. A byte
    becomes no more than 1 + goes_on + ends, or two where it is spelled
    out_starts, out_stops: int64[count] receive where the words of each fragment are
    """
    work, splitter, text = open_split(split), open_splitter(m.splitter), window(data)
    to, gone, at = window(out), window(dropped), as_int64(0)
    marks = out.size // MARKS * 8
    for k in range(count):
        out_starts[k] = at
        start, stop = as_int64(starts[k]), as_int64(stops[k])
        if tokens[k] < 0 and start < stop:
            if m.behaves.size > 0:
                classify(splitter, text, start, stop, work)
                no_cuts(work, stop - start)
                _run_behaved(m, splitter, text, start, stop - start, work, gone)
            else:
                split_text(splitter, text, start, stop, work, False)
            for stage in range(m.byte_at.size):
                _cut_bytes(m, stage, text, start, stop - start, work)
            at = _write_words(m, data, text, start, stop - start, work, gone, to, marks, at)
        out_stops[k] = at
    return at

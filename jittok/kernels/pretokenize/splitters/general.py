"""The one splitter that every pre type has: its list of patterns, stage by stage.

Characters are mapped once to classes, which hold characters that no stage distinguishes: 2 * class for the first byte
of a character, 2 * (number of classes) for each other byte. Cuts are a bitmap, one bit per byte; cutters read them as
the lowest bit of a class. Each stage splits every piece that the stages before have left, as if the piece were the
whole text, and only adds cuts. So the list of pieces is never built.

A stage with matches at most offsets is a cutter (`cutter_stage.py`). One with few is a matcher (`search_stages.py`),
which first searches for offsets where a match may begin. Patterns of one class need masks only. Four of llama.cpp's
need more than one character of look-ahead: they are in `search_stages.py`. Any other pattern that does, or looks
behind, or is not linear, runs in `lookaround_stage.py`.

Linear in bytes times stages. After the end of its match, a matcher reads a bounded number of characters, or one run of
white space that the next match consumes whole.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import I32, I64, JIT, U8, U16, OutU8, OutU16, OutU64, helper
from jittok.kernels.memory import (
    FAST,
    PAD,
    Window,
    as_bytes,
    as_halves,
    equal_mask,
    get_i64,
    get_u8,
    get_u16,
    get_u64,
    map_block,
    mark_block,
    put_u8,
    put_u64,
    trailing_zeros,
    utf8_masks,
    window,
)
from jittok.kernels.pretoken_cache.run_loop import Fragments
from jittok.kernels.pretokenize.splitters.cutter_stage import COLUMNS, CutterWindow, collect_cuts, run_cutter
from jittok.kernels.pretokenize.splitters.lookaround_stage import (
    LookaroundTables,
    LookaroundWindow,
    open_lookarounds,
    run_lookarounds,
)
from jittok.kernels.pretokenize.splitters.search_stages import (
    IS_REST,
    cut_at,
    cut_digits,
    cut_runs,
    cut_space_powers,
    cut_trailing_space,
    run_matcher,
)
from jittok.kernels.structures.pages import scratch

MATCHER, CUTTER, RUNS, SINGLES, SPACE_POWERS, DIGIT_GROUPS, DIGIT_THREES, TRAILING_SPACE, BEHAVED, LOOKAROUND = range(
    10
)
"""Kinds of stages. BEHAVED: a matcher that does more than make pieces of its matches: `word_bitmap` runs it.
LOOKAROUND: see `lookaround_stage`."""
MOST_CLASSES, MOST_STAGES = 126, 7
BLOCK = 64
ONE, TWO, THREE, NONE = (np.uint64(k) for k in (1, 2, 3, 0))


class Splitter(NamedTuple):
    """A list of stages. Invariants: classes < width / 2 - 1. Entries lead to the beginning of a row of their stage. Two
    columns of a cutter, one * its width + the other, are an entry of each of its rows."""

    kinds: I64  # [stages]
    tables_at: I64  # [stages]
    tables: I32  # of matchers: rows of `width` entries, next row's offset << 8 | actions; a dead row, then the first
    cutters: I32  # the same of cutters, see `cutter_stage.CutterWindow`
    columns: U8  # [stages, 128]
    widths: I64  # [stages]
    width: int  # 2 * classes + 2
    sure: U8  # [stages, classes, classes] cutters: between these two is a cut, whatever is around
    begins: U8  # [classes] bit s: stage s searches for it, a match may begin here
    apart: U8  # [stages] 1 for a matcher that matches nothing where a space is before an ASCII letter
    looks: LookaroundTables
    byte: int  # for a pattern of runs of one ASCII character and of all others: it; else -1
    ascii: U8  # [256] 2 * class of the 128 characters, then `begins` of their classes
    pages: U16  # [8704] two-stage table of classes, see `pretokenize.classes`
    blocks: U8


class SplitterWindow(NamedTuple):
    """The same as windows."""

    kinds: Window
    tables_at: Window
    tables: Window
    cutters: Window
    columns: Window
    widths: Window
    width: int
    sure: Window
    begins: Window
    apart: Window
    looks: LookaroundWindow
    byte: int
    ascii: Window
    pages: Window
    blocks: Window
    stages: int


class SplitWork(NamedTuple):
    """Scratch for texts of up to n bytes (see `make_split_work`)."""

    classes: OutU8  # [n + 1 + 64]
    begun: OutU8  # [n + 1 + 64] `begins` of each byte's class
    flags: OutU8  # [n + 1 + 64] a cutter's actions before each byte
    pairs: OutU16  # [n // 2 + 1 + 32] the same memory: what a cutter reads, two bytes per step
    cuts: OutU64  # [n // 64 + 2] bit i: a piece begins at byte i
    notes: OutU8  # [(n + 1) * `looks.noted`] of stages that look around


class SplitWindow(NamedTuple):
    """The same as windows."""

    classes: Window
    begun: Window
    flags: Window
    pairs: Window
    cuts: Window
    notes: Window


def make_split_work(longest: int, splitter: Splitter) -> SplitWork:
    """Scratch of a splitter for texts of up to `longest` bytes."""
    classes, begun = (scratch(longest + 1 + PAD, np.uint8) for _ in range(2))
    pairs = scratch(longest // 2 + 1 + PAD // 2, np.uint16)
    cuts, notes = scratch(longest // BLOCK + 2, np.uint64), scratch((longest + 1) * splitter.looks.noted, np.uint8)
    return SplitWork(classes, begun, pairs.view(np.uint8), pairs, cuts, notes)


@helper
def open_split(work: SplitWork) -> SplitWindow:
    """Windows onto the arrays."""
    return SplitWindow(
        window(work.classes), window(work.begun), window(work.flags), window(work.pairs), window(work.cuts),
        window(work.notes),
    )  # fmt: skip


@helper
def open_splitter(splitter: Splitter) -> SplitterWindow:
    """Windows onto the arrays."""
    return SplitterWindow(
        window(splitter.kinds),
        window(splitter.tables_at),
        window(splitter.tables),
        window(splitter.cutters),
        window(splitter.columns),
        window(splitter.widths),
        splitter.width,
        window(splitter.sure),
        window(splitter.begins),
        window(splitter.apart),
        open_lookarounds(splitter.looks),
        splitter.byte,
        window(splitter.ascii),
        window(splitter.pages),
        window(splitter.blocks),
        splitter.kinds.size,
    )


@helper
def split_text(
    splitter: SplitterWindow, text: Window, start: int, stop: int, work: SplitWindow, well_formed: bool
) -> int:
    """Set the bits of work.cuts where the pieces of text[start:stop] begin, and at its end; returns `stop`.

    Malformed text (three-byte surrogates are accepted) is not split: returns the offset of the first bad byte. PAD
    bytes are readable after the text. well_formed: the caller knows that the text is.
    """
    size = stop - start
    if splitter.byte >= 0 and well_formed:
        _split_at_byte(splitter.byte, text, start, size, work.cuts)
        return stop
    bad = classify(splitter, text, start, stop, work)
    if bad < stop:
        return bad
    no_cuts(work, size)
    run_stages(splitter, 0, splitter.stages, text, start, size, work, False)
    return stop


@helper
def split_run(
    splitter: SplitterWindow,
    text: Window,
    begin: int,
    end: int,
    fragments: Fragments,
    k: int,
    last: int,
    work: SplitWindow,
) -> int:
    """Split fragments k .. last, which are adjacent and make up text[begin:end], at once. The borders of the fragments
    are cuts from the start, so no pattern matches across them."""
    bad = classify(splitter, text, begin, end, work)
    if bad < end:
        return bad
    no_cuts(work, end - begin)
    for fragment in range(k + 1, last + 1):
        cut_at(work, get_i64(fragments.starts, fragment) - begin)
    run_stages(splitter, 0, splitter.stages, text, begin, end - begin, work, True)
    return end


@helper
def no_cuts(work: SplitWindow, size: int) -> None:
    """Make the whole text one piece."""
    for word in range(size // BLOCK + 1):
        put_u64(work.cuts, word, NONE)
    cut_at(work, 0)
    cut_at(work, size)


@helper
def run_stages(
    splitter: SplitterWindow, first: int, last: int, text: Window, start: int, size: int, work: SplitWindow, late: bool
) -> None:
    """Run stages first .. last - 1. late: whether cuts may be missing in the lowest bits of the classes."""
    count = (splitter.width >> 1) - 1
    for stage in range(first, last):
        kind, table = get_i64(splitter.kinds, stage), get_i64(splitter.tables_at, stage)
        if kind == CUTTER:
            if late:
                _mark(work, size)
            cutter = CutterWindow(
                splitter.cutters,
                table,
                splitter.columns,
                COLUMNS * stage,
                get_i64(splitter.widths, stage),
                splitter.sure,
                stage * count * count,
                count,
            )
            run_cutter(cutter, work.classes, size, work.pairs, work.flags)
            collect_cuts(work.flags, size, work.cuts)
            late = True
        elif kind == MATCHER:
            run_matcher(splitter, stage, table, text, start, size, work)
        elif kind == LOOKAROUND:
            run_lookarounds(splitter.looks, stage, count, size, work)
        elif kind in (RUNS, SINGLES):
            cut_runs(work, stage, size, kind == SINGLES)
        elif kind == SPACE_POWERS:
            cut_space_powers(work, stage, size)
        elif kind in (DIGIT_GROUPS, DIGIT_THREES):
            cut_digits(work, stage, size, kind == DIGIT_THREES)
        else:
            cut_trailing_space(work, stage, size)


@helper
def _split_at_byte(byte: int, text: Window, start: int, size: int, cuts: Window) -> None:
    """Pieces are the runs of `byte`, and the gaps between them."""
    before = ONE
    for at in range(0, size, BLOCK):
        found = equal_mask(text, start + at, byte)
        if at == 0:
            before = ~found & ONE  # the text begins with a piece, whatever it is
        put_u64(cuts, at // BLOCK, found ^ (found << ONE | before))
        before = found >> np.uint64(63)
    if size % BLOCK == 0:
        put_u64(cuts, size // BLOCK, ONE)
    else:
        end = ONE << np.uint64(size % BLOCK)
        put_u64(cuts, size // BLOCK, get_u64(cuts, size // BLOCK) & (end - ONE) | end)


@helper
def _mark(work: SplitWindow, size: int) -> None:
    """Set the lowest bits of `classes` at all cuts."""
    for at in range(0, size + 1, BLOCK):
        mark_block(work.classes, at, get_u64(work.cuts, at // BLOCK))


@helper
def classify(splitter: SplitterWindow, text: Window, start: int, stop: int, work: SplitWindow) -> int:
    """Fill work.classes and work.begun for text[start:stop]; returns stop, or where the text is malformed.

    A single cutter does not use `begun`, so it is not filled then.
    """
    rest = splitter.width - 2
    asked = splitter.stages > 1 or get_i64(splitter.kinds, 0) != CUTTER
    i = start
    while i < stop:  # a character begins at i
        at = i - start
        map_block(splitter.ascii, 0, text, i, rest, work.classes, at)
        if asked:
            map_block(splitter.ascii, 128, text, i, IS_REST, work.begun, at)
        follower, c0, e0, f0, _ = utf8_masks(text, i)
        end = i + BLOCK
        if (follower | c0) != NONE:
            expected = c0 << ONE | e0 << TWO | f0 << THREE
            if stop - i < BLOCK:
                inside = (ONE << np.uint64(stop - i)) - ONE
                follower &= inside
                expected &= inside
                c0 &= inside
            if follower != expected:
                return _malformed(text, i, stop)
            while c0 != NONE:
                j = i + trailing_zeros(c0)
                c0 &= c0 - ONE
                c, length = _wide_character(text, j, stop)
                if length == 0:
                    return j
                kind = get_u8(splitter.blocks, get_u16(splitter.pages, c >> 7) << 7 | c & 127)
                put_u8(work.classes, j - start, kind << 1)
                begun = get_u8(splitter.begins, kind)
                if asked and begun != 0:
                    put_u8(work.begun, j - start, begun)
                    put_u8(work.begun, j + 1 - start, begun | IS_REST)
                    if length > 2:
                        put_u8(work.begun, j + 2 - start, begun | IS_REST)
                    if length > 3:
                        put_u8(work.begun, j + 3 - start, begun | IS_REST)
                elif asked:
                    put_u8(work.begun, j - start, 0)
                if j + length > end:
                    for k in range(end - start, j + length - start):
                        put_u8(work.classes, k, rest)
                        if asked:
                            put_u8(work.begun, k, begun | IS_REST)
                    end = j + length
        i = end
    put_u8(work.classes, 0, get_u8(work.classes, 0) | 1)
    put_u8(work.classes, stop - start, 1)
    return stop


@helper
def _malformed(text: Window, i: int, stop: int) -> int:
    """The first byte from i on that is not part of a character."""
    while i < stop:
        length = 1
        if get_u8(text, i) >= 0x80:
            _, length = _wide_character(text, i, stop)
            if length == 0:
                break
        i += length
    return i


@helper
def _wide_character(text: Window, i: int, stop: int) -> tuple[int, int]:
    """(code point, bytes) of the character beyond ASCII at i; (.., 0) when it is malformed. Reads up to four bytes."""
    byte = get_u8(text, i)
    second = get_u8(text, i + 1)
    if byte < 0xE0:
        good = byte >= 0xC2 and second & 0xC0 == 0x80 and i + 2 <= stop
        return (byte & 0x1F) << 6 | second & 0x3F, 2 * good
    third = get_u8(text, i + 2)
    if byte < 0xF0:
        c = (byte & 0xF) << 12 | (second & 0x3F) << 6 | third & 0x3F
        return c, 3 * (c >= 0x800 and second & 0xC0 == 0x80 and third & 0xC0 == 0x80 and i + 3 <= stop)
    fourth = get_u8(text, i + 3)
    c = (byte & 7) << 18 | (second & 0x3F) << 12 | (third & 0x3F) << 6 | fourth & 0x3F
    follow = second & 0xC0 == 0x80 and third & 0xC0 == 0x80 and fourth & 0xC0 == 0x80
    return c, 4 * (byte < 0xF8 and 0x10000 <= c < 0x110000 and follow and i + 4 <= stop)


# ---- scratch in memory that is only written after splitting: the buffer of ids, or of pre-tokens
#
# After splitting, only the cuts are read. The buffer of ids is large, as a malformed byte becomes up to three ids. For
# a long text, the scratch of cutters and matchers would take as much memory again, at the same time.

LEAST_BYTES = 1 << 16
"""Bytes of a text from which on borrowing pays."""
_ARRAYS = 3


@helper
def _array_words(size: int) -> int:
    """int32 elements that each of the arrays takes for a text of `size` bytes."""
    return ((size + 1 + PAD) // BLOCK + 1) * (BLOCK // 4)


@helper
def borrowed_words(size: int) -> int:
    """int32 elements that `borrow` takes for a text of `size` bytes: fewer than its ids may take."""
    return _ARRAYS * _array_words(size)


@helper
def _borrow(split: SplitWindow, words: Window, at: int, size: int) -> SplitWindow:
    """`split` with the same cuts and notes, and all other arrays in an int32 window from element `at` on."""
    each = _array_words(size)
    return SplitWindow(
        as_bytes(words, at, each),
        as_bytes(words, at + each, each),
        as_bytes(words, at + 2 * each, each),
        as_halves(words, at + 2 * each, each),
        split.cuts,
        split.notes,
    )


@helper
def _keep(split: SplitWindow, _words: Window, _at: int, _size: int) -> SplitWindow:
    return split


borrow = _borrow if FAST or not JIT else _keep
"""Compiled code with bounds checks has no views of arrays: it uses the scratch's own."""


def borrowed_from(words: NDArray[np.uint8], work: SplitWork, splitter: Splitter) -> SplitWork:
    """`work` with one of its arrays in the buffer of words: `pairs` and `flags` for a single cutter, which does not use
    `begun`, else `begun`. Words are written when all cuts of a text are known, from classes and cuts alone. The buffer
    must be empty until then, so this is for a single text only."""
    if splitter.kinds.tolist() != [CUTTER]:
        return work._replace(begun=words[: work.begun.size])
    pairs = words[: work.flags.size].view(np.uint16)
    return work._replace(pairs=pairs, flags=pairs.view(np.uint8))

"""Splits a text at safe cuts into spans whose ids do not depend on the text around them, 64 bytes per step.

The rules come from `safe_cuts.cuts`. With X the mask of a class and p(X) "the byte before is of class X", a span begins
at p(A) & B for every pair of classes between which there is a safe cut. Characters beyond ASCII have flags. Those at
the first byte: `nn`, the character is not joined to one beyond ASCII on its left; `la`, it may be joined to ASCII;
`lw`, to a blank. `ra`, at the byte after it: ASCII may be joined to it. Each span ends where the next begins.
"""

from __future__ import annotations

import numpy as np

from jittok.common.unicode.characters import NEWLINE
from jittok.kernels.jit import helper, inlined
from jittok.kernels.memory import (
    Window,
    bit_places,
    equal_mask,
    get_i64,
    get_u8,
    get_u64,
    span_masks,
    trailing_zeros,
    utf8_masks,
)
from jittok.kernels.pretokenize.splitters.gpt2 import MALFORMED
from jittok.kernels.safe_cuts.cuts import (
    ANYWHERE,
    BLANK,
    CLASSES,
    CONTROL,
    DIGIT,
    ILL,
    LETTER,
    LIKE_BLANK,
    OTHER,
    PAIR_ROW,
    RIGHT_ASCII,
    STICKY,
    TIED,
    WIDE,
    SpanWindow,
    crosses_path,
    may_cross,
    may_join,
    wide_character,
)
from jittok.kernels.structures.prefetch import prefetch_text
from jittok.kernels.structures.sequences import SequenceWindow, threes_begin, twos_begin

NONE, ONE, ALL = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
EVERY_FOURTH = np.uint64(0x1111111111111111)
B2, B3, B63 = np.uint64(2), np.uint64(3), np.uint64(63)


@helper
def split_spans(rules: SpanWindow, text: Window, begin: int, end: int, stop: int, positions: Window) -> int:
    """Write the offsets, from `begin`, where spans of text[begin:end] begin; returns how many, or MALFORMED.

    One loop, longer than a page: its masks stay in registers, which those of several functions would not.

    begin: where a span begins; stop: end of the text, which continues after `end`; PAD bytes are readable after it
    positions: int32[end - begin + 64] receives the offsets
    """
    i, count, force = begin, 0, ONE
    p_control = p_letter = p_digit = p_other = p_apart = p_blank = p_wide = p_newline = NONE
    # the last wide character: code point and flags, the offset after it; bytes of the next block that are its own
    code, flags, following, owed = 0, 0, begin - 1, 0
    while i < end:
        prefetch_text(text, i)
        high, letter, digit, control, blank = span_masks(text, i)
        apart, follower = NONE, NONE
        if rules.any_blanks != 0:
            blank |= equal_mask(text, i, get_i64(rules.blanks, 0)) | equal_mask(text, i, get_i64(rules.blanks, 1))
            blank |= equal_mask(text, i, get_i64(rules.blanks, 2)) | equal_mask(text, i, get_i64(rules.blanks, 3))
            blank |= equal_mask(text, i, get_i64(rules.blanks, 4))
        if rules.any_apart != 0:
            apart = equal_mask(text, i, get_i64(rules.apart, 0)) | equal_mask(text, i, get_i64(rules.apart, 1))
            apart |= equal_mask(text, i, get_i64(rules.apart, 2)) | equal_mask(text, i, get_i64(rules.apart, 3))
            apart |= equal_mask(text, i, get_i64(rules.apart, 4)) | equal_mask(text, i, get_i64(rules.apart, 5))
        inside = ALL
        if stop - i < 64:
            inside = (ONE << np.uint64(stop - i)) - ONE
            high &= inside
        nn = la = lw = ra = sticky = NONE
        some_wide = (high | p_wide) != NONE or owed != 0
        if some_wide:
            nn, la, lw, ra, sticky, marks, follower, bad, code, flags, following = _wide(
                rules, text, i, inside, owed, code, flags, following
            )
            if bad != NONE:
                return MALFORMED
            owed = max(following - i - 64, 0)
            high &= ~marks
            blank |= marks
        tied = ~(high | blank | apart)
        letter &= tied
        digit &= tied
        control &= tied
        other = tied & ~(letter | digit | control)
        b_control = control << ONE | p_control
        b_letter = letter << ONE | p_letter
        b_digit = digit << ONE | p_digit
        b_other = other << ONE | p_other
        b_apart = apart << ONE | p_apart
        b_blank = blank << ONE | p_blank
        b_wide = high << ONE | p_wide
        starts = b_control & _row(rules, CONTROL, control, letter, digit, other, apart, blank)
        starts |= b_letter & _row(rules, LETTER, control, letter, digit, other, apart, blank)
        starts |= b_digit & _row(rules, DIGIT, control, letter, digit, other, apart, blank)
        starts |= b_other & _row(rules, OTHER, control, letter, digit, other, apart, blank)
        starts |= b_blank & _row(rules, BLANK, control, letter, digit, other, apart, blank)
        if rules.any_apart != 0:
            starts |= b_apart & _row(rules, TIED, control, letter, digit, other, apart, blank)
        if some_wide:
            b_plain = b_letter | b_digit | b_other
            cut = b_control & get_u64(rules.cuts, CLASSES * CONTROL + WIDE)
            cut |= b_letter & get_u64(rules.cuts, CLASSES * LETTER + WIDE)
            cut |= b_digit & get_u64(rules.cuts, CLASSES * DIGIT + WIDE)
            cut |= b_other & get_u64(rules.cuts, CLASSES * OTHER + WIDE)
            cut |= b_apart & get_u64(rules.cuts, CLASSES * TIED + WIDE)
            cut |= b_blank & (get_u64(rules.cuts, CLASSES * BLANK + WIDE) | ~lw)
            starts |= high & (cut | b_plain & ~la) | nn
            if rules.last_blank != 0:
                sticky = NONE  # where blanks are merged, nothing else hangs on to them
            starts |= b_wide & ~sticky & _row(rules, WIDE, control, letter, digit, other, apart, blank)
            starts |= b_wide & ~ra & (letter | digit | other)
        if rules.not_before_wide != 0:
            ahead = np.uint64(get_u8(text, i + 64) >> 7) << B63  # may lie after the text: a cut is lost then
            starts &= high | blank | ~(high >> ONE | ahead)
        if rules.last_blank != 0:
            blank |= ~inside  # a run of blanks that ends the text is one span
            after = get_u8(text, i + 64) if i + 64 < stop else 0x20
            starts |= blank & b_blank & ~(blank >> ONE | _is_blank(rules, after) << B63)
        else:
            starts &= ~(blank & b_blank) | EVERY_FOURTH  # long runs of blanks: fewer spans, and few different ones
        if rules.lines != 0:
            newline = equal_mask(text, i, NEWLINE)
            b_newline = newline << ONE | p_newline
            starts = starts & ~(newline & b_newline) | newline ^ b_newline
            p_newline = newline >> B63
        starts = starts & ~follower | force
        force = NONE
        if end - i < 64:
            starts &= (ONE << np.uint64(end - i)) - ONE
        if rules.any_crossings != 0:
            starts &= ~_inside_paths(rules, text, begin, i, stop, starts)
        count = bit_places(positions, count, i - begin, starts)
        p_control, p_letter, p_digit = control >> B63, letter >> B63, digit >> B63
        p_other, p_apart, p_blank, p_wide = other >> B63, apart >> B63, blank >> B63, high >> B63
        i += 64
    return MALFORMED if following > stop else count


@inlined
def _inside_paths(rules: SpanWindow, text: Window, begin: int, i: int, stop: int, starts: np.uint64) -> np.uint64:
    """The starts in the block at i that are inside a path."""
    back = 2 if i > begin else 0  # nothing is before the first byte
    one, two = np.uint64(back == 0), np.uint64(2 - back)
    starts &= ~one
    found = _ends(rules.forbidden, text, i, back, one, two) & starts
    rest = starts & ~found
    if rules.pairs_size:
        rest &= _ends(rules.sought, text, i, back, one, two)
    while rest != NONE:
        k = trailing_zeros(rest)
        rest &= rest - ONE
        if crosses_path(rules, text, begin, i + k, stop, _where_paths_begin(rules, text, i + k)):
            found |= ONE << np.uint64(k)
    return found


@helper
def _ends(own: SequenceWindow, text: Window, i: int, back: int, one: np.uint64, two: np.uint64) -> np.uint64:
    """Which of bytes i .. i + 63 are the last ones of sequences of two or three bytes. back: the sequences begin so
    many bytes before i or later: 2, or 0. one, two: how far the masks of sequences of two and three bytes are
    shifted: 0, or 1 and 2 if `back` is 0."""
    return twos_begin(own, text, i - (back >> 1)) << one | threes_begin(own, text, i - back) << two


@helper
def _where_paths_begin(rules: SpanWindow, text: Window, at: int) -> np.uint64:
    """Where paths begin that may cross `at`, see `crosses_path`."""
    first, second = get_u8(text, at - 1), get_u8(text, at)
    for pair in range(0, rules.pairs_size, PAIR_ROW):
        if get_u64(rules.crossing_pairs, pair) == first and get_u64(rules.crossing_pairs, pair + 1) == second:
            return get_u64(rules.crossing_pairs, pair + 2)
    return ANYWHERE if rules.pairs_size == 0 and may_cross(rules, text, at) else NONE


@helper
def _row(
    rules: SpanWindow,
    left: int,
    control: np.uint64,
    letter: np.uint64,
    digit: np.uint64,
    other: np.uint64,
    apart: np.uint64,
    blank: np.uint64,
) -> np.uint64:
    """The bytes that may be cut from a byte of class `left` before them, wide ones aside."""
    at = CLASSES * left
    found = (control & get_u64(rules.cuts, at + CONTROL)) | (letter & get_u64(rules.cuts, at + LETTER))
    found |= (digit & get_u64(rules.cuts, at + DIGIT)) | (other & get_u64(rules.cuts, at + OTHER))
    return found | (apart & get_u64(rules.cuts, at + TIED)) | (blank & get_u64(rules.cuts, at + BLANK))


@helper
def _is_blank(rules: SpanWindow, byte: int) -> np.uint64:
    """1 for a byte that counts as a space."""
    found = byte == 0x20
    for k in range(5):
        found |= byte == get_i64(rules.blanks, k)
    return np.uint64(found)


@helper
def _wide(
    rules: SpanWindow, text: Window, i: int, inside: np.uint64, owed: int, code: int, flags: int, after: int
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, int, int, int]:
    """The wide characters of one block. Returns (nn, la, lw, ra, bytes after sticky ones, bytes of those like blanks,
    continuation bytes, not 0 when malformed, and of the last of them code point, flags and the offset after it).

    A first byte determines how many continuation bytes follow. A missing or an extra one makes the text malformed.
    """
    follower, first, e0, f0, f8 = utf8_masks(text, i)
    follower &= inside
    first &= inside
    head = (ONE << np.uint64(owed)) - ONE
    promised = (first << ONE) | (e0 & inside) << B2 | (f0 & inside) << B3 | head
    bad = (promised ^ follower) | f8 & inside
    nn = la = lw = ra = sticky = marks = NONE
    if after >= i:
        ra = np.uint64((flags & RIGHT_ASCII) != 0) << np.uint64(after - i)
        sticky = np.uint64((flags & STICKY) != 0) << np.uint64(after - i)
    if flags & LIKE_BLANK:
        marks = head
    while first != NONE:
        k = trailing_zeros(first)
        at = np.uint64(k)
        first &= first - ONE
        left, before = code, flags
        code, size, flags = wide_character(rules, text, i + k)
        if flags & (LIKE_BLANK | ILL):
            if flags & ILL:
                bad |= ONE
            marks |= ((ONE << np.uint64(size)) - ONE) << at
        elif after == i + k and (flags | before) & STICKY == 0 and before & LIKE_BLANK == 0:
            free = flags & before >> 3 & 1 == 0  # LEFT_WIDE of this one, RIGHT_WIDE of the one before
            if not free and left >= 0x800 and code >= 0x800:
                free = not may_join(rules, left, code)
            nn |= np.uint64(free) << at
        la |= np.uint64(flags >> 1 & 1) << at  # LEFT_ASCII
        lw |= np.uint64(flags >> 2 & 1) << at  # LEFT_BLANK
        ra |= (np.uint64(flags >> 4 & 1) << at) << np.uint64(size)  # RIGHT_ASCII
        sticky |= (np.uint64(flags >> 5 & 1) << at) << np.uint64(size)
        after = i + k + size
    return nn, la, lw, ra, sticky, marks, follower, bad, code, flags, after

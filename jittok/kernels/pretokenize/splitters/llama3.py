"""The Llama 3 pattern and its relatives by bit algebra, 64 bytes per step: llama3, qwen2, qwen3.5, o200k (gpt-4o),
tekken.

    '(?i:contraction)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|
    ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+

Masks as in `gpt2.py`, and R = CR or LF, T = white space without R, other' = bytes of an O character that begins a
pre-token.

- O begins a pre-token at first(O) & ~p(S): ` ?` consumes a space before it.
- L begins one at first(L) & ~p(T) & ~p(other'). A word includes one character of T before it, or an O that begins a
  pre-token. An O inside its own pre-token is not included, nor are CR and LF.
- D: every digit (groups of one), or every third of a run.
- Line ends after O belong to its pre-token (`[\\r\\n]*`): attached = R & (p(attached) | p(O)). This is a carry chain,
  which one addition computes: with g = R & p(O), R + g + carry has a carry into bit k exactly when byte k - 1 is
  attached.
- W: first(W) & ~attached; T & ~n(W) as in GPT-2; and the T after the last line end of a run, since `\\s*[\\r\\n]+`
  consumes everything up to it. A T after a line end is such a start unless another line end follows in the same run.

o200k and tekken: a letter is a capital, small, or both. As llama.cpp runs them, every non-ASCII letter is both, and so
it is in the tables. A capital after a small letter begins a pre-token; capitals after a letter that is both are checked
one by one. Contractions (o200k) are suffixes of words, also one by one. `[\\r\\n/]*`: the carry chain with slashes.

With TRUE_CASE the patterns have \\p{M} in the classes of both cases, but \\p{M} is not in \\p{L}. A mark is a letter of
both cases, but inside of ` ?[^\\s\\p{L}\\p{N}]+` it belongs to that pre-token. Such a pre-token is entered at an O
after a space, and at an O after an O. It continues over O and marks: a carry chain. Any other O that begins a pre-token
may be the first character of a word, and a mark after it is the rest of this word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok.kernels.jit import helper
from jittok.kernels.memory import Window, add, bit_places, get_u8, leading_zeros, trailing_zeros
from jittok.kernels.pretokenize.splitters.blocks import (
    B2,
    B3,
    B61,
    B62,
    B63,
    CAPITAL,
    LETTER,
    MARK,
    NONE,
    ONE,
    SMALL,
    Block,
    ClassWindow,
    carry_out,
    class_of_letter,
    letters_after_quotes,
    more_lines,
    no_block,
    read_block,
)
from jittok.kernels.pretokenize.splitters.gpt2 import MALFORMED

FOLD = np.uint64(0x20)
LONG_S = (0xC5, 0xBF)
"""U+017F in UTF-8."""
ONE_CASE, BOTH_CASES, TRUE_CASE = 0, 1, 2
"""Values of `cased`."""
PREFIX, SUFFIX, WITHOUT = 0, 1, 2
"""Where contractions match: before everything else (llama3), after a word (o200k), nowhere (tekken)."""
FOLDED = 4
"""Added to these if `(?i:'s)` matches U+017F, too: the general splitter handles a text with such a contraction."""


@helper
def split_llama3(
    classes: ClassWindow,
    text: Window,
    begin: int,
    end: int,
    stop: int,
    positions: Window,
    group: int,
    cased: int,
    contractions: int,
) -> int:
    """Write the offsets, from `begin`, where pre-tokens of text[begin:end] begin; returns how many, or MALFORMED.

    One loop, longer than a page: its masks stay in registers, which those of several functions would not.

    stop: end of the text, which continues after `end`; PAD bytes are readable after it
    positions: int32[end - begin + 64] receives the offsets
    group: 1 or 3 digits per pre-token; cased: ONE_CASE, or for o200k and tekken BOTH_CASES, TRUE_CASE with marks
    contractions: PREFIX, SUFFIX or WITHOUT, with or without FOLDED
    """
    folded, where = contractions & FOLDED, contractions & ~FOLDED
    i, count = begin - 64, 0
    now = no_block()
    p_letter = p_digit = p_white = p_other = p_space = p_line = p_blank = NONE
    p_taken = p_small = p_both = attached_out = inside_out = NONE
    lower = False  # whether the running piece has a small letter
    phase = 0  # digits of the running group so far
    quote_ends = NONE  # o200k: where the block before ended a contraction
    force, clear = ONE, NONE
    while i < end:
        ahead = read_block(classes, text, i + 64, stop, now.owed, now.owed_class)
        if (now.bad | ahead.bad) != NONE:
            return MALFORMED
        if i < begin:  # a turn in which the first block is read
            now = ahead
            i = begin
            continue
        letter, other = now.letter, ~(now.letter | now.digit | now.white)
        blank = now.white & ~now.line
        b_digit = now.digit << ONE | p_digit
        b_other = other << ONE | p_other
        b_white = now.white << ONE | p_white
        b_space = now.space << ONE | p_space
        b_line = now.line << ONE | p_line
        b_blank = blank << ONE | p_blank
        n_white = now.white >> ONE | ahead.white << B63

        tail = now.line  # what may be attached
        if cased != 0:
            # a slash is O too: after O it belongs to its run, after an attached line end it is attached
            tail |= now.slash
        first = now.line & b_other
        was = add(add(tail, first), attached_out) ^ tail ^ first  # bit k: byte k - 1 is attached
        attached = tail & (was | first)
        if cased == TRUE_CASE:
            run = other & ~attached
            first_inside = run & ~now.follower & (b_space | b_other & ~was)
            run |= now.mark
            reached = add(add(run, first_inside), inside_out) ^ run ^ first_inside | first_inside
            inside_out = carry_out(run, first_inside, inside_out)
            marks = now.mark & reached
            if marks != NONE:
                letter &= ~marks
                other |= marks
                b_other = other << ONE | p_other
                first = now.line & b_other
                was = add(add(tail, first), attached_out) ^ tail ^ first
                if (tail & (was | first) & ~attached & ~now.line) != NONE:
                    return MALFORMED  # line ends after a mark, and slashes after them: left to the patterns
                attached = tail & (was | first)
        attached_out = carry_out(tail, first, attached_out)
        b_letter = letter << ONE | p_letter

        alone = other & ~b_other & ~b_space
        if cased != 0:
            alone = (alone | other & was) & ~attached
        alone &= ~now.follower
        taken = alone
        if now.follower != NONE:
            taken |= p_taken & now.follower
            taken |= taken << ONE & now.follower
            taken |= taken << ONE & now.follower
            taken |= taken << ONE & now.follower
        starts = alone | letter & ~b_letter & ~b_blank & ~(taken << ONE | p_taken)
        capital = now.capital | now.wide_capital
        small = letter & ~now.capital & ~now.wide_letter | now.wide_small
        both = now.wide_letter & letter & ~now.wide_capital & ~now.wide_small
        if cased != 0:
            starts |= capital & (small << ONE | p_small)

        fresh = now.white & ~b_white & ~attached
        if (now.white_two | now.white_three) == NONE:
            starts |= fresh | blank & ~n_white
        else:
            single = blank & ~now.follower & ~now.white_two & ~now.white_three
            starts |= fresh | single & ~n_white
            starts |= now.white_two & ~(now.white >> B2 | ahead.white << B62)
            starts |= now.white_three & ~(now.white >> B3 | ahead.white << B61)
        after = blank & b_line & ~now.follower
        if after != NONE:
            starts = _after_lines(classes, text, i, stop, now, ahead, blank, after, was, starts)

        if now.digit != NONE:
            starts, phase = _digits(now, b_digit, p_digit, starts, phase, group)
        else:
            phase = 0
        starts = starts & ~now.follower & ~clear | force
        force = clear = NONE
        if where == PREFIX:
            quotes = now.quote & alone
            if quotes != NONE:
                if folded and _long_s_after(text, i, quotes & (now.wide_letter >> ONE | ahead.wide_letter << B63)):
                    return MALFORMED
                one, two = letters_after_quotes(text, i, stop, FOLD)
                one &= quotes
                two &= quotes
                starts = starts & ~((one | two) << ONE) | one << B2 | two << B3
                clear = (one | two) >> B63
                force = one >> B62 | two >> B61
        elif where == SUFFIX:
            quotes = now.quote & b_letter & ~now.follower
            if folded and _long_s_after(text, i, quotes & (now.wide_letter >> ONE | ahead.wide_letter << B63)):
                return MALFORMED
            starts, clear, force, quote_ends = _suffixes(text, i, stop, quotes, starts, quote_ends)
        if cased != 0:
            odd = capital & ~now.follower & (both << ONE | p_both) & ~starts
            if odd != NONE:
                starts = _capitals(classes, text, i, odd, starts, small, lower, stop)
        if end - i < 64:
            starts &= (ONE << np.uint64(end - i)) - ONE
        lower = _any_after(small, starts, lower)
        count = bit_places(positions, count, i - begin, starts)
        p_letter, p_digit, p_white = letter >> B63, now.digit >> B63, now.white >> B63
        p_other, p_space, p_line, p_blank = other >> B63, now.space >> B63, now.line >> B63, blank >> B63
        p_taken, p_small, p_both = taken >> B63, small >> B63, both >> B63
        now = ahead
        i += 64
    return count


@helper
def _after_lines(
    classes: ClassWindow,
    text: Window,
    i: int,
    stop: int,
    now: Block,
    ahead: Block,
    blank: np.uint64,
    following: np.uint64,
    was: np.uint64,
    starts: np.uint64,
) -> np.uint64:
    """Add starts at the blanks after line ends, unless another line end follows in the same run of white space.

    If the line ends before a blank are attached to a pre-token of O, the run begins at the blank: always a start.
    """
    starts |= following
    following &= ~was
    after = add(blank, following) & ~blank
    if (after & now.line) != NONE:
        while following != NONE:
            k = trailing_zeros(following)
            following &= following - ONE
            if more_lines(classes, text, i + k, stop):
                starts &= ~(ONE << np.uint64(k))
    elif carry_out(blank, following, NONE) != NONE:
        k = trailing_zeros(~(ahead.white & ~ahead.line))  # the last run goes on into the next block
        more = ahead.line >> np.uint64(k) & ONE != NONE if k < 64 else more_lines(classes, text, i + 128, stop)
        if more:
            starts &= ~(ONE << np.uint64(63 - leading_zeros(following)))
    return starts


@helper
def _digits(
    now: Block, b_digit: np.uint64, p_digit: np.uint64, starts: np.uint64, phase: int, group: int
) -> tuple[np.uint64, int]:
    """(starts with those of digits, digits of the running group at the end of the block).

    Every third digit of a run begins a pre-token. By hand for "a1234 ", bit 0 (the letter) on the right:

        digit    01 1110    the four digits
        b_digit  11 1100    the byte before is a digit
        run      00 0010    digit & ~b_digit: the run begins at "1"
        thirds   01 0000    three digits are before this one: digit & digit << 1 & digit << 2 & digit << 3
        new      01 0000    run << 3 & thirds: the next group begins three bytes after the one before
        run      01 0010    "123" and "4"; the next `new` is empty

    A run that continues from the block before begins no group at bit 0, unless three digits are full: `phase` counts
    those of the running group. If a block ends with "12", the last start is at bit 62, so phase = (1 + 1) % 3 = 2. If
    "34 " is next, r = (3 - 2) % 3 = 1 digit completes the group, and "4", at bit 1, begins another.
    """
    if group == 1:
        return starts | now.digit & ~now.follower, 0
    if now.wide_digit == NONE:
        run = now.digit & ~b_digit
        if (now.digit & p_digit) != NONE:  # a run that came in: its next group begins where three are full
            r = (3 - phase) % 3
            k = trailing_zeros(~now.digit)
            if r < k:
                run |= ONE << np.uint64(r)
        thirds = now.digit & now.digit << ONE & now.digit << B2 & now.digit << B3
        new = run << B3 & thirds
        while new != NONE:
            run |= new
            new = new << B3 & thirds
        starts |= run
        phase = 0
        if now.digit >> B63 != NONE:
            phase = (leading_zeros(run) + 1) % 3  # a run that ends the block has a group start in it
        return starts, phase
    todo = now.digit & ~now.follower
    while todo != NONE:
        k = np.uint64(trailing_zeros(todo))
        todo &= todo - ONE
        if (b_digit >> k) & ONE == NONE:
            phase = 0
        if phase == 0:
            starts |= ONE << k
        phase = (phase + 1) % 3
    if now.digit >> B63 == NONE:
        phase = 0
    return starts, phase


@helper
def _long_s_after(text: Window, i: int, quotes: np.uint64) -> bool:
    """Whether U+017F is after one of these quotes of text[i:i + 64]. After each a character beyond ASCII begins,
    and the text is well-formed up to its end."""
    while quotes != NONE:
        k = i + trailing_zeros(quotes)
        quotes &= quotes - ONE
        if get_u8(text, k + 1) == LONG_S[0] and get_u8(text, k + 2) == LONG_S[1]:
            return True
    return False


@helper
def _suffixes(
    text: Window, i: int, stop: int, quotes: np.uint64, starts: np.uint64, ended: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """o200k: contractions after words lose their own start. Returns (starts, clear, force, ended) for the next block.

    ended: where a contraction ended; a quote right there begins a piece of its own, so it is done in rising order.
    """
    clear = force = ends = NONE
    if quotes == NONE:
        return starts, clear, force, ends
    one, two = letters_after_quotes(text, i, stop, FOLD)
    todo = (one | two) & quotes
    while todo != NONE:
        k = np.uint64(trailing_zeros(todo))
        todo &= todo - ONE
        bit = ONE << k
        if (ended & bit) != NONE:
            continue
        starts &= ~bit
        if (one & bit) != NONE:
            starts &= ~(bit << ONE)
            starts |= bit << B2
            ended |= bit << B2
            clear |= bit >> B63
            force |= bit >> B62
            ends |= bit >> B62
        else:
            starts &= ~(bit << ONE | bit << B2)
            starts |= bit << B3
            ended |= bit << B3
            clear |= bit >> B63 | bit >> B62
            force |= bit >> B61
            ends |= bit >> B61
    return starts, clear, force, ends


@helper
def _any_after(small: np.uint64, starts: np.uint64, lower: bool) -> bool:
    """Whether there is a small letter from the last start on; lower: whether the pre-token before has one."""
    if starts != NONE:
        lower = False
        small >>= np.uint64(63 - leading_zeros(starts))
    return lower or small != NONE


@helper
def _capitals(
    classes: ClassWindow, text: Window, i: int, odd: np.uint64, starts: np.uint64, small: np.uint64, lower: bool,
    stop: int,
) -> np.uint64:  # fmt: skip
    """Add to `starts` the capitals after letters of both cases that begin a pre-token.

    A pre-token is (capital or both)* (small or both)+, or capitals only. odd: the capitals in question; lower: whether
    the pre-token that continues in this block has a small letter.
    """
    while odd != NONE:
        k = trailing_zeros(odd)
        odd &= odd - ONE
        below = (ONE << np.uint64(k)) - ONE
        begins = _any_after(small & below, starts & below, lower)  # the second phase runs, a capital ends it
        if not begins:
            # first phase: the piece ends after the last letter of both cases, unless a small one follows
            begins = True
            j = i + k
            while j < stop:
                byte = get_u8(text, j)
                if 65 <= byte <= 90:
                    j += 1
                    continue
                if 97 <= byte <= 122:
                    begins = False
                elif byte >= 0x80:
                    kind = class_of_letter(classes, text, j)
                    if kind == CAPITAL:
                        j += 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
                        continue
                    begins = kind not in (LETTER, SMALL, MARK)
                break
        if begins:
            starts |= ONE << np.uint64(k)
    return starts


@helper
def split_as_llama3(own: Any, text: Window, begin: int, end: int, stop: int, positions: Window) -> int:
    """The same with the classes and settings of `own.classes` and `own.model`: a splitter for `make_next_chunk`."""
    model = own.model
    return split_llama3(own.classes, text, begin, end, stop, positions, model.group, model.cased, model.contractions)

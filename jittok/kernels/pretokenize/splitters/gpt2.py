"""The GPT-2 pattern by bit algebra, 64 bytes a step.

    's|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+

L, D, W, O are bitmaps of the bytes of letters, digits, white space and other characters, S of spaces. p(X) is "the byte
before is in X", n(X) "the byte after is in X", first(X) = X & ~p(X). Then pre-tokens begin at

    (first(L) | first(D) | first(O)) & ~p(S) | W & (~p(W) | ~n(W))

Why: a run of one class is one pre-token. ` ?` consumes a space before it. That space is always available, because
`\\s+(?!\\S)` gives the last white space character back when another character follows. So a run of white space has two
starts: its first character, and its last one if something follows. A pre-token that begins with an apostrophe and the
letters of a contraction ends after 2 or 3 bytes. An apostrophe right after a contraction follows a letter, so whether
it is a start does not depend on the contraction before it.

With `digits_alone` each digit is cut out first (StarCoder and similar: `\\p{N}` and then this pattern). Then white
space before a digit ends its pre-token, so nothing is given back, and a digit consumes no space.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok.kernels.jit import helper
from jittok.kernels.memory import Window, bit_places
from jittok.kernels.pretokenize.splitters.blocks import (
    B2,
    B3,
    B61,
    B62,
    B63,
    NONE,
    ONE,
    ClassWindow,
    letters_after_quotes,
    no_block,
    read_block,
)

MALFORMED = -100
"""The text is invalid UTF-8. The number differs from all codes of `jittok.kernels.fragments`."""


@helper
def split_gpt2(
    classes: ClassWindow, text: Window, begin: int, end: int, stop: int, positions: Window, digits_alone: int
) -> int:
    """Write the offsets, from `begin`, where pre-tokens of text[begin:end] begin; returns how many, or MALFORMED.

    stop: end of the text, which continues after `end`; PAD bytes are readable after it
    positions: int32[end - begin + 64] receives the offsets
    """
    i, count = begin - 64, 0
    now = no_block()
    p_letter = p_digit = p_white = p_other = p_space = NONE
    force, clear = ONE, NONE  # starts that the block before adds to or removes from this one's first bytes
    while i < end:
        ahead = read_block(classes, text, i + 64, stop, now.owed, now.owed_class)
        if (now.bad | ahead.bad) != NONE:
            return MALFORMED
        if i < begin:  # the first turn only reads the first block
            now = ahead
            i = begin
            continue
        other = ~(now.letter | now.digit | now.white)
        b_letter = now.letter << ONE | p_letter
        b_digit = now.digit << ONE | p_digit
        b_other = other << ONE | p_other
        b_white = now.white << ONE | p_white
        b_space = now.space << ONE | p_space
        solid, solid_ahead = now.white, ahead.white  # what ends a run of white space that gives nothing back
        if digits_alone != 0:
            solid |= now.digit
            solid_ahead |= ahead.digit
            starts = (now.letter & ~b_letter | other & ~b_other) & ~b_space | now.digit
        else:
            starts = (now.letter & ~b_letter | now.digit & ~b_digit | other & ~b_other) & ~b_space
        n_solid = solid >> ONE | solid_ahead << B63
        if (now.white_two | now.white_three) == NONE:
            starts |= now.white & ~(b_white & n_solid)
        else:
            single = now.white & ~now.follower & ~now.white_two & ~now.white_three
            starts |= now.white & ~b_white
            starts |= single & ~n_solid
            starts |= now.white_two & ~(solid >> B2 | solid_ahead << B62)
            starts |= now.white_three & ~(solid >> B3 | solid_ahead << B61)
        starts = starts & ~now.follower & ~clear | force
        force = clear = NONE
        quotes = now.quote & ~b_other & ~b_space
        if quotes != NONE:
            one, two = letters_after_quotes(text, i, stop, NONE)
            one &= quotes
            two &= quotes
            starts = starts & ~((one | two) << ONE) | one << B2 | two << B3
            clear = (one | two) >> B63
            force = one >> B62 | two >> B61
        if end - i < 64:
            starts &= (ONE << np.uint64(end - i)) - ONE
        count = bit_places(positions, count, i - begin, starts)
        p_letter, p_digit, p_white = now.letter >> B63, now.digit >> B63, now.white >> B63
        p_other, p_space = other >> B63, now.space >> B63
        now = ahead
        i += 64
    return count


@helper
def split_as_gpt2(own: Any, text: Window, begin: int, end: int, stop: int, positions: Window) -> int:
    """The same with the classes and settings of `own.classes` and `own.model`: a splitter for `make_next_chunk`."""
    return split_gpt2(own.classes, text, begin, end, stop, positions, own.model.digits_alone)

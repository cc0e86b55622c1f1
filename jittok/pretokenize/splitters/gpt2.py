"""The GPT-2 pattern by bit algebra, 64 bytes a step.

    's|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+

L, D, W, O are the bytes of letters, digits, white space and others, S those of the space. p(X) is "X is the byte
before", n(X) "X is the byte after". Then pieces begin at (first(L) | first(D) | first(O)) & ~p(S) | W & (~p(W) |
~n(W)).

Why: a run of one class is one piece. A space before it is taken by ` ?`. That space is always free to be taken, because
`\\s+(?!\\S)` gives the last character of white space back when something follows. So a run of white space has two
starts: its first character, and its last one if something follows. An apostrophe that begins a piece and is followed by
a contraction's letters ends 2 or 3 bytes later. An apostrophe right after a contraction follows a letter, so its own
start does not depend on the contraction before it.

With `digits_alone` each digit is cut out first (StarCoder and its kin: `\\p{N}` and then this pattern). Then white
space before a digit ends its piece, so nothing is given back, and a digit takes no space along.
"""

from __future__ import annotations

import numpy as np

from jittok._jit import helper
from jittok._raw import Window, bit_places
from jittok.pretokenize.splitters.blocks import (
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
"""The text is no well-formed UTF-8; the number is apart from the codes of `jittok.fragments`."""


@helper
def split_gpt2(
    classes: ClassWindow, text: Window, begin: int, end: int, stop: int, positions: Window, digits_alone: int
) -> int:
    """Where pieces of text[begin:end] begin, counted from `begin`, to places; returns how many, or MALFORMED.

    stop: end of the text, which goes on after `end`; PAD bytes are readable after it
    places: int32[end - begin + 64] room
    """
    i, count = begin - 64, 0
    now = no_block()
    p_letter = p_digit = p_white = p_other = p_space = NONE
    force, clear = ONE, NONE  # what the block before says of this one's first bytes
    while i < end:
        ahead = read_block(classes, text, i + 64, stop, now.owed, now.owed_class)
        if (now.bad | ahead.bad) != NONE:
            return MALFORMED
        if i < begin:  # a turn in which the first block is read
            now = ahead
            i = begin
            continue
        other = ~(now.letter | now.digit | now.white)
        b_letter = now.letter << ONE | p_letter
        b_digit = now.digit << ONE | p_digit
        b_other = other << ONE | p_other
        b_white = now.white << ONE | p_white
        b_space = now.space << ONE | p_space
        solid, solid_ahead = now.white, ahead.white  # what a run of white space may end before
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

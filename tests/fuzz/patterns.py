"""Drawn patterns over a few bytes, and what a matcher finds, read off its table in plain Python."""

import re

import numpy as np
from hypothesis import strategies as st

from jittok.kernels.pretokenize.automaton import DEAD, START

LETTERS = b"ab' 1\n\xd2"


def first_match(automaton, symbols, at):
    """The end of the match that begins at a place, or None; linear in what is read."""
    state, found = START, None
    for i in range(at, len(symbols) + 1):
        if i < len(symbols):
            kind = int(automaton.classes[np.searchsorted(automaton.starts, symbols[i], "right") - 1])
        else:
            kind = automaton.width - 1
        entry = int(automaton.transitions[state * automaton.width + kind])
        if entry & 1:
            found = i
        state = entry >> 1
        if state == DEAD:
            break
    return found


atoms = st.sampled_from(
    [
        rb"a",
        rb"b",
        rb"'",
        rb" ",
        rb"[a1]",
        rb"[^a\s]",
        rb"\s",
        rb"\S",
        rb"\d",
        rb"[\xd2a-b]",
        rb"(?:ab|a)",
        rb"(?:'|'a)",
    ]
)
pieces = st.tuples(atoms, st.sampled_from([b"", b"", b"?", b"+", b"*", b"{1,3}", b"{2}"])).map(b"".join)
sequences = st.tuples(
    st.lists(pieces, min_size=1, max_size=4).map(b"".join),
    st.sampled_from([b"", b"", rb"(?!\S)", rb"(?=a)", rb"(?![a1])"]),
).map(b"".join)
# by `re`: shrinking its cache, `regex` asks for random numbers, which a strategy must not
patterns = (
    st.lists(sequences, min_size=1, max_size=4)
    .map(b"|".join)
    .filter(lambda p: not re.match(p, b"") and not re.compile(p).fullmatch(b""))
)

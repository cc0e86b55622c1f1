"""Safe cuts: pairs of ASCII characters between which a text may be split without changing its pre-tokens.

Long texts are split there, and each part is then processed alone. A pre-tokenizer is a list of patterns, each of which
splits every piece that the ones before have left. The offset between x and y is a safe cut if some pattern always cuts
there, and if this pattern and all before it behave as if the text ended after x:

    no match continues     in every state that reading x may lead to, y ends the match, and the end of the text would
                           end it in the same way (so `\\s+(?!\\S)` keeps white space and a letter together)
    a cut is certain       a match begins at y, or a run ends between x and y

A match that begins after x never reads x, so the right side is split as if it were alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.pretokenize.automaton import DEAD, START
from jittok.kernels.pretokenize.classes import distinct
from jittok.kernels.pretokenize.cutter import certain_states
from jittok.kernels.pretokenize.lookaround_dfa import Machine
from jittok.kernels.pretokenize.splitter_tables import MEMBER, Stage, of_one_class
from jittok.kernels.pretokenize.splitters.general import DIGIT_GROUPS, DIGIT_THREES, SINGLES

ASCII = 128
Pairs = NDArray[np.bool_]
"""bool[ASCII, ASCII], by the character before and the one after."""


def ascii_cuts(stages: Sequence[Stage]) -> Pairs:
    """Pairs of ASCII characters between which there is a safe cut."""
    safe, alone = np.zeros((ASCII, ASCII), np.bool_), np.ones((ASCII, ASCII), np.bool_)
    for kind, automaton, (starts, classes) in stages:
        own = classes[np.searchsorted(starts, np.arange(ASCII), "right") - 1].astype(np.int64)
        if automaton is None:
            free, cut = _of_rule(kind, own == MEMBER), np.zeros((ASCII, ASCII), np.bool_)
        elif isinstance(automaton, Machine):  # characters far away may decide
            free = cut = np.zeros((ASCII, ASCII), np.bool_)
        else:
            free, cut = _of_automaton(automaton.transitions.reshape(-1, automaton.width), own)
        alone &= free
        safe |= alone & cut
    return safe


def _of_rule(kind: int, member: NDArray[np.bool_]) -> Pairs:
    """Pairs across which a stage without an automaton does not look."""
    if kind in (DIGIT_GROUPS, DIGIT_THREES):  # runs are counted
        return ~(member[:, None] & member[None, :])
    return np.repeat(~member[:, None], ASCII, axis=1)  # runs of spaces depend on what is after them


def _of_automaton(rows: NDArray[np.uint16], own: NDArray[np.int64]) -> tuple[Pairs, Pairs]:
    """(where no match continues, where there is a cut if so), by the classes `own` of ASCII characters."""
    following, matched = rows >> 1, rows & 1 > 0
    ended = (following[:, :-1] == DEAD) & (matched[:, :-1] == matched[:, -1:])
    free = np.ones((ended.shape[1], ended.shape[1]), np.bool_)
    for left in range(free.shape[0]):
        reached = distinct(following[:, left])
        free[left] = ended[reached[reached != DEAD]].all(axis=0)
    begins = np.array(certain_states(rows))[following[START, :-1]]
    cut = np.repeat(begins[None, :], free.shape[0], axis=0)
    simple = of_one_class(rows)
    if simple is not None:
        kind, members = simple
        cut |= members[:, None] | members[None, :] if kind == SINGLES else members[:, None] != members[None, :]
    return free[np.ix_(own, own)], cut[np.ix_(own, own)]

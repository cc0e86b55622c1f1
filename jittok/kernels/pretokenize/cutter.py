"""Turns a match automaton into a state machine that outputs cuts, in one pass over the text without going back.

A matcher (`automaton.py`) finds the end of one match and starts again there, so it reads its look-ahead twice. The
cutter avoids that: next to the current run, it also tracks the run that would start at the current run's last match,
and so on. A *configuration* is such a chain:

    (state, in a gap?, characters read, where its last match ends, the configuration that would start there)

Most patterns need a few dozen configurations. For each class of characters, a configuration has one next configuration
and actions:

    HERE      a piece begins before this character
    PREVIOUS  a piece begins before the character before this one (`\\s+(?!\\S)` gives one back)
    REMEMBER  the character before this one may turn out to begin a piece: note its offset
    NOTED     a piece begins at the noted offset
    REST      (continuation bytes) nothing happens
    ASK       not expressible by the others

By hand for ` ?\\w+|\\s+(?!\\S)|\\s+` and the text "a  b": after "a" the run has matched, so the first space begins a
piece (HERE). It may be the space of ` ?\\w+` or begin a run of white space. At the second space it is a run, whose last
character may be given back: REMEMBER nothing, the offset is the one before. At "b" the run must give its last space
back, as a letter follows: PREVIOUS, a piece begins before that space. The pieces are "a", " ", " b", and each character
was read once. A matcher would read the second space twice: at the end of `\\s+(?!\\S)`, and again in ` ?\\w+`.

Patterns that need ASK are not covered. Characters that are in no match are *gaps*. Neighbouring gaps form one piece, so
the start of a match in a gap is a cut only once it is certain to match (`certain_states`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.pretokenize.automaton import DEAD, START
from jittok.kernels.pretokenize.classes import distinct

HERE, PREVIOUS, REMEMBER, NOTED, REST, ASK = 1, 2, 4, 8, 16, 32
NONE, LAST, OLD = 0, 1, 2
"""Where the last match of a run ends: nowhere, before the character read last, or before an older one."""
MOST_COUNTED = 2
"""Characters read are counted up to this number."""
MOST_CONFIGURATIONS = 1 << 12


class MatchRun(NamedTuple):
    """A configuration."""

    state: int
    gap: bool  # its start is no cut yet: it becomes one when a match is certain
    length: int  # 0, 1 or MANY
    age: int
    following: MatchRun | None  # the run from the last match on; None also where it is too complex to track


BEGIN, BEGIN_IN_GAP = MatchRun(START, False, 0, NONE, None), MatchRun(START, True, 0, NONE, None)
_Step = tuple[MatchRun, int]


class Cutter(NamedTuple):
    """next_row[row, column] and actions[row, column]; row 0 begins, row 1 begins in a gap.

    Columns: 2 * class for a character; one more where an earlier stage has put a cut before it (the end of the text
    is one); 2 * classes for a continuation byte.
    """

    next_row: NDArray[np.int32]  # [configurations, 2 * classes + 2]
    actions: NDArray[np.int32]
    sure: NDArray[np.uint8]  # [classes, classes] between two characters of these classes is a cut, whatever else


def build_cutter(transitions: NDArray[np.uint16]) -> Cutter | None:
    """The cutter of a matcher, None if it needs ASK or more than MOST_CONFIGURATIONS. transitions:
    uint16[states, classes + 1] as in `Automaton`."""
    builder = Builder(transitions)
    numbers = {BEGIN: 0, BEGIN_IN_GAP: 1}
    runs = [BEGIN, BEGIN_IN_GAP]
    rows = []
    for run in runs:  # grows as it goes
        row = []
        for c in range(builder.classes):
            for following, actions in (builder.step(run, c), builder.after_cut(run, c)):
                if following not in numbers:
                    numbers[following] = len(runs)
                    runs.append(following)
                row.append((numbers[following], actions))
        rows.append([*row, (numbers[run], REST), (numbers[run], REST)])
        if len(runs) > MOST_CONFIGURATIONS:
            return None
    table = np.array(rows, np.int32)
    if (table[:, :, 1] & ASK).any():
        return None
    return Cutter(table[:, :, 0], table[:, :, 1], _sure(table))


def _sure(table: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Pairs of classes between which a cut by an earlier stage changes nothing, in any configuration."""
    free, cut = table[:, 0:-2:2], table[:, 1:-2:2]
    same = (free == cut).all(axis=2)
    return np.array([same[distinct(free[:, a, 0])].all(axis=0) for a in range(same.shape[1])], np.uint8)


class Builder:
    """The transitions between configurations."""

    def __init__(self, transitions: NDArray[np.uint16]) -> None:
        self.rows: list[list[int]] = transitions.tolist()
        self.classes = transitions.shape[1] - 1
        self.certain = certain_states(transitions)

    def step(self, run: MatchRun, c: int) -> _Step:
        """The next configuration after a character of class c, and the actions before it."""
        entry = self.rows[run.state][c]
        state, matched = entry >> 1, entry & 1
        if matched:
            actions = _cut_at_start(run) if run.gap else 0
            begun, more = self.step(BEGIN, c)
            if state == DEAD:
                return begun, actions | HERE | more
            if more:
                return BEGIN, ASK
            return MatchRun(state, False, _longer(run), LAST, begun), actions
        if state == DEAD:
            return self.dead(run, c)
        if run.age == NONE:
            gap, actions = run.gap, 0
            if gap and self.certain[state]:
                gap, actions = False, _cut_at_start(run)
            elif gap and run.length == 1:
                actions = REMEMBER
            return MatchRun(state, gap, _longer(run), NONE, None), actions
        following = None
        if run.following is not None:
            following, more = self.step(run.following, c)
            if more:  # a cut that holds only if this run dies
                following = None
        return MatchRun(state, False, _longer(run), OLD, following), REMEMBER if run.age == LAST else 0

    def dead(self, run: MatchRun, c: int) -> _Step:
        """The run dies on c without a match before c."""
        if run.age == NONE:
            if run.length == 0:
                return BEGIN_IN_GAP, 0
            return self.step(BEGIN_IN_GAP, c) if run.length == 1 else (BEGIN, ASK)
        if run.following is None:
            return BEGIN, ASK
        following, actions = self.step(run.following, c)
        return (following, actions | _cut_at_match(run)) if actions & ASK == 0 else (BEGIN, ASK)

    def after_cut(self, run: MatchRun, c: int) -> _Step:
        """As `step`, if the piece ends before c."""
        actions = self.end(run)
        if actions & ASK:
            return BEGIN, ASK
        following, more = self.step(BEGIN, c)
        return following, actions | more | HERE

    def end(self, run: MatchRun) -> int:
        """The actions at the end of the piece."""
        if run.length == 0:
            return 0
        if self.rows[run.state][self.classes] & 1:
            return _cut_at_start(run) if run.gap else 0
        if run.age == NONE:
            return 0 if run.length == 1 else ASK
        if run.following is None:
            return ASK
        return _cut_at_match(run) | self.end(run.following)


def _longer(run: MatchRun) -> int:
    return min(run.length + 1, MOST_COUNTED)


def _cut_at_start(run: MatchRun) -> int:
    return (HERE, PREVIOUS, NOTED)[run.length]


def _cut_at_match(run: MatchRun) -> int:
    return PREVIOUS if run.age == LAST else NOTED


def certain_states(transitions: NDArray[np.uint16]) -> list[bool]:
    """States from which every text reaches a match before the dead state: a greatest fixed point."""
    following, matched = transitions >> 1, transitions & 1 > 0
    certain = np.ones(transitions.shape[0], bool)
    certain[DEAD] = False
    while True:
        kept = certain & (matched | certain[following]).all(axis=1)
        if (kept == certain).all():
            return certain.tolist()
        certain = kept

"""The product of two splitters as one state machine: whether they cut every text alike, or the shortest texts that they
cut differently.

A pattern's cutter (`jittok.kernels.pretokenize.cutter`) reads a text once and outputs, at each offset or later,
whether a piece begins there. The product runs two of them over the classes of characters that either distinguishes.
At most three offsets are undecided: before the character read last, and the noted offset of each cutter. Which of the
two has cut there is part of the state, so there are finitely many states. An offset that leaves the state with a cut
by only one of the two is a difference. The search is breadth first, so the first texts found are the shortest.

Lists of patterns are compared one by one, each on any cuts of the patterns before. If all pairs are alike, the
splitters are. A difference between two patterns counts only if the whole splitters show it.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.kernels.pretokenize.classes import UNICODE_SIZE
from jittok.kernels.pretokenize.compile import automata_of, stages_of_patterns
from jittok.kernels.pretokenize.cutter import ASK, BEGIN, HERE, NOTED, PREVIOUS, REMEMBER, Builder, MatchRun
from jittok.kernels.pretokenize.definition import pre_type
from jittok.kernels.pretokenize.lookaround_dfa import Machine
from jittok.kernels.pretokenize.tables import Stage
from jittok.vocab import Vocab

MOST_STATES = 60_000
MOST_TEXTS = 400
"""Limit of texts with different cuts that are returned."""
REPRESENTATIVES = 6
"""Limit of characters of a class that are tried in a text."""
_SURROGATES = (0xD800, 0xDFFF)
_Flags = tuple[bool, bool]


class Verdict(NamedTuple):
    """The result of a product."""

    same: bool | None  # None: not covered
    states: int
    texts: list[list[list[int]]]  # for each text its characters, each as a list of possible code points


class _State(NamedTuple):
    runs: tuple[MatchRun, MatchRun]
    before: _Flags  # whether A and B have cut before the character read last
    notes: tuple[int, int]  # of A and B: 0 none, 1 before the character read last, 2 or 3: another offset
    noted: tuple[_Flags, _Flags]  # of offsets 2 and 3


def stages_of(vocab: Vocab | Pipeline) -> list[Stage] | None:
    """The automata of a splitter, None if one is not covered. A vocabulary without a splitter has none."""
    if isinstance(vocab, Pipeline):
        return automata_of(vocab.split)
    if vocab.type != "bpe" or vocab.model != "gpt2":
        return None
    return stages_of_patterns(pre_type(vocab.pre_type).patterns)


def compare_splitters(a: list[Stage], b: list[Stage], known: NDArray[np.bool_] | None = None) -> Verdict:
    """Whether two lists of stages cut alike. known: [0x110000] only texts of these characters."""
    if len(a) != len(b):
        return Verdict(None, 0, [])
    states, texts, same = 0, list[list[list[int]]](), True
    for one, other in zip(a, b, strict=True):
        found = _compare_stages(one, other, len(a) > 1, known)
        if found.same is None:
            return Verdict(None, states, texts)
        states, texts, same = states + found.states, texts + found.texts, same and found.same
    return Verdict(same, states, texts)


def _compare_stages(a: Stage, b: Stage, free: bool, known: NDArray[np.bool_] | None) -> Verdict:
    full_a, full_b = _full(a.runs), _full(b.runs)
    if a.machine is None or b.machine is None:
        equal = a.kind == b.kind and a.machine is b.machine and np.array_equal(full_a, full_b)
        return Verdict(True if equal else None, 0, [])
    if isinstance(a.machine, Machine) or isinstance(b.machine, Machine):
        return Verdict(None, 0, [])
    joint = full_a.astype(np.int64) * 256 + full_b
    joint[_SURROGATES[0] : _SURROGATES[1] + 1] = -1
    if known is not None:
        joint[~known] = -1
    classes = [int(number) for number in np.unique(joint) if number >= 0]
    pairs = [(number >> 8, number & 255) for number in classes]
    builders = tuple(Builder(part.transitions.reshape(-1, part.width)) for part in (a.machine, b.machine))
    walked = _walk(builders[0], builders[1], pairs, free)
    if walked is None:
        return Verdict(None, 0, [])
    states, paths = walked
    chosen = [_representatives(np.flatnonzero(joint == number)) for number in classes]
    return Verdict(not paths, states, [[chosen[c] for c in path] for path in paths])


def _full(runs: tuple[NDArray[np.int64], NDArray[np.uint8]]) -> NDArray[np.uint8]:
    return np.repeat(runs[1], np.diff(runs[0], append=UNICODE_SIZE))


def _representatives(members: NDArray[np.int64]) -> list[int]:
    """Some characters of a class, visible ones first."""
    spread = members[np.linspace(0, members.size - 1, 64).astype(np.int64)].tolist()
    firsts = members[:64].tolist()
    ranked = sorted(dict.fromkeys(firsts + spread), key=lambda c: (not chr(c).isprintable(), c))
    half = REPRESENTATIVES // 2
    return list(dict.fromkeys([*ranked[:half], *ranked[half :: max(1, len(ranked) // half)]]))[:REPRESENTATIVES]


def _walk(a: Builder, b: Builder, pairs: list[tuple[int, int]], free: bool) -> tuple[int, list[list[int]]] | None:
    """(states, paths of classes that are cut differently); None for what is not covered.

    free: an earlier stage may have cut before any character.
    """
    start = _State((BEGIN, BEGIN), (True, True), (0, 0), ((False, False), (False, False)))
    from_: dict[_State, tuple[_State, int] | None] = {start: None}
    todo, found = deque([start]), list[list[int]]()
    while todo and len(found) < MOST_TEXTS:
        state = todo.popleft()
        ends = a.end(state.runs[0]), b.end(state.runs[1])
        if (ends[0] | ends[1]) & ASK:
            return None
        if state is not start and _parted(_acted(state, ends)[0]):
            found.append(_path(from_, state))
            continue
        for number, (of_a, of_b) in enumerate(pairs):
            for cut in (False, True) if free and state is not start else (False,):
                steps = (a.after_cut, b.after_cut) if cut else (a.step, b.step)
                (run_a, act_a), (run_b, act_b) = steps[0](state.runs[0], of_a), steps[1](state.runs[1], of_b)
                if (act_a | act_b) & ASK:
                    return None
                following, parted = _following(state, (run_a, run_b), (act_a, act_b))
                if parted:
                    found.append([*_path(from_, state), number])
                elif following not in from_:
                    from_[following] = (state, number)
                    todo.append(following)
        if len(from_) > MOST_STATES:
            return None
    return len(from_), found


def _acted(state: _State, actions: tuple[int, int]) -> tuple[list[list[bool]], _Flags]:
    """(cuts at offsets 1, 2 and 3 after some actions, whether each cuts before the character to come)."""
    cuts = [[False, False], list(state.before), list(state.noted[0]), list(state.noted[1])]
    for side in range(2):
        if actions[side] & PREVIOUS:
            cuts[1][side] = True
        if actions[side] & NOTED and state.notes[side]:
            cuts[state.notes[side]][side] = True
    here = bool(actions[0] & HERE), bool(actions[1] & HERE)
    return cuts, here


def _parted(cuts: list[list[bool]]) -> bool:
    return any(one != other for one, other in cuts)


def _following(state: _State, runs: tuple[MatchRun, MatchRun], actions: tuple[int, int]) -> tuple[_State, bool]:
    """The state after a character, and whether an offset has left it at which only one of the two cuts."""
    cuts, here = _acted(state, actions)
    notes = [1 if actions[side] & REMEMBER else state.notes[side] for side in range(2)]
    kept = set(notes) - {0}
    if any(cuts[position][0] != cuts[position][1] for position in (1, 2, 3) if position not in kept):
        return state, True
    numbers: dict[int, int] = {0: 0}
    noted = [(False, False), (False, False)]
    for position in notes:
        if position not in numbers:
            numbers[position] = len(numbers) + 1
            noted[numbers[position] - 2] = (cuts[position][0], cuts[position][1])
    return _State(runs, here, (numbers[notes[0]], numbers[notes[1]]), (noted[0], noted[1])), False


def _path(from_: dict[_State, tuple[_State, int] | None], state: _State) -> list[int]:
    """The classes of characters that lead to a state."""
    out: list[int] = []
    step = from_[state]
    while step is not None:
        out.append(step[1])
        step = from_[step[0]]
    return out[::-1]

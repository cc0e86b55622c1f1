"""Compiled stages as the arrays that `splitters.general` runs, and the safe cuts that can be seen from them.

Every stage is a table over runs of code points (see `compile`). All stages share one set of classes, which hold
characters that no stage distinguishes.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import frozen
from jittok.kernels.pretokenize.automaton import DEAD, START, Automaton
from jittok.kernels.pretokenize.classes import UNICODE_SIZE, distinct, two_stage
from jittok.kernels.pretokenize.cutter import Cutter, build_cutter, certain_states
from jittok.kernels.pretokenize.lookaround_dfa import Machine, begins_of, lookarounds_of
from jittok.kernels.pretokenize.splitters.cutter_stage import ACTION_BITS, COLUMNS, ROW_BITS
from jittok.kernels.pretokenize.splitters.general import (
    BEHAVED,
    CUTTER,
    DIGIT_GROUPS,
    DIGIT_THREES,
    LOOKAROUND,
    MATCHER,
    MOST_CLASSES,
    MOST_STAGES,
    RUNS,
    SINGLES,
    Splitter,
)
from jittok.kernels.pretokenize.splitters.lookaround_stage import LookaroundTables
from jittok.kernels.pretokenize.splitters.search_stages import MATCHED
from jittok.kernels.pretokenize.splitters.word_bitmap import ISOLATES

CUTTER_BEGINNINGS = 16
"""Number of ASCII characters that begin a match, from which on a stage is a cutter. A matcher is faster only if few
do."""

Runs = tuple[NDArray[np.int64], NDArray[np.uint8]]
MEMBER = 1
"""Class of the characters that a stage without an automaton searches for."""


class Stage(NamedTuple):
    """One stage of a splitter, compiled by itself."""

    machine: Automaton | Machine | None  # None: `rule` says what is searched for
    runs: Runs  # (first character of each run of one class, its class)
    rule: int = MATCHER  # what `splitters.general` does for a stage without a machine
    behaves: int = ISOLATES  # what becomes of its matches, see `splitters.word_bitmap`
    size: int = 0  # characters a piece, if it COUNTS
    drops: NDArray[np.bool_] | None = None  # [classes] characters whose pieces are dropped

    @property
    def kind(self) -> int:
        """What `splitters.general` does for it, before `_compile` finds something faster."""
        return LOOKAROUND if isinstance(self.machine, Machine) else BEHAVED if self.behaves else self.rule


class _Compiled(NamedTuple):
    """A stage compiled for the classes that all stages share."""

    kind: int
    table: NDArray[np.int32]  # a matcher's: next row << ACTION_BITS | actions; a cutter's: see `_pair_table`
    columns: NDArray[np.uint8]  # of a cutter, [classes + 1] the column of each class, and of continuation bytes
    sure: NDArray[np.uint8]
    begins: NDArray[np.bool_]  # [classes]
    apart: bool


def build_splitter(stages: Sequence[Stage]) -> tuple[Splitter, NDArray[np.uint8]]:
    """(the arrays of stages, [class, stage] the stage's own class of each class that all of them share). ValueError for
    more than MOST_CLASSES classes or MOST_STAGES stages."""
    starts, joint, members = _join([stage.runs for stage in stages])
    ascii_ = joint[np.searchsorted(starts, np.arange(128), "right") - 1]
    looks = lookarounds_of([each.machine if isinstance(each.machine, Machine) else None for each in stages], members)
    compiled = [_compile(stage, members[:, k], ascii_) for k, stage in enumerate(stages)]
    return _splitter(compiled, starts, joint, looks), members


def _compile(stage: Stage, members: NDArray[np.uint8], ascii_: NDArray[np.uint8]) -> _Compiled:
    """members: [classes] the stage's own class of each shared class; ascii_: [128] shared classes."""
    kind, automaton = stage.kind, stage.machine
    table, sure = np.zeros((0, 1), np.int32), np.zeros((members.size, members.size), np.uint8)
    columns = np.zeros(members.size + 1, np.uint8)
    if automaton is None:
        return _Compiled(kind, table, columns, sure, members == MEMBER, False)
    if isinstance(automaton, Machine):
        return _Compiled(kind, table, columns, sure, begins_of(automaton)[members], False)
    rows = automaton.transitions.reshape(-1, automaton.width)
    rows = np.column_stack([rows[:, members], rows[:, -1]])
    if kind == BEHAVED:
        return _Compiled(kind, _matcher(rows), columns, sure, rows[START, :-1] != DEAD, False)
    simple = of_one_class(rows)
    if simple is not None:
        return _Compiled(simple[0], table, columns, sure, simple[1], False)
    begins = rows[START, :-1] != DEAD
    # matches begin at many offsets: cut in one pass; at few: search for those
    cutter = build_cutter(rows) if begins[ascii_].sum() >= CUTTER_BEGINNINGS else None
    if cutter is not None:
        return _Compiled(CUTTER, *_pair_table(cutter), cutter.sure, begins, False)
    space, letters = ascii_[ord(" ")], ascii_[[ord(c) for c in string.ascii_letters]]
    after = rows[rows[START, space] >> 1]  # of a space; a letter after the text's end is none of it: no match there
    apart = not begins[letters].any() and not after[letters].any() and not after[-1] & MATCHED
    return _Compiled(MATCHER, _matcher(rows), columns, sure, begins, bool(apart))


def _pair_table(cutter: Cutter) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """(rows of an entry for each two columns; the column of each class, and of continuation bytes). An entry is next
    row << 2 * ACTION_BITS | actions before the second byte << ACTION_BITS | actions before the first.

    Classes that this cutter does not distinguish share a column. Rows are padded to a multiple of 1 << ROW_BITS.
    """
    free, cut = (np.concatenate([cutter.next_row[:, k:-2:2], cutter.actions[:, k:-2:2]]) for k in (0, 1))
    _, chosen, columns = np.unique(np.concatenate([free, cut]), axis=1, return_index=True, return_inverse=True)
    columns = np.append(columns.reshape(-1), chosen.size)
    picked = np.concatenate([np.stack([2 * chosen, 2 * chosen + 1], 1).reshape(-1), np.arange(-2, 0)])
    next_row, actions = cutter.next_row[:, picked], cutter.actions[:, picked]
    entries = next_row[next_row] << 2 * ACTION_BITS | actions[next_row] << ACTION_BITS | actions[:, :, None]
    entries = entries.reshape(entries.shape[0], -1)
    return np.pad(entries, ((0, 0), (0, -entries.shape[1] % (1 << ROW_BITS)))).astype(np.int32), columns.astype(
        np.uint8
    )


def _splitter(
    stages: list[_Compiled], starts: NDArray[np.int64], joint: NDArray[np.uint8], looks: LookaroundTables
) -> Splitter:
    classes = stages[0].begins.size
    width = 2 * classes + 2
    tables, cutters = [np.zeros(1, np.int32)], [np.zeros(1 << ROW_BITS, np.int32)]
    at = []
    for stage in stages:
        parts = cutters if stage.kind == CUTTER else tables
        base, low = sum(part.size for part in parts), (1 << ACTION_BITS) - 1
        at.append(base)
        if stage.kind == CUTTER:  # an entry holds the offset of the next row in the tables of all stages
            pitch, low = stage.table.shape[1], (1 << 2 * ACTION_BITS) - 1
            next_row = (stage.table >> 2 * ACTION_BITS) * pitch + base >> ROW_BITS
            entries = next_row << 2 * ACTION_BITS | stage.table & low
        else:
            entries = ((stage.table >> ACTION_BITS) * width + base) << ACTION_BITS | stage.table & low
        parts.append(entries.reshape(-1).astype(np.int32))
    if sum(part.size for part in cutters) >= 1 << 15 + ROW_BITS:
        raise ValueError("the cutters' tables are too large")
    columns = np.zeros((len(stages), COLUMNS), np.uint8)
    for k, stage in enumerate(stages):
        columns[k, : stage.columns.size] = 2 * stage.columns
    begins = np.zeros(classes, np.int64)
    for k, stage in enumerate(stages):
        begins |= stage.begins.astype(np.int64) << k
    pages, blocks = two_stage(starts, joint)
    first = blocks.reshape(-1, 128)[pages[0]].astype(np.int64)
    return Splitter(
        kinds=frozen([stage.kind for stage in stages], np.int64),
        tables_at=frozen(at, np.int64),
        tables=frozen(np.concatenate(tables), np.int32),
        cutters=frozen(np.concatenate(cutters), np.int32),
        columns=frozen(columns.reshape(-1), np.uint8),
        widths=frozen([2 * (int(stage.columns.max()) + 1) for stage in stages], np.int64),
        width=width,
        sure=frozen(np.concatenate([stage.sure.reshape(-1) for stage in stages]), np.uint8),
        begins=frozen(begins, np.uint8),
        apart=frozen([stage.apart for stage in stages], np.uint8),
        looks=looks,
        byte=_one_byte(stages, starts, joint),
        ascii=frozen(np.concatenate([first << 1, begins[first]]), np.uint8),
        pages=frozen(pages, np.uint16),
        blocks=frozen(blocks, np.uint8),
    )


def _one_byte(stages: list[_Compiled], starts: NDArray[np.int64], joint: NDArray[np.uint8]) -> int:
    """Splitter.byte."""
    if len(stages) > 1 or stages[0].kind != RUNS:
        return -1
    sizes = np.diff(starts, append=UNICODE_SIZE)
    for members in (stages[0].begins, ~stages[0].begins):
        inside = members[joint]
        first = int(starts[inside.argmax()])
        if sizes[inside].sum() == 1 and first < 128:
            return first
    return -1


def of_one_class(rows: NDArray[np.uint16]) -> tuple[int, NDArray[np.bool_]] | None:
    """(kind, classes) of a pattern (transitions as in `Automaton`, a row a state) that is a character of a set,
    a run of them, or runs of them and of all others."""
    first = rows[START, :-1] >> 1
    alive = distinct(first[first != DEAD])
    sets = [first == state for state in alive]
    if any(not (rows[state] & MATCHED).all() for state in alive):
        return None
    if len(sets) == 1 and not (rows[alive[0]] >> 1).any():
        return SINGLES, sets[0]
    loops = all((rows[state, :-1] >> 1 == state * inside).all() for state, inside in zip(alive, sets, strict=True))
    if loops and (len(sets) == 1 or (len(sets) == 2 and (sets[0] | sets[1]).all())):
        return RUNS, sets[0]
    return None


def _matcher(rows: NDArray[np.uint16]) -> NDArray[np.int32]:
    """A matcher's table with the columns of a cutter's: a cut ends the piece, a continuation byte changes nothing."""
    wide = rows.astype(np.int32)
    table = np.empty((wide.shape[0], 2 * wide.shape[1]), np.int32)
    table[:, 0::2], table[:, 1::2] = wide, wide[:, -1:]
    table[:, -2:] = np.arange(wide.shape[0])[:, None] << 1
    return table >> 1 << ACTION_BITS | table & MATCHED


def _join(parts: list[Runs]) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8]]:
    """(starts, class of each run, [class, stage] its class in each stage) of characters that no stage distinguishes."""
    starts = distinct(np.concatenate([starts for starts, _ in parts]))
    columns = [classes[np.searchsorted(begun, starts, "right") - 1] for begun, classes in parts]
    members, joint = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    if members.shape[0] > MOST_CLASSES or len(parts) > MOST_STAGES:
        raise ValueError(f"{members.shape[0]} classes in {len(parts)} stages are too many")
    return starts, joint.reshape(-1).astype(np.uint8), members


# ---- safe cuts: pairs of ASCII characters between which a text may be split without changing its pre-tokens
#
# Long texts are split there, and each part is then processed alone. A pre-tokenizer is a list of patterns, each of
# which splits every piece that the ones before have left. The offset between x and y is a safe cut if some pattern
# always cuts there, and if this pattern and all before it behave as if the text ended after x:
#
#     no match continues     in every state that reading x may lead to, y ends the match, and the end of the text would
#                            end it in the same way (so `\s+(?!\S)` keeps white space and a letter together)
#     a cut is certain       a match begins at y, or a run ends between x and y
#
# A match that begins after x never reads x, so the right side is split as if it were alone.

ASCII = 128
Pairs = NDArray[np.bool_]
"""bool[ASCII, ASCII], by the character before and the one after."""


def ascii_cuts(stages: Sequence[Stage]) -> Pairs:
    """Pairs of ASCII characters between which there is a safe cut."""
    safe, alone = np.zeros((ASCII, ASCII), np.bool_), np.ones((ASCII, ASCII), np.bool_)
    for stage in stages:
        automaton, (starts, classes) = stage.machine, stage.runs
        own = classes[np.searchsorted(starts, np.arange(ASCII), "right") - 1].astype(np.int64)
        if automaton is None:
            free, cut = _of_rule(stage.rule, own == MEMBER), np.zeros((ASCII, ASCII), np.bool_)
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

"""A pre type's list of patterns as the arrays that `splitters.general` runs.

A pattern reads characters through its engine (see `definition.py`). The collapsed engine maps a character to one byte,
the wide engine to its code point, with white space above U+007F folded. Both are maps from runs of code points to
symbols of the pattern's automaton. So every stage is a table over runs of code points. All stages share one set of
classes, which hold characters that no stage distinguishes.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode import tables
from jittok.kernels.jit import frozen
from jittok.kernels.pretokenize.automaton import DEAD, START, Automaton, compile_pattern
from jittok.kernels.pretokenize.classes import UNICODE_SIZE, distinct, two_stage
from jittok.kernels.pretokenize.cutter import Cutter, build_cutter
from jittok.kernels.pretokenize.definition import collapsed_pattern, wide_pattern
from jittok.kernels.pretokenize.lookaround_dfa import Machine, begins_of, lookarounds_of
from jittok.kernels.pretokenize.splitters.cutter_stage import ACTION_BITS, COLUMNS, ROW_BITS
from jittok.kernels.pretokenize.splitters.general import (
    BEHAVED,
    CUTTER,
    DIGIT_GROUPS,
    DIGIT_THREES,
    MATCHER,
    MOST_CLASSES,
    MOST_STAGES,
    RUNS,
    SINGLES,
    SPACE_POWERS,
    TRAILING_SPACE,
    Splitter,
)
from jittok.kernels.pretokenize.splitters.lookaround_stage import LookaroundTables
from jittok.kernels.pretokenize.splitters.matcher_stage import MATCHED

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""What llama.cpp's hand-written gpt2 splitter does: the pattern that it replaces, with `|\\s+` at the end."""
CONTRACTION = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
KIMI_K2 = (
    r"[\xD6\xD7]+"
    rf"|[^\r\n\p{{L}}\p{{N}}\xD6]?\p{{L}}+{CONTRACTION}?|\p{{N}}{{1,3}}"
    r"| ?[^\s\p{L}\p{N}\xD6]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""llama.cpp's kimi_k2 splitter, over collapsed bytes in which ideographs of its blocks that are letters are D6, and
code points of these blocks that are none (unassigned ones) D7."""
K2_HORIZON = (
    r"'[sS\xD7]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
    r"|[^\r\n\p{L}\p{N}\xD7]?[\p{L}\p{M}\xD6\xD7]+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}\xD7]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""llama.cpp's k2_horizon splitter, over collapsed bytes in which U+200C and U+200D are D6 and U+017F, a letter, D7."""
JOINERS, LONG_S = (0x200C, 0x200D), 0x17F
HAN = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2CEB0, 0x2EBEF),
    (0x2F800, 0x2FA1F),
)
"""The blocks that llama.cpp calls Han, assigned or not."""
DIGIT_THREES_PATTERN = r"(?=(\d{3})+(?!\d))"
TRAILING_PATTERN = r"\s+$"
SPACE_POWERS_PATTERN = "|".join(rf"\s{{{2**k}}}(?!\S)" for k in range(9, 1, -1)) + r"|\s{1,2}(?!\S)|\s{1}"

CUTTER_BEGINNINGS = 16
"""Number of ASCII characters that begin a match, from which on a stage is a cutter. A matcher is faster only if few
do."""

Runs = tuple[NDArray[np.int64], NDArray[np.uint8]]
Stage = tuple[int, Automaton | Machine | None, Runs]
MEMBER = 1
"""Class of the characters that a stage without an automaton searches for."""


class _Compiled(NamedTuple):
    """A stage compiled for the classes that all stages share."""

    kind: int
    table: NDArray[np.int32]  # a matcher's: next row << ACTION_BITS | actions; a cutter's: see `_pair_table`
    columns: NDArray[np.uint8]  # of a cutter, [classes + 1] the column of each class, and of continuation bytes
    sure: NDArray[np.uint8]
    begins: NDArray[np.bool_]  # [classes]
    apart: bool


@functools.cache
def splitter_of(patterns: tuple[tuple[str, str], ...]) -> Splitter:
    """The arrays of (pattern, engine), llama.cpp's, applied one after the other."""
    return splitter_from(stages_of_patterns(patterns))


def stages_of_patterns(patterns: Sequence[tuple[str, str]]) -> list[Stage]:
    """The stages of (pattern, engine), applied one after the other."""
    return [stage for pattern, engine in patterns for stage in _stages(pattern, engine)]


def splitter_from(stages: list[Stage]) -> Splitter:
    """The arrays of stages. ValueError for more than MOST_CLASSES classes or MOST_STAGES stages."""
    starts, joint, members = _join([runs for _, _, runs in stages])
    ascii_ = joint[np.searchsorted(starts, np.arange(128), "right") - 1]
    looks = lookarounds_of([each if isinstance(each, Machine) else None for _, each, _ in stages], members)
    return _splitter([_compile(stage, members[:, k], ascii_) for k, stage in enumerate(stages)], starts, joint, looks)


def joint_classes(stages: list[Stage]) -> NDArray[np.uint8]:
    """[class, stage] the stage's own class of each class that `splitter_from` gives these stages together."""
    return _join([runs for _, _, runs in stages])[2]


def _compile(stage: Stage, members: NDArray[np.uint8], ascii_: NDArray[np.uint8]) -> _Compiled:
    """members: [classes] the stage's own class of each shared class; ascii_: [128] shared classes."""
    kind, automaton, _ = stage
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


def _stages(pattern: str, engine: str) -> list[Stage]:
    if SPACE_POWERS_PATTERN in pattern:
        simpler = pattern.replace(SPACE_POWERS_PATTERN, r"\s+(?!\S)|\s+")
        starts, flags = _flag_runs()
        white = (flags & tables.WHITESPACE > 0) & (starts != 0x0A) & (starts != 0x0D)
        return [_stage(simpler, engine), (SPACE_POWERS, None, (starts, np.where(white, MEMBER, 0).astype(np.uint8)))]
    return [_stage(pattern, engine)]


def _stage(pattern: str, engine: str) -> Stage:
    if pattern == DIGIT_THREES_PATTERN:
        return DIGIT_THREES, None, _members([(0x30, 0x39)])
    if pattern == TRAILING_PATTERN:
        return TRAILING_SPACE, None, _flagged(tables.WHITESPACE)
    if engine == "custom:digit_groups":
        return DIGIT_GROUPS, None, _flagged(tables.NUMBER)
    if engine in ("wide", "custom:metaspace"):
        automaton = compile_pattern(wide_pattern(pattern), UNICODE_SIZE)
        return MATCHER, automaton, _wide_runs(automaton)
    if engine == "custom:gpt2":
        pattern = GPT2
    elif engine == "custom:kimi_k2":
        pattern = KIMI_K2
    elif engine == "custom:k2_horizon":
        pattern = K2_HORIZON
    automaton = compile_pattern(collapsed_pattern(pattern), 256)
    return MATCHER, automaton, _collapsed_runs(automaton, engine)


def _class_of(automaton: Automaton, symbols: NDArray[np.int64]) -> NDArray[np.uint8]:
    return automaton.classes[np.searchsorted(automaton.starts, symbols, "right") - 1]


def _flag_runs(extra: object = ()) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs of code points of equal flags (each ASCII character and each start in `extra` on its own), and the flags."""
    flags = tables.flag_table()
    changes = np.flatnonzero(np.diff(flags)) + 1
    starts = distinct(np.concatenate([np.arange(129), changes, np.array(list(extra), np.int64)]))  # type: ignore[call-overload]
    starts = starts[starts < UNICODE_SIZE].astype(np.int64)
    return starts, flags[starts].astype(np.int64)


def _collapsed_runs(automaton: Automaton, engine: str) -> Runs:
    edges = [edge for low, high in HAN for edge in (low, high + 1)]
    starts, flags = _flag_runs([*edges, *(c + k for c in (*JOINERS, LONG_S) for k in (0, 1))])
    symbols = np.full(starts.size, 0xD0)
    for bit, byte in tables.COLLAPSED_BYTE.items():
        symbols[flags & bit > 0] = byte
    if engine == "custom:k2_horizon":
        symbols[np.isin(starts, JOINERS)] = 0xD6
        symbols[starts == LONG_S] = 0xD7
    if engine == "custom:kimi_k2":
        inside = np.zeros(starts.size, bool)
        for low, high in HAN:
            inside |= (starts >= low) & (starts <= high)
        symbols[inside] = np.where(flags[inside] & tables.LETTER > 0, 0xD6, 0xD7)
    symbols[flags & tables.WHITESPACE > 0] = 0x0B
    symbols[:128] = np.arange(128)
    return starts, _class_of(automaton, symbols)


def _wide_runs(automaton: Automaton) -> Runs:
    starts, flags = _flag_runs(automaton.starts)
    return starts, _class_of(automaton, np.where((flags & tables.WHITESPACE > 0) & (starts > 127), 0x0B, starts))


def _flagged(bit: int) -> Runs:
    starts, flags = _flag_runs()
    return starts, np.where(flags & bit > 0, MEMBER, 0).astype(np.uint8)


def _members(ranges: list[tuple[int, int]]) -> Runs:
    borders = [0] + [edge for low, high in ranges for edge in (low, high + 1)]
    return np.array(borders, np.int64), np.array([0] + [MEMBER, 0] * len(ranges), np.uint8)

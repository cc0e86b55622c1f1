"""A pre type's list of patterns as the arrays that `splitters.general` runs.

Each pattern sees characters through its engine (see `definition.py`): the collapsed engine sees one byte a character,
the wide engine the code point with white space above U+007F folded. Both are maps from runs of code points to what the
pattern's automaton knows, so every stage ends up with one table from code points to classes.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from jittok._jit import frozen
from jittok.pretokenize.automaton import Automaton, compile_pattern
from jittok.pretokenize.classes import UNICODE_SIZE, two_stage
from jittok.pretokenize.definition import collapsed_pattern, pre_type, wide_pattern
from jittok.pretokenize.splitters.general import (
    AUTOMATON,
    DIGIT_GROUPS,
    DIGIT_THREES,
    MEMBER,
    TRAILING_SPACE,
    Splitter,
)
from jittok.unicode import tables

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""What llama.cpp's hand-written gpt2 splitter does: the pattern it stands for, ended by `|\\s+`."""
CONTRACTION = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
KIMI_K2 = (
    r"[\xD6\xD7]+"
    rf"|[^\r\n\p{{L}}\p{{N}}\xD6]?\p{{L}}+{CONTRACTION}?|\p{{N}}{{1,3}}"
    r"| ?[^\s\p{L}\p{N}\xD6]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""llama.cpp's kimi_k2 splitter, over collapsed bytes in which ideographs of its blocks that are letters are D6, and
code points of these blocks that are none (unassigned ones) D7."""
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

_Runs = tuple[NDArray[np.int64], NDArray[np.uint8]]
_Stage = tuple[int, Automaton | None, _Runs]


@functools.cache
def splitter_of(number: int) -> Splitter:
    """The arrays of a pre type (llama.cpp's number)."""
    entry = pre_type(number)
    stages = [_stage(pattern, engine) for pattern, engine in zip(entry.regexes, entry.engines, strict=True)]
    pages, blocks = zip(*(two_stage(starts, classes) for _, _, (starts, classes) in stages), strict=True)
    tables_ = [a.transitions if a else np.zeros(0, np.uint16) for _, a, _ in stages]
    ascii_ = [blocks[k].reshape(-1, 128)[pages[k][0]] for k in range(len(stages))]
    return Splitter(
        kinds=frozen([kind for kind, _, _ in stages], np.int64),
        widths=frozen([a.width if a else 0 for _, a, _ in stages], np.int64),
        transitions=frozen(np.concatenate([*tables_, np.zeros(1, np.uint16)]), np.uint16),
        transitions_at=frozen(_starts(tables_), np.int64),
        pages=frozen(np.concatenate(pages), np.uint16),
        blocks=frozen(np.concatenate(blocks), np.uint8),
        blocks_at=frozen(_starts(blocks), np.int64),
        ascii=frozen(np.concatenate(ascii_), np.uint8),
    )


def _starts(parts: object) -> list[int]:
    return np.cumsum([0, *(part.size for part in parts)])[:-1].tolist()  # type: ignore[attr-defined, no-any-return]


def _stage(pattern: str, engine: str) -> _Stage:
    if pattern == DIGIT_THREES_PATTERN:
        return DIGIT_THREES, None, _members([(0x30, 0x39)])
    if pattern == TRAILING_PATTERN:
        return TRAILING_SPACE, None, _flagged(tables.WHITESPACE)
    if engine == "custom:digit_groups":
        return DIGIT_GROUPS, None, _flagged(tables.NUMBER)
    if engine == "wide":
        automaton = compile_pattern(wide_pattern(pattern), UNICODE_SIZE)
        return AUTOMATON, automaton, _wide_runs(automaton)
    if engine == "custom:gpt2":
        pattern = GPT2
    elif engine == "custom:kimi_k2":
        pattern = KIMI_K2
    automaton = compile_pattern(collapsed_pattern(pattern), 256)
    return AUTOMATON, automaton, _collapsed_runs(automaton, han=engine == "custom:kimi_k2")


def _class_of(automaton: Automaton, symbols: NDArray[np.int64]) -> NDArray[np.uint8]:
    return automaton.classes[np.searchsorted(automaton.starts, symbols, "right") - 1]


def _flag_runs(extra: object = ()) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs of code points of equal flags (each ASCII character and each start in `extra` on its own), and the flags."""
    flags = tables.flag_table()
    changes = np.flatnonzero(np.diff(flags)) + 1
    starts = np.unique(np.concatenate([np.arange(129), changes, np.array(list(extra), np.int64)]))  # type: ignore[call-overload]
    starts = starts[starts < UNICODE_SIZE].astype(np.int64)
    return starts, flags[starts].astype(np.int64)


def _collapsed_runs(automaton: Automaton, *, han: bool) -> _Runs:
    starts, flags = _flag_runs([edge for low, high in HAN for edge in (low, high + 1)])
    symbols = np.full(starts.size, 0xD0)
    for bit, byte in tables.COLLAPSED_BYTE.items():
        symbols[flags & bit > 0] = byte
    if han:
        inside = np.zeros(starts.size, bool)
        for low, high in HAN:
            inside |= (starts >= low) & (starts <= high)
        symbols[inside] = np.where(flags[inside] & tables.LETTER > 0, 0xD6, 0xD7)
    symbols[flags & tables.WHITESPACE > 0] = 0x0B
    symbols[:128] = np.arange(128)
    return starts, _class_of(automaton, symbols)


def _wide_runs(automaton: Automaton) -> _Runs:
    starts, flags = _flag_runs(automaton.starts)
    return starts, _class_of(automaton, np.where((flags & tables.WHITESPACE > 0) & (starts > 127), 0x0B, starts))


def _flagged(bit: int) -> _Runs:
    starts, flags = _flag_runs()
    return starts, np.where(flags & bit > 0, MEMBER, 0).astype(np.uint8)


def _members(ranges: list[tuple[int, int]]) -> _Runs:
    borders = [0] + [edge for low, high in ranges for edge in (low, high + 1)]
    return np.array(borders, np.int64), np.array([0] + [MEMBER, 0] * len(ranges), np.uint8)

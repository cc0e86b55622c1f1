"""Any chain of splitter stages, compiled for `splitters.word_bitmap`: stages over characters, then stages over bytes,
and the characters that are dropped.

If a stage drops exactly the characters of a set, a piece is dropped if its first character is in that set, however the
later stages split it. If a stage merges matches of a single character with their neighbours, its pieces are the matches
of another pattern. Any other stage that does more than isolate its matches has a behavior code.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.pattern_parts import is_possessive
from jittok.common.pipeline.patterns import PatternError, explicit
from jittok.common.pipeline.steps import (
    CONTIGUOUS,
    ISOLATED,
    MERGED_WITH_NEXT,
    MERGED_WITH_PREVIOUS,
    ONIG,
    REMOVED,
    Chars,
    Cut,
    CutClass,
    CutSomeScripts,
    Pattern,
    SpellBytes,
    Splitter,
)
from jittok.common.unicode.libraries import ranges
from jittok.common.unicode.sets import Ranges
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.kernels.jit import I32, I64, U8, frozen
from jittok.kernels.pretokenize.automaton import DEAD, START, Automaton
from jittok.kernels.pretokenize.classes import UNICODE_SIZE, distinct
from jittok.kernels.pretokenize.lookaround_dfa import Machine, machine_of
from jittok.kernels.pretokenize.matcher import automaton_of, reads_once
from jittok.kernels.pretokenize.scripts import automaton_of_scripts
from jittok.kernels.pretokenize.splitter_tables import Stage, joint_classes, splitter_from
from jittok.kernels.pretokenize.splitters import general
from jittok.kernels.pretokenize.splitters.general import BEHAVED, LOOKAROUND, MATCHER
from jittok.kernels.pretokenize.splitters.word_bitmap import (
    COUNTS,
    INVERTS,
    ISOLATES,
    JOINS,
    MERGES_AFTER,
    MERGES_BEFORE,
    REMOVES,
)

BYTES = 256
_EVERYTHING = "[\\x00-\\U0010ffff]+"


class StageChain(NamedTuple):
    """A chain of stages, compiled."""

    splitter: general.Splitter
    drops: U8
    byte_at: I64
    byte_rows: I32
    byte_widths: I64
    byte_classes: U8
    behaves: I64
    sizes: I64
    spelled: bool  # whether words are spelled in bytes


class _CompiledStage(NamedTuple):
    automaton: Automaton | Machine
    drops: NDArray[np.bool_]  # [classes of the automaton]
    behaves: int = ISOLATES
    size: int = 0


_BEHAVES = {
    REMOVED: REMOVES, MERGED_WITH_PREVIOUS: MERGES_BEFORE, MERGED_WITH_NEXT: MERGES_AFTER, CONTIGUOUS: JOINS,
}  # fmt: skip


def written(parts: Ranges) -> str:
    """A set of characters as a pattern."""
    return "[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in parts) + "]"


def chain_of(stages: tuple[Splitter, ...]) -> StageChain | None:
    """The stages compiled, None if one is not covered."""
    at = next((k for k, stage in enumerate(stages) if isinstance(stage, SpellBytes)), len(stages))
    if any(isinstance(stage, SpellBytes) for stage in stages[at + 1 :]):
        return None
    try:
        prefix = [compile_stage(stage, at + 1 < len(stages)) for stage in stages[:at]]
        after = [compile_stage(stage, True) for stage in stages[at + 1 :]]
        if any(stage is None for stage in (*prefix, *after)):
            return None
        known = [stage for stage in prefix if stage is not None]
        return _chain(known, [stage for stage in after if stage is not None], at < len(stages))
    except (ValueError, PatternError):
        return None


def _chain(prefix: list[_CompiledStage], after: list[_CompiledStage], spelled: bool) -> StageChain | None:
    if any(stage.behaves != ISOLATES for stage in after):
        return None  # only stages over characters may do more than cut
    if not prefix:
        whole = automaton_of(_EVERYTHING)
        prefix = [_CompiledStage(whole, np.zeros(whole.width - 1, np.bool_))]
    parts: list[Stage] = [
        (_kind(each), each.automaton, (each.automaton.starts, each.automaton.classes)) for each in prefix
    ]
    behaves = [each.behaves for each in prefix] if any(each.behaves for each in prefix) else []
    members = joint_classes(parts)
    drops = np.zeros(BYTES // 2, np.uint8)
    for k, each in enumerate(prefix):
        drops[: members.shape[0]] |= each.drops[members[:, k]].astype(np.uint8)
    rows, positions, widths, classes = [np.zeros(0, np.int64)], list[int](), list[int](), [np.zeros(0, np.uint8)]
    for each in after:
        if isinstance(each.automaton, Machine):
            return None  # or look around
        base = sum(part.size for part in rows)
        entries = each.automaton.transitions.astype(np.int64)
        rows.append((entries >> 1) * each.automaton.width + base << 1 | entries & 1)
        positions.append(base)
        widths.append(each.automaton.width)
        runs = np.searchsorted(each.automaton.starts, np.array(CHARACTER_OF_BYTE), "right") - 1
        classes.append(each.automaton.classes[runs])
    return StageChain(
        splitter_from(parts), frozen(drops, np.uint8), frozen(positions, np.int64), frozen(np.concatenate(rows),
        np.int32), frozen(widths, np.int64), frozen(np.concatenate(classes), np.uint8),
        frozen(behaves, np.int64), frozen([each.size for each in prefix], np.int64), spelled,
    )  # fmt: skip


def _kind(stage: _CompiledStage) -> int:
    return LOOKAROUND if isinstance(stage.automaton, Machine) else BEHAVED if stage.behaves else MATCHER


def compile_stage(stage: Splitter, apart: bool) -> _CompiledStage | None:
    """One stage; None if it is not covered. apart: whether stages over bytes follow, which may split a dropped
    piece."""
    if isinstance(stage, Chars):
        whole = automaton_of(_EVERYTHING)
        return _CompiledStage(whole, np.zeros(whole.width - 1, np.bool_), COUNTS, stage.size)
    if isinstance(stage, CutSomeScripts):
        some = automaton_of_scripts(stage)
        return _CompiledStage(some, np.zeros(some.width - 1, np.bool_), REMOVES + INVERTS)
    if isinstance(stage, CutClass):
        text = written(ranges(stage.name))
        invert = False
    elif isinstance(stage, Cut):
        pattern = stage.pattern
        if pattern.literal:
            text = "".join(f"\\U{ord(c):08x}" for c in pattern.text)
        else:
            text = explicit(pattern.text, pattern.engine or ONIG)
        if not pattern.text or is_possessive(text):
            return None
        invert = stage.invert
    else:
        return None
    automaton = machine_of(text)
    if isinstance(automaton, Machine):
        how = ISOLATES if stage.behavior == ISOLATED else _BEHAVES[stage.behavior] + INVERTS * invert
        return _CompiledStage(automaton, np.zeros(automaton.width - 1, np.bool_), how)
    nothing = np.zeros(automaton.width - 1, np.bool_)
    if stage.behavior == ISOLATED:
        return _CompiledStage(automaton, nothing)
    if stage.behavior == REMOVED:
        begins = _rows(automaton)[START, :-1] >> 1 != DEAD
        dropped = ~begins if invert else begins
        if not apart and _covers(automaton, begins) and not _takes(automaton, ~begins):
            return _CompiledStage(automaton, dropped)
        return _CompiledStage(automaton, nothing, REMOVES + INVERTS * invert)
    single = _single(automaton)
    if single is None or invert:
        return _CompiledStage(automaton, nothing, _BEHAVES[stage.behavior] + INVERTS * invert)
    inside = written(_runs(automaton, single))
    outside = "[^" + inside[1:]
    forms = {
        CONTIGUOUS: f"{inside}+|{outside}+",
        MERGED_WITH_PREVIOUS: f"{outside}+{inside}?|{inside}",
        MERGED_WITH_NEXT: f"{inside}?{outside}+|{inside}",
    }
    automaton = automaton_of(forms[stage.behavior])
    return _CompiledStage(automaton, np.zeros(automaton.width - 1, np.bool_))


def _rows(automaton: Automaton) -> NDArray[np.int64]:
    return automaton.transitions.reshape(-1, automaton.width).astype(np.int64)


def _single(automaton: Automaton) -> NDArray[np.bool_] | None:
    """The classes of a pattern that is one character of a set; None for any other."""
    rows = _rows(automaton)
    first = rows[START, :-1] >> 1
    alive = distinct(first[first != DEAD])
    if alive.size == 1 and (rows[alive[0]] == DEAD << 1 | 1).all():
        found: NDArray[np.bool_] = first != DEAD
        return found
    return None


def _runs(automaton: Automaton, classes: NDArray[np.bool_]) -> Ranges:
    """The characters of some classes."""
    ends = np.append(automaton.starts[1:], UNICODE_SIZE) - 1
    chosen = classes[automaton.classes]
    return tuple(zip(automaton.starts[chosen].tolist(), ends[chosen].tolist(), strict=True))


def _covers(automaton: Automaton, begins: NDArray[np.bool_]) -> bool:
    """Whether a match begins at every character of these classes, whatever follows."""
    rows = _rows(automaton)
    todo, seen = set((rows[START, :-1] >> 1)[begins].tolist()), set[int]()
    while todo:
        state = todo.pop()
        if state == DEAD:
            return False
        if state in seen:
            continue
        seen.add(state)
        if rows[state, -1] & 1 == 0:
            return False
        waiting = rows[state, :-1][rows[state, :-1] & 1 == 0] >> 1
        todo |= set(waiting.tolist())
    return True


def _takes(automaton: Automaton, classes: NDArray[np.bool_]) -> bool:
    """Whether a character of these classes is ever read as part of a match."""
    rows = _rows(automaton)
    return bool((rows[:, :-1][:, classes] >> 1 != DEAD).any())


def one_set(pattern: Pattern) -> tuple[Ranges | None, bool]:
    """(characters, whether it is a run) of a pattern that is one character of a set, or a run of them; None for
    others."""
    if pattern.literal:
        return (((ord(pattern.text), ord(pattern.text)),), False) if len(pattern.text) == 1 else (None, False)
    try:
        text = explicit(pattern.text, pattern.engine)
        if is_possessive(text):
            return None, False
        automaton = automaton_of(text)
        if not reads_once(text):
            return None, False
    except (ValueError, PatternError):
        return None, False
    rows = _rows(automaton)
    if (rows[START] & 1).any():  # it matches the empty text
        return None, False
    first = rows[START, :-1] >> 1
    alive = distinct(first[first != DEAD])
    if alive.size != 1 or not (rows[alive[0]] & 1).all():
        return None, False
    nexts, inside = rows[alive[0], :-1] >> 1, first != DEAD
    if (nexts == DEAD).all() and rows[alive[0], -1] == DEAD << 1 | 1:
        return _runs(automaton, inside), False
    if (nexts == np.where(inside, alive[0], DEAD)).all():
        return _runs(automaton, inside), True
    return None, False

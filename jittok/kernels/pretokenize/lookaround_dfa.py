"""State machines for kernels, of a pattern that has look-arounds or is not linear: one for each look-around, made
deterministic, and one for the pattern itself (see `matcher`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import frozen
from jittok.kernels.pretokenize.automaton import DEAD, MOST_VISITS, START, Automaton, TooLarge
from jittok.kernels.pretokenize.matcher import (
    MOST_KEPT,
    LookaroundPattern,
    LookaroundRun,
    automaton_of,
    lookaround_of,
    reads_once,
    remembered,
)
from jittok.kernels.pretokenize.splitters.general import MOST_CLASSES
from jittok.kernels.pretokenize.splitters.lookaround_stage import BYTE, MOST_BITS, SEARCH, LookaroundTables

MOST_STATES = 1000
"""Limit of states of a look-around."""
MOST_INNER = 4
"""Limit of look-arounds nested in one."""
FIRST = 0
"""The first state of a pass."""
_SETS = 1 << BYTE


class LookaroundPass(NamedTuple):
    """An automaton over pairs of a class and the answers of look-arounds."""

    bit: int  # number of the look-around, or SEARCH
    ahead: bool
    first: int  # state; of a search the state before it is dead
    rows: NDArray[np.int64]  # [states, symbols] next state << 1 | holds, or match; symbol = class * answered + answer
    answered: int  # number of answers
    answers: NDArray[np.uint8]  # [256] the number of the answer that bits hold
    remembered: tuple[int, ...]  # states in which a search may read on without an end


class Machine(NamedTuple):
    """A pattern as passes of its look-arounds, and a search."""

    starts: NDArray[np.int64]  # first character of each run of one class
    classes: NDArray[np.uint8]  # its class
    width: int  # classes, the end of the piece included
    parts: tuple[LookaroundPass, ...]  # the search is the last


@lru_cache(MOST_KEPT)
def machine_of(pattern: str) -> Automaton | Machine:
    """The state machine of a pattern that `explicit` returned. ValueError if it is too large for a kernel."""
    try:
        automaton = automaton_of(pattern)
        if reads_once(pattern):
            return automaton
    except TooLarge:
        raise  # it would not be smaller
    except ValueError:
        pass
    return _machine(lookaround_of(pattern))


def _machine(found: LookaroundPattern) -> Machine:
    classes = found.rows.shape[1] // len(found.answers)
    states = remembered(found)
    if len(found.looks) > BYTE or len(found.looks) + len(states) > MOST_BITS or classes - 1 > MOST_CLASSES:
        raise ValueError(f"{len(found.looks)} look-arounds, {len(states)} states and {classes - 1} classes")
    parts = [_part_of(number, each) for number, each in enumerate(found.looks)]
    said = np.array([found.answers[bits & found.mask] for bits in range(_SETS)], np.uint8)
    parts.append(LookaroundPass(SEARCH, False, START, found.rows.astype(np.int64), len(found.answers), said, states))
    return Machine(np.array(found.starts), np.array(found.classes, np.uint8), classes, tuple(parts))


def _part_of(number: int, each: LookaroundRun) -> LookaroundPass:
    """A look-around, made deterministic."""
    inner = sorted({each.nodes[k][1] for k in each.inside if each.nodes[k][0] == "mark"})
    if len(inner) > MOST_INNER:
        raise ValueError(f"{len(inner)} look-arounds within one")
    sayings = [sum(1 << bit for k, bit in enumerate(inner) if saying >> k & 1) for saying in range(1 << len(inner))]
    numbers = {bits: saying for saying, bits in enumerate(sayings)}
    said = np.array([numbers[bits & sayings[-1]] for bits in range(_SETS)], np.uint8)
    return LookaroundPass(number, each.look.ahead, FIRST, _rows_of(each, sayings), len(sayings), said, ())


def _rows_of(each: LookaroundRun, sayings: list[int]) -> NDArray[np.int64]:
    """[states, symbols] of a pass. The pass of a look-ahead reads the end of the text only in its first state."""
    end = len(each.rows) - 1
    states: dict[Any, int] = {each.begun: FIRST}
    todo, table, visits = [each.begun], list[list[int]](), 0
    step: Callable[[Any, int, int], tuple[bool, Any]] = each.step
    for state in todo:  # grows as it goes
        row = [0] * (len(each.rows) * len(sayings))
        for symbol in range(end if each.look.ahead and table else end + 1):
            for saying, bits in enumerate(sayings):
                holds, following = step(state, symbol, bits)
                visits += len(each.inside)
                if following not in states:
                    states[following] = len(states)
                    todo.append(following)
                row[symbol * len(sayings) + saying] = states[following] << 1 | holds
        table.append(row)
        if visits > MOST_VISITS or len(states) > MOST_STATES:
            raise TooLarge(f"a look-around of more than {MOST_STATES} states")
    return np.array(table, np.int64)


def begins_of(machine: Machine) -> NDArray[np.bool_]:
    """[classes] whether a match may begin at a character of each class."""
    search = machine.parts[-1]
    begins: NDArray[np.bool_] = (search.rows[search.first] != DEAD << 1).reshape(-1, search.answered).any(axis=1)[:-1]
    return begins


def lookarounds_of(machines: list[Machine | None], members: NDArray[np.uint8]) -> LookaroundTables:
    """The arrays of stages; `machines` has None for stages of other kinds. members: [classes, stages] the stage's own
    class of each shared class."""
    at, strides = [0], [0] * len(machines)
    plans, rows, columns, sayings = list[int](), list[NDArray[np.int64]](), list[NDArray[np.int64]](), list[Any]()
    for k, machine in enumerate(machines):
        for part in machine.parts if machine else ():
            kinds = np.append(members[:, k].astype(np.int64), machine.width - 1)  # type: ignore[union-attr]
            table, positions = _narrow(part, kinds, len(machine.parts) - 1)  # type: ignore[union-attr]
            base = sum(each.size for each in rows)
            first = base + part.first * table.shape[1]
            numbers = [part.bit, int(part.ahead), base, first, sum(each.size for each in columns), len(sayings) * _SETS]
            plans += [*numbers, part.answered, 0]
            table[:, 1:] += base << 1
            rows.append(table.reshape(-1))
            columns.append(positions)
            sayings.append(part.answers)
        at.append(at[-1] + (len(machine.parts) if machine else 0))
        if machine:  # at least one byte, even without bits
            strides[k] = max(1, -(-(len(machine.parts) - 1 + len(machine.parts[-1].remembered)) // BYTE))
    if sum(each.size for each in rows) >= 1 << 30:
        raise ValueError("the tables of look-arounds are too large")
    joined = [np.concatenate([*parts, np.zeros(0, np.int64)]) for parts in (rows, columns, sayings)]
    return LookaroundTables(
        frozen(at, np.int64), frozen(plans, np.int64), frozen(joined[0], np.int32), frozen(joined[1], np.uint16),
        frozen(joined[2], np.uint8), frozen(strides, np.int64), max(strides),
    )  # fmt: skip


def _narrow(part: LookaroundPass, kinds: NDArray[np.int64], looks: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(rows as in `LookaroundTables`, before the offset of the first one is added; the column of each class and
    answer).
    kinds: the part's own class of each class, and of the end, before which continuation bytes are inserted; looks: the
    number of bits before those of remembered states."""
    states, said = part.rows.shape[0], np.arange(part.answered)
    symbols = [(kind * part.answered + said) for kind in kinds.tolist()]
    stays = np.repeat(np.arange(states)[:, None] << 1, part.answered, axis=1)
    wide = np.concatenate([part.rows[:, np.concatenate(symbols[:-1])], stays, part.rows[:, symbols[-1]]], axis=1)
    narrow, columns = np.unique(wide, axis=1, return_inverse=True)
    pitch = narrow.shape[1] + 1
    bits = np.full((states, 1), -1, np.int64)
    for number, state in enumerate(part.remembered):
        bits[state] = looks + number
    return np.concatenate([bits, (narrow >> 1) * pitch << 1 | narrow & 1], axis=1), columns.reshape(-1) + 1

"""Patterns that look behind, or ahead by more than a character, in linear time: every look-around is evaluated at all
offsets of a text beforehand.

A look-ahead is evaluated from the text's end to its beginning. The state is the set of nodes from which its body
matches the text after the offset. A look-behind is evaluated forwards: the state is the set of nodes that are reached
from any earlier offset. Nested look-arounds come first. The pattern itself is then an automaton whose symbols are pairs
of a character's class and the answers of the look-arounds at the offset before it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.pretokenize.automaton import Lookaround, Nodes, determinize, is_so, parsed_pattern

MOST_LOOKAROUNDS = 16
"""Limit of look-arounds in a pattern."""
MOST_NODES = 400
"""Limit of nodes of a pattern with look-arounds: each may be visited for each character of a text."""
MOST_ANSWERS = 16
"""Limit of combined answers of the outermost look-arounds: it multiplies the symbols of the automaton."""
MOST_SYMBOLS = 1 << 16
"""Limit of symbols: `matcher` has two bytes for one."""
MOST_KNOWN = 1 << 12
"""Limit of cached steps of one look-around."""


class LookaroundPattern(NamedTuple):
    """A pattern as an automaton over classes and the answers of its look-arounds."""

    starts: list[int]  # first character of each run of one class
    classes: list[int]  # its class
    rows: NDArray[np.uint16]  # [states, symbols], as in `Automaton`; symbol = class * len(answers) + answer
    answers: dict[int, int]  # bits of the outer look-arounds: their number
    mask: int  # of those bits
    looks: list[LookaroundRun]


class LookaroundRun:
    """One look-around, evaluated at all offsets of a text."""

    def __init__(self, number: int, look: Lookaround, nodes: list[tuple[Any, ...]], rows: list[list[bool]]) -> None:
        self.bit, self.look, self.nodes, self.rows = 1 << number, look, nodes, rows
        self.known: dict[tuple[Any, int, int], tuple[bool, Any]] = {}
        self.inside = _reached(nodes, look.first)
        self.begun: Any = 0 if look.ahead else frozenset()
        self.step: Callable[[Any, int, int], tuple[bool, Any]] = self._ahead if look.ahead else self._back
        """(state, class, bits of the offset) -> whether the body matches there, and the next state; `begun` is the
        first state."""
        self._asked = sum(1 << node for node in {nodes[k][2] for k in self.inside if nodes[k][0] == "char"})

    def mark(self, classes: array[int], bits: array[int]) -> None:
        """Set the look-around's bit at the offsets where its body matches. classes: of each character, then of the end;
        bits: of each offset, in which the bits of the nested look-arounds are already set."""
        step, state = self.step, self.begun
        for position in reversed(range(len(classes))) if self.look.ahead else range(len(classes)):
            key = (state, classes[position], bits[position])
            found = self.known.get(key)
            if found is None:
                if len(self.known) >= MOST_KNOWN:
                    self.known.clear()
                found = self.known[key] = step(*key)
            holds, state = found
            if holds:
                bits[position] |= self.bit

    def _ahead(self, after: int, symbol: int, bits: int) -> tuple[bool, int]:
        """(whether the body matches from here; nodes from which its rest matches, a bit each, of those that follow a
        character). after: these nodes for the offset after the next character."""
        sets, end = self.rows[symbol], symbol == len(self.rows) - 1
        now = last = 0
        while True:  # loops need several rounds
            for number in self.inside:
                kind, *rest = self.nodes[number]
                if kind == "match":
                    holds = True
                elif kind == "split":
                    holds = any(now >> each & 1 for each in rest[0])
                elif kind == "char":
                    holds = not end and sets[rest[0]] and bool(after >> rest[1] & 1)
                else:
                    holds = is_so(self.nodes[number], sets, end, bits) and bool(now >> rest[2] & 1)
                now |= int(holds) << number
            if now == last:
                return bool(now >> self.look.first & 1), now & self._asked
            last = now

    def _back(self, waiting: frozenset[int], symbol: int, bits: int) -> tuple[bool, frozenset[int]]:
        """(whether a match of the body ends here, nodes that are reached after the next character)."""
        sets, end = self.rows[symbol], symbol == len(self.rows) - 1
        holds, after, seen, stack = False, set[int](), set[int](), [*waiting, self.look.first]
        while stack:
            number = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            kind, *rest = self.nodes[number]
            if kind == "match":
                holds = True
            elif kind == "split":
                stack += rest[0]
            elif kind == "char":
                if not end and sets[rest[0]]:
                    after.add(rest[1])
            elif is_so(self.nodes[number], sets, end, bits):
                stack.append(rest[2])
        return holds, frozenset(after)


def _reached(nodes: list[tuple[Any, ...]], first: int) -> list[int]:
    """The nodes that can be reached from one, in the order of their creation: a node's successors come before it."""
    seen, stack = set[int](), [first]
    while stack:
        number = stack.pop()
        if number not in seen:
            seen.add(number)
            kind, *rest = nodes[number]
            stack += [] if kind == "match" else rest[0] if kind == "split" else [rest[-1]]
    return sorted(seen)


def lookaround_pattern(pattern: str, size: int, most: int) -> LookaroundPattern:
    """The automaton, of up to `most` states, of a pattern over characters 0 .. size - 1. ValueError for what is not
    covered."""
    looks: list[Lookaround] = []
    made = Nodes(size, looks)
    first = made.sequence(parsed_pattern(pattern), made.match())
    if looks and (len(looks) > MOST_LOOKAROUNDS or len(made.nodes) > MOST_NODES):
        raise ValueError(f"a pattern with {len(looks)} look-arounds of {len(made.nodes)} nodes")
    starts, rows = made.classes()
    outer = sorted({made.nodes[number][1] for number in _reached(made.nodes, first) if made.nodes[number][0] == "mark"})
    if 1 << len(outer) > MOST_ANSWERS:
        raise ValueError(f"{len(outer)} lookarounds that are not nested")
    if len(rows) << len(outer) > MOST_SYMBOLS:
        raise ValueError(f"{len(rows) - 1} classes of characters with {len(outer)} look-arounds")
    sayings = [sum(1 << bit for k, bit in enumerate(outer) if number >> k & 1) for number in range(1 << len(outer))]
    passes = [LookaroundRun(number, look, made.nodes, rows) for number, look in enumerate(looks)]
    return LookaroundPattern(
        starts[:, 0].tolist(), starts[:, 1].tolist(), determinize(made.nodes, first, rows, most, sayings),
        {bits: number for number, bits in enumerate(sayings)}, sayings[-1], passes,
    )  # fmt: skip

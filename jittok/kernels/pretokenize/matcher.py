"""Patterns in linear time, in plain Python: look-arounds, and what a search remembers so that no other repeats it.

Three parts. (1) *Look-arounds* that look behind, or ahead by more than a character: each is evaluated at all offsets of
a text beforehand. A look-ahead is evaluated from the text's end to its beginning. The state is the set of nodes from
which its body matches the text after the offset. A look-behind is evaluated forwards: the state is the set of nodes
that are reached from any earlier offset. Nested look-arounds come first. The pattern itself is then an automaton whose
symbols are pairs of a character's class and the answers of the look-arounds at the offset before it.

(2) *Whether searching is linear*, decided from the automaton. A search reads past its last match as long as a longer
one is possible. If none comes, the next search begins where the match ended, and reads the same characters again. That
takes more than linear time only if the number of searches that read the same character is unbounded. Then there is a
text that leads from the start to a state, and from that state back to itself without a match on the way. In repeats of
such a text, a search from each offset reads on.

(3) *The matcher*. A search that reads past its last match and fails would be repeated by the searches from the next
offsets. So its (offset, state) pairs are remembered: a later search that reaches one of them stops. (Reps 1998,
"Maximal munch" tokenization in linear time.) Only states to which a search may return without a match are remembered.
It passes each other state once, so those cost at most a constant per offset.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.tables import UNICODE_SIZE
from jittok.kernels.pretokenize.automaton import (
    DEAD,
    START,
    Automaton,
    Lookaround,
    Nodes,
    TooLarge,
    compile_pattern,
    determinize,
    is_so,
    parsed_pattern,
)

MOST_LOOKAROUNDS = 16
"""Limit of look-arounds in a pattern."""
MOST_NODES = 400
"""Limit of nodes of a pattern with look-arounds: each may be visited for each character of a text."""
MOST_ANSWERS = 16
"""Limit of combined answers of the outermost look-arounds: it multiplies the symbols of the automaton."""
MOST_SYMBOLS = 1 << 16
"""Limit of symbols: `Matcher` has two bytes for one."""
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


# ---- linear time

MOST_STEPS = 1 << 19
"""Limit of steps of the search for such a text; beyond it a pattern counts as not linear."""


def waiting(transitions: NDArray[np.uint16], ends: int) -> list[list[tuple[int, int]]]:
    """For each state, the steps (symbol, next state) after which a text may lead back to it without a match on the
    way; most states have none. transitions: [states, symbols] as in `Automaton`; the last `ends` symbols are the end of
    the text."""
    waits = [[(c, int(entry) >> 1) for c, entry in enumerate(row) if entry & 1 == 0 and entry >> 1 != DEAD]
             for row in transitions[:, :-ends].tolist()]  # fmt: skip
    component = _components([[to for _, to in row] for row in waits])
    return [[(c, to) for c, to in row if component[to] == component[k]] for k, row in enumerate(waits)]


def is_linear(transitions: NDArray[np.uint16], ends: int) -> bool:
    """Whether no text makes an unbounded number of searches read the same characters. The arguments are those of
    `waiting`."""
    nexts, inside = (transitions[:, :-ends] >> 1).tolist(), waiting(transitions, ends)
    steps = 0
    for state, row in enumerate(inside):
        if not row:
            continue
        todo, seen = deque([(START, state)]), {(START, state)}
        while todo:
            young, old = todo.popleft()
            for c, to in inside[old]:
                pair = nexts[young][c], to
                steps += 1
                if pair == (state, state):
                    return False
                if pair[0] != DEAD and pair not in seen:
                    seen.add(pair)
                    todo.append(pair)
            if steps > MOST_STEPS:
                return False
    return True


def _components(edges: list[list[int]]) -> list[int]:
    """The number of each state's strongly connected component. Tarjan's algorithm, without recursion."""
    size = len(edges)
    order, low, found, stack, waiting = [-1] * size, [0] * size, [-1] * size, list[int](), [False] * size
    count = numbers = 0
    for root in range(size):
        if order[root] >= 0:
            continue
        path = [(root, iter(edges[root]))]
        order[root] = low[root] = count
        count += 1
        stack.append(root)
        waiting[root] = True
        while path:
            state, rest = path[-1]
            for to in rest:
                if order[to] < 0:
                    order[to] = low[to] = count
                    count += 1
                    stack.append(to)
                    waiting[to] = True
                    path.append((to, iter(edges[to])))
                    break
                if waiting[to]:
                    low[state] = min(low[state], order[to])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[state])
                if low[state] == order[state]:
                    while True:
                        other = stack.pop()
                        waiting[other], found[other] = False, numbers
                        if other == state:
                            break
                    numbers += 1
    return found


# ---- the matcher

MOST_STATES = 2000
"""Limit of states of such an automaton,"""
MOST_REMEMBERED = 64
"""and of those in which a search may read on without a limit: each needs a bit per character of a text."""


MOST_KEPT = 32
"""Limit of cached automata, of some MB each. A process may read many files, each with a pattern of its own."""


@lru_cache(MOST_KEPT)
def automaton_of(pattern: str) -> Automaton:
    """The automaton of a pattern that `explicit` returned. ValueError for what the construction does not cover."""
    return compile_pattern(pattern, UNICODE_SIZE, MOST_STATES)


@lru_cache(MOST_KEPT)
def reads_once(pattern: str) -> bool:
    """Whether searching for the pattern is linear: no text makes searches read the same characters again and again."""
    automaton = automaton_of(pattern)
    return is_linear(automaton.transitions.reshape(-1, automaton.width), 1)


@lru_cache(MOST_KEPT)
def lookaround_of(pattern: str) -> LookaroundPattern:
    """The automaton of any pattern that `explicit` returned, with its look-arounds. ValueError for what the
    construction does not cover."""
    try:
        starts, classes, transitions, width = automaton_of(pattern)
    except TooLarge:
        raise  # `lookaround_pattern` would find no fewer states
    except ValueError:
        return lookaround_pattern(pattern, UNICODE_SIZE, MOST_STATES)
    return LookaroundPattern(starts.tolist(), classes.tolist(), transitions.reshape(-1, width), {0: 0}, 0, [])


def remembered(found: LookaroundPattern) -> tuple[int, ...]:
    """States in which a search may read on without a limit, so that later searches would repeat it. ValueError for more
    than MOST_REMEMBERED."""
    sayings = len(found.answers)
    if is_linear(found.rows, sayings):
        return ()
    states = tuple(state for state, steps in enumerate(waiting(found.rows, sayings)) if steps)
    if len(states) > MOST_REMEMBERED:
        raise ValueError(f"{len(states)} states in which some texts make a search read again and again")
    return states


class Match:
    """The span of a match, like `re.Match`."""

    def __init__(self, start: int, stop: int) -> None:
        self._span = start, stop

    def span(self) -> tuple[int, int]:
        """(start, stop)."""
        return self._span


class Matcher:
    """A pattern with those methods of `regex.Pattern` that are used. ValueError if the construction does not cover
    it."""

    def __init__(self, pattern: str) -> None:
        found = lookaround_of(pattern)
        self._found, self._rows, sayings = found, found.rows.tolist(), len(found.answers)
        self.looks_around = sayings > 1
        self._waiting = frozenset(remembered(found))
        self.linear = not self._waiting
        self._class = cache(lambda c: found.classes[bisect_right(found.starts, ord(c)) - 1])
        self._end = found.rows.shape[1] // sayings - 1

    def finditer(self, text: str) -> Iterator[Match]:
        """The matches from the left. An empty match right after another match is skipped, and the search continues
        after the next character, as in Oniguruma when tokenizers calls it."""
        symbols = self._symbols(text)
        at, last, failed = 0, -1, dict[int, bytearray]()
        while at <= len(text):
            stop = self._stop(symbols, at, failed)
            if stop < 0 or stop == at == last:
                at += 1
            else:
                yield Match(at, stop)
                at = last = stop

    def _symbols(self, text: str) -> array[int]:
        """The symbols that the automaton reads: one per character, and one for the end."""
        classes = array("H", map(self._class, text))
        classes.append(self._end)
        if not self.looks_around:
            return classes
        bits = array("H", bytes(2 * len(classes)))
        for each in self._found.looks:
            each.mark(classes, bits)
        sayings, mask = self._found.answers, self._found.mask
        return array("H", (c * len(sayings) + sayings[said & mask] for c, said in zip(classes, bits, strict=True)))

    def _stop(self, symbols: array[int], at: int, failed: dict[int, bytearray]) -> int:
        """Where the match that begins at offset `at` ends, -1 if there is none. failed: state -> a bit per offset, set
        if a search in this state found no match from there."""
        state, stop, since, states = START, -1, at, array("H")
        for position in range(at, len(symbols)):
            entry = self._rows[state][symbols[position]]
            if entry & 1:
                stop, since = position, position
                del states[:]
            state = entry >> 1
            if state == DEAD:
                break
            if self._waiting:
                if state in failed and failed[state][position >> 3] >> (position & 7) & 1:
                    break
                states.append(state)
        for position, each in enumerate(states, since):
            if each in self._waiting:
                if each not in failed:
                    failed[each] = bytearray((len(symbols) >> 3) + 1)
                failed[each][position >> 3] |= 1 << (position & 7)
        return stop

    def sub(self, make: Callable[[Match], str], text: str) -> str:
        """The text with each match replaced."""
        out, done = [], 0
        for match in self.finditer(text):
            start, stop = match.span()
            out += [text[done:start], make(match)]
            done = stop
        return "".join([*out, text[done:]])

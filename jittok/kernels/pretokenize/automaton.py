"""A pre-tokenizer's pattern as a deterministic state machine (DFA) over classes of characters.

The patterns have Perl's semantics: ordered alternatives, greedy repetition. A state of the matcher is a list of threads
in order of preference. The subset construction over *ordered* lists makes it deterministic (leftmost-first, as in Cox,
"Regular Expression Matching: the Virtual Machine Approach", 2009). A thread that matches removes all threads after it.
A thread before it may still replace its match by a longer one. So one pass, without backtracking, finds the match that
a backtracking engine finds.

Most patterns look ahead by one character at most: `(?!\\S)`, `(?=[..])`. So the empty steps of a state are followed
once the next character is known, and "a match ends here" is part of the transition on that character. The end of the
piece is one more character class. `matcher` handles patterns that look further ahead, or back.

    entry = transitions[state * width + class]: next state << 1 | a match ends before this character
    state 0 is dead, state 1 begins; class width - 1 is the end of the piece
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.sets import Ranges, complement, merged

# The standard library's own parser of patterns; before 3.11 it had other names.
_NAMES = ("re._constants", "re._parser") if sys.version_info >= (3, 11) else ("sre_constants", "sre_parse")
sre, sre_parse = (cast(Any, importlib.import_module(name)) for name in _NAMES)

_ESCAPES = re.compile(r"\\(?:u(?!00)([0-9a-fA-F]{4})|U(?!000000)([0-9a-fA-F]{8})|.)", re.DOTALL)
"""Escaped code points from U+0100 on, none of which has a meaning in a pattern, and all other escapes."""

DEAD, START = 0, 1
MOST_STATES = 1 << 14
MOST_CLASSES = 256
"""As many as fit a byte."""
MOST_MEMBERS = 1 << 22
"""Limit of set borders times sets: 40 MB while classes are computed. Patterns of models have up to 100,000."""
MOST_VISITS = 1 << 20
"""Limit of nodes visited while an automaton is built: about a second. Patterns of models take up to 6,000."""


class TooLarge(ValueError):
    """An automaton would take too much time or memory to build."""


class Automaton(NamedTuple):
    """A compiled pattern over an alphabet of code points (or bytes)."""

    starts: NDArray[np.int64]  # int64[runs] first character of each run of one class
    classes: NDArray[np.uint8]  # uint8[runs] its class
    transitions: NDArray[np.uint16]  # uint16[states * width]
    width: int  # classes, the end of the piece included


def compile_pattern(pattern: str | bytes, size: int, most: int | None = None) -> Automaton:
    """The automaton of a pattern over characters 0 .. size - 1. ValueError for what the construction does not cover,
    and for more than `most` states."""
    flags = 0 if isinstance(pattern, bytes) else sre_parse.SRE_FLAG_UNICODE
    nodes = Nodes(size)
    parsed = sre_parse.parse(pattern if isinstance(pattern, bytes) else _without_escapes(pattern), flags)
    first = nodes.sequence(parsed, nodes.match())
    starts, rows = nodes.classes()
    if len(rows) - 1 > MOST_CLASSES:
        raise ValueError(f"the pattern tells {len(rows) - 1} classes of characters apart")
    transitions = determinize(nodes.nodes, first, rows, most or MOST_STATES)
    if (transitions.reshape(-1, len(rows))[START] & 1).any():
        raise ValueError("the pattern matches the empty text")
    return Automaton(starts[:, 0], starts[:, 1].astype(np.uint8), transitions.reshape(-1), len(rows))


def parsed_pattern(pattern: str) -> Any:
    """A pattern as parsed by the standard library."""
    return sre_parse.parse(_without_escapes(pattern), sre_parse.SRE_FLAG_UNICODE)


def _without_escapes(pattern: str) -> str:
    """The same pattern with characters instead of their escapes, which take five times as long to parse."""
    return _ESCAPES.sub(lambda found: chr(int(found[1] or found[2], 16)) if found[1] or found[2] else found[0], pattern)


class Lookaround(NamedTuple):
    """A look-around that needs more than the next character."""

    ahead: bool  # else it looks back
    first: int  # the first node of its body
    written: str  # its body, as the parser has it


class Nodes:
    """A nondeterministic automaton, built from the end: each part knows the node that follows it.

    Node kinds: ("char", set, next), ("look", set, end, next) the next character is in the set (or the piece ends, if
    `end`), ("mark", number, negated, next) the look-around of this number matches at the offset, ("split", [nexts in
    order of preference]), ("match",).
    """

    def __init__(self, size: int, looks: list[Lookaround] | None = None) -> None:
        """looks: receives look-arounds that need more than the next character; None: these are refused."""
        self.size, self.nodes, self.looks = size, list[tuple[Any, ...]](), looks
        self.sets: dict[Ranges, int] = {}  # their numbers: patterns name one set again and again

    def add(self, *node: Any) -> int:
        """The number of a new node."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def match(self) -> int:
        """A node that ends a match."""
        return self.add("match")

    def set(self, ranges: Iterable[tuple[int, int]], *, negated: bool = False) -> int:
        """The number of a set of characters."""
        found = merged(ranges)
        return self.sets.setdefault(complement(found, self.size - 1) if negated else found, len(self.sets))

    def sequence(self, items: Any, following: int) -> int:
        """The first node of a sequence of parsed items; `following` is the node after them."""
        for operator, argument in reversed(list(items)):
            following = self.part(operator, argument, following)
        return following

    def part(self, operator: Any, argument: Any, following: int) -> int:
        """The first node of one item. ValueError for what is not covered."""
        ranges = _ranges_of(operator, argument, self.size)
        if ranges is not None:
            return self.add("char", self.set(ranges), following)
        if operator is sre.SUBPATTERN:
            return self.sequence(argument[3], following)
        if operator is sre.BRANCH:
            return self.add("split", [self.sequence(item, following) for item in argument[1]])
        if operator in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            least, most, body = argument
            return self.repeat(least, most, body, following, 1 if operator is sre.MAX_REPEAT else -1)
        if operator in (sre.ASSERT, sre.ASSERT_NOT):
            return self.look(operator is sre.ASSERT_NOT, argument, following)
        if operator is sre.AT and argument is sre.AT_END_STRING:
            return self.add("look", self.set([]), True, following)
        raise ValueError(f"a pattern with {operator} is not covered")

    def repeat(self, least: int, most: Any, body: Any, following: int, order: int) -> int:
        """The first node of a repeat. order: 1 for greedy, -1 for lazy."""
        if most is sre.MAXREPEAT:
            loop = self.add("split", [])  # filled below: the loop leads back to itself
            again = self.sequence(body, loop)
            self.nodes[loop][1].extend([again, following][::order])
            following, least = (again, least - 1) if least else (loop, 0)  # the last one is that of the loop
        else:
            after = following
            for _ in range(most - least):
                following = self.add("split", [self.sequence(body, following), after][::order])
        for _ in range(least):
            following = self.sequence(body, following)
        return following

    def look(self, negated: bool, argument: Any, following: int) -> int:
        """The first node of a look-around."""
        direction, body = argument
        ranges = self._single(body)
        if direction == 1 and ranges is not None:
            return self.add("look", self.set(ranges, negated=negated), negated, following)
        if self.looks is None:
            raise ValueError("only a look-ahead of one character is covered")
        within = self._looks_within(body)
        if direction == 1 and not negated and within is not None and len(within) <= 1:
            return self.sequence(body, following)  # what `\b` is written as: it takes nothing alone
        return self.add("mark", self.mark(direction > 0, body), negated, following)

    def _single(self, body: Any) -> Ranges | None:
        """The characters that a body matches; None if it is not a single character."""
        if len(body) != 1:
            return None
        operator, argument = body[0]
        return _ranges_of(operator, argument, self.size)

    def _looks_within(self, body: Any) -> frozenset[str] | None:
        """The look-arounds of a body that need more than the next character; None if the body consumes characters."""
        found = frozenset[str]()
        for operator, argument in body:
            parts: list[frozenset[str] | None] = []
            if operator is sre.BRANCH:
                parts += [self._looks_within(item) for item in argument[1]]
            elif operator is sre.SUBPATTERN:
                parts.append(self._looks_within(argument[3]))
            elif operator in (sre.ASSERT, sre.ASSERT_NOT):
                direction, inner = argument
                if direction != 1 or self._single(inner) is None:
                    parts.append(frozenset([f"{direction}{inner!r}"]))
            else:
                return None
            for part in parts:
                if part is None:
                    return None
                found |= part
        return found

    def mark(self, ahead: bool, body: Any) -> int:
        """The number of a look-around. Nested ones have smaller numbers."""
        assert self.looks is not None
        written = repr(body)
        known = [k for k, each in enumerate(self.looks) if (each.ahead, each.written) == (ahead, written)]
        if known:
            return known[0]
        first = self.sequence(body, self.match())
        self.looks.append(Lookaround(ahead, first, written))
        return len(self.looks) - 1

    def classes(self) -> tuple[NDArray[np.int64], list[list[bool]]]:
        """(int64[runs, 2] first character and class of runs that no set distinguishes; for each class, and for the end
        of the text, which sets it is in)."""
        starts, inside = _members([*self.sets], self.size)
        rows, classes = np.unique(inside, axis=0, return_inverse=True)
        end = np.zeros((1, rows.shape[1]), np.bool_)  # it is in none
        return np.stack([starts, classes.reshape(-1)], 1), np.concatenate([rows, end]).tolist()


_SPACES = ((9, 13), (32, 32))
_CATEGORIES: dict[Any, tuple[Ranges, bool]] = {
    sre.CATEGORY_SPACE: (_SPACES, False),
    sre.CATEGORY_NOT_SPACE: (_SPACES, True),
    sre.CATEGORY_DIGIT: (((48, 57),), False),
    sre.CATEGORY_NOT_DIGIT: (((48, 57),), True),
}


def _ranges_of(operator: Any, argument: Any, size: int) -> Ranges | None:
    """The characters that one item of the parsed pattern matches; None if it is not a single character."""
    if operator is sre.LITERAL:
        return ((argument, argument),)
    if operator is sre.NOT_LITERAL:
        return complement([(argument, argument)], size - 1)
    if operator is sre.SUBPATTERN and len(argument[3]) == 1:
        inner_operator, inner_argument = argument[3][0]
        return _ranges_of(inner_operator, inner_argument, size)
    if operator is not sre.IN:
        return None
    ranges: list[tuple[int, int]] = []
    for kind, value in argument:
        if kind is sre.LITERAL:
            ranges.append((value, value))
        elif kind is sre.RANGE:
            ranges.append(value)
        elif kind is sre.CATEGORY:
            members, negated = _CATEGORIES[value]
            ranges += complement(members, size - 1) if negated else members
    return complement(ranges, size - 1) if argument[0][0] is sre.NEGATE else merged(ranges)


def _members(sets: list[Ranges], size: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(first character of each run that no set distinguishes, bool[runs, sets] which sets it is in).
    Raises TooLarge."""
    borders = {0} | {edge for ranges in sets for low, high in ranges for edge in (low, high + 1) if edge < size}
    if len(borders) * len(sets) > MOST_MEMBERS:
        raise TooLarge(f"{len(sets)} sets of characters with {len(borders)} borders")
    starts = np.array(sorted(borders), np.int64)
    inside = np.zeros((starts.size, len(sets)), np.bool_)
    for k, ranges in enumerate(sets):
        if ranges:
            lows, highs = np.array(ranges).T
            edges = np.zeros(starts.size + 1, np.int64)
            np.add.at(edges, np.searchsorted(starts, lows), 1)
            np.add.at(edges, np.searchsorted(starts, highs, "right"), -1)
            inside[:, k] = np.cumsum(edges)[:-1]
    return starts, inside


def determinize(
    nodes: list[tuple[Any, ...]], first: int, rows: list[list[bool]], most: int, marks: Sequence[int] = (0,)
) -> NDArray[np.uint16]:
    """uint16[states, len(rows) * len(marks)]: subset construction over ordered lists of nodes whose empty steps are
    still to be followed. marks: the possible answers of all look-arounds at an offset, a bit for each."""
    numbers: dict[tuple[int, ...], int] = {(): DEAD, (first,): START}
    todo: list[tuple[int, ...]] = [(first,)]
    table, visits = {DEAD: [0] * (len(rows) * len(marks))}, 0
    while todo:
        state = todo.pop()
        entries = []
        for symbol, sets in enumerate(rows):
            for bits in marks:
                seen: set[int] = set()
                following, matched = _step(nodes, state, sets, symbol == len(rows) - 1, bits, seen)
                visits += len(seen)
                if visits > MOST_VISITS:
                    raise TooLarge(f"the pattern needs more than {MOST_VISITS} steps to find its states")
                if following not in numbers:
                    numbers[following] = len(numbers)
                    todo.append(following)
                entries.append(numbers[following] << 1 | matched)
        table[numbers[state]] = entries
        if len(numbers) > most:
            raise TooLarge(f"the pattern needs more than {most} states")
    return np.array([table[number] for number in range(len(table))], np.uint16)


def _step(
    nodes: list[tuple[Any, ...]], state: tuple[int, ...], sets: list[bool], end: bool, bits: int, seen: set[int]
) -> tuple[tuple[int, ...], bool]:
    """(the ordered list after one character, whether a match ends before it); the nodes on the way go to `seen`."""
    following: dict[int, None] = {}  # an ordered set
    stack = list(reversed(state))
    while stack:
        position = stack.pop()
        if position in seen:
            continue
        seen.add(position)
        kind, *rest = nodes[position]
        if kind == "match":
            return tuple(following), True
        if kind == "split":
            stack += reversed(rest[0])
        elif kind == "char":
            if sets[rest[0]] and not end:
                following[rest[1]] = None
        elif is_so(nodes[position], sets, end, bits):
            stack.append(rest[2])
    return tuple(following), False


def is_so(node: tuple[Any, ...], sets: list[bool], end: bool, bits: int) -> bool:
    """Whether the condition of a node "look" or "mark" holds. sets: which sets the next character is in; bits: the
    answers of look-arounds at the offset."""
    kind, number, other, _ = node
    return bool(sets[number] or (end and other)) if kind == "look" else (bits >> number & 1) != other

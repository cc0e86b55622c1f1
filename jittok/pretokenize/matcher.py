"""An automaton that finds its matches in a text, in plain Python: for patterns that others could take for ever with.

A search that has read on after its last match, in vain, would be read again by the searches from the next places. So
it is remembered where it was in which state: a later one that comes there ends too. (Reps 1998, "Maximal munch"
tokenization in linear time.) Only states that a search may come back to while it waits are remembered. It
goes through others once, so they cost at most a constant for each place.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

from jittok.pretokenize.automaton import DEAD, START, Automaton, TooLarge, compile_pattern
from jittok.pretokenize.linear_time import is_linear, waiting
from jittok.pretokenize.lookaround import LookaroundPattern, lookaround_pattern
from jittok.unicode.tables import UNICODE_SIZE

MOST_STATES = 2000
"""States of such an automaton,"""
MOST_REMEMBERED = 64
"""and those of them in which a search may read on without an end: a text takes a bit for each of these states, and for
each of its characters."""


MOST_KEPT = 32
"""Automata that are remembered, of some MB each. A process may read many files, each with a pattern of its own."""


@lru_cache(MOST_KEPT)
def automaton_of(pattern: str) -> Automaton:
    """The automaton of a pattern that `explicit` gave. ValueError for what the construction does not cover."""
    return compile_pattern(pattern, UNICODE_SIZE, MOST_STATES)


@lru_cache(MOST_KEPT)
def reads_once(pattern: str) -> bool:
    """Whether no text makes a search for the pattern read the same again and again."""
    automaton = automaton_of(pattern)
    return is_linear(automaton.transitions.reshape(-1, automaton.width), 1)


@lru_cache(MOST_KEPT)
def lookaround_of(pattern: str) -> LookaroundPattern:
    """The automaton of any pattern that `explicit` gave, with its look-arounds. ValueError for what the construction
    does not cover."""
    try:
        starts, classes, transitions, width = automaton_of(pattern)
    except TooLarge:
        raise  # `lookaround_pattern` would find no fewer states
    except ValueError:
        return lookaround_pattern(pattern, UNICODE_SIZE, MOST_STATES)
    return LookaroundPattern(starts.tolist(), classes.tolist(), transitions.reshape(-1, width), {0: 0}, 0, [])


def remembered(found: LookaroundPattern) -> tuple[int, ...]:
    """States in which a search may read on without an end, so that later ones would do it again. ValueError for more
    than MOST_REMEMBERED."""
    sayings = len(found.answers)
    if is_linear(found.rows, sayings):
        return ()
    states = tuple(state for state, steps in enumerate(waiting(found.rows, sayings)) if steps)
    if len(states) > MOST_REMEMBERED:
        raise ValueError(f"{len(states)} states in which some texts make a search read again and again")
    return states


class Match:
    """Where a match is."""

    def __init__(self, start: int, stop: int) -> None:
        self._span = start, stop

    def span(self) -> tuple[int, int]:
        """(start, stop)."""
        return self._span


class Matcher:
    """A pattern with what is used of `regex.Pattern`. ValueError for one that the construction does not cover."""

    def __init__(self, pattern: str) -> None:
        found = lookaround_of(pattern)
        self._found, self._rows, sayings = found, found.rows.tolist(), len(found.answers)
        self.looks_around = sayings > 1
        self._waiting = frozenset(remembered(found))
        self.linear = not self._waiting
        self._class = cache(lambda c: found.classes[bisect_right(found.starts, ord(c)) - 1])
        self._end = found.rows.shape[1] // sayings - 1

    def finditer(self, text: str) -> Iterator[Match]:
        """The matches from the left. An empty match right after another match does not count. Then the search goes on
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
        """What the automaton reads: a number for each character, and one for the end."""
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
        """Where the match that begins at a place ends, -1 if none does. failed: state -> a bit for each place, set if
        no match was found from there."""
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

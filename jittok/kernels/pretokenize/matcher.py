"""An automaton that finds its matches in a text, in plain Python: for patterns that others could take for ever with.

A search that reads past its last match and fails would be repeated by the searches from the next offsets. So its
(offset, state) pairs are remembered: a later search that reaches one of them stops. (Reps 1998, "Maximal munch"
tokenization in linear time.) Only states to which a search may return without a match are remembered. It passes each
other state once, so those cost at most a constant per offset.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

from jittok.common.unicode.tables import UNICODE_SIZE
from jittok.kernels.pretokenize.automaton import DEAD, START, Automaton, TooLarge, compile_pattern
from jittok.kernels.pretokenize.linear_time import is_linear, waiting
from jittok.kernels.pretokenize.lookaround import LookaroundPattern, lookaround_pattern

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

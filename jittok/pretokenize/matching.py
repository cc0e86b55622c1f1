"""An automaton that finds its matches in a text, in plain Python: for patterns that others could take for ever with."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache

from jittok.pretokenize.automaton import DEAD, START, compile_pattern
from jittok.unicode.tables import UNICODE_SIZE

MOST = 1000
"""States of such an automaton."""


class Match:
    """Where a match stands."""

    def __init__(self, start: int, stop: int) -> None:
        self._span = start, stop

    def span(self) -> tuple[int, int]:
        """(start, stop)."""
        return self._span


class Matching:
    """A pattern with what is used of `regex.Pattern`. ValueError for one that the construction does not cover."""

    def __init__(self, pattern: str) -> None:
        automaton = compile_pattern(pattern, UNICODE_SIZE, MOST)
        self._starts, self._classes = automaton.starts.tolist(), automaton.classes.tolist()
        self._rows = automaton.transitions.reshape(-1, automaton.width).tolist()
        self._class = cache(lambda c: self._classes[bisect_right(self._starts, ord(c)) - 1])

    def finditer(self, text: str) -> Iterator[Match]:
        """The matches from the left; none is empty."""
        classes = [*map(self._class, text), -1]
        at = 0
        while at < len(text):
            stop = self._stop(classes, at)
            if stop > at:
                yield Match(at, stop)
            at = max(stop, at + 1)

    def _stop(self, classes: list[int], at: int) -> int:
        """Where the match that begins at a place ends, -1 if none does."""
        state, stop = START, -1
        for place in range(at, len(classes)):
            entry = self._rows[state][classes[place]]
            stop = place if entry & 1 else stop
            state = entry >> 1
            if state == DEAD:
                break
        return stop

    def sub(self, make: Callable[[Match], str], text: str) -> str:
        """The text with each match replaced."""
        out, done = [], 0
        for match in self.finditer(text):
            start, stop = match.span()
            out += [text[done:start], make(match)]
            done = stop
        return "".join([*out, text[done:]])

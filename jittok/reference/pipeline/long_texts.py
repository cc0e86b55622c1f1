"""Finds which long texts begin at each offset of a text, from right to left, in linear time.

`jittok.kernels.structures.long_keys` over characters: an automaton of the reversed texts (Aho and Corasick 1975).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

LONG = 64
"""Characters up to which a text is looked up directly."""
_ROOT = 0


class LongTexts:
    """The texts of more than LONG characters."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._next: list[dict[str, int]] = [{}]
        self._own, self._fails, self._outs = [0], [_ROOT], [_ROOT]  # characters; node of the longest proper suffix
        for text in texts:
            if len(text) > LONG:
                self._add(text)
        self._link()

    def _add(self, text: str) -> None:
        node = _ROOT
        for c in reversed(text):
            new = self._next[node].setdefault(c, len(self._next))
            if new == len(self._next):
                self._next.append({})
                self._own.append(0)
            node = new
        self._own[node] = len(text)

    def _link(self) -> None:
        count = len(self._next)
        self._fails, self._outs, waiting = [_ROOT] * count, [_ROOT] * count, [_ROOT]
        for node in waiting:  # grows: breadth first
            for c, new in self._next[node].items():
                link = _ROOT if node == _ROOT else self._step(self._fails[node], c)
                self._fails[new], self._outs[new] = link, new if self._own[new] else self._outs[link]
                waiting.append(new)

    def _step(self, node: int, c: str) -> int:
        while c not in self._next[node]:
            if node == _ROOT:
                return _ROOT
            node = self._fails[node]
        return self._next[node][c]

    def __bool__(self) -> bool:
        """Whether there is any."""
        return len(self._next) > 1

    def positions(self, text: str) -> list[int]:
        """The node of the texts that begin at each offset, for `lengths`. Empty if there are no long texts."""
        if not self or len(text) <= LONG:
            return []
        found, node = [_ROOT] * len(text), _ROOT
        for at in range(len(text) - 1, -1, -1):
            node = self._step(node, text[at])
            found[at] = self._outs[node]
        return found

    def lengths(self, node: int) -> Iterator[int]:
        """Characters of the texts that begin there, longest first."""
        while node != _ROOT:
            yield self._own[node]
            node = self._outs[self._fails[node]]

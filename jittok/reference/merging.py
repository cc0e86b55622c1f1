"""Merging adjacent symbols by priority, shared by SPM and BPE: a linked list of symbols and a queue of pairs.

An entry of the queue becomes stale when one of its sides is merged into another pair first; this is detected when it
is popped. While both sides exist, the left one keeps its start and the right one its position, so the pair is unchanged
if and only if its length is.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import NamedTuple

from jittok.common.unicode.tables import sequence_length


class Pair(NamedTuple):
    """An entry of the queue. The lowest `priority` is popped first, the leftmost of equals."""

    priority: float  # BPE: the rank; SPM: minus the score
    left: int
    right: int
    text: bytes  # of both sides when the pair was offered


class Symbols:
    """The characters of a text (by their first bytes) as llama.cpp's list: symbol i is text[start[i]:][:n[i]]."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.start: list[int] = []
        self.n: list[int] = []
        at = 0
        while at < len(text):
            size = min(sequence_length(text[at]), len(text) - at)
            self.start.append(at)
            self.n.append(size)
            at += size
        self.prev = list(range(-1, len(self.n) - 1))
        self.next = [*range(1, len(self.n)), -1] if self.n else []

    def piece(self, i: int) -> bytes:
        """The text of symbol i; empty if it was merged into another."""
        return self.text[self.start[i] : self.start[i] + self.n[i]]

    def merge(self, left: int, right: int) -> None:
        """Give the bytes of `right` to `left`. The links of `right` do not change: they are not read again."""
        self.n[left] += self.n[right]
        self.n[right] = 0
        self.next[left] = self.next[right]
        if self.next[right] >= 0:
            self.prev[self.next[right]] = left

    def pieces(self) -> list[bytes]:
        """The texts of the remaining symbols, in order."""
        found, at = [], 0 if self.n else -1
        while at >= 0:
            found.append(self.piece(at))
            at = self.next[at]
        return found


OFFERED, STALE, MERGED = "offered", "stale", "merged"
"""Events of a pair."""
Observe = Callable[[str, Pair, Symbols], None]
"""Called with OFFERED, STALE or MERGED, the pair, and the current symbols (later steps change them)."""


def merge_pairs(
    text: bytes, priority: Callable[[bytes, bytes], float | None], observe: Observe | None = None
) -> Symbols:
    """Merge until no adjacent symbols can be merged; returns the symbols.

    priority(left, right): None if the two are never merged. Source: llama.cpp, `llm_tokenizer_spm_session::tokenize`,
    `llm_tokenizer_bpe_session::tokenize`.
    """
    symbols = Symbols(text)
    queue: list[Pair] = []
    tell = observe or (lambda *_: None)

    def offer(left: int, right: int) -> None:
        if left < 0 or right < 0:
            return
        first, second = symbols.piece(left), symbols.piece(right)
        value = priority(first, second)
        if value is not None:
            pair = Pair(value, left, right, first + second)
            heapq.heappush(queue, pair)
            tell(OFFERED, pair, symbols)

    for right in range(1, len(symbols.n)):
        offer(right - 1, right)
    while queue:
        pair = heapq.heappop(queue)
        left, right = pair.left, pair.right
        n = symbols.n
        if n[left] == 0 or n[right] == 0 or n[left] + n[right] != len(pair.text):
            tell(STALE, pair, symbols)
            continue
        symbols.merge(left, right)
        tell(MERGED, pair, symbols)
        offer(symbols.prev[left], left)
        offer(left, symbols.next[left])
    return symbols

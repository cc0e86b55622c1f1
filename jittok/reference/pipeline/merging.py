"""Merging of neighbours, lowest rank first and leftmost among equals."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

Popped = Callable[[float, int, int, bool, list[int]], None]
"""(rank, left, right, whether they are joined, the symbol behind each) of a pair taken from the queue."""
Merge = Callable[[int, int], tuple[int, int] | None]
"""(left, right) symbols to (rank, what they become), None where they stay apart."""


def merge(symbols: Sequence[int], joined: Merge, popped: Popped | None = None) -> list[tuple[int, int, int]]:
    """The symbols that stay when nothing more is joined, each with the first of those it was made of and the one behind
    the last."""
    count = len(symbols)
    ids, before, behind = list(symbols), list(range(-1, count - 1)), [*range(1, count), -1]
    alive, queue = [True] * count, list[tuple[int, int, int]]()

    def ask(left: int) -> None:
        if left >= 0 and behind[left] >= 0:
            found = joined(ids[left], ids[behind[left]])
            if found is not None:
                heapq.heappush(queue, (found[0], left, found[1]))

    for place in range(count - 1):
        ask(place)
    while queue:
        rank, left, made = heapq.heappop(queue)
        right = behind[left]
        found = joined(ids[left], ids[right]) if alive[left] and right >= 0 else None
        if found is None or found[1] != made:  # only what is made is compared
            if popped is not None:
                popped(rank, left, right, False, behind)
            continue
        ids[left], alive[right], behind[left] = made, False, behind[right]
        if behind[right] >= 0:
            before[behind[right]] = left
        if popped is not None:
            popped(rank, left, right, True, behind)
        ask(before[left])
        ask(left)
    stops = [count if right < 0 else right for right in behind]
    return [(ids[k], k, stops[k]) for k in range(count) if alive[k]]

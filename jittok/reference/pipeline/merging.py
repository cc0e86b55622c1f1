"""Merging of adjacent symbols, lowest rank first and leftmost among equals.

A queue takes hundreds of bytes per symbol, so a long word is merged in windows. Merging two adjacent tokens depends on
them alone. So a sequence of tokens is that of the whole word if each two adjacent tokens also result from some part of
the word that contains both: the first merge across their border would happen in that part too.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Iterator, Sequence

Popped = Callable[[float, int, int, bool, list[int]], None]
"""(rank, left, right, whether they are merged, the next symbol of each) of a popped pair."""
Merge = Callable[[int, int], tuple[int, int] | None]
"""(left, right) symbols to (rank, resulting symbol), None if they are never merged."""
Made = tuple[int, int, int]
"""A token, the index of its first symbol, and the index after its last one."""
WINDOW_SYMBOLS = 1 << 12
"""Symbols of a window."""


class UndecidedError(Exception):
    """Windows of a word do not determine its tokens."""


def merged_ids(symbols: array[int], joined: Merge, out: array[int]) -> None:
    """Add the tokens of `merge` to `out`."""
    if len(symbols) <= 2 * WINDOW_SYMBOLS:
        out.extend(token for token, _, _ in merge(symbols, joined))
        return
    known = len(out)
    try:
        out.extend(
            token for token, _, _ in by_windows(lambda i, j: merge(symbols[i:j], joined), len(symbols), WINDOW_SYMBOLS)
        )
    except UndecidedError:
        del out[known:]
        out.extend(token for token, _, _ in merge(symbols, joined))


def by_windows(merged: Callable[[int, int], Sequence[Made]], size: int, window: int, after: int = 0) -> Iterator[Made]:
    """The tokens of a word of `size` symbols. merged(i, j): the tokens of symbols[i:j], counted from i.

    after: how many symbols before j may differ because the word does not end there. Each window begins with the last
    token of the one before, and must find it again. UndecidedError if no window does.
    """
    last: Made | None = None
    width = window
    while True:
        start = 0 if last is None else last[1]
        stop = min(start + width, size)
        found = [(token, start + i, start + j) for token, i, j in merged(start, stop)]
        kept = found if stop == size else [made for made in found if made[2] <= stop - max(width // 4, after)]
        known = last is None or found[:1] == [last]
        if known and (stop == size or len(kept) > 1):
            yield from kept[last is not None :]
            if stop == size:
                return
            last, width = kept[-1], window
        elif stop == size:
            raise UndecidedError
        else:
            width *= 2


def merge(symbols: Sequence[int], joined: Merge, popped: Popped | None = None) -> list[Made]:
    """Merge until no pair can be merged: the remaining symbols, each with the index of its first symbol and the one
    after its last."""
    count = len(symbols)
    ids, before, after = list(symbols), list(range(-1, count - 1)), [*range(1, count), -1]
    alive, queue = [True] * count, list[tuple[int, int, int]]()

    def ask(left: int) -> None:
        if left >= 0 and after[left] >= 0:
            found = joined(ids[left], ids[after[left]])
            if found is not None:
                heapq.heappush(queue, (found[0], left, found[1]))

    for position in range(count - 1):
        ask(position)
    while queue:
        rank, left, made = heapq.heappop(queue)
        right = after[left]
        found = joined(ids[left], ids[right]) if alive[left] and right >= 0 else None
        if found is None or found[1] != made:  # only the result is compared
            if popped is not None:
                popped(rank, left, right, False, after)
            continue
        ids[left], alive[right], after[left] = made, False, after[right]
        if after[right] >= 0:
            before[after[right]] = left
        if popped is not None:
            popped(rank, left, right, True, after)
        ask(before[left])
        ask(left)
    stops = [count if right < 0 else right for right in after]
    return [(ids[k], k, stops[k]) for k in range(count) if alive[k]]

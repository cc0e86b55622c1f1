"""Which thread counts which texts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

SHARED_BYTES = 1 << 20
"""About what a thread takes at once at the end of what is counted by several, who wait for the last one. Before it
they take more: a thread has half of its share at once, then half of what is left."""
SAMPLED_TEXTS = 1 << 10
"""Of about so many texts lengths are asked for before threads begin; all of them are too far apart in memory."""


def shares_of(texts: Any, threads: int) -> list[list[tuple[int, Any]]]:
    """For each thread, (number of its first text, texts) of what it takes one after the other: neighbors, which have
    more words in common than others. None where there is one thread, or texts that come one by one."""
    if threads == 1 or not isinstance(texts, list | tuple) or len(texts) < threads:
        return []
    step = -(-len(texts) // SAMPLED_TEXTS)
    try:
        ends = step * np.cumsum(np.fromiter(map(len, texts[::step]), np.int64))
    except TypeError:
        return []
    share = int(ends[-1]) // threads
    cuts = step * np.searchsorted(ends, np.arange(1, threads) * share, "right")
    halvings = (share // SHARED_BYTES).bit_length()
    return [_halves(texts, first, last, halvings) for first, last in pairwise(sorted({0, *cuts.tolist(), len(texts)}))]


def _halves(texts: Any, first: int, last: int, times: int) -> list[tuple[int, Any]]:
    """(number of the first, texts) of the first half, the next quarter and so on."""
    cuts = {first, *(last - (last - first >> k) for k in range(1, times + 1)), last}
    return [(a, texts[a:b]) for a, b in pairwise(sorted(cuts))]

"""Reachable merges: at most one for each symbol, so that the pair table needs no others.

A vocabulary may list several pairs that make one symbol, as `a` + `bc` and `ab` + `c` (more than half of the merges of
Llama 3). Only one of them is ever merged:

1. Take a symbol that merging has made, and its span of the text. No earlier merge crossed an end of that span: it would
   have made a symbol on both sides of it, and symbols are never split.
2. So each merge up to then was either inside the span or outside. The pair of the lowest rank is merged first, and of
   equal ranks the leftmost. If that was a pair inside the span, it was the first of those inside as well; and the pairs
   inside depend only on merges inside. So the span went through the same steps as it does alone.
3. Alone, the span always goes through the same steps. So the symbol's last merge is always the same: the last one of
   merging its own text. If that text is not merged to this one symbol, no text has the symbol.

Any other pair that makes the symbol may be in a text, but another merge always comes first. Without it in the table,
the same pair is the lowest at every step, so all ids stay the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import I32, frozen
from jittok.kernels.merging.left_to_right import LEFT, LENGTH, RANK, RIGHT, ROW
from jittok.kernels.merging.left_to_right_build import made_symbols
from jittok.kernels.structures.pair_table import PairTable, build_pair_table


class MergePairs(NamedTuple):
    """Merges as columns, int32[merges] each."""

    left: I32
    right: I32
    rank: I32
    merged: I32


class ReachableMerges(NamedTuple):
    """The result of `reachable_merges`."""

    pairs: MergePairs
    table: PairTable
    rows: I32 | None  # see `made_symbols`


def reachable_merges(pairs: MergePairs, bases: NDArray[np.int32], symbols: int) -> ReachableMerges:
    """The reachable merges, in their order, their table, and what they make. Of equal pairs the first counts.

    bases: int32[numbers] the distinct symbols of words before any merge; symbols: all symbols are below this number.
    All merges are kept if some symbol has more than one text, or a very long one: then it is not known which merges are
    reachable.
    """
    table = build_pair_table(*pairs)
    rows = made_symbols(table, bases, symbols)
    if rows is None:
        return ReachableMerges(pairs, table, None)
    left, right, rank, length = (rows[column::ROW][pairs.merged] for column in (LEFT, RIGHT, RANK, LENGTH))
    lives = (length > 1) & (left == pairs.left) & (right == pairs.right) & (rank == pairs.rank)
    made = frozen(rows, np.int32)
    if lives.all():
        return ReachableMerges(pairs, table, made)
    kept = MergePairs(*(frozen(column[lives], np.int32) for column in pairs))
    return ReachableMerges(kept, build_pair_table(*kept), made)

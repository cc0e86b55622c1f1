"""Merges that can happen: of each symbol one, so that the table of pairs holds no others.

A vocabulary may list several pairs that make one symbol, as `a` + `bc` and `ab` + `c` (half of the merges of Llama 3
and more). Only one of them ever does:

1. Take a symbol that merging has made, and the stretch of the text that it stands for. No merge before crossed an end
   of that stretch: it would have made a symbol that lies on both sides, and symbols are never split.
2. So each merge up to then lay either inside the stretch or outside. Of all pairs the one of the lowest rank goes
   first, and of equal ranks the leftmost. Where that was a pair inside, it was the first of those inside as well; and
   which pairs are inside depends on merges inside alone. The stretch went through the steps that it goes through by
   itself.
3. By itself the stretch always goes through the same steps. So the symbol's last merge is always the same: the one that
   ends the merging of its own text. If that text is not merged to this one symbol, no text has the symbol.

Every other pair that makes the symbol may be in a text, but something else always comes first. Without it in the
table, the same pair is the lowest at every step, so all ids stay what they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import I32, frozen
from jittok.merging.left_to_right import LEFT, LENGTH, RANK, RIGHT, ROW
from jittok.merging.left_to_right_build import made_symbols
from jittok.structures.pair_table import PairTable, build_pair_table


class MergePairs(NamedTuple):
    """Merges as columns, int32[merges] each."""

    left: I32
    right: I32
    rank: I32
    merged: I32


class ReachableMerges(NamedTuple):
    """What `reachable_merges` finds."""

    pairs: MergePairs
    table: PairTable
    rows: I32 | None  # see `made_symbols`


def reachable_merges(pairs: MergePairs, bases: NDArray[np.int32], symbols: int) -> ReachableMerges:
    """The merges that can happen, in their order, their table, and what they make. Of equal pairs the first counts.

    bases: int32[numbers] the distinct symbols that lists begin with; symbols: all symbols are below this number. All
    merges stay where a symbol is no text of its own, or one is very long: what merges can happen is not known then.
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

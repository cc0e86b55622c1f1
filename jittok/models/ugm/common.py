"""The place that all paths so far come through: what is before it is decided, and its memory is free again.

A path that continues from text that is not looked at yet comes through one of the places that are still reached. Each
of them knows where the last token on the best way to it begins. Followed back, these ways soon meet in nearly every
text, also where each place is inside of some token.
"""

from __future__ import annotations

import numpy as np

from jittok._jit import helper
from jittok._raw import Window, get_f64, get_u8, get_u64, put_u64

HIGHEST = 16.0
"""Files with a higher score are encoded without spans. Up to it sums fall from left to right, more or less."""
LOWEST = -float(np.finfo(np.float64).max)
"""The sum of a place that nothing reaches. Adding any float32 gives it again, so nothing is reached from there."""
MARK = np.uint64(1 << 30)
"""A bit of an arc that is 0 but while ways are followed."""
PLACE = np.uint64((1 << 30) - 1)
"""Bits of an arc that tell where its token begins."""
NONE = np.uint64(0)


@helper
def common_place(sums: Window, arcs: Window, begin: int, p: int, size: int) -> int:
    """The last place after `begin` that the best ways to all reached places from p to `size` have in common; 0: none.

    sums: from the place `begin` on. Tokens from all places before p are known, so no way to a place after p has a
    token that begins after p. No arc has a MARK, before and after. Place 0 has none, and whatever memory held.
    """
    put_u64(arcs, 0, NONE)
    ways, low, found = 0, p, 0
    for k in range(p, size + 1):
        if get_f64(sums, k - begin) > LOWEST:
            start = p if k == p else np.int64(get_u64(arcs, k) & PLACE)
            low = min(low, start)
            ways += _open_way(arcs, start)
    k = p
    while k > begin and found == 0:
        arc = get_u64(arcs, k)
        if arc & MARK != NONE:
            put_u64(arcs, k, arc & ~MARK)
            if ways == 1:
                found = k
            else:
                start = np.int64(arc & PLACE)
                low = min(low, start)
                ways += _open_way(arcs, start) - 1
        k -= 1
    if found == 0:
        for k in range(low, begin + 1):
            put_u64(arcs, k, get_u64(arcs, k) & ~MARK)
    return found


@helper
def _open_way(arcs: Window, k: int) -> int:
    """Mark a place; 1 if it was not marked before."""
    arc = get_u64(arcs, k)
    put_u64(arcs, k, arc | MARK)
    return 1 if arc & MARK == NONE else 0


@helper
def characters_of(text: Window, size: int) -> int:
    """How many characters text[:size] has, which is what tokens of a path it has at most."""
    found = 0
    for k in range(size):
        found += 1 if get_u8(text, k) & 0xC0 != 0x80 else 0
    return found

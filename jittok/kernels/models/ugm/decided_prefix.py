"""Find the offset that all best paths so far pass through: the path before it is decided, and its memory can be reused.

Any path into the rest of the text passes through one of the reached offsets at its beginning. The back-pointers of
these offsets, followed back, soon meet in nearly every text, even if every offset is inside some token.
"""

from __future__ import annotations

import numpy as np

from jittok.kernels.jit import helper
from jittok.kernels.memory import Window, get_f64, get_u8, get_u64, put_u64

HIGHEST = 16.0
"""Files with a higher score are encoded without spans. Up to it, sums mostly fall from left to right."""
LOWEST = -float(np.finfo(np.float64).max)
"""The sum of an offset that no path reaches. Adding any float32 to it has no effect, so no path continues there."""
MARK = np.uint64(1 << 30)
"""A bit of an arc that is only set while back-pointers are followed."""
PLACE = np.uint64((1 << 30) - 1)
"""The bits of an arc that hold the offset where its token begins."""
NONE = np.uint64(0)


@helper
def decided_offset(sums: Window, arcs: Window, begin: int, p: int, size: int) -> int:
    """The last offset after `begin` that is on the best paths to all reached offsets from p to `size`; 0: none.

    sums: from the offset `begin` on. All tokens that begin before p were tried, and none that begins at p or later. No
    arc has a MARK, before and after the call. Offset 0 has no arc, and its memory may hold anything.
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
    """Mark an offset; 1 if it was not marked before."""
    arc = get_u64(arcs, k)
    put_u64(arcs, k, arc | MARK)
    return 1 if arc & MARK == NONE else 0


@helper
def characters_of(text: Window, size: int) -> int:
    """The number of characters of text[:size], which is the most tokens that a path through it can have."""
    found = 0
    for k in range(size):
        found += 1 if get_u8(text, k) & 0xC0 != 0x80 else 0
    return found

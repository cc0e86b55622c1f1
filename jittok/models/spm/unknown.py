"""Unknown characters side by side are one token, where a vocabulary has none for their bytes."""

from __future__ import annotations

import numpy as np

from jittok._jit import OutI32, OutI64, kernel, wide
from jittok._raw import get_i32, put_i32, window


@kernel
def join_unknown(ids: OutI32, ends: OutI64, count: int, first: int, unknown: int) -> int:
    """One id in place of unknown ones in a row, from ids[first] on; where the ids end now.

    ends: int64[count] where the ids of fragments end, put right; nothing is joined across fragments. No branch: which
    ids are unknown cannot be foreseen.
    """
    own, at, k = window(ids), first, first
    for fragment in range(count):
        end, before = wide(ends[fragment]), wide(0)
        while k < end:
            token = get_i32(own, k)
            found = np.int64(token == unknown)
            put_i32(own, at, token)
            at += 1 - (found & before)
            before = found
            k += 1
        ends[fragment] = at
    return at

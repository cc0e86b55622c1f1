"""Join runs of unknown characters to one id, for vocabularies without byte fallback."""

from __future__ import annotations

import numpy as np

from jittok.kernels.jit import OutI32, OutI64, as_int64, kernel
from jittok.kernels.memory import get_i32, put_i32, window


@kernel
def join_unknown(ids: OutI32, ends: OutI64, count: int, first: int, unknown: int) -> int:
    """Join each run of unknown ids from ids[first] on; returns the new end of the ids.

    ends: int64[count] the ends of fragments' ids, updated; runs are not joined across fragments. Without branches,
    because which ids are unknown is unpredictable.
    """
    own, at, k = window(ids), first, first
    for fragment in range(count):
        end, before = as_int64(ends[fragment]), as_int64(0)
        while k < end:
            token = get_i32(own, k)
            found = np.int64(token == unknown)
            put_i32(own, at, token)
            at += 1 - (found & before)
            before = found
            k += 1
        ends[fragment] = at
    return at

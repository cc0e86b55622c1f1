"""Offsets of the strings of a GGUF array: an 8-byte length, the text, the next length, the next text.

Each offset depends on the one before it, so the array must be walked. But nearly all lengths are below 256, and nearly
no text has seven NULs in a row. So lengths are recognized by their upper bytes, and all candidates in a window are
found at once. A run of candidates in which each leads to the next one is part of the walk. Where it ends, the walk
continues string by string.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

WINDOW = 1 << 14
"""Bytes that are searched at once: if all are zeros, each is a candidate, of eight bytes in two arrays."""
LEAST_RUN, ALONE = 16, 256
"""After a run of fewer, so many strings are walked one by one, so that texts with many NULs are no slower than without
this search."""
_LENGTH = struct.Struct("<Q")


def walk(view: memoryview, at: int, count: int) -> tuple[NDArray[np.int64], int, int]:
    """(where the texts of up to `count` strings begin, the offset after the last one, its length). The first length
    is at `at`; it ends before a length that is not in view."""
    parts, length = [np.zeros(0, np.int64)], 0
    while count and at <= len(view) - 8:
        window = view[at : at + WINDOW]
        last = len(window) - 8
        lengths, follows, ends = _candidates(np.frombuffer(window, np.uint8))
        here = 0
        while count and here <= last:
            k = int(np.searchsorted(lengths, here))
            run = 0
            if k < lengths.size and lengths[k] == here:
                run = min(int(ends[np.searchsorted(ends, k)]) + 1 - k, count)
                parts.append(lengths[k : k + run] + (at + 8))
                after = int(follows[k + run - 1])
                here, length, count = after, after - int(lengths[k + run - 1]) - 8, count - run
            if run < LEAST_RUN:
                starts: list[int] = []
                while here <= last and len(starts) < min(count, ALONE):
                    (length,) = _LENGTH.unpack_from(window, here)
                    starts.append(at + here + 8)
                    here += 8 + length
                count -= len(starts)
                parts.append(np.array(starts, np.int64))
        at += here
    return np.concatenate(parts), at, length


def _candidates(window: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(offsets that may hold a length, the offset of the next length after each, which of these are not candidates)."""
    zero = window == 0
    two = zero[:-1] & zero[1:]
    four = two[:-2] & two[2:]
    seven = four[:-3] & four[3:]  # and the six after it
    positions = np.flatnonzero(seven[1:])
    follows = positions + 8 + window[positions]
    leads = np.zeros(positions.size, bool)
    leads[:-1] = follows[:-1] == positions[1:]
    return positions, follows, np.flatnonzero(~leads)

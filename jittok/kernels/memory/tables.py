"""Tables that operations of `keys` read, made without Numba."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

KEY_LENGTHS = 32
"""Lengths that `put_key` knows: 0 .. 31."""
NO_MATCH = 20
"""What `match_pair` answers when neither slot fits: so many words after the place must exist."""


def key_masks() -> NDArray[np.uint64]:
    """uint64[128], what `put_key` reads: for each length n, two words that keep n % 16 bytes, two with n on top."""
    rows = np.zeros((KEY_LENGTHS, 4), np.uint64)
    for n in range(KEY_LENGTHS):
        kept = (1 << 8 * (n % 16)) - 1
        rows[n] = [kept & 0xFFFFFFFFFFFFFFFF, kept >> 64, 0, n << 56]
    return rows.ravel()


def pair_places() -> NDArray[np.uint8]:
    """uint8[256], what `match_pair` reads: the answer for each set of words of a line that equal a key's."""
    bits = np.arange(256)
    return np.where(bits & 3 == 3, 0, np.where(bits & 0x30 == 0x30, 4, NO_MATCH)).astype(np.uint8)

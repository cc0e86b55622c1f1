"""Orders without an index: a cipher of the numbers below a count. `jittok/reference/sequences.py` defines them."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.reading.kernels import permute

ROUNDS = 6
AT_ONCE = 1 << 19
"""Numbers of one call, which takes some 30 ms."""


class Order:
    """The order `name` of `count` things: number k of it is `order([k])`."""

    def __init__(self, count: int, name: str) -> None:
        self.count = count
        self.half = (max((count - 1).bit_length(), 2) + 1) // 2
        digests = [hashlib.blake2b(f"{name}/{k}".encode(), digest_size=8).digest() for k in range(ROUNDS)]
        self.keys = np.array([int.from_bytes(digest, "little") for digest in digests], np.uint64)

    def __call__(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[n]: where these numbers, all below `count`, are sent."""
        found = np.empty(numbers.size, np.int64)
        for first in range(0, numbers.size, AT_ONCE):
            some = np.ascontiguousarray(numbers[first : first + AT_ONCE])
            permute(some, self.keys, self.count, self.half, found[first : first + AT_ONCE])
        return found


def name_of(seed: int, what: str, epoch: int) -> str:
    """The name of the order of an epoch."""
    return f"{seed}/{what}/{epoch}"

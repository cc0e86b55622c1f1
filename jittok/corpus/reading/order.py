"""Orders without an index: a cipher of the numbers below a count. `jittok/reference/corpus/sequences.py` defines
them."""

from __future__ import annotations

import hashlib
from functools import lru_cache

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


SPREAD = 16
"""Runs of sequences that are shuffled with each other."""


class NearOrder:
    """An order in which number k is among about `within` others: runs of within / SPREAD numbers come in the order
    `name`, and SPREAD of them at a time are shuffled. What fills no run comes last."""

    def __init__(self, count: int, name: str, within: int) -> None:
        self.name, self.run = name, within // SPREAD
        self.runs = count // self.run
        self.left = count - self.runs * self.run
        self._order = Order(max(self.runs, 1), f"{name}/runs")
        self._groups = lru_cache(8)(self._group)

    def _group(self, number: int) -> Order:
        first = number * SPREAD
        size = min(SPREAD, self.runs - first) * self.run if first < self.runs else self.left
        return Order(size, f"{self.name}/{number}")

    def __call__(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[n]: where these numbers are sent."""
        whole, found = self.runs * self.run, np.empty(numbers.size, np.int64)
        last = -(-self.runs // SPREAD)
        groups = np.where(numbers < whole, numbers // (SPREAD * self.run), last)
        for group in np.unique(groups).tolist():
            some = groups == group
            base = whole if group == last else group * SPREAD * self.run
            places = self._groups(group)(numbers[some] - base)
            if group == last:
                found[some] = places + whole
            else:
                run, within = np.divmod(places, self.run)
                found[some] = self._order(run + group * SPREAD) * self.run + within
        return found


def name_of(seed: int, what: str, epoch: int) -> str:
    """The name of the order of an epoch."""
    return f"{seed}/{what}/{epoch}"

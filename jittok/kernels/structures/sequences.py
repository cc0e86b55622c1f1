"""Short sequences of bytes, searched for at 64 offsets of a text at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from jittok.kernels.jit import U8, frozen, helper
from jittok.kernels.memory import Window, one_mask, three_mask, two_mask, window

LONGEST_SEQUENCE = 3
"""Bytes of a sequence at most."""
BLOCK = 64 + LONGEST_SEQUENCE - 1
"""Bytes that are read for 64 places."""


class Sequences(NamedTuple):
    """Sequences of one byte, then those of two, then those of three."""

    wanted: U8  # their bytes, each of them 64 times
    ones: int  # the end in `wanted` of those of one byte,
    twos: int  # of those of two,
    threes: int  # and of those of three


class SequenceWindow(NamedTuple):
    """The same as windows."""

    wanted: Window
    ones: int
    twos: int
    threes: int


def make_sequences(texts: Iterable[bytes]) -> Sequences:
    """The table of these sequences of 1 to LONGEST bytes."""
    by_size: list[list[bytes]] = [[] for _ in range(LONGEST_SEQUENCE)]
    for text in texts:
        by_size[len(text) - 1].append(text)
    ends = np.cumsum([64 * sum(map(len, same)) for same in by_size]).tolist()
    wanted = np.frombuffer(b"".join(map(b"".join, by_size)), np.uint8)
    return Sequences(frozen(np.repeat(wanted, 64), np.uint8), *ends)


@helper
def open_sequences(table: Sequences) -> SequenceWindow:
    """The table as windows."""
    return SequenceWindow(window(table.wanted), table.ones, table.twos, table.threes)


@helper
def ones_begin(own: SequenceWindow, text: Window, i: int) -> np.uint64:
    """Which of bytes i .. i + 63 are one of the single bytes."""
    mask = np.uint64(0)
    for at in range(0, own.ones, 64):
        mask |= one_mask(text, i, own.wanted, at)
    return mask


@helper
def twos_begin(own: SequenceWindow, text: Window, i: int) -> np.uint64:
    """Where in bytes i .. i + 63 a sequence of two bytes begins; reads one byte more."""
    mask = np.uint64(0)
    for at in range(own.ones, own.twos, 128):
        mask |= two_mask(text, i, own.wanted, at)
    return mask


@helper
def threes_begin(own: SequenceWindow, text: Window, i: int) -> np.uint64:
    """The same of three bytes; reads two bytes more."""
    mask = np.uint64(0)
    for at in range(own.twos, own.threes, 192):
        mask |= three_mask(text, i, own.wanted, at)
    return mask

"""Hash table of the short words that are encoded to a single token. A new word is looked up here before it is merged.

They are found by encoding each token's text, so a token that no merge makes is never among them. Slots are like those
of the pre-token cache: a key of two machine words, then the id. The hash has no secret, as that of `pair_table`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.kernels.jit import U64, OutU64, frozen, helper
from jittok.kernels.memory import Window, get_u8, get_u64, multiply, prefetch, put_u64, window

LONGEST_KEY = 15
"""The most bytes of a word in the table: text and length fit into two machine words."""
NOT_FOUND = -1
_K = np.uint64(0x9E3779B97F4A7C15)
_K2 = np.uint64(0xC2B2AE3D27D4EB4F)
_0 = np.uint64(0)


class SingleTokenWords(NamedTuple):
    """An open-addressing table. Invariant: slots.size == 4 << bits, and at least a quarter of the slots is free."""

    slots: U64  # [4 << bits] low word, high word with the length on top, id, unused
    bits: int


class SingleTokenWindow(NamedTuple):
    """The same as windows."""

    slots: Window
    bits: int


def empty_slots(count: int) -> tuple[OutU64, int]:
    """(zeroed slots, bits) for up to `count` words."""
    bits = max(4, (4 * count // 3).bit_length())
    return np.zeros(4 << bits, np.uint64), bits


def freeze(slots: OutU64, bits: int) -> SingleTokenWords:
    """The finished table."""
    return SingleTokenWords(frozen(slots, np.uint64), bits)


@helper
def open_single_token_words(seeds: SingleTokenWords) -> SingleTokenWindow:
    """Windows onto the arrays."""
    return SingleTokenWindow(window(seeds.slots), seeds.bits)


@helper
def _home(low: np.uint64, high: np.uint64, bits: int) -> int:
    return np.int64((multiply(low, _K) ^ multiply(high, _K2)) >> np.uint64(64 - bits))


@helper
def key_of(text: Window, start: int, stop: int) -> tuple[np.uint64, np.uint64]:
    """The key (low, high) of up to 15 bytes. Reads no byte after `stop`."""
    low, high = _0, np.uint64(stop - start) << np.uint64(56)
    for k in range(stop - start):
        byte = np.uint64(get_u8(text, start + k))
        if k < 8:
            low |= byte << np.uint64(8 * k)
        else:
            high |= byte << np.uint64(8 * (k - 8))
    return low, high


@helper
def insert(slots: Window, bits: int, low: np.uint64, high: np.uint64, token: int) -> None:
    """Insert one word."""
    at = _home(low, high, bits)
    while get_u64(slots, 4 * at + 1) != _0:
        at = (at + 1) & ((1 << bits) - 1)
    put_u64(slots, 4 * at, low)
    put_u64(slots, 4 * at + 1, high)
    put_u64(slots, 4 * at + 2, np.uint64(token))


@helper
def prefetch_word(seeds: SingleTokenWindow, low: np.uint64, high: np.uint64) -> None:
    """Prefetch the slot that `find_word` reads first."""
    prefetch(seeds.slots, 4 * _home(low, high, seeds.bits), 8)


@helper
def find_word(seeds: SingleTokenWindow, low: np.uint64, high: np.uint64) -> int:
    """The token that this text is encoded to, or NOT_FOUND."""
    at = _home(low, high, seeds.bits)
    while True:
        tag = get_u64(seeds.slots, 4 * at + 1)
        if tag == high and get_u64(seeds.slots, 4 * at) == low:
            return np.int64(get_u64(seeds.slots, 4 * at + 2))
        if tag == _0:
            return NOT_FOUND
        at = (at + 1) & ((1 << seeds.bits) - 1)

"""sentencepiece's precompiled character map: uint32 size of the trie, the trie, NUL-terminated strings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.pipeline import read_only_array
from jittok.errors import InWords


def checked_charsmap(data: bytes, bad: Callable[[object, str], Exception]) -> NDArray[np.uint8]:
    """The map as an array; `bad` makes the error of one whose parts are not whole."""
    if len(data) < 4:
        raise bad(InWords(f"{len(data)} bytes"), "a character map of 4 bytes or more")
    size = int.from_bytes(data[:4], "little")
    if size % 4 or not 0 < size <= len(data) - 4:
        raise bad(InWords(f"a trie of {size} bytes"), f"a multiple of 4, 4 to {len(data) - 4}")
    units = np.frombuffer(data, "<u4", size // 4, 4)
    if _endless(units, len(data) - 4 - size):
        raise bad(InWords("a trie that points outside the map"), "replacements inside it")
    if len(data) > 4 + size and data[-1]:
        raise bad(InWords("a replacement without a terminating NUL"), "a NUL after each")
    return read_only_array(np.frombuffer(data, np.uint8), np.uint8)


def _endless(units: NDArray[np.uint32], strings: int) -> bool:
    """Whether a value that some key has lies outside of the strings. Only units that a walk can reach count."""
    own = np.arange(units.size, dtype=np.int64)
    offsets = (units >> 10 << ((units & 0x200) >> 6)).astype(np.int64)
    with_value = own[(units >> 8 & 1).astype(bool) & (units >> 31 == 0)]
    positions = with_value ^ offsets[with_value]
    positions = positions[positions < units.size]
    values = units[positions]
    leaves = values[values >> 31 == 1] & 0x7FFFFFFF
    return bool((leaves >= strings).any())

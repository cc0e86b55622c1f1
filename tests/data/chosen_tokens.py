"""Tokens that were chosen to collide in a hash table without a secret, and secrets."""

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import frozen


def key_of(number: int) -> NDArray[np.uint64]:
    """Keys as a process draws them."""
    return frozen(np.random.default_rng(number).integers(0, 1 << 63, 2, np.uint64) | np.uint64(1 << 32 | 1), np.uint64)


def chosen(count: int) -> list[bytes]:
    """Strings that had one hash when it had no secret: what flips the highest bit of a word, and what undoes it in the
    next. Each block of 16 bytes doubles them; none has a zero byte."""
    flip, undo = np.uint64(1 << 63), np.uint64(1 << 63 | 1 << 31)
    blocks = [
        np.array([k, k], np.uint64) + np.uint64(0x4141414141414141) for k in range(1, 1 + (count - 1).bit_length())
    ]
    found = []
    for number in range(count):
        words = [block ^ np.array([flip, undo]) if number >> k & 1 else block for k, block in enumerate(blocks)]
        found.append(np.concatenate(words).tobytes())
    return found

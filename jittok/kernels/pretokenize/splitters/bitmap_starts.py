"""Reads the starts of words from their bitmap (see `word_bitmap`), for kernels that encode them."""

from __future__ import annotations

import numpy as np

from jittok.kernels.jit import helper
from jittok.kernels.memory import Window, bit_places, get_word

ALL = ~np.uint64(0)


@helper
def split_at_bitmap(marks_at: int, text: Window, begin: int, end: int, _stop: int, positions: Window) -> int:
    """Write the offsets, from `begin`, where words of text[begin:end] begin; how many. text[marks_at:] is the bitmap.

    positions: int32[end - begin + 64] receives the offsets
    """
    number, first, last = 0, begin >> 6, (end - 1) >> 6
    for word in range(first, last + 1):
        marks = get_word(text, marks_at + 8 * word)
        if word == first:
            marks &= ALL << np.uint64(begin & 63)
        if word == last and end & 63 != 0:
            marks &= ~(ALL << np.uint64(end & 63))
        number = bit_places(positions, number, 64 * word - begin, marks)
    return number

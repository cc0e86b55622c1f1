"""A text chunk by chunk: the step that all loops over pre-tokens share, in encoding and in training.

A chunk is so small that the offsets of its pre-tokens stay in the first-level cache. It ends where the last pre-token
that began in it begins, and the next chunk starts there: a splitter starts again at each pre-token, independently of
the text before. For example, chunks of 8 bytes of "some words here":

    some wor|     " wor" began in the chunk and may go on: the chunk is "some", 1 pre-token
     words h|     the same: " words"
     here         to the end of the text: " here"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jittok.kernels.jit import helper
from jittok.kernels.memory import Window, get_i32, put_i32

TOO_LONG = -102
"""The buffer of offsets is too small; differs from the codes of splitters and of `jittok.kernels.fragments`."""


def make_next_chunk(split: Callable[..., Any]) -> Callable[..., Any]:
    """The step for one splitter, as a helper.

    split(own, text, begin, end, stop, positions) -> the number of pre-tokens (or spans) that begin in text[begin:end],
    whose offsets from `begin` it writes; negative if it cannot split this text. The text ends at `stop`.

    next_chunk(own, text, begin, stop, chunk, positions, capacity) -> (their number, where the next chunk begins).
    positions[number] is the end. A negative number is a code: that of the splitter, or TOO_LONG if more than `capacity`
    bytes would be split at once; then the second value is where they end. Chunks have `chunk` bytes, more only if one
    pre-token fills them. Linear in the bytes.
    """

    @helper
    def next_chunk(
        own: Any, text: Window, begin: int, stop: int, chunk: int, positions: Window, capacity: int
    ) -> tuple[int, int]:
        size = chunk
        while True:
            end = min(begin + size, stop)
            if end - begin > capacity:
                return TOO_LONG, end
            number = split(own, text, begin, end, stop, positions)
            if number < 0:
                return number, end
            cut = stop
            if end < stop:
                number -= 1
                if number == 0:  # one pre-token fills the chunk: it needs a longer one
                    size *= 2
                    continue
                cut = begin + get_i32(positions, number)
            put_i32(positions, number, cut - begin)
            return number, cut

    return next_chunk

"""Convert spans in bytes to spans in characters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import I64, U8, OutI64, frozen, helper, kernel
from jittok.kernels.memory import Window, get_i64, get_u8, put_i64, window


def character_spans(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    offsets: NDArray[np.int64],
    spans: NDArray[np.int64],
) -> NDArray[np.int64]:
    """int64[n, 2]: the spans in characters, read-only. A span that covers part of a character gets all of it.

    data[starts[d]:stops[d]] is document d, valid UTF-8; offsets: int64[documents + 1] its rows in spans: int64[n, 2]
    """
    out = np.empty(spans.shape, np.int64)
    fixed = [frozen(array, np.int64) for array in (starts, stops, offsets, spans.reshape(-1))]
    count_characters(frozen(data, np.uint8), fixed[0], fixed[1], fixed[2], fixed[3], out.reshape(-1))
    out.flags.writeable = False
    return out


@kernel
def count_characters(data: U8, starts: I64, stops: I64, offsets: I64, spans: I64, out: OutI64) -> int:
    """`character_spans` to out: int64[2 * n]; returns n. Linear if neither starts nor ends of spans decrease, which
    holds for nearly all files."""
    text, positions, found = window(data), window(spans), window(out)
    for document in range(starts.size):
        origin, size = starts[document], stops[document] - starts[document]
        for side in range(2):  # a start moves back to the beginning of its character, an end forward to the end
            at, characters = 0, 0  # characters that begin before `at`
            for k in range(2 * offsets[document] + side, 2 * offsets[document + 1], 2):
                position = min(max(get_i64(positions, k), 0), size)
                while at < position:
                    characters += _begins(text, origin + at)
                    at += 1
                while at > position:
                    at -= 1
                    characters -= _begins(text, origin + at)
                inside = side == 0 and position < size and not _begins(text, origin + position)
                put_i64(found, k, characters - 1 if inside and characters > 0 else characters)
    return spans.size // 2


@helper
def _begins(text: Window, i: int) -> bool:
    """Whether a character begins at byte i."""
    return bool(get_u8(text, i) & 0xC0 != 0x80)

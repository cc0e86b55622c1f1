"""Checks and copies of memory passed in by callers, before any raw load.

The law: nothing unproven reaches a raw load. Offsets of rows are copied to memory that no one else can change, and then
checked once (`proven`). Texts that others may still write to are copied before a kernel reads them
(`inputs.Documents.own`), as many kernels read a text twice; ids are checked by the kernel that uses them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.errors import InWords, MalformedArray


def own(array: NDArray[Any]) -> NDArray[Any]:
    """An immutable copy: its memory belongs to a bytes object, so no flag makes it writeable."""
    return np.frombuffer(array.tobytes(), array.dtype)


def is_held(array: Any) -> bool:
    """Whether an array is immutable because its memory belongs to a bytes object."""
    while isinstance(array, np.ndarray):
        array = array.base
    if isinstance(array, memoryview):
        array = array.obj
    return isinstance(array, bytes)


def proven(starts: NDArray[np.int64], stops: NDArray[np.int64], size: int, what: str) -> None:
    """MalformedArray unless 0 <= start <= stop <= size for every row. The one check for all inputs."""
    if starts.shape != stops.shape:
        raise MalformedArray(what, InWords(f"{starts.size} starts and {stops.size} stops"), "equally many")
    if not starts.size or (int(starts.min()) >= 0 and int(stops.max()) <= size and bool((starts <= stops).all())):
        return
    row = int(np.argmax((starts < 0) | (starts > stops) | (stops > size)))
    raise MalformedArray(
        f"{what}, row {row}",
        InWords(f"offsets {starts[row]} to {stops[row]}"),
        f"0 <= start <= stop <= {size}, its size",
    )


# ---- Arrow's buffers, of which only the sizes are trusted


def arrow_numbers(buffer: Any, dtype: Any, first: int, count: int, what: str) -> NDArray[Any]:
    """`count` numbers of an Arrow buffer from number `first` on, in place. MalformedArray if it is too short."""
    width, size = np.dtype(dtype).itemsize, 0 if buffer is None else buffer.size
    if not count:
        return np.zeros(0, dtype)
    if first < 0 or (first + count) * width > size:
        raise MalformedArray(
            what, InWords(f"{size} bytes"), f"{(first + count) * width} or more, for {count} from {first} on"
        )
    return np.frombuffer(buffer, dtype, count, first * width)


def arrow_offsets(array: Any, dtype: Any, size: int) -> NDArray[np.int64]:
    """A copy of the offsets of an Arrow array over `size` elements, checked to be in bounds and never to decrease."""
    what, count = f"an Arrow array of {array.type}", len(array)
    if not count:
        return np.zeros(1, np.int64)
    positions = arrow_numbers(array.buffers()[1], dtype, array.offset, count + 1, f"{what}: offsets")
    offsets = positions.astype(np.int64)  # a copy: what is checked is what is used
    proven(offsets[:-1], offsets[1:], size, what)
    return offsets


def arrow_valid(array: Any) -> NDArray[np.bool_] | None:
    """bool[n]: which rows of an Arrow array are not null; None: all. The array's own null count is not trusted."""
    bits, first, count = array.buffers()[0], array.offset, len(array)
    if bits is None or not count:
        return None
    low, high = first // 8, -(-(first + count) // 8)
    packed = arrow_numbers(bits, np.uint8, low, high - low, f"an Arrow array of {array.type}: validity")
    valid = np.unpackbits(packed, bitorder="little")[first - 8 * low :][:count].astype(np.bool_)
    return None if valid.all() else valid

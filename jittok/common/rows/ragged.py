"""Concatenated texts in one byte buffer, and the checks of all rows over flat arrays. Needs NumPy alone."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jittok.common.rows.checks import own


def read_only_array(array: ArrayLike, dtype: type[np.generic], what: str) -> NDArray[Any]:
    """A read-only, C-contiguous, one-dimensional view; TypeError for another kind, ValueError for another shape."""
    given = as_array(array, what)
    if given.dtype.kind not in "iu" and given.size:
        raise TypeError(f"{what}: found dtype {given.dtype}, expected {np.dtype(dtype)}")
    if given.ndim != 1:
        raise ValueError(f"{what}: found {given.ndim} dimensions, expected 1")
    if given.size and not np.can_cast(given.dtype, dtype):
        bounds = np.iinfo(dtype)  # type: ignore[type-var]
        if int(given.min()) < bounds.min or int(given.max()) > bounds.max:
            raise ValueError(f"{what}: found values outside {np.dtype(dtype)}")
    view = np.ascontiguousarray(given, dtype=dtype).view(np.ndarray)
    view.flags.writeable = False
    return view


def fixed_offsets(offsets: ArrayLike, size: int, of: str) -> NDArray[np.int64]:
    """Offsets of rows over `size` elements: n + 1 of them, from 0 to `size`, never falling."""
    checked = own(
        read_only_array(offsets, np.int64, "offsets")
    )  # what is checked here stays so: no one can write to it
    if checked.size == 0:
        raise ValueError("offsets: found an empty array, expected one more offset than rows")
    if checked[0] != 0 or checked[-1] != size:
        raise ValueError(f"offsets: found {checked[0]} to {checked[-1]}, expected 0 to {size} (the number of {of})")
    if np.any(checked[1:] < checked[:-1]):
        row = int(np.argmax(checked[1:] < checked[:-1]))
        raise ValueError(
            f"offsets: found {checked[row + 1]} after {checked[row]} (row {row}), expected offsets that never decrease"
        )
    return checked


def as_array(array: ArrayLike, what: str) -> NDArray[Any]:
    """A NumPy array of anything that is one; ValueError for rows of unequal length and for masked elements."""
    if np.any(getattr(array, "mask", False)):
        raise ValueError(f"{what}: found masked elements, expected none ({what}.compressed() drops them)")
    try:
        return np.asarray(array)
    except ValueError:
        raise ValueError(f"{what}: found rows of several lengths, expected one row of integers") from None


def whole_number(value: object, what: str) -> int:
    """The value as an int; TypeError for non-integers such as 1.5, and for truth values."""
    try:
        if not isinstance(value, bool):  # NumPy's are no integers
            return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise TypeError(f"{what}: found {type(value).__name__}, expected an integer")


def byte_view(view: memoryview) -> memoryview:
    """A memoryview of bytes as it is; TypeError for one of other elements."""
    if view.itemsize != 1 or view.ndim != 1:
        raise TypeError(f"found a memoryview of {view.ndim} dimensions and format {view.format!r}, expected bytes")
    return view


def row_number(row: int, count: int) -> int:
    """A row number, from the end when negative. Raises IndexError."""
    position = whole_number(row, "row")
    position += count if position < 0 else 0
    if not 0 <= position < count:
        raise IndexError(f"row {row}: expected {-count} <= row < {count}")
    return position


class Ragged:
    """Texts, concatenated in one byte buffer.

    `data`: uint8[bytes]; `offsets`: int64[n + 1], text i is data[offsets[i]:offsets[i + 1]]. The data become a
    read-only view, which encoding copies in parts; the offsets are copied, and can never be written to.
    ValueError if the offsets do not start at 0, decrease, or do not end at the end of the data.
    """

    __slots__ = ("data", "offsets")
    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def __init__(self, data: ArrayLike | bytes, offsets: ArrayLike) -> None:
        data = byte_view(data) if isinstance(data, memoryview) else data
        raw = np.frombuffer(data, np.uint8) if isinstance(data, bytes | bytearray | memoryview) else data
        object.__setattr__(self, "data", read_only_array(raw, np.uint8, "data"))
        object.__setattr__(self, "offsets", fixed_offsets(offsets, self.data.size, "bytes"))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Ragged is immutable: {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Ragged, (self.data, self.offsets)

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, row: int) -> bytes:
        row = row_number(row, len(self))
        return self.data[self.offsets[row] : self.offsets[row + 1]].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        for i, j in pairwise(self.offsets.tolist()):
            yield self.data[i:j].tobytes()

    def __repr__(self) -> str:
        return f"Ragged({len(self)} texts, {self.data.size} bytes)"

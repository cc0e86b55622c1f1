"""Arrow's strings and binaries, of every layout, as `Documents`: row k is data[starts[k]:stops[k]].

Of an array only its type, its length and the sizes of its buffers are believed. Places are copied and checked
(`rows.checks`); bytes are left where they are, and in order. Nulls are empty rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.rows.checks import arrow_numbers, arrow_offsets, arrow_valid, own, proven
from jittok.errors import InWords, MalformedArray
from jittok.kernels.inputs.texts import PART_BYTES, Documents
from jittok.kernels.jit import frozen

Rows = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]
WHOLE_CHUNK = 1 << 20
"""Arrow chunks below this many bytes are joined, larger ones are read where they are."""
INLINE = 12
"""Bytes of a view that are in the view itself."""


def of_arrow(texts: Any) -> Iterator[Documents]:
    """Arrow strings and binaries of all layouts; views and dictionaries are laid out plainly by Arrow first."""
    import pyarrow as pa

    if isinstance(texts, pa.Array):
        yield from _parts_of(texts)
        return
    if not isinstance(texts, pa.ChunkedArray):
        raise TypeError(f"found a pyarrow {type(texts).__name__}, expected an array of strings (a column)")
    small: list[Documents] = []
    for each in chain.from_iterable(map(_parts_of, texts.chunks or [pa.array([], texts.type)])):
        part = each
        if part.stops.size and part.stops[-1] - part.starts[0] < WHOLE_CHUNK:
            small.append(part)
            if sum(one.data.size for one in small) < PART_BYTES:
                continue
            part = small.pop()
        if small:
            yield _rejoined(small)
            small = []
        yield part
    if small:
        yield _rejoined(small)


def _rejoined(parts: list[Documents]) -> Documents:
    """Several parts one after the other, as one."""
    if len(parts) == 1:
        return parts[0]
    shifts = np.cumsum([0, *(part.data.size for part in parts[:-1])])
    starts = np.concatenate([part.starts + shift for part, shift in zip(parts, shifts, strict=True)])
    stops = np.concatenate([part.stops + shift for part, shift in zip(parts, shifts, strict=True)])
    data = np.concatenate([part.data for part in parts])
    return Documents(frozen(data, np.uint8), frozen(starts, np.int64), frozen(stops, np.int64))


def _parts_of(array: Any) -> Iterator[Documents]:
    """The rows of one array, in one part; those of a dictionary PART_BYTES at a time: a word of a megabyte may be that
    of a million rows."""
    import pyarrow as pa

    if not pa.types.is_dictionary(array.type):
        yield _documents_of(rows_of(array))
        return
    entries, indices, valid = _entries(array)
    widths = np.diff(np.frombuffer(entries.buffers()[1], np.int64, len(entries) + 1))
    sizes, given = np.zeros(indices.size, np.int64), slice(None) if valid is None else valid
    sizes[given] = widths[indices[given]]  # what a null names may be no entry
    ends = np.cumsum(sizes)
    marks = np.arange(PART_BYTES, int(ends[-1]) if ends.size else 0, PART_BYTES)
    cuts = sorted({0, *np.searchsorted(ends, marks, "right").tolist(), indices.size})
    for start, stop in pairwise(cuts if len(cuts) > 1 else (0, 0)):
        some = slice(start, stop)
        yield _documents_of(_picked(entries, indices[some], None if valid is None else valid[some]))


def _documents_of(rows: Rows) -> Documents:
    data, starts, stops = rows
    return Documents(
        frozen(data, np.uint8),
        frozen(starts, np.int64),
        frozen(stops, np.int64),
        theirs=True,
    )


def rows_of(array: Any) -> Rows:
    """The rows of one array. TypeError for a type that holds no texts, MalformedArray for what cannot be right."""
    import pyarrow as pa

    kind, t = array.type, pa.types
    if t.is_null(kind):
        empty = np.zeros(len(array), np.int64)
        return np.zeros(0, np.uint8), empty, empty
    if t.is_dictionary(kind):
        return _of_dictionary(array)
    if t.is_string_view(kind) or t.is_binary_view(kind):
        return _of_views(array)
    if t.is_fixed_size_binary(kind):
        return _of_fixed_size(array)
    if t.is_string(kind) or t.is_binary(kind):
        return _of_offsets(array, np.int32)
    if t.is_large_string(kind) or t.is_large_binary(kind):
        return _of_offsets(array, np.int64)
    raise TypeError(f"found an Arrow array of {kind}, expected string or binary")


def _without_nulls(array: Any, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.int64]:
    """The stops, in which nulls are empty: what lies after a null is anybody's guess."""
    valid = arrow_valid(array)
    return stops if valid is None else np.where(valid, stops, starts)


def _of_offsets(array: Any, dtype: Any) -> Rows:
    data = array.buffers()[2]
    offsets = arrow_offsets(array, dtype, 0 if data is None else data.size)
    low, high = int(offsets[0]), int(offsets[-1])
    offsets -= low
    starts, stops = offsets[:-1], offsets[1:]
    flat = np.frombuffer(data, np.uint8, high - low, low) if high > low else np.zeros(0, np.uint8)
    return flat, starts, _without_nulls(array, starts, stops)


def _of_fixed_size(array: Any) -> Rows:
    width, count = array.type.byte_width, len(array)
    flat = arrow_numbers(
        array.buffers()[1], np.uint8, array.offset * width, count * width, f"an Arrow array of {array.type}"
    )
    starts = np.arange(count) * width
    return flat, starts, _without_nulls(array, starts, starts + width)


def check_rows(array: Any) -> None:
    """MalformedArray or TypeError as `rows_of` raises them. What a dictionary holds is not written out for each row."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        _indices(array)
        check_rows(array.dictionary)
    else:
        rows_of(array)


def _indices(array: Any) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """The entry of each row of a dictionary array, 0 for nulls; and which rows are none, None where all are."""
    what, count = f"an Arrow array of {array.type}", len(array)
    dtype = np.dtype(array.type.index_type.to_pandas_dtype())
    indices = arrow_numbers(array.buffers()[1], dtype, array.offset, count, f"{what}: indices").copy()
    valid = arrow_valid(array)
    if valid is not None:
        indices[~valid] = 0
    words = len(array.dictionary)
    wrong = (indices < 0) | (indices >= words)
    if valid is not None:
        wrong &= valid
    if wrong.any():
        row = int(np.argmax(wrong))
        raise MalformedArray(f"{what}, row {row}", InWords(f"index {indices[row]}"), f"one of the {words} entries")
    return indices, valid


def _of_dictionary(array: Any) -> Rows:
    return _picked(*_entries(array))


def _entries(array: Any) -> tuple[Any, NDArray[Any], NDArray[np.bool_] | None]:
    """The entries of a dictionary array in memory of their own, and `_indices`."""
    return _arrow_of(rows_of(array.dictionary)), *_indices(array)


def _picked(entries: Any, indices: NDArray[Any], valid: NDArray[np.bool_] | None) -> Rows:
    import pyarrow as pa

    picked = entries.take(pa.array(indices, mask=None if valid is None else ~valid))
    return _of_offsets(picked, np.int64)


def _arrow_of(rows: Rows) -> Any:
    """A large binary array of rows in order, in memory of its own."""
    import pyarrow as pa

    data, starts, stops = rows
    if np.array_equal(starts[1:], stops[:-1]):
        kept = data[: int(stops[-1]) if stops.size else 0]
    else:  # nulls leave something between them
        kept = np.concatenate([np.zeros(0, np.uint8), *(data[i:j] for i, j in zip(starts, stops, strict=True))])
    offsets = np.cumsum(np.append(0, stops - starts))
    buffers = [None, pa.py_buffer(own(offsets)), pa.py_buffer(own(kept))]
    return pa.Array.from_buffers(pa.large_binary(), starts.size, buffers)


def _of_views(array: Any) -> Rows:
    """Laid out plainly by Arrow, from copies of the views and of the bytes that they name."""
    import pyarrow as pa

    what, count = f"an Arrow array of {array.type}", len(array)
    views = arrow_numbers(array.buffers()[1], np.int32, 4 * array.offset, 4 * count, f"{what}: views").copy()
    views = views.reshape(count, 4)
    valid = arrow_valid(array)
    if valid is not None:
        views[~valid] = 0
    sizes = views[:, 0]
    if (sizes < 0).any():
        row = int(np.argmax(sizes < 0))
        raise MalformedArray(f"{what}, row {row}", InWords(f"{sizes[row]} bytes"), "0 or more")
    far, buffers = np.flatnonzero(sizes > INLINE), array.buffers()[2:]
    if far.size and not 0 <= views[far, 2].min() <= views[far, 2].max() < len(buffers):
        raise MalformedArray(what, InWords("a missing buffer"), f"one of its {len(buffers)} buffers")
    kept = []
    for number, buffer in enumerate(buffers):
        here = far[views[far, 2] == number]
        starts = views[here, 3].astype(np.int64)
        stops = starts + sizes[here]
        proven(starts, stops, 0 if buffer is None else buffer.size, f"{what}, buffer {number}")
        low, high = (int(starts.min()), int(stops.max())) if here.size else (0, 0)
        kept.append(pa.py_buffer(np.frombuffer(buffer, np.uint8, high - low, low).tobytes() if here.size else b""))
        views[here, 3] -= low
    plain = pa.Array.from_buffers(pa.binary_view(), count, [None, pa.py_buffer(views.tobytes()), *kept])
    return _of_offsets(plain.cast(pa.large_binary()), np.int64)

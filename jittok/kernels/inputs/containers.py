"""Converts texts in any container to `Documents`, bytes in flat arrays.

Arrow arrays, NumPy bytes and `Ragged` stay where they are until a thread copies a part of them, as other code may
write to them. Python's `bytes` and `str` never change, so kernels read them where they are, but for short ones, which
are joined. A `str` that is not ASCII is encoded first, or a thread writes the UTF-8 of a stretch of them. All others
are joined. Either way comes in parts of PART_BYTES: an iterator over a large corpus never is in memory twice.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.rows import Ragged
from jittok.common.rows.checks import is_held, proven
from jittok.kernels.fragments import PAD
from jittok.kernels.inputs.arrow import of_arrow
from jittok.kernels.inputs.texts import PADDING, PART_BYTES, Documents, to_bytes
from jittok.kernels.jit import frozen
from jittok.kernels.memory.python_objects.texts import (
    bytes_in_place,
    can_read_in_place,
    joined_texts,
    memory_at,
    texts_in_place,
)

BLOCK = 512
"""Texts joined at once: ASCII ones need no encoding one by one."""

BLOCK_IN_PLACE = 64
"""Texts fetched from an iterator at once, where they need not be joined."""
SHORT_TEXT_BYTES = 250
"""Texts of fewer bytes on average are joined: kernels read short texts faster where they are one after the other."""
LONGEST_UNPADDED = 1 << 16
"""A longer text gets a copy with bytes after it if none can be read there; kernels copy the end of a shorter one."""
LONGEST_TOGETHER = 4 << 20
"""A longer text is a part of its own: kernels then know that bytes follow wherever it is cut but at its end."""
WORTH_COMPILING = 1 << 25
"""Bytes of `str` that are not ASCII, encoded in a process, after which kernels are compiled to read them."""
PAGE = 4096
"""See `readable_behind`."""

_encoded = 0


def reads_wide() -> bool:
    """Whether kernels are to read `str` that are not ASCII: they need not be compiled, or there was much such text."""
    from jittok.kernels.memory.python_objects.wide_texts import join_utf8, read_wide

    return _encoded >= WORTH_COMPILING or (join_utf8.at_hand() and read_wide.at_hand())


def documents(texts: Any, replace: bool = False, in_place: bool = False, wide: int = 0) -> Iterator[Documents]:
    """The documents of anything that holds texts, in order and in one or more parts.

    in_place: the caller leaves `data` to kernels, so that Python's objects need not be joined (see `Documents.kept`).
    wide: and makes UTF-8 of those that are none (see `Documents.widths`), if they have so many bytes; 0: never.
    TypeError for one bare text, a mapping, a set or a type that holds no texts; nulls of tables are empty documents.
    """
    if isinstance(texts, str | bytes | bytearray | memoryview):
        kind = type(texts).__name__
        raise TypeError(f"texts: found one {kind}, expected a sequence of texts: [text], or encode(text) for one text")
    if isinstance(texts, Mapping | Set):
        raise TypeError(f"found {type(texts).__name__}, expected a list or another ordered sequence")
    if isinstance(texts, Documents):
        if texts.kept is None:
            proven(texts.starts, texts.stops, texts.data.size, "documents")
        yield texts
    elif isinstance(texts, Ragged):
        starts, stops = texts.offsets[:-1], texts.offsets[1:]
        proven(starts, stops, texts.data.size, "Ragged")
        yield Documents(texts.data, starts, stops, theirs=not is_held(texts.data))
    elif isinstance(texts, np.ndarray):
        yield from _of_numpy(texts, replace, in_place, wide)
    elif _is_from("pyarrow", texts):
        yield from of_arrow(texts)
    elif _is_from("pandas", texts):
        yield from _of_pandas(texts, replace, in_place, wide)
    elif _is_from("polars", texts):
        yield from _of_polars(texts, replace, in_place, wide)
    elif not isinstance(texts, list | tuple) and _is_of_bytes(texts):
        raise TypeError(f"found one {type(texts).__name__}, expected a sequence of texts: use [bytes(...)]")
    elif isinstance(texts, Iterable) or hasattr(texts, "__getitem__"):
        yield from _of_objects(texts, replace, in_place, wide)
    else:
        raise TypeError(f"found {type(texts).__name__}, expected a sequence of texts")


def _is_of_bytes(thing: object) -> bool:
    """Whether an object is bytes of one piece, as a mapped file is: each byte of it would be a text."""
    try:
        with memoryview(thing) as view:  # type: ignore[arg-type]
            return view.itemsize == 1
    except (TypeError, ValueError, BufferError):
        return False


def _is_from(package: str, thing: object) -> bool:
    """Whether the class of an object is from a package that other code has imported."""
    return package in sys.modules and type(thing).__module__.partition(".")[0] == package


def _packed(blocks: Sequence[bytes], lengths: Sequence[NDArray[np.int64]]) -> Documents:
    """Documents of joined blocks and the lengths of the texts in them."""
    data = np.frombuffer(b"".join([*blocks, PADDING]), np.uint8)
    offsets = np.zeros(1 + sum(part.size for part in lengths), np.int64)
    if lengths:
        np.cumsum(np.concatenate(lengths), out=offsets[1:])
    offsets.flags.writeable = False
    return Documents(data, offsets[:-1], offsets[1:])


def _of_objects(
    texts: Iterable[Any], replace: bool, in_place: bool, wide: int = 0, nulls: bool = False
) -> Iterator[Documents]:
    """Python's objects. `nulls`: None and NaN are empty texts."""
    if not in_place or not can_read_in_place():
        one = texts[0] if in_place and isinstance(texts, list | tuple) and len(texts) == 1 else None
        if type(one) is bytes and len(one) > LONGEST_UNPADDED:  # joining it would copy it
            ends = frozen([0, len(one)], np.int64)
            yield Documents(np.frombuffer(one, np.uint8), ends[:1], ends[1:])
        else:
            yield from _of_iterable(texts, replace, nulls)
        return
    first = 0
    for kept in [tuple(texts)] if isinstance(texts, list | tuple) else _blocks(texts):
        found = texts_in_place(kept)
        if found is None or not kept:
            yield from _of_iterable(kept, replace, nulls, first)
        else:
            yield from _parts_in_place(kept, *found, replace, first, wide)
        first += len(kept)


def _blocks(texts: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """What an iterator gives, about PART_BYTES at a time; one empty block for nothing at all."""
    source, block, size, seen = iter(texts), [], 0, 0
    while more := list(islice(source, BLOCK_IN_PLACE)):
        block += more
        size += sum(len(text) for text in more if isinstance(text, str | bytes | bytearray))
        if size >= PART_BYTES:
            seen += len(block)
            yield tuple(block)
            block, size = [], 0
    if block or not seen:
        yield tuple(block)


def _of_iterable(texts: Iterable[Any], replace: bool, nulls: bool = False, first: int = 0) -> Iterator[Documents]:
    """Joined in blocks. `nulls`: None and NaN are empty texts; first: the number of the first, for errors."""
    blocks: list[bytes] = []
    lengths: list[NDArray[np.int64]] = []
    size, seen, source = 0, 0, iter(texts)
    while block := list(islice(source, BLOCK)):
        joined, spans = _joined(block, replace, first + seen, nulls)
        blocks.append(joined)
        lengths.append(spans)
        seen += len(block)
        size += len(joined)
        if size >= PART_BYTES:
            yield _packed(blocks, lengths)
            blocks, lengths, size = [], [], 0
    if blocks or not seen:
        yield _packed(blocks, lengths)


def _parts_in_place(
    kept: tuple[Any, ...], addresses: NDArray[np.int64], sizes: NDArray[np.int64], replace: bool, number: int, wide: int
) -> Iterator[Documents]:
    """Texts where they are, in parts. `addresses`, `sizes`: see `texts_in_place`; number: the first one's, for
    errors."""
    weights = np.where(sizes < 0, -2 * sizes, sizes)  # most scripts have two bytes a character or three
    ends, cuts = np.cumsum(weights), {0, len(kept)}
    widths = None
    rows = np.flatnonzero((sizes < 0) & (weights <= LONGEST_TOGETHER)) if wide else addresses[:0]
    if rows.size and int(weights[rows].sum()) >= wide:
        from jittok.kernels.memory.python_objects.wide_texts import wide_texts

        widths = wide_texts(kept, rows, addresses)
        sizes = np.where(widths > 0, (-1 - sizes) * widths, sizes)
    cuts.update(np.searchsorted(ends, np.arange(PART_BYTES, int(ends[-1]), PART_BYTES), "right").tolist())
    for alone in np.flatnonzero(weights > LONGEST_TOGETHER).tolist():
        cuts.update((alone, alone + 1))
    for first, last in pairwise(sorted(cuts)):
        its = None if widths is None or not widths[first:last].any() else widths[first:last]
        yield _part_in_place(kept, first, addresses[first:last], sizes[first:last], replace, number + first, its)


def _part_in_place(
    kept: tuple[Any, ...], first: int, addresses: NDArray[np.int64], sizes: NDArray[np.int64], replace: bool,
    number: int, widths: NDArray[np.uint8] | None,
) -> Documents:  # fmt: skip
    """One part; what cannot be read where it is gets a bytes object of its own."""
    global _encoded  # noqa: PLW0603  threads may miss each other's sums: they are a guess
    cramped = (sizes > LONGEST_UNPADDED) & ((addresses + sizes - 1) % PAGE + PAD >= PAGE)
    if widths is not None:
        cramped &= widths == 0
    moved = np.flatnonzero((sizes < 0) | cramped)
    if moved.size:
        made = []
        for k in moved.tolist():
            text = to_bytes(kept[first + k], replace, number + k)
            _encoded += len(text)
            made.append(text + PADDING if len(text) > LONGEST_UNPADDED else text)
            sizes[k] = len(text)
        kept = (kept, *made)
        addresses[moved] = bytes_in_place(made)
    if widths is None and int(sizes.sum()) < SHORT_TEXT_BYTES * sizes.size:
        ends = np.append(0, np.cumsum(sizes))
        ends.flags.writeable = False
        return Documents(frozen(joined_texts(addresses, sizes, PAD), np.uint8), ends[:-1], ends[1:])
    front = int(addresses.argmin())
    data = memory_at(int(addresses[front]), max(int(sizes[front]), 1))  # a byte of 0 is after each
    starts = addresses - addresses[front]
    return Documents(data, frozen(starts, np.int64), frozen(starts + sizes, np.int64), kept, widths=widths)


def _joined(block: list[Any], replace: bool, first: int, nulls: bool) -> tuple[bytes, NDArray[np.int64]]:
    """One block of texts as bytes, and their lengths."""
    kinds = set(map(type, block))  # not a subclass, which may have a length of its own
    if kinds == {bytes}:
        return b"".join(block), np.fromiter(map(len, block), np.int64, len(block))
    if kinds == {str}:
        with contextlib.suppress(UnicodeEncodeError):
            whole = "".join(block)
            if whole.isascii():
                return whole.encode(), np.fromiter(map(len, block), np.int64, len(block))
            sizes = [len(text) if text.isascii() else len(text.encode()) for text in block]
            return whole.encode(), np.fromiter(sizes, np.int64, len(block))
    if nulls:
        block = ["" if _is_null(text) else text for text in block]
    parts = [to_bytes(text, replace, first + k) for k, text in enumerate(block)]
    return b"".join(parts), np.fromiter(map(len, parts), np.int64, len(parts))


def _is_null(thing: Any) -> bool:
    """Whether an object is None, NaN or pandas' NA, which is neither equal to itself nor not."""
    return thing is None or type(thing).__name__ == "NAType" or (isinstance(thing, float) and thing != thing)  # noqa: PLR0124


def _one_dimension(array: Any) -> None:
    if array.ndim != 1:
        raise TypeError(f"found an array of {array.ndim} dimensions, expected 1")


def _of_numpy(texts: NDArray[Any], replace: bool, in_place: bool, wide: int) -> Iterator[Documents]:
    """Object, bytes ("S"), str ("U") and variable-width string ("T") arrays. Bytes are read in place."""
    _one_dimension(texts)
    if isinstance(getattr(texts, "mask", None), np.ndarray | np.bool_):  # np.ma, which is not imported for this
        yield from _of_objects(texts.tolist(), replace, in_place, wide, nulls=True)
        return
    kind, width = texts.dtype.kind, texts.dtype.itemsize
    if kind == "S":
        flat = np.ascontiguousarray(texts)
        starts = np.arange(flat.size, dtype=np.int64) * width
        data = flat.view(np.uint8) if width else np.zeros(0, np.uint8)
        stops = starts + np.char.str_len(flat)
        proven(starts, stops, data.size, "a NumPy array")
        yield Documents(
            frozen(data, np.uint8),
            frozen(starts, np.int64),
            frozen(stops, np.int64),
            theirs=True,
        )
    elif kind in "OTU":
        yield from _of_objects(texts.tolist(), replace, in_place, wide, nulls=True)
    else:
        raise TypeError(f"found an array of {texts.dtype}, expected str, bytes or objects")


def _of_pandas(texts: Any, replace: bool, in_place: bool, wide: int) -> Iterator[Documents]:
    """A Series, Index or array of pandas: the Arrow array below it where there is one, else its objects."""
    if not hasattr(texts, "dtype"):
        raise TypeError(f"found a pandas {type(texts).__name__}, expected a Series or Index of texts")
    _one_dimension(texts)
    values = getattr(texts, "array", texts)
    if hasattr(values, "__arrow_array__") and "pyarrow" in f"{texts.dtype!r}{getattr(texts.dtype, 'storage', '')}":
        yield from of_arrow(values.__arrow_array__())
    else:
        import pandas as pd

        objects = np.array(values, dtype=object)
        objects[pd.isna(objects)] = None
        yield from _of_objects(objects.tolist(), replace, in_place, wide, nulls=True)


def _of_polars(texts: Any, replace: bool, in_place: bool, wide: int) -> Iterator[Documents]:
    """A Series of polars, through Arrow where pyarrow is installed."""
    if not hasattr(texts, "dtype"):
        raise TypeError(f"found a polars {type(texts).__name__}, expected a Series of texts")
    try:
        arrow = texts.to_arrow()
    except ImportError:
        yield from _of_objects(texts.to_list(), replace, in_place, wide, nulls=True)
    else:
        yield from of_arrow(arrow)

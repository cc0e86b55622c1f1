"""One text, one row of ids, and `Documents`: many texts as bytes in flat arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from jittok.common.rows.checks import proven
from jittok.common.rows.ragged import byte_view
from jittok.errors import EncodingFailed, InvalidToken
from jittok.kernels.fragments import PAD
from jittok.kernels.jit import frozen

if TYPE_CHECKING:
    from jittok.common.rows.ragged import Ragged

PART_BYTES = 16 << 20
"""Texts are handed on when they are this long together: the C library hands the memory of their ids out again without
asking the system, which it never does above 32 MB."""

PADDING = bytes(PAD)

SURROGATE = "[\ud800-\udfff]"
ERRORS = ("strict", "replace")

OneText = str | bytes | bytearray | memoryview
Errors = Literal["strict", "replace"]
"""What is done about a text that cannot be encoded."""


class Documents(NamedTuple):
    """Texts in one byte buffer: document k is data[starts[k]:stops[k]]. All arrays are read-only.

    With `kept` the texts are read in place, in Python's objects: offsets count from the lowest address, which is that
    of `data`, and point past the end of `data`, so only kernels may use them. With `theirs` someone else may write to
    `data` at any time; kernels may read a text twice, so they get a copy (`own`). With `widths`, which is opt-in, text
    k has characters of widths[k] bytes, or is UTF-8 where that is 0 (see `python_objects.wide_texts`); a copy is
    UTF-8.
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    kept: tuple[Any, ...] | None = None
    theirs: bool = False
    widths: NDArray[np.uint8] | None = None

    @property
    def to_copy(self) -> bool:
        """Whether kernels are given a copy."""
        return self.theirs or self.widths is not None

    def own(self, first: int, last: int, capacity: NDArray[np.uint8] | None = None) -> Documents:
        """Documents first .. last - 1 as UTF-8 in private memory: in `capacity`, if that is large
        enough. Those without `widths` lie in order. EncodingFailed for a lone surrogate."""
        if self.widths is not None:
            addresses, sizes = (
                self.starts[first:last] + self.data.ctypes.data,
                self.stops[first:last] - self.starts[first:last],
            )
            data, ends = utf8_of(addresses, sizes, self.widths[first:last], capacity, np.arange(first, last))
            return Documents(
                frozen(data, np.uint8),
                frozen(ends[:-1], np.int64),
                frozen(ends[1:], np.int64),
            )
        starts, stops = self.starts[first:last], self.stops[first:last]
        if self.kept is not None:
            from jittok.kernels.memory.python_objects.texts import joined_texts

            ends = np.append(0, np.cumsum(stops - starts))
            data = joined_texts(starts + self.data.ctypes.data, stops - starts, PAD)
            return Documents(frozen(data, np.uint8), frozen(ends[:-1], np.int64), frozen(ends[1:], np.int64))
        low, high = (int(starts[0]), int(stops[-1])) if last > first else (0, 0)
        starts, stops = starts - low, stops - low
        proven(starts, stops, high - low, "documents")
        size = high - low + PAD
        data = np.empty(size, np.uint8) if capacity is None or capacity.size < size else capacity[:size]
        data[:-PAD], data[-PAD:] = self.data[low:high], 0
        return Documents(frozen(data, np.uint8), frozen(starts, np.int64), frozen(stops, np.int64))

    def between(self, start: int, stop: int) -> bytes:
        """A copy of data[start:stop], a part of one document."""
        if self.kept is None:
            return self.data[start:stop].tobytes()
        from jittok.kernels.memory.python_objects.texts import text_at

        return text_at(self.data.ctypes.data + start, stop - start)

    def sizes(self, first: int, last: int) -> NDArray[np.int64]:
        """int64[last - first]: bytes of each, or a guess for those that are invalid UTF-8 yet: of characters of four
        bytes most need one or two."""
        found = self.stops[first:last] - self.starts[first:last]
        return found if self.widths is None else found >> (self.widths[first:last] == 4).astype(np.int64)

    def size(self, first: int, last: int) -> int:
        """Bytes of documents first .. last - 1; with `widths`, about."""
        if self.kept is None:
            return max(int(self.stops[last - 1] - self.starts[first]), 0)
        return int(self.sizes(first, last).sum())


if TYPE_CHECKING:

    class ArrowArray(Protocol):
        """An array of pyarrow or of another library with Arrow's C interface."""

        def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...

    class ArrowStream(Protocol):
        """A chunked array, or a Series of polars or pandas."""

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

    Texts = Iterable[OneText | None] | Ragged | NDArray[Any] | ArrowArray | ArrowStream | Documents
    """What a batch may be."""


def utf8_of(
    addresses: NDArray[np.int64], sizes: NDArray[np.int64], widths: NDArray[np.uint8],
    capacity: NDArray[np.uint8] | None, numbers: NDArray[np.int64],
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:  # fmt: skip
    """UTF-8 of texts from addresses (see `python_objects.wide_texts`) one after the other, with PAD zeros after
    them, and int64[texts + 1] where they begin and end: in `capacity`, if that is large enough. EncodingFailed, which
    names document numbers[k], for a lone surrogate."""
    from jittok.kernels.memory.python_objects.texts import text_at
    from jittok.kernels.memory.python_objects.wide_texts import (
        CODECS,
        SPARE_BYTES,
        UTF8_BYTES_PER_CHARACTER,
        join_utf8,
    )

    most = int((sizes * UTF8_BYTES_PER_CHARACTER[widths]).sum()) + max(SPARE_BYTES, PAD)
    data = np.empty(most + most // 4, np.uint8) if capacity is None or capacity.size < most else capacity
    ends = np.empty(sizes.size + 1, np.int64)
    size = join_utf8(frozen(addresses, np.int64), frozen(sizes, np.int64), frozen(widths, np.uint8), data, ends)
    if size < 0:
        k = -1 - size
        text = text_at(int(addresses[k]), int(sizes[k]))
        to_bytes(text.decode(CODECS[int(widths[k])], "surrogatepass"), document=int(numbers[k]))
    data[size : size + PAD] = 0
    return data, ends


def check_errors(errors: str) -> bool:
    """Whether to replace. ValueError for anything but "strict" and "replace"."""
    if errors not in ERRORS:
        raise ValueError(f"errors: found {errors!r}, expected 'strict' or 'replace'")
    return errors == "replace"


def check_options(add_special: object, parse_special: object, errors: str) -> bool:
    """`check_errors`; TypeError for flags that are not true or false. Strings are refused, as any of them is truthy."""
    for name, value in (("add_special", add_special), ("parse_special", parse_special)):
        if not _is_true_or_false(value):
            raise TypeError(f"{name}: found {value!r}, expected True or False")
    return check_errors(errors)


def _is_true_or_false(value: object) -> bool:
    try:
        bool(value)
    except (TypeError, ValueError):  # an array of several
        return False
    return not isinstance(value, str | bytes)


def to_bytes(text: object, replace: bool = False, document: int | None = None) -> bytes:
    """UTF-8 of one text; bytes as they are. `document`: its number among several, for errors.

    A lone surrogate becomes U+FFFD or raises EncodingFailed, whose offset is in characters. TypeError: not a text. Of a
    subclass the content counts, not its methods: its own `__len__` could be wrong, and kernels trust lengths."""
    if isinstance(text, str):
        text = text if type(text) is str else str.__getitem__(text, slice(None))
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            if replace:
                return re.sub(SURROGATE, "\ufffd", text).encode()
            raise EncodingFailed(
                document or 0,
                error.start,
                text[error.start],
                "no lone surrogate (errors='replace' replaces it with U+FFFD)",
            ) from None
    if isinstance(text, bytes):
        return text if type(text) is bytes else bytes.__getitem__(text, slice(None))
    if isinstance(text, bytearray | memoryview):
        return bytes(byte_view(memoryview(text)))
    raise TypeError(_no_text(text, document))


def _no_text(found: object, document: int | None) -> str:
    """The error for an object that is not a text, alone or in a batch."""
    where = "text" if document is None else f"document {document}"
    several = hasattr(found, "__iter__") or hasattr(found, "__array__")
    if several and document is None:
        hint = ": encode_batch takes many texts, as count_batch and align_batch do"
    elif several:
        hint = ": a batch is a flat sequence of texts"
    else:
        hint = ""
    return f"{where}: found {type(found).__name__}, expected str or bytes{hint}"


def _no_ids(found: Any, why: str) -> TypeError:
    """The error for an object that is not a row of ids."""
    kind = type(found).__name__
    if hasattr(found, "offsets") and hasattr(found, "ids"):  # a TokenArray
        return TypeError(
            f"ids: found a {kind} of {len(found)} rows, expected one row: decode_batch(rows) gives a text for each, "
            "decode(rows[0]) that of the first"
        )
    if hasattr(found, "ids"):  # an Alignment, an Encoding of tokenizers
        return TypeError(f"ids: found {kind}, expected integers: decode(found.ids)")
    if hasattr(found, "keys"):
        return TypeError(f"ids: found {kind}, expected integers: decode(found['input_ids'])")
    if isinstance(found, str | bytes):
        return TypeError(f"ids: found {kind}, expected integers: decode takes ids, encode takes text")
    if not hasattr(found, "__iter__") or getattr(found, "ndim", 1) == 0:
        write = f": write [{found}]" if isinstance(found, int | np.integer) else ""
        return TypeError(f"ids: found {kind}, expected a sequence of integers{write}")
    return TypeError(why)


def to_ids(ids: Any, vocab_size: int) -> NDArray[np.int32]:
    """Any one-dimensional sequence of integers as int32; what a NumPy array masks is left out. Raises InvalidToken,
    TypeError."""
    given = ids
    try:
        ids = ids if hasattr(ids, "__len__") or hasattr(ids, "__array__") else list(ids)
    except TypeError:
        if hasattr(ids, "__iter__"):
            raise
        raise _no_ids(ids, "") from None
    try:
        array = np.asarray(ids)
    except ValueError:
        why = "found rows of several lengths, expected one row of ids: decode_batch takes rows"
        raise _no_ids(given, why) from None
    if array.ndim != 1:
        why = f"found ids of {array.ndim} dimensions, expected 1: decode_batch takes rows of ids"
        raise _no_ids(given, why)
    if isinstance(getattr(ids, "mask", None), np.ndarray | np.bool_):  # np.ma, which is not imported for this
        array = ids = np.asarray(ids.compressed())
    if array.dtype == np.int32:
        return frozen(array, np.int32)
    if array.size and array.dtype.kind not in "iu":
        for token in ids:  # NumPy makes objects or floats of what is too large for 64 bits
            if type(token) is int and not 0 <= token < vocab_size:
                raise InvalidToken(token, vocab_size)
        raise TypeError(f"found ids of {array.dtype}, expected integers")
    if array.size and not (int(array.min()) >= 0 and int(array.max()) < vocab_size):
        raise InvalidToken(int(array[np.argmax((array < 0) | (array >= vocab_size))]), vocab_size)
    return frozen(array, np.int32)

"""Ids of many texts, concatenated in one array. Needs NumPy alone."""

from __future__ import annotations

import os
from array import array as words
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jittok.common.rows.checks import arrow_numbers, arrow_offsets, arrow_valid, proven
from jittok.common.rows.ids import Ids
from jittok.common.rows.npy_files import FILES, beside, check_files, check_free, put_in_place, read_array
from jittok.common.rows.padded import Padded, Side, padded_length, padding_id
from jittok.common.rows.ragged import fixed_offsets, read_only_array, row_number, whole_number
from jittok.errors import check_local, missing, refuse_keywords

if TYPE_CHECKING:
    import pyarrow as pa

Describe = Callable[[Sequence[int]], list[dict[str, Any]]]
"""Describes ids, as `display.tokens` shows them."""
INT32_MAX = 2**31 - 1
SHOWN_ROWS, SHOWN_IDS = 10, 16


def _of_arrow_lists(array: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The ids of an Arrow array of lists, without those of null rows and outside a slice, and their offsets."""
    import pyarrow as pa

    items = array.values
    dtype = np.dtype(items.type.to_pandas_dtype())
    ids = arrow_numbers(items.buffers()[1], dtype, items.offset, len(items), f"an Arrow array of {array.type}: ids")
    if pa.types.is_fixed_size_list(array.type):
        offsets = (np.arange(len(array) + 1) + array.offset) * array.type.list_size
        proven(offsets[:-1], offsets[1:], ids.size, f"an Arrow array of {array.type}")
    else:
        offsets = arrow_offsets(array, np.int64 if pa.types.is_large_list(array.type) else np.int32, ids.size)
    kept = slice(int(offsets[0]), int(offsets[-1]))
    there, rows = arrow_valid(items), arrow_valid(array)
    ids, lengths = ids[kept], np.diff(offsets)
    there = None if there is None else there[kept]
    if rows is not None:
        used = np.repeat(rows, lengths)
        ids, there = ids[used], None if there is None else there[used]
        lengths = np.where(rows, lengths, 0)
    if there is not None and not there.all():
        raise ValueError(f"found {int((~there).sum())} null ids, expected none")
    return ids, np.cumsum(np.append(0, lengths))


class TokenArray:
    """Ids of many texts, concatenated.

    `ids`: int32[total]; `offsets`: int64[n + 1], row i is ids[offsets[i]:offsets[i + 1]]. Both are read-only and
    C-contiguous. Ids of the right kind are taken as they are, without a copy: each is checked again when it is used.
    Offsets are copied, and can never be written to.
    """

    __slots__ = ("_around", "_describe", "_pad_id", "ids", "offsets")
    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    _describe: Describe | None
    _around: tuple[int, int]
    _pad_id: int | None

    def __init__(self, ids: ArrayLike, offsets: ArrayLike) -> None:
        object.__setattr__(self, "ids", read_only_array(ids, np.int32, "ids"))
        object.__setattr__(self, "offsets", fixed_offsets(offsets, self.ids.size, "ids"))
        object.__setattr__(self, "_describe", None)
        object.__setattr__(self, "_around", (0, 0))
        object.__setattr__(self, "_pad_id", None)

    @classmethod
    def of_rows(cls, rows: Sequence[NDArray[np.int32]]) -> TokenArray:
        """Rows (at least one int32[]) that nothing else refers to; they are not checked. A single one is not copied."""
        made = object.__new__(cls)
        ids = (rows[0] if len(rows) == 1 else np.concatenate(rows)).view(np.ndarray)
        ids.flags.writeable = False
        offsets = np.frombuffer(words("q", accumulate((row.size for row in rows), initial=0)).tobytes(), np.int64)
        its = ("ids", ids), ("offsets", offsets), ("_describe", None), ("_around", (0, 0)), ("_pad_id", None)
        for name, value in its:
            object.__setattr__(made, name, value)
        return made

    def described_by(self, describe: Describe | None, pad_id: int | None = None) -> TokenArray:
        """The same rows, which show themselves as tokens: describe(ids) gives a record a token. It is not pickled.
        pad_id: that of the vocabulary."""
        return self._same(describe, self._around, self._pad_id if pad_id is None else pad_id)

    def surrounded_by(self, front: int, after: int) -> TokenArray:
        """The same rows. front, after: how many first and last ids of each row are around its text: `to_padded` keeps
        these."""
        return self._same(self._describe, (int(front), int(after)), self._pad_id)

    def _same(self, describe: Describe | None, around: tuple[int, int], pad_id: int | None) -> TokenArray:
        """The same arrays, which are not checked again."""
        rows = object.__new__(TokenArray)
        its = ("ids", self.ids), ("offsets", self.offsets), ("_describe", describe), ("_around", around)
        for name, value in (*its, ("_pad_id", pad_id)):
            object.__setattr__(rows, name, value)
        return rows

    if not TYPE_CHECKING:  # a checker tells what is not there

        def __getattr__(self, name: str) -> NoReturn:
            """An AttributeError that says what to write for the names of other libraries' rows."""
            if hasattr(type(self), name):  # a property or slot raised it
                object.__getattribute__(self, name)
            from jittok.common.hints import no_attribute_of_rows

            message = no_attribute_of_rows(type(self).__name__, name, dir(type(self)))
            raise AttributeError(message, name=name, obj=self)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"TokenArray is immutable: {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rows, (self.ids, self.offsets, self._around, self._pad_id)

    def __len__(self) -> int:
        return self.offsets.size - 1

    @overload
    def __getitem__(self, row: int) -> Ids: ...
    @overload
    def __getitem__(self, row: slice) -> TokenArray: ...
    def __getitem__(self, row: int | slice) -> Ids | TokenArray:
        if not isinstance(row, slice):
            row = row_number(row, len(self))
            return self.ids[self.offsets[row] : self.offsets[row + 1]].view(Ids)
        start, stop, step = row.indices(len(self))
        if step != 1:
            return TokenArray.concat([self[i : i + 1] for i in range(start, stop, step)])
        offsets = self.offsets[start : max(start, stop) + 1]
        rows = TokenArray(self.ids[offsets[0] : offsets[-1]], offsets - offsets[0])
        return rows._same(self._describe, self._around, self._pad_id)

    def __iter__(self) -> Iterator[Ids]:
        ids = self.ids.view(Ids)
        for i, j in pairwise(self.offsets.tolist()):
            yield ids[i:j]  # type: ignore[misc]  # a part of ids is Ids

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TokenArray):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.ids, other.ids)

    __hash__ = None  # type: ignore[assignment]  # compared by content, which may be large

    def __repr__(self) -> str:
        return f"TokenArray({len(self)} rows, {self.ids.size} ids)"

    def _repr_html_(self) -> str:
        head = self[:SHOWN_ROWS]
        describe: Describe = self._describe or (lambda ids: [{"id": token} for token in ids])
        rows = [describe(row[:SHOWN_IDS].tolist()) for row in head]
        from jittok.common.display import html

        return html.token_rows(rows, head.lengths.tolist(), len(self), self.ids.size)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64[n]: ids of each row."""
        return np.diff(self.offsets)

    def to_list(self) -> list[list[int]]:
        """The rows as lists of int."""
        flat = self.ids.tolist()
        return [flat[i:j] for i, j in pairwise(self.offsets.tolist())]

    def to_padded(
        self,
        length: int | None = None,
        *,
        pad_id: int | None = None,
        side: Side = "right",
        truncate: bool = False,
        closing: int | None = None,
        multiple_of: int | None = None,
        **others: NoReturn,
    ) -> Padded:
        """Rows of one length: ids, int32[n, length], and a mask of the same shape, True for ids of the row. `types`,
        the segments, are None: rows cut for training (`encode_batch(texts, max_length=...)`) have them.

        `length=None`: the longest row. `pad_id=None`: that of the vocabulary; TypeError where it has none, and for rows
        from a file. `side`: where the padding goes, "right" or "left". A longer row is a ValueError; with
        `truncate=True` it loses ids of its text, and keeps what `add_special` put around it. `closing`: so many last
        ids are kept, where the rows do not know it themselves (read from a file, made by hand). `multiple_of`: the
        length is rounded up to a multiple of it.
        """
        if others:
            refuse_keywords(self.to_padded, others)
        pad_id = padding_id(pad_id, self._pad_id, side)
        front, after = self._around if closing is None else (self._around[0], whole_number(closing, "closing"))
        lengths = self.lengths
        longest = int(lengths.max(initial=0))
        length = padded_length(length, longest, multiple_of)
        if after < 0:
            raise ValueError(f"closing: found {after}, expected 0 or more")
        if longest > length and not truncate:
            row = int(np.argmax(lengths > length))
            raise ValueError(
                f"row {row}: found {lengths[row]} ids, expected at most {length}: length=None pads to the longest row, "
                "truncate=True shortens longer texts and keeps the special tokens around them"
            )
        if longest > length < front + after:
            raise ValueError(f"length: found {length}, expected {front + after} or more, the ids around each text")
        positions = np.arange(length)
        wide = lengths[:, None]
        mask = positions[None, :] < wide if side == "right" else positions[None, :] >= length - wide
        out = np.full((len(self), length), pad_id, np.int32)
        ids = self.ids
        if longest > length:
            at = np.arange(ids.size) - np.repeat(self.offsets[:-1], lengths)
            kept = np.repeat(np.minimum(lengths, length) - after, lengths)
            ids = ids[(at < kept) | (at >= np.repeat(lengths - after, lengths))]
        out[mask] = ids
        return Padded(out, mask, None)

    def to_arrow(self) -> pa.ListArray | pa.LargeListArray:
        """`list<int32>`, or `large_list<int32>` from 2^31 ids on; the ids are not copied. Needs pyarrow."""
        pa = _pyarrow()
        values = pa.array(self.ids)
        if self.ids.size > INT32_MAX:
            return pa.LargeListArray.from_arrays(pa.array(self.offsets), values)
        return pa.ListArray.from_arrays(pa.array(self.offsets.astype(np.int32)), values)

    @classmethod
    def from_arrow(cls, array: object) -> TokenArray:
        """From an Arrow list array (list, large_list, fixed_size_list; chunked or not) of integers; nulls are empty
        rows. ids stored as int32 in one chunk are not copied.

        Raises TypeError for other types, ValueError for a null among the ids or an id that is no int32.
        """
        pa = _pyarrow()
        if isinstance(array, pa.ChunkedArray):
            return TokenArray.concat([TokenArray.from_arrow(chunk) for chunk in array.chunks])
        kind: Any = getattr(array, "type", None)
        if not isinstance(kind, pa.DataType):
            raise TypeError(f"found {type(array).__name__}, expected an Arrow list of integers")
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
            raise TypeError(f"found {kind}, expected an Arrow list of integers")
        if not pa.types.is_integer(kind.value_type):
            raise TypeError(f"found a list of {kind.value_type}, expected a list of integers")
        return TokenArray(*_of_arrow_lists(array))

    @classmethod
    def concat(cls, arrays: Iterable[TokenArray]) -> TokenArray:
        """The rows of all arrays, concatenated."""
        parts = list(arrays)
        for part in parts:
            if not isinstance(part, TokenArray):
                raise TypeError(f"found {type(part).__name__}, expected TokenArrays")
        if len(parts) == 1:
            return parts[0]
        rows = TokenArray(*joined([part.ids for part in parts], [part.offsets[1:] for part in parts]))
        around = {part._around for part in parts}
        rows = rows.surrounded_by(*around.pop()) if len(around) == 1 else rows
        pads = {part._pad_id for part in parts}
        return rows.described_by(None, pads.pop()) if len(pads) == 1 else rows

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the folder `path` with `ids.npy` and `offsets.npy`, atomically.

        An earlier TokenArray at `path` is replaced; FileExistsError for anything else.
        """
        path = os.fsdecode(path)
        check_local(path, "save")
        target = check_free(path, "a saved TokenArray")
        target.parent.mkdir(parents=True, exist_ok=True)
        import shutil  # imports lzma and bz2, which an import of jittok does without

        part = beside(target)
        try:
            part.mkdir()
        except OSError as error:  # with the given path in place of the hidden name
            raise OSError(error.errno, error.strerror, str(path)) from None
        try:
            arrays: tuple[NDArray[Any], ...] = (self.ids, self.offsets)
            for name, array in zip(FILES, arrays, strict=True):
                with (part / name).open("wb") as file:
                    np.save(file, array, allow_pickle=False)
                    file.flush()
                    os.fsync(file.fileno())
            put_in_place(part, target)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str], mmap: bool = True) -> TokenArray:  # noqa: ARG003
        """Load what `save` wrote. MalformedArray for a truncated file; ValueError if the two files do not match.

        They are read, never mapped, whatever `mmap` is: a process that maps a file dies if the file is truncated.
        """
        path = os.fsdecode(path)
        check_files(Path(path))
        ids, offsets = (read_array(Path(path, name)) for name in FILES)
        for name, array, dtype in ((FILES[0], ids, np.int32), (FILES[1], offsets, np.int64)):
            if array.dtype != dtype or array.ndim != 1:
                raise ValueError(
                    f"{Path(path, name)}: found {array.dtype} of shape {array.shape}, expected {np.dtype(dtype)}[n]"
                )
        return TokenArray(ids, offsets)


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        raise missing("a TokenArray to or from Arrow", "pyarrow", "arrow") from None
    return pa


def _rows(
    ids: NDArray[np.int32], offsets: NDArray[np.int64], around: tuple[int, int], pad_id: int | None = None
) -> TokenArray:  # fmt: skip
    """Unpickle a TokenArray."""
    return TokenArray(ids, offsets).surrounded_by(*around).described_by(None, pad_id)


def joined(
    parts: Sequence[NDArray[np.int32]], ends: Sequence[NDArray[np.int64]]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """One ids array and its offsets from parts and the ends of their rows."""
    ids = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int32), *parts])
    offsets = np.zeros(1 + sum(part.size for part in ends), np.int64)
    at, shift = 1, 0
    for part, row_ends in zip(parts, ends, strict=True):
        np.add(row_ends, shift, out=offsets[at : at + row_ends.size])
        at += row_ends.size
        shift += part.size
    return ids, offsets

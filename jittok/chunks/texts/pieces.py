"""Pieces of texts: records for people, flat arrays for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


class Piece(NamedTuple):
    """A part of a text: text[start:stop], which has `count` ids alone."""

    text: str
    start: int  # characters
    stop: int
    byte_start: int  # bytes of the text in UTF-8
    byte_stop: int
    count: int  # type: ignore[assignment]  # tuples have a method of that name


class PieceRows(Sequence[list[Piece]]):
    """The pieces of many texts, one row a text, in flat arrays: those of text k are pieces offsets[k] ..
    offsets[k + 1] - 1. All arrays are read-only.

    >>> import jittok
    >>> rows = jittok.bundled("gpt-2").chunks_batch(["one two three", ""], 2)
    >>> rows, rows.byte_starts.tolist(), rows.counts.tolist()
    (PieceRows(2 texts, 2 pieces), [0, 7], [2, 1])
    >>> [piece.text for piece in rows[0]]
    ['one two', ' three']
    """

    def __init__(
        self, data: NDArray[np.uint8], text_starts: NDArray[np.int64], offsets: NDArray[np.int64],
        columns: NDArray[np.int64],
    ) -> None:  # fmt: skip
        """data: UTF-8 of the texts; text_starts: int64[texts] where each begins there; offsets: int64[texts + 1];
        columns: int64[5, n] starts and stops in bytes of the text, counts, starts and stops in characters."""
        self.data, self.text_starts, self.offsets, self.columns = data, text_starts, offsets, columns
        for array in (data, text_starts, offsets, columns):
            array.flags.writeable = False
        self.byte_starts, self.byte_stops, self.counts, self.starts, self.stops = columns

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __repr__(self) -> str:
        return f"PieceRows({len(self)} texts, {self.counts.size} pieces)"

    @overload
    def __getitem__(self, index: int) -> list[Piece]: ...
    @overload
    def __getitem__(self, index: slice) -> list[list[Piece]]: ...
    def __getitem__(self, index: int | slice) -> list[Piece] | list[list[Piece]]:
        """The pieces of one text, or of several."""
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        k = range(len(self))[index]
        its = slice(int(self.offsets[k]), int(self.offsets[k + 1]))
        columns = self.starts, self.stops, self.byte_starts, self.byte_stops, self.counts
        return [
            Piece(text, *row) for text, *row in zip(self._texts(k), *(c[its].tolist() for c in columns), strict=True)
        ]

    def __iter__(self) -> Iterator[list[Piece]]:
        return (self[k] for k in range(len(self)))

    def _texts(self, k: int) -> list[str]:
        begin, its = int(self.text_starts[k]), slice(int(self.offsets[k]), int(self.offsets[k + 1]))
        rows = zip(self.byte_starts[its].tolist(), self.byte_stops[its].tolist(), strict=True)
        return [self.data[begin + start : begin + stop].tobytes().decode() for start, stop in rows]

    def texts(self) -> list[str]:
        """The texts of all pieces, in order."""
        return [text for k in range(len(self)) for text in self._texts(k)]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64[texts]: the number of pieces of each text."""
        return np.diff(self.offsets)

    @property
    def row_of(self) -> NDArray[np.int64]:
        """int64[n]: the text that each piece is of."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def to_arrow(self) -> pa.Array:
        """`list<struct<text, start, stop, byte_start, byte_stop, count>>`, one row a text."""
        import pyarrow as pa

        begins = self.text_starts[self.row_of]
        lengths = self.byte_stops - self.byte_starts
        ends = np.concatenate([[0], np.cumsum(lengths)])
        at = np.arange(ends[-1]) + np.repeat(begins + self.byte_starts - ends[:-1], lengths)
        large = ends[-1] >= 1 << 31
        texts = (pa.LargeStringArray if large else pa.StringArray).from_buffers(
            lengths.size, pa.py_buffer(ends.astype(np.int64 if large else np.int32)), pa.py_buffer(self.data[at])
        )
        columns = (self.starts, self.stops, self.byte_starts, self.byte_stops, self.counts)
        names = ["text", "start", "stop", "byte_start", "byte_stop", "count"]
        pieces = pa.StructArray.from_arrays([texts, *map(pa.array, columns)], names)
        return pa.ListArray.from_arrays(pa.array(self.offsets.astype(np.int32)), pieces)

"""Where documents are in their files, without knowing how many lines come before a range: offsets in bytes.

The place of a document is the offset at which its line, or the document itself, begins in the text of its file: of a
packed file in the unpacked text. Of a table it is the row, counted from 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.inputs.kinds import TABLES
from jittok.corpus.inputs.sources import Source
from jittok.corpus.options import Options
from jittok.corpus.ranges.documents import RangeTexts
from jittok.corpus.ranges.units import Piece, RawRange


class _Lines(NamedTuple):
    """The places of some lines (rows, documents) of a file, those after the first `before`."""

    source: int
    before: int
    places: NDArray[np.int64]


class Placed:
    """The places of a range's documents: made before its payload is read, asked for when its texts are known."""

    def __init__(self, raw: RawRange, sources: Sequence[Source], options: Options) -> None:
        separator = len((options.separator or "").encode())
        key = raw.key
        if raw.pieces:
            self._lines = [_of_piece(piece, separator) for piece in raw.payload]
        elif sources[key.source].kind == "txt":
            self._lines = [_Lines(source, 0, np.zeros(1, np.int64)) for source, _ in raw.payload]
        else:
            self._lines = [_Lines(key.source, 0, _places(raw.payload, raw.begin, separator))]

    def __call__(self, texts: RangeTexts) -> NDArray[np.int64]:
        """The place of each document, int64[n]."""
        if len(self._lines) == 1:
            _, before, places = self._lines[0]
            return places[texts.lines - before - 1] if texts.lines.size else np.zeros(0, np.int64)
        found = np.zeros(texts.lines.size, np.int64)
        for source, before, places in self._lines:
            low, high = np.searchsorted(texts.sources, [source, source + 1])
            lines = texts.lines[low:high] - before
            here = (lines > 0) & (lines <= places.size)
            found[low:high][here] = places[lines[here] - 1]
        return found


def _of_piece(piece: Piece, separator: int) -> _Lines:
    if piece.kind == "txt":
        return _Lines(piece.source, 0, np.zeros(1, np.int64))
    if piece.kind in TABLES:
        return _Lines(piece.source, piece.before, piece.before + 1 + np.arange(len(piece.payload)))
    return _Lines(piece.source, piece.before, _places(piece.payload, piece.begin, separator))


def _places(payload: Any, begin: int, separator: int) -> NDArray[np.int64]:
    """Where the lines of a block begin, or documents between separators."""
    if isinstance(payload, list):
        sizes = np.fromiter(map(len, payload), np.int64, len(payload)) + separator
        return begin + np.cumsum(sizes) - sizes
    if not isinstance(payload, bytes):  # an Arrow array
        return begin + 1 + np.arange(len(payload))
    ends = np.flatnonzero(np.frombuffer(payload, np.uint8) == ord("\n")) + 1
    starts: NDArray[np.int64] = np.zeros(ends.size + 1, np.int64)
    starts[1:] = ends
    return starts + begin

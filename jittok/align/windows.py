"""Spans of a long document by the reference, in windows, because the reference takes hundreds of bytes for each byte.

Each window is encoded as a separate document, so text near its ends may become other tokens than in the whole document.
Windows overlap, and two of them are joined at an offset where both have the same tokens with the same spans on either
side. A run of unknown characters or an endless word may be one token that is longer than any window: such tokens of
both windows become one. All ids must equal those of the kernels. If windows do not agree, longer ones are tried, and
finally the whole document.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import NO_TOKEN, Merges, Pieces, Unigram, WordPiece, Words
from jittok.errors import EncodingFailed
from jittok.reference.pipeline.documents import aligned

FIRST_WINDOW_BYTES = 1 << 13
"""The initial size of a window, in bytes."""
OVERLAP = 8
"""Two windows overlap by this fraction (1 / OVERLAP) of a window."""
EQUAL_TOKENS = 4
"""Tokens that must be equal on either side of an offset where windows are joined."""
TRIES = 256
"""The most offsets that are tried."""


class Window(NamedTuple):
    """document[start:stop] as read by the reference. A row is a token, or for `token_walk` a character."""

    start: int
    stop: int
    rows: NDArray[np.int64]  # [n, 3]: id or character, start and stop in the document
    first: int = 0  # the first row that is used
    goes_on: bool = False  # the row before it is the end of a token that began in the previous window


class Joint(NamedTuple):
    """Where one window ends and the next one continues, as row numbers."""

    last: int
    first: int
    is_one: bool  # the rows before `last` and `first` are the same token


class WindowReader(Protocol):
    """What to read in windows: computes the rows of a window, and receives the rows that windows agree on."""

    alike: int  # rows that must be equal on either side of an offset where windows are joined
    most: int  # the most bytes of a window

    def rows(self, raw: bytes, start: int, stop: int) -> NDArray[np.int64]:
        """int64[n, 3]: the rows of raw[start:stop], with spans in the document."""

    def joint(self, here: Window, after: Window) -> Joint | None:
        """The joint of windows that share no equal rows; None if there is none."""

    def add(self, rows: NDArray[np.int64], stop: int | None) -> bool:
        """Append rows; returns whether they are right. stop: the new end of the last row so far, or None."""

    def finished(self) -> bool:
        """Whether the added rows are complete."""


def spans_by_windows(
    pipeline: Pipeline, raw: bytes, ids: NDArray[np.int32], parse_special: bool, spans: NDArray[np.int64]
) -> bool:
    """Write the spans of a document's ids (without special ids around it) to `spans`, int64[n, 2]; returns whether
    windows agreed."""
    if not ids.size:
        return True
    try:
        return by_windows(ReferenceTokens(pipeline, ids, parse_special, spans), raw)
    except EncodingFailed:  # a window may end inside a character or token
        return False


def by_windows(way: WindowReader, raw: bytes) -> bool:
    """Read a document in windows; returns whether they agreed."""
    size = FIRST_WINDOW_BYTES
    here = _window(way, raw, 0, size)
    while here.stop < len(raw):
        after = _window(way, raw, _next_start(raw, here, size // OVERLAP), size)
        joint = _join(here, after, way.alike) or way.joint(here, after)
        if joint is None:
            size *= 2
            longer = _longer(here, _window(way, raw, here.start, size), way.alike) if size <= way.most else None
            if longer is None:
                return False
            here = longer
        else:
            if not _add(way, here, joint.last):
                return False
            here, size = after._replace(first=joint.first, goes_on=joint.is_one), FIRST_WINDOW_BYTES
    return _add(way, here, len(here.rows)) and way.finished()


def _add(way: WindowReader, window: Window, last: int) -> bool:
    """Add the rows of a window up to `last`."""
    return way.add(window.rows[window.first : last], int(window.rows[window.first - 1, 2]) if window.goes_on else None)


def _longer(old: Window, new: Window, alike: int) -> Window | None:
    """Replace a window by a longer one from the same start; None if the rows at its beginning differ."""
    known = old.first - 1 if old.goes_on else old.first + alike if old.first else 0
    if not np.array_equal(old.rows[:known], new.rows[:known]):
        return None
    if old.goes_on and not np.array_equal(old.rows[known, :2], new.rows[known : known + 1, :2].reshape(-1)):
        return None
    return new._replace(first=old.first, goes_on=old.goes_on)


def _window(way: WindowReader, raw: bytes, start: int, size: int) -> Window:
    stop = min(start + size, len(raw))
    while stop < len(raw) and raw[stop] & 0xC0 == 0x80 and stop < start + size + 3:
        stop += 1
    return Window(start, stop, way.rows(raw, start, stop))


def _next_start(raw: bytes, window: Window, overlap: int) -> int:
    """The start of the next window: if possible, where a token of this one begins, so that both find the same
    tokens."""
    at = window.stop - overlap
    for row in range(int(np.searchsorted(window.rows[:, 1], at)), len(window.rows)):
        start = int(window.rows[row, 1])
        if start >= at + overlap // 2:
            break
        if raw[start] & 0xC0 != 0x80 and _is_border(window.rows, row):
            return start
    while raw[at] & 0xC0 == 0x80 and at > window.stop - overlap - 3:
        at -= 1
    return at


def _is_border(rows: NDArray[np.int64], row: int) -> bool:
    """Whether all rows before this one end at or before its own bytes."""
    return row > 0 and bool(rows[row - 1, 1] < rows[row, 1] >= rows[row - 1, 2])


def _join(here: Window, after: Window, alike: int) -> Joint | None:
    """The joint of two windows that have equal rows, preferably in the middle of their overlap; None if there is
    none."""
    middle = (after.start + here.stop) // 2
    begin = int(np.searchsorted(here.rows[:, 1], middle))
    for row in range(max(begin, here.first + alike), min(begin + TRIES, len(here.rows) - alike + 1)):
        if not _is_border(here.rows, row):
            continue
        other = int(np.searchsorted(after.rows[:, 1], here.rows[row, 1]))
        if other >= alike and np.array_equal(
            here.rows[row - alike : row + alike], after.rows[other - alike : other + alike]
        ):
            return Joint(row, other, False)
    return None


def goes_through(here: Window, after: Window) -> Joint | None:
    """The joint of windows whose whole overlap is covered by one row."""
    first = int(np.searchsorted(after.rows[:, 2], after.start, "right"))
    if not len(here.rows) or first == len(after.rows):
        return None
    last, other = here.rows[-1].tolist(), after.rows[first].tolist()
    through = last[1] < after.start and last[2] == here.stop and other[1] == after.start and other[2] > here.stop
    return Joint(len(here.rows), first + 1, True) if through and last[0] == other[0] else None


class ReferenceTokens(WindowReader):
    """Reads windows of tokens, whose ids must be those of the document."""

    alike = EQUAL_TOKENS

    def __init__(
        self, pipeline: Pipeline, ids: NDArray[np.int32], parse_special: bool, spans: NDArray[np.int64]
    ) -> None:
        self.pipeline, self.parse_special, self.unknown = pipeline, parse_special, _unknown(pipeline)
        self.ids, self.spans, self.done, self.most = ids, spans, 0, 1 << 62

    def rows(self, raw: bytes, start: int, stop: int) -> NDArray[np.int64]:
        """int64[n, 3]: ids and their spans."""
        found = np.array(aligned(self.pipeline, raw[start:stop], False, self.parse_special), np.int64).reshape(-1, 3)
        found[:, 1:] += start
        return found

    def joint(self, here: Window, after: Window) -> Joint | None:
        """The joint of windows whose whole overlap is covered by one unknown token."""
        found = goes_through(here, after)
        return found if found and here.rows[-1, 0] == self.unknown else None

    def add(self, rows: NDArray[np.int64], stop: int | None) -> bool:
        """Write the spans of these tokens; returns whether they have the right ids."""
        if stop is not None:
            self.spans[self.done - 1, 1] = stop
        begin, self.done = self.done, self.done + len(rows)
        if self.done > self.ids.size or not np.array_equal(self.ids[begin : self.done], rows[:, 0]):
            return False
        self.spans[begin : self.done] = rows[:, 1:]
        return True

    def finished(self) -> bool:
        """Whether these are all tokens."""
        return self.done == self.ids.size


def _unknown(pipeline: Pipeline) -> int:
    """The unknown token, which may cover any number of characters; a negative number if there is none."""
    model = pipeline.model
    return model.unknown if isinstance(model, Merges | Unigram | WordPiece | Words | Pieces) else NO_TOKEN

"""Spans of a long document by the plain way, a window of it at a time: that way takes hundreds of bytes a byte of text.

Each window is read as a document of its own, so what is near its ends may become other tokens than it does in the
document. Windows overlap, and two of them are joined where both have the same tokens with the same spans, a few of them
on either side. Unknown characters in a row, or a word without an end, may be one token that is longer than any window:
such tokens of both windows become one. All ids must be those that the document has by kernels. Where windows do not
agree, longer ones are taken, at last the whole document.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from jittok.errors import EncodingFailed
from jittok.pipeline import Pipeline
from jittok.pipeline.models import NO_TOKEN, Merges, Pieces, Unigram, WordPiece, Words
from jittok.reference.pipeline.documents import aligned

FIRST_WINDOW_BYTES = 1 << 13
"""Bytes of a window at first."""
OVERLAP = 8
"""Part of a window that the next one has too: one of so many."""
EQUAL_TOKENS = 4
"""Tokens on either side of a place where windows are joined."""
TRIES = 256
"""Places that are tried."""


class Window(NamedTuple):
    """document[start:stop] as the plain way reads it. A row is a token, or what `token_walk` walks along."""

    start: int
    stop: int
    rows: NDArray[np.int64]  # [n, 3]: what it is, and the bytes of the document that it stands for
    first: int = 0  # the first row that is wanted
    goes_on: bool = False  # the one before it is the end of a token of the window before


class Joint(NamedTuple):
    """Where one window ends and the next one continues: numbers of rows."""

    last: int
    first: int
    is_one: bool  # the row before either place is one and the same


class WindowReader(Protocol):
    """What is read in windows: the rows of a window, and what becomes of those that windows agree on."""

    alike: int  # rows on either side of a place where windows are joined
    most: int  # bytes of a window, at most

    def rows(self, raw: bytes, start: int, stop: int) -> NDArray[np.int64]:
        """int64[n, 3]: what raw[start:stop] becomes, and the bytes of the document that each stands for."""

    def joint(self, here: Window, after: Window) -> Joint | None:
        """Where windows go on that have no place in common; None for nowhere."""

    def add(self, rows: NDArray[np.int64], stop: int | None) -> bool:
        """Take rows that are after those before; `stop`: where the last one before ends instead. Whether all is
        well."""

    def finished(self) -> bool:
        """Whether what was added is all that there must be."""


def spans_by_windows(
    pipeline: Pipeline, raw: bytes, ids: NDArray[np.int32], parse_special: bool, spans: NDArray[np.int64]
) -> bool:
    """Write the spans of a document's ids, without those around it, to `spans`, int64[n, 2]; whether windows tell."""
    if not ids.size:
        return True
    try:
        return by_windows(ReferenceTokens(pipeline, ids, parse_special, spans), raw)
    except EncodingFailed:  # of a window that ends inside of something
        return False


def by_windows(way: WindowReader, raw: bytes) -> bool:
    """Read a document in windows; whether they tell what it has."""
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
    """A window that begins where the old one does in the place of that; None where tokens at its beginning differ."""
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
    """Where the next window begins: where a token of this one does, so that it may find the same tokens."""
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
    """Whether all tokens before a row stand for what is before its own bytes."""
    return row > 0 and bool(rows[row - 1, 1] < rows[row, 1] >= rows[row - 1, 2])


def _join(here: Window, after: Window, alike: int) -> Joint | None:
    """Where two windows agree, first in the middle of what both have; None for nowhere."""
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
    """The joint of windows where one row goes through all that both have."""
    first = int(np.searchsorted(after.rows[:, 2], after.start, "right"))
    if not len(here.rows) or first == len(after.rows):
        return None
    last, other = here.rows[-1].tolist(), after.rows[first].tolist()
    through = last[1] < after.start and last[2] == here.stop and other[1] == after.start and other[2] > here.stop
    return Joint(len(here.rows), first + 1, True) if through and last[0] == other[0] else None


class ReferenceTokens(WindowReader):
    """Windows of tokens, whose ids must be those of the document."""

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
        """Where one unknown token goes through all that both windows have."""
        found = goes_through(here, after)
        return found if found and here.rows[-1, 0] == self.unknown else None

    def add(self, rows: NDArray[np.int64], stop: int | None) -> bool:
        """Write the spans of tokens; whether they have the right ids."""
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
    """The unknown token, which may stand for any number of characters; a negative number where there is none."""
    model = pipeline.model
    return model.unknown if isinstance(model, Merges | Unigram | WordPiece | Words | Pieces) else NO_TOKEN

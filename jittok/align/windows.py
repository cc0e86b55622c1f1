"""Spans of a long document by the plain way, a window of it at a time: that way takes hundreds of bytes a byte of text.

Each window is read as a document of its own, so what stands near its ends may become other tokens than it does in the
document. Windows overlap, and two of them are joined where both have the same tokens with the same spans, a few of them
on either side. Unknown characters in a row, or a word without an end, may be one token that is longer than any window:
such tokens of both windows become one. All ids must be those that the document has by kernels. Where windows do not
agree, longer ones are taken, at last the whole document.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.errors import EncodingFailed
from jittok.pipeline import Pipeline
from jittok.pipeline.models import NO_TOKEN, Merges, Pieces, Unigram, WordPiece, Words
from jittok.reference.pipeline.documents import aligned

WINDOW = 1 << 13
"""Bytes of a window at first."""
OVERLAP = 8
"""Part of a window that the next one has too: one of so many."""
ALIKE = 4
"""Tokens on either side of a place where windows are joined."""
TRIES = 256
"""Places that are tried."""


class Window(NamedTuple):
    """document[start:stop] as the plain way reads it."""

    start: int
    stop: int
    rows: NDArray[np.int64]  # [n, 3]: id, and the bytes of the document that it stands for
    first: int = 0  # the first token that is wanted
    goes_on: bool = False  # the one before it is the end of a token of the window before


class Joint(NamedTuple):
    """Where one window ends and the next one goes on: numbers of tokens."""

    last: int
    first: int
    is_one: bool  # the token in front of either place is one and the same


def spans_by_windows(
    pipeline: Pipeline, raw: bytes, ids: NDArray[np.int32], parse_special: bool, spans: NDArray[np.int64]
) -> bool:
    """Write the spans of a document's ids, without those around it, to `spans`, int64[n, 2]; whether windows tell."""
    if not ids.size:
        return True
    try:
        return _by_windows(pipeline, raw, ids, parse_special, spans)
    except EncodingFailed:  # of a window that ends inside of something
        return False


def _by_windows(
    pipeline: Pipeline, raw: bytes, ids: NDArray[np.int32], parse_special: bool, spans: NDArray[np.int64]
) -> bool:
    size, done, unknown = WINDOW, 0, _unknown(pipeline)
    here = _window(pipeline, raw, 0, size, parse_special)
    while here.stop < len(raw):
        after = _window(pipeline, raw, _next_start(raw, here, size // OVERLAP), size, parse_special)
        joint = _join(here, after, unknown)
        if joint is None:
            size *= 2
            longer = _longer(here, _window(pipeline, raw, here.start, size, parse_special))
            if longer is None:
                return False
            here = longer
        else:
            done = _write(here, joint.last, ids, spans, done)
            here, size = after._replace(first=joint.first, goes_on=joint.is_one), WINDOW
        if done < 0:
            return False
    return _write(here, len(here.rows), ids, spans, done) == ids.size


def _longer(old: Window, new: Window) -> Window | None:
    """A window that begins where the old one does in the place of that; None where tokens at its beginning differ."""
    known = old.first - 1 if old.goes_on else old.first + ALIKE if old.first else 0
    if not np.array_equal(old.rows[:known], new.rows[:known]):
        return None
    if old.goes_on and not np.array_equal(old.rows[known, :2], new.rows[known : known + 1, :2].reshape(-1)):
        return None
    return new._replace(first=old.first, goes_on=old.goes_on)


def _window(pipeline: Pipeline, raw: bytes, start: int, size: int, parse_special: bool) -> Window:
    stop = min(start + size, len(raw))
    while stop < len(raw) and raw[stop] & 0xC0 == 0x80 and stop < start + size + 3:
        stop += 1
    found = aligned(pipeline, raw[start:stop], False, parse_special)
    rows = np.array(found, np.int64).reshape(-1, 3)
    rows[:, 1:] += start
    return Window(start, stop, rows)


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
    """Whether all tokens before a row stand for what is in front of its own bytes."""
    return row > 0 and bool(rows[row - 1, 1] < rows[row, 1] >= rows[row - 1, 2])


def _join(here: Window, after: Window, unknown: int) -> Joint | None:
    """Where two windows agree, first in the middle of what both have; None for nowhere."""
    middle = (after.start + here.stop) // 2
    begin = int(np.searchsorted(here.rows[:, 1], middle))
    for row in range(max(begin, here.first + ALIKE), min(begin + TRIES, len(here.rows) - ALIKE + 1)):
        if not _is_border(here.rows, row):
            continue
        other = int(np.searchsorted(after.rows[:, 1], here.rows[row, 1]))
        if other >= ALIKE and np.array_equal(
            here.rows[row - ALIKE : row + ALIKE], after.rows[other - ALIKE : other + ALIKE]
        ):
            return Joint(row, other, False)
    return _one_unknown(here, after, unknown)


def _one_unknown(here: Window, after: Window, unknown: int) -> Joint | None:
    """The same where one unknown token goes through all that both windows have."""
    first = int(np.searchsorted(after.rows[:, 2], after.start, "right"))
    if not len(here.rows) or first == len(after.rows):
        return None
    last, other = here.rows[-1].tolist(), after.rows[first].tolist()
    if last[0] != unknown or other[0] != unknown:
        return None
    through = last[1] < after.start and last[2] == here.stop and other[1] == after.start and other[2] > here.stop
    return Joint(len(here.rows), first + 1, True) if through else None


def _unknown(pipeline: Pipeline) -> int:
    """The unknown token, which may stand for any number of characters; a negative number where there is none."""
    model = pipeline.model
    return model.unknown if isinstance(model, Merges | Unigram | WordPiece | Words | Pieces) else NO_TOKEN


def _write(window: Window, last: int, ids: NDArray[np.int32], spans: NDArray[np.int64], done: int) -> int:
    """Add the spans of a window's tokens up to `last` behind the first `done`; how many there are now, or -1 where the
    ids are others."""
    if window.goes_on:
        spans[done - 1, 1] = window.rows[window.first - 1, 2]
    rows = window.rows[window.first : last]
    end = done + len(rows)
    if end > ids.size or not np.array_equal(ids[done:end], rows[:, 0]):
        return -1
    spans[done:end] = rows[:, 1:]
    return end

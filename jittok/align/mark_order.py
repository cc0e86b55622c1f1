"""Sort long runs of combining marks before a document is aligned in windows, and map the spans back.

A normal form sorts each run of combining marks, however long. A window that contains part of a run would sort only that
part, so windows would disagree. If the run is sorted first, normalization does not change it, and windows agree. A span
that covers any of a changed part covers the whole part.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.steps import Compose
from jittok.common.unicode.libraries import Form, non_starters, normal_form, normal_form_of_row, ranges
from jittok.reference.pipeline.normalize import alike, stretches
from jittok.reference.pipeline.run import Runner

LONG_ROW = 1 << 12
"""The least marks of a run that is sorted here. Windows contain shorter ones as a whole."""
CONTEXT_CHARACTERS = 64
"""Characters before a run that are searched for the beginning of the part that changes with it."""
SPANS_PER_STEP = 1 << 16
"""Spans that are mapped at a time."""
ESCAPED = "surrogateescape"
"""The error handler that keeps bytes of invalid UTF-8 in a str."""


class OrderedDocument(NamedTuple):
    """A document with sorted runs, and its changed parts, by rising offset."""

    raw: bytes
    starts: NDArray[np.int64]  # [n] the changed parts in `raw`
    stops: NDArray[np.int64]
    old_starts: NDArray[np.int64]  # [n] the same parts in the original document
    old_stops: NDArray[np.int64]

    def put_back(self, spans: NDArray[np.int64]) -> None:
        """Convert int64[n, 2] spans in `raw` to spans in the original document, in place."""
        for at in range(0, len(spans), SPANS_PER_STEP):
            part = spans[at : at + SPANS_PER_STEP]
            empty = part[:, 0] == part[:, 1]
            starts, stops = self._places(part[:, 0])[0], self._places(part[:, 1] - 1)[1]
            part[:, 0], part[:, 1] = starts, np.where(empty, starts, stops)

    def _places(self, at: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(starts, stops) in the original document of the bytes at these offsets of `raw`."""
        change = np.searchsorted(self.starts, at, "right") - 1
        inside = (change >= 0) & (at < self.stops[change])
        shifted = at + np.where(change >= 0, self.old_stops[change] - self.stops[change], 0)
        begins = np.where(inside, self.old_starts[change], shifted)
        return begins, np.where(inside, self.old_stops[change], shifted + 1)


def ordered_document(run: Runner, raw: bytes, parse_special: bool) -> OrderedDocument | None:
    """The document with its long runs of marks sorted; None if it has none, or if sorting might change the result."""
    steps = run.pipeline.normalize
    if run.pieces or not steps or not isinstance(steps[0], Compose):
        return None
    text, form = raw.decode(errors=ESCAPED), steps[0].form
    if _marks().isdisjoint(text[::LONG_ROW]) or any("\ufffd" in token for token in run.raw.tokens):
        return None
    parts, changes, done, at, size = list[bytes](), list[tuple[int, int, int, int]](), 0, 0, 0
    for first, last, token in run.raw.cut(text, parse_special):
        for row in _rows().finditer(text, first, last) if token is None else ():
            start = _start(text, first, row.start(), form)
            if start < done:
                return None
            old, new = text[start : row.end()], normal_form_of_row(form, text[start : row.start()], row[0])
            last_of_it, after = new[-CONTEXT_CHARACTERS:], text[row.end() : row.end() + 1] if row.end() < last else ""
            if normal_form(form, last_of_it + after) != last_of_it + normal_form(form, after):
                return None
            begin, end = alike(old, new)
            front, middle = _bytes(text[done : start + begin]), _bytes(old[begin : len(old) - end])
            changed = _bytes(new[begin : len(new) - end])
            at, size = at + len(front), size + len(front)
            changes.append((size, size + len(changed), at, at + len(middle)))
            parts += [front, changed]
            at, size, done = at + len(middle), size + len(changed), row.end() - end
    if not changes:
        return None
    return OrderedDocument(b"".join([*parts, raw[at:]]), *np.array(changes, np.int64).T)


def _bytes(text: str) -> bytes:
    return text.encode(errors=ESCAPED)


def _start(text: str, first: int, row: int, form: Form) -> int:
    """The beginning of the part that a normal form changes together with a run of marks; -1 if it is unknown."""
    begin = max(first, row - CONTEXT_CHARACTERS)
    found = begin + [start for start, _ in stretches(text[begin : row + 1], form)][-1]
    return found if found > begin or begin == first else -1


@cache
def _marks() -> frozenset[str]:
    """The combining marks, including characters of later versions of Unicode that are marks for Python."""
    newer = (chr(c) for first, last in ranges("newer") for c in range(first, last + 1))
    later = (c for c in newer if unicodedata.combining(unicodedata.normalize("NFKD", c)[0]))
    return non_starters("NFKC") | frozenset(later)


@cache
def _rows() -> Any:
    return re.compile(f"[{''.join(sorted(_marks()))}]{{{LONG_ROW},}}")

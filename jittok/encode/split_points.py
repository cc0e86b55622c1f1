"""Safe cuts of long normalized texts: pairs of characters between which a splitter cuts whatever the rest of the text.

Such a pair is one where the first stage, in every state that it may be in, ends a match with the first character and
begins anew with the second, just as if the text ended between them. Later stages see only what the first has cut, so
none of their matches crosses the cut. Stages that write a prefix write it before each pre-token; a first stage that
does so has no safe cuts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.patterns import PatternError
from jittok.common.pipeline.steps import Cut, CutClass, Splitter
from jittok.kernels.inputs import Documents
from jittok.kernels.pretokenize.automaton import DEAD, START, Automaton
from jittok.kernels.pretokenize.compile import compile_stage
from jittok.kernels.pretokenize.splitters.word_bitmap import INVERTS, ISOLATES, REMOVES

MOST_GROWTH = 2
"""Texts that have grown by more than this factor are encoded in parts:"""
LONG_TEXT = 1 << 20
"""those of at least this many bytes,"""
PART_BYTES = 1 << 18
"""in parts of this many bytes, or a few more;"""
SEARCH_BYTES = 1 << 12
"""this many at a time are searched for a safe cut."""


class SplitPoints(NamedTuple):
    """The pairs of character classes between which a splitter always cuts."""

    starts: NDArray[np.integer]  # [runs] first code point of each run of characters
    classes: NDArray[np.integer]  # [runs] the class of each run
    between: NDArray[np.bool_]  # [classes, classes] whether there is a cut between the two


def split_points(split: tuple[Splitter, ...]) -> SplitPoints | None:
    """The safe cuts of a splitter; None if it has none, or none that are known."""
    if not split or not isinstance(split[0], Cut | CutClass):
        return None
    try:
        found = compile_stage(split[0], True)
    except (ValueError, PatternError):
        return None
    if found is None or found.behaves not in (ISOLATES, REMOVES, REMOVES + INVERTS):
        return None
    if not isinstance(found.machine, Automaton):
        return None  # text far away may decide
    automaton = found.machine
    rows = automaton.transitions.reshape(-1, automaton.width).astype(np.int64)
    ends = rows == DEAD << 1 | 1
    count, states = automaton.width - 1, np.delete(rows, DEAD, 0)
    between = np.zeros((count, count), np.bool_)
    for c in range(count):
        after = np.unique(states[:, c] >> 1)
        after = after[after != DEAD]
        if rows[START, c] >> 1 != DEAD and ends[after, -1].all():
            between[c] = ends[after, :-1].all(0)
    return SplitPoints(automaton.starts, automaton.classes, between) if between.any() else None


def split_at_points(table: SplitPoints, docs: Documents, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """(start, stop) of the parts of the text from `start` to `stop`, which is UTF-8, in order."""
    at = start + PART_BYTES
    while at + PART_BYTES < stop:
        raw = docs.between(at, min(at + SEARCH_BYTES, stop))
        text = raw.decode("utf-8", "ignore")  # characters that are cut in two are ignored
        codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        kinds = table.classes[np.searchsorted(table.starts, codes, "right") - 1]
        cuts = np.flatnonzero(table.between[kinds[:-1], kinds[1:]])
        if cuts.size == 0:
            at += SEARCH_BYTES
            continue
        inside = next(k for k, byte in enumerate(raw) if byte & 0xC0 != 0x80)
        at += inside + len(text[: int(cuts[0]) + 1].encode())
        yield start, at
        start, at = at, at + PART_BYTES
    yield start, stop

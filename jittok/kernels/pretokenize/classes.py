"""Maps from code points to small class numbers: two-stage tables that kernels read.

A table is `blocks[pages[c >> 7] << 7 | c & 127]`: most of the 8,704 pages of 128 code points are one of a few dozen
different blocks. It is built from runs: sorted starts (the first is 0) and the class of each run.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Value = TypeVar("_Value", bound=np.generic)

UNICODE_SIZE = 0x110000
PAGE_BITS = 7
PAGES = UNICODE_SIZE >> PAGE_BITS


def two_stage(starts: NDArray[np.int64], classes: NDArray[np.uint8]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """The table of runs: (pages: uint16[8704], blocks: uint8[blocks * 128]).

    starts: int64[runs] ascending from 0; classes: uint8[runs] the class of starts[k] .. starts[k + 1] - 1.
    """
    return two_stage_of(np.repeat(classes, np.diff(starts, append=UNICODE_SIZE)))


def two_stage_of(classes: NDArray[np.uint8]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """The table of uint8[UNICODE_SIZE], the class of each code point."""
    pages, blocks = shared_rows(classes.reshape(PAGES, 1 << PAGE_BITS))
    return pages.astype(np.uint16), blocks.reshape(-1)


def distinct(values: NDArray[_Value]) -> NDArray[_Value]:
    """The distinct values, ascending. np.unique would import np.ma for this, a tenth of a small load."""
    found = np.sort(values, axis=None)
    first = np.ones(found.size, np.bool_)
    first[1:] = found[1:] != found[:-1]
    return found[first]


def among(values: NDArray[_Value], those: NDArray[_Value]) -> NDArray[np.bool_]:
    """Whether each value is one of `those`, which are ascending. np.isin does the same but may import np.ma."""
    if not those.size:
        return np.zeros(values.shape, np.bool_)
    found: NDArray[np.bool_] = those[np.minimum(np.searchsorted(those, values), those.size - 1)] == values
    return found


def shared_rows(rows: NDArray[_Value]) -> tuple[NDArray[np.int64], NDArray[_Value]]:
    """(pages, blocks) of any table: rows[k] is blocks[pages[k]], and no two blocks are equal. The size of a row is a
    multiple of 8 bytes."""
    rows = np.ascontiguousarray(rows)
    words = rows.view(np.uint64)
    # most rows are equal to the one before, so only the first of such a run is looked up
    begins = np.flatnonzero(np.append(True, (words[1:] != words[:-1]).any(axis=1)))
    known: dict[bytes, int] = {}
    numbers = np.array([known.setdefault(row.tobytes(), len(known)) for row in rows[begins]], np.int64)
    first = begins[np.append(True, numbers[1:] > np.maximum.accumulate(numbers)[:-1])]
    return np.repeat(numbers, np.diff(begins, append=len(rows))), rows[first]

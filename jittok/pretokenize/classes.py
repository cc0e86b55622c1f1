"""Code points to small class numbers, as two-stage tables that a kernel reads.

A table is `blocks[pages[c >> 7] << 7 | c & 127]`: most of the 8,704 pages of 128 code points are one of a few dozen
different blocks. It is made from runs: sorted starts (the first is 0) and the class of each run.
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
    """(pages: uint16[8704], blocks: uint8[blocks * 128]) of runs.

    starts: int64[runs] rising from 0; classes: uint8[runs] the class of starts[k] .. starts[k + 1] - 1.
    """
    each = classes.size == UNICODE_SIZE  # a run for each code point
    full = classes if each else np.repeat(classes, np.diff(starts, append=UNICODE_SIZE))
    pages, blocks = shared_rows(full.reshape(PAGES, 1 << PAGE_BITS))
    return pages.astype(np.uint16), blocks.reshape(-1)


def shared_rows(rows: NDArray[_Value]) -> tuple[NDArray[np.int64], NDArray[_Value]]:
    """(pages, blocks) of any table: rows[k] is blocks[pages[k]], and no two of blocks are equal."""
    rows = np.ascontiguousarray(rows)
    opaque = rows.view(f"V{rows[0].nbytes}").reshape(-1)  # a row is compared as one value
    _, first, pages = np.unique(opaque, return_index=True, return_inverse=True)
    return pages.reshape(-1), rows[first]

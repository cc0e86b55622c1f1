"""Code points to small class numbers, as two-stage tables that a kernel reads.

A table is `blocks[pages[c >> 7] << 7 | c & 127]`: most of the 8,704 pages of 128 code points are one of a few dozen
different blocks. It is made from runs: sorted starts (the first is 0) and the class of each run.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

UNICODE_SIZE = 0x110000
PAGE_BITS = 7
PAGES = UNICODE_SIZE >> PAGE_BITS


def two_stage(starts: NDArray[np.int64], classes: NDArray[np.uint8]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """(pages: uint16[8704], blocks: uint8[blocks * 128]) of runs.

    starts: int64[runs] rising from 0; classes: uint8[runs] the class of starts[k] .. starts[k + 1] - 1.
    """
    full = np.repeat(classes, np.diff(starts, append=UNICODE_SIZE))
    rows = np.ascontiguousarray(full.reshape(PAGES, 1 << PAGE_BITS)).view(f"V{1 << PAGE_BITS}").ravel()
    blocks, pages = np.unique(rows, return_inverse=True)
    return pages.astype(np.uint16), np.frombuffer(blocks.tobytes(), np.uint8)

"""Lower case and white space of code points as tables for kernels (llama.cpp's one-to-one map)."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from jittok.common.unicode import tables
from jittok.kernels.jit import I64, U8, U16, as_int64, frozen, helper
from jittok.kernels.pretokenize.classes import PAGE_BITS, PAGES, two_stage_of

ORDINARY, SPACE, LOWERED = 0, 1, 2


class CaseTable(NamedTuple):
    """Kinds of code points, and the lower case of those of kind LOWERED."""

    pages: U16  # [8704] two-stage table of kinds
    blocks: U8
    lower_from: I64  # [n] ascending
    lower_to: I64  # [n]


def case_table() -> CaseTable:
    """The table over all code points."""
    kinds = np.where(tables.flag_table() & tables.WHITESPACE > 0, SPACE, ORDINARY).astype(np.uint8)
    lower_from, lower_to = tables.lower_map()
    kinds[lower_from] = LOWERED
    pages, blocks = two_stage_of(kinds)
    return CaseTable(
        frozen(pages, np.uint16), frozen(blocks, np.uint8), frozen(lower_from, np.int64), frozen(lower_to, np.int64)
    )


@cache
def no_case() -> CaseTable:
    """A table in which every code point is ORDINARY, for models that do not use it: built in a hundredth of the
    time."""
    nothing, zero = frozen(np.zeros(PAGES), np.uint16), frozen([0], np.int64)
    return CaseTable(nothing, frozen(np.zeros(1 << PAGE_BITS), np.uint8), zero, zero)


@helper
def kind_of(table: CaseTable, c: int) -> int:
    """ORDINARY, SPACE or LOWERED, for c up to U+10FFFF."""
    return as_int64(table.blocks[as_int64(table.pages[c >> 7]) << 7 | c & 127])


@helper
def lower_case(table: CaseTable, c: int) -> int:
    """The lower case of a code point of kind LOWERED."""
    low, high = 0, table.lower_from.size
    while high - low > 1:
        middle = (low + high) >> 1
        if table.lower_from[middle] <= c:
            low = middle
        else:
            high = middle
    return table.lower_to[low]

"""Which texts are in normal form C for certain: no character that may compose or change, and marks in order.

The others are looked at by who has the whole normal form. Tables are those of the library that a file belongs to.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import I32, I64, U8, U16, OutU8, frozen, helper, kernel
from jittok._raw import Window, get_u8, get_u16, get_word, trailing_zeros, window
from jittok.pretokenize.classes import two_stage
from jittok.unicode.libraries import MAY_CHANGE, NEWER

HIGH = np.uint64(0x8080808080808080)
NONE = np.uint64(0)
STAYS, PLAIN, MIXED = 0, 1, 2
"""A text is in normal form; may change; may change and holds a character of a later Unicode."""


class QuickTable(NamedTuple):
    """Combining classes of code points, or MAY_CHANGE."""

    pages: U16  # [8704] two-stage table, see `pretokenize.classes`
    blocks: U8


def quick_table(values: NDArray[np.uint8]) -> QuickTable:
    """The table of one value a code point: uint8[0x110000]."""
    pages, blocks = two_stage(np.arange(values.size), values)
    return QuickTable(frozen(pages, np.uint16), frozen(blocks, np.uint8))


@kernel
def mark_changed(
    table: QuickTable, data: U8, starts: I64, stops: I64, tokens: I32, first: int, last: int, out: OutU8
) -> int:
    """Mark each of the texts first .. last - 1 that may not be in normal form; returns how many.

    starts, stops: int64[], tokens: int32[] fragments as `jittok.fragments` says, all UTF-8; ids are passed over
    out: uint8[last] STAYS, PLAIN or MIXED
    """
    text, count = window(data), 0
    pages, blocks = window(table.pages), window(table.blocks)
    for k in range(first, last):
        kind = STAYS
        if tokens[k] < 0:
            kind = _kind(pages, blocks, text, starts[k], stops[k])
        out[k] = kind
        if kind != STAYS:
            count += 1
    return count


@helper
def _kind(pages: Window, blocks: Window, text: Window, i: int, stop: int) -> int:
    before, kind, newer = 0, STAYS, 0
    while i < stop:
        if i + 8 <= stop:
            high = get_word(text, i) & HIGH
            if high == NONE:
                i, before = i + 8, 0
                continue
            ascii_ = trailing_zeros(high) >> 3
            if ascii_ > 0:
                i, before = i + ascii_, 0
        lead = get_u8(text, i)
        if lead < 0x80:
            i, before = i + 1, 0
            continue
        c = lead & 0x1F
        size = 2
        if lead >= 0xF0:
            c, size = lead & 0x07, 4
        elif lead >= 0xE0:
            c, size = lead & 0x0F, 3
        for k in range(1, size):
            c = c << 6 | get_u8(text, i + k) & 0x3F
        value = get_u8(blocks, get_u16(pages, c >> 7) << 7 | c & 127)
        if value == NEWER:
            newer, value = 1, 0
        if value == MAY_CHANGE or (value > 0 and value < before):
            kind = PLAIN
        before = value
        i += size
    return kind + newer if kind == PLAIN else STAYS

"""Where a line of characters may be cut: where no merge joins what is on both sides."""

from __future__ import annotations

import numpy as np

from jittok._jit import I32
from jittok.pretokenize.classes import distinct
from jittok.safe_cuts import cuts, rules
from jittok.structures.bytes_table import BytesTable
from jittok.unicode.characters import NEWLINE, SPACE_BYTE

_NONE = -1


def line_rules(symbols: BytesTable, left: I32, right: I32) -> cuts.SpanRules:
    """The rules of a text whose spaces become U+2581 and whose runs of newlines are words of their own.

    symbols: texts; left, right: int32[merges] what merges join. Any two neighbors inside a symbol were joined by the
    merge of symbols that end and begin with them. Symbols that are invalid UTF-8, or hold a space, do not occur.
    """
    rows = symbols.offsets.size - 1
    code, owner, _ = rules.characters(symbols.data, symbols.offsets, np.ones(rows, bool))
    first, last = np.full(rows, _NONE, np.int64), np.full(rows, _NONE, np.int64)
    if code.size:
        begins = np.append(True, owner[1:] != owner[:-1])
        first[owner[begins]] = code[begins]
        ends = np.append(begins[1:], True)
        last[owner[ends]] = code[ends]
    a, b = last[left], first[right]
    possible = (a != _NONE) & (b != _NONE) & (a != SPACE_BYTE) & (b != SPACE_BYTE) & (a != NEWLINE) & (b != NEWLINE)
    both = distinct(a[possible] << 21 | b[possible])
    return rules.rules_of(rules.Neighbours(both >> 21, both & (1 << 21) - 1), lines=True)

"""Build the tables of safe cuts in lines: offsets where no merge joins the characters on both sides."""

from __future__ import annotations

import numpy as np

from jittok.common.unicode.characters import NEWLINE, SPACE_BYTE
from jittok.kernels.jit import I32
from jittok.kernels.pretokenize.classes import distinct
from jittok.kernels.safe_cuts import cuts, rules
from jittok.kernels.structures.bytes_table import BytesTable

_NONE = -1


def line_boundaries(symbols: BytesTable, left: I32, right: I32) -> cuts.SpanRules:
    """The rules for texts whose spaces become U+2581 and whose runs of newlines are pre-tokens.

    symbols: texts; left, right: int32[merges] the symbols of each merge. Any two adjacent characters inside a symbol
    were joined by a merge whose symbols end and begin with them. Symbols that are invalid UTF-8 or contain a space do
    not occur.
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

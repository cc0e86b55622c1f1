"""Kinds of code points: llama.cpp's white space, as it is in Unicode, and what lower case changes."""

import numpy as np
import pytest

from jittok.kernels.jit import I64, OutI64, as_int64, frozen, kernel
from jittok.kernels.normalize.case import LOWERED, ORDINARY, SPACE, CaseTable, case_table, kind_of, lower_case

WHITE = {*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
EDGES = [0xD7FF, 0xE000, 0xFEFF, 0xFFFD, 0xFFFF, 0x10000, 0x10400, 0x10427, 0x10428, 0x1E900, 0x1E922, 0x10FFFF]


@kernel
def kinds_of(table: CaseTable, codes: I64, out: OutI64) -> int:
    for k in range(codes.size):
        out[k] = kind_of(table, as_int64(codes[k]))
    return codes.size


@kernel
def lowered(table: CaseTable, codes: I64, out: OutI64) -> int:
    for k in range(codes.size):
        out[k] = lower_case(table, as_int64(codes[k]))
    return codes.size


def asked(call, codes):
    out = np.full(len(codes), -1, np.int64)
    call(case_table(), frozen(codes, np.int64), out)
    return out.tolist()


def test_white_space_is_that_of_unicode_and_nothing_else():
    codes = [*range(0x3100), *EDGES]
    found = asked(kinds_of, codes)
    assert {code for code, kind in zip(codes, found, strict=True) if kind == SPACE} == WHITE
    assert {*found} == {ORDINARY, SPACE, LOWERED}


@pytest.mark.parametrize(
    ("upper", "lower"),
    [
        ("A", "a"),
        ("Z", "z"),
        ("\u00c0", "\u00e0"),
        ("\u03a9", "\u03c9"),
        ("\u0416", "\u0436"),
        ("\U00010400", "\U00010428"),
    ],
)
def test_capital_letters_become_small_ones(upper, lower):
    assert asked(kinds_of, [ord(upper), ord(lower)]) == [LOWERED, ORDINARY]
    assert asked(lowered, [ord(upper)]) == [ord(lower)]


def test_letters_of_ascii_are_the_only_ones_there_that_change():
    codes = list(range(0x80))
    changed = [code for code, kind in zip(codes, asked(kinds_of, codes), strict=True) if kind == LOWERED]
    assert changed == list(range(0x41, 0x5B))
    assert asked(lowered, changed) == list(range(0x61, 0x7B))

"""The tables of NFC (see `jittok.kernels.normalize.nfc.normalizer`), built from Unicode's data."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from jittok.common.unicode.libraries import is_member, ranges
from jittok.common.unicode.nfc import (
    S_BASE,
    S_COUNT,
    classed,
    composing_pairs,
    full_decompositions,
    seconds,
)
from jittok.common.unicode.tables import UNICODE_SIZE
from jittok.kernels.jit import I32, I64, U8, U16, frozen
from jittok.kernels.normalize.nfc.quick_check import QuickTable, quick_table
from jittok.kernels.pretokenize.classes import among, distinct, two_stage_of

CLASS, MAY_CHANGE, CONTINUES = 0xFF, 0x100, 0x200
"""A fact is the combining class, with MAY_CHANGE for code points that decompose for good or compose with one before
them, and CONTINUES for those that do not begin a segment. Most code points have 0."""
VIRAMA = 9
"""The combining class of viramas, which are frequent in some scripts and need no check: two of one class keep their
order, and a mark of another class next to one is checked itself."""


class Nfc(NamedTuple):
    """The tables. `decomposed` and `pairs` are sorted."""

    quick: QuickTable  # the code points whose fact is not 0, but for viramas
    pages: U16  # [8704] two-stage table: the number of a code point's fact
    blocks: U8
    facts: U16
    decomposed: I32  # [n] code points, without Hangul
    parts_at: I32  # [n + 1] where their full decompositions begin
    parts: I32
    pairs: I64  # [m] first << 21 | second
    composed: I32  # [m] their compositions


@cache
def nfc_tables(old: bool = False) -> Nfc:
    """The tables, cached. old: those of tokenizers, whose tables leave characters newer than Unicode 10 unchanged."""
    marks, classes = classed()
    points, owner, parts = full_decompositions()
    sizes = np.bincount(owner, minlength=points.size)
    first, second, whole = composing_pairs()
    follow = np.array(sorted(seconds()))
    if old:
        stays = ~is_member("newer", marks)
        marks, classes = marks[stays], classes[stays]
        stays = ~is_member("newer", points)
        points, sizes, parts = points[stays], sizes[stays], parts[stays[owner]]
        stays = ~(is_member("newer", first) | is_member("newer", second) | is_member("newer", whole))
        first, second, whole = first[stays], second[stays], whole[stays]
    ends = np.append(0, np.cumsum(sizes))
    heads = parts[ends[:-1]]
    facts = np.zeros(UNICODE_SIZE, np.uint16)
    facts[marks] = classes.astype(np.uint16) | CONTINUES
    # a character that recomposes to itself does not change as long as no mark follows
    facts[points] |= np.where(among(points, np.sort(whole)), np.uint16(0), np.uint16(MAY_CHANGE))
    facts[points] |= np.where(among(heads, marks) | among(heads, follow), np.uint16(CONTINUES), np.uint16(0))
    facts[follow] |= MAY_CHANGE | CONTINUES
    facts[S_BASE : S_BASE + S_COUNT] = 0
    for low, high in ranges("newer") if old else ():
        facts[low : high + 1] = 0
    there = np.flatnonzero(facts)  # few: to look at all of them takes longer than the rest
    found = facts[there]
    values = distinct(np.append(np.uint16(0), found))
    numbers, matters = np.zeros(UNICODE_SIZE, np.uint8), np.zeros(UNICODE_SIZE, np.bool_)
    numbers[there], matters[there] = np.searchsorted(values, found), found != (VIRAMA | CONTINUES)
    pages, blocks = two_stage_of(numbers)
    keys = first << 21 | second
    order = np.argsort(keys)
    return Nfc(
        quick_table(matters),
        frozen(pages, np.uint16), frozen(blocks, np.uint8), frozen(values, np.uint16), frozen(points, np.int32),
        frozen(ends, np.int32), frozen(parts, np.int32), frozen(keys[order], np.int64), frozen(whole[order], np.int32),
    )  # fmt: skip

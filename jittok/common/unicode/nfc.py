"""What NFC of Unicode 16.0 is made of: combining classes, canonical decompositions and compositions.

Made by `tools/nfc_tables.py`; loaded when first used. Decompositions are full (nothing in them decomposes further);
Hangul's are arithmetic and not in the tables. Functions of one code point are for references and for people.
"""

from __future__ import annotations

import os
from functools import cache

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.tables import UNICODE_SIZE

S_BASE, L_BASE, V_BASE, T_BASE = 0xAC00, 0x1100, 0x1161, 0x11A7
L_COUNT, V_COUNT, T_COUNT = 19, 21, 28
S_COUNT = L_COUNT * V_COUNT * T_COUNT
"""Hangul: syllables, and leading, vowel and trailing letters (T_BASE itself is none)."""


@cache
def load_nfc() -> dict[str, NDArray[np.uint32]]:
    """The arrays of nfc.npz by name.

    class_start, class_value: runs of equal combining classes; decomposed, first, second: one step of each
    decomposition (second 0: of one code point); composes: 1 where the two compose again.
    """
    with np.load(os.path.join(os.path.dirname(__file__), "nfc.npz")) as file:
        return dict(file)


@cache
def class_table() -> NDArray[np.uint8]:
    """uint8[0x110000]: the combining class of every code point."""
    tables = load_nfc()
    starts = tables["class_start"].astype(np.int64)
    full = np.zeros(UNICODE_SIZE, np.uint8)
    full[starts[0] :] = np.repeat(tables["class_value"], np.diff(starts, append=UNICODE_SIZE))
    return full


@cache
def classed() -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """(code points whose combining class is not 0, rising; their classes)."""
    starts = load_nfc()["class_start"].astype(np.int64)
    runs = np.flatnonzero(load_nfc()["class_value"])
    sizes = np.diff(starts, append=UNICODE_SIZE)[runs]
    points = np.repeat(starts[runs] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    return points, np.repeat(load_nfc()["class_value"].astype(np.uint8)[runs], sizes)


@cache
def decompositions() -> dict[int, tuple[int, ...]]:
    """Code point -> its full decomposition, without Hangul."""
    points, owner, parts = full_decompositions()
    ends = np.cumsum(np.bincount(owner, minlength=points.size)).tolist()
    flat = parts.tolist()
    return {c: tuple(flat[i:j]) for c, i, j in zip(points.tolist(), [0, *ends], ends, strict=False)}


@cache
def full_decompositions() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The same as arrays: (code points, rising; of each part, whose it is, by place; the parts)."""
    points, first, second = (load_nfc()[name].astype(np.int64) for name in ("decomposed", "first", "second"))
    sizes = 1 + (second > 0)
    owner, parts = np.arange(points.size), points
    while True:
        at = np.minimum(np.searchsorted(points, parts), points.size - 1)
        goes_on = points[at] == parts
        if not goes_on.any():
            return points, owner, parts
        counts = np.where(goes_on, sizes[at], 1)
        begins = np.cumsum(counts) - counts
        owner, longer = np.repeat(owner, counts), np.repeat(parts, counts)
        longer[begins[goes_on]] = first[at[goes_on]]
        two = counts == 2
        longer[begins[two] + 1] = second[at[two]]
        parts = longer


@cache
def compositions() -> dict[tuple[int, int], int]:
    """(first, second) -> what they compose to, without Hangul."""
    first, second, whole = (column.tolist() for column in composing_pairs())
    return dict(zip(zip(first, second, strict=True), whole, strict=True))


@cache
def composing_pairs() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The same as arrays: (first, second, what they compose to)."""
    tables = load_nfc()
    kept = tables["composes"] > 0
    first, second, whole = (tables[name][kept].astype(np.int64) for name in ("first", "second", "decomposed"))
    return first, second, whole


@cache
def seconds() -> frozenset[int]:
    """Code points that can compose with one before them."""
    vowels, trailing = range(V_BASE, V_BASE + V_COUNT), range(T_BASE + 1, T_BASE + T_COUNT)
    return frozenset({second for _, second in compositions()} | {*vowels, *trailing})


@cache
def _classes() -> memoryview:
    return class_table().data


def combining_class(c: int) -> int:
    """0 for what is alone."""
    return int(_classes()[c])


def decomposition(c: int) -> tuple[int, ...]:
    """The full canonical decomposition, (c,) if there is none."""
    if S_BASE <= c < S_BASE + S_COUNT:
        syllable = c - S_BASE
        vowel, trailing = V_BASE + syllable % (V_COUNT * T_COUNT) // T_COUNT, T_BASE + syllable % T_COUNT
        parts = L_BASE + syllable // (V_COUNT * T_COUNT), vowel, trailing
        return parts if trailing > T_BASE else parts[:2]
    return decompositions().get(c, (c,))


def composition(first: int, second: int) -> int | None:
    """What two code points compose to, None if they do not."""
    if L_BASE <= first < L_BASE + L_COUNT and V_BASE <= second < V_BASE + V_COUNT:
        return S_BASE + ((first - L_BASE) * V_COUNT + second - V_BASE) * T_COUNT
    syllable = first - S_BASE
    if 0 <= syllable < S_COUNT and syllable % T_COUNT == 0 and T_BASE < second < T_BASE + T_COUNT:
        return first + second - T_BASE
    return compositions().get((first, second))


def begins_anew(c: int) -> bool:
    """Whether what is before `c` neither changes it nor is changed by it: texts may be cut here."""
    first = decomposition(c)[0]
    return combining_class(first) == 0 and first not in seconds()

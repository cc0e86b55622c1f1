"""The classes of characters by which Unicode divides a text into grapheme clusters (UAX #29), as the package `regex`
has them. Made by `tools/grapheme_tables.py`; loaded when first used.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.tables import UNICODE_SIZE

CLASSES = (
    "OTHER", "CR", "LF", "CONTROL", "EXTEND", "ZWJ", "REGIONAL", "PREPEND", "SPACING", "L", "V", "T", "LV", "LVT",
    "PICTURE", "CONSONANT", "LINKER", "PLAIN_EXTEND",
)  # fmt: skip
"""Grapheme_Cluster_Break, with OTHER and EXTEND divided by Extended_Pictographic and Indic_Conjunct_Break: LINKER and
PLAIN_EXTEND extend, too; the last continues no conjunct."""


@cache
def grapheme_classes() -> NDArray[np.uint8]:
    """uint8[0x110000]: the class of every code point, an index of CLASSES."""
    with np.load(Path(__file__).with_name("graphemes.npz")) as file:
        starts, values = file["start"].astype(np.int64), file["value"]
    return np.repeat(values, np.diff(starts, append=UNICODE_SIZE))

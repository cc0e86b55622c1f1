"""Makes graphemes.npz, the classes of characters that Unicode's rules of grapheme clusters (UAX #29) go by, from the
package `regex`, whose `\\X` is what clusters are compared with:

python tools/grapheme_tables.py graphemes.npz
"""

from __future__ import annotations

import sys

import numpy as np
import regex
from numpy.typing import NDArray

from jittok.common.unicode.graphemes import CLASSES

UNICODE_SIZE = 0x110000
PROPERTIES = {
    "CR": "GCB=CR", "LF": "GCB=LF", "CONTROL": "GCB=Control", "EXTEND": "GCB=Extend", "ZWJ": "GCB=ZWJ",
    "REGIONAL": "GCB=RI", "PREPEND": "GCB=Prepend", "SPACING": "GCB=SpacingMark", "L": "GCB=L", "V": "GCB=V",
    "T": "GCB=T", "LV": "GCB=LV", "LVT": "GCB=LVT", "PICTURE": "Extended_Pictographic", "CONSONANT": "InCB=Consonant",
    "LINKER": "InCB=Linker",
}  # fmt: skip


def of_property(name: str) -> NDArray[np.bool_]:
    """bool[0x110000]: the characters that have a property."""
    found, pattern = np.zeros(UNICODE_SIZE, bool), regex.compile(rf"\p{{{name}}}+")
    for match in pattern.finditer("".join(map(chr, range(UNICODE_SIZE)))):
        found[match.start() : match.end()] = True
    return found


def build_classes() -> dict[str, NDArray[np.generic]]:
    """The arrays of graphemes.npz: where runs of equal classes begin, and their classes."""
    table = np.zeros(UNICODE_SIZE, np.uint8)
    for name, spelled in PROPERTIES.items():
        having = of_property(spelled)
        if name in ("PICTURE", "CONSONANT") and (table[having] != 0).any():
            raise ValueError(f"{name}: a character has another class, too")
        if name == "LINKER":  # a linker that does not extend begins a cluster, so it links nothing
            having &= table == CLASSES.index("EXTEND")
        table[having] = CLASSES.index(name)
    plain = of_property("GCB=Extend") & ~of_property("InCB=Extend") & ~of_property("InCB=Linker")
    table[plain] = CLASSES.index("PLAIN_EXTEND")
    starts = np.flatnonzero(np.diff(table, prepend=255))
    return {"start": starts.astype(np.uint32), "value": table[starts]}


if __name__ == "__main__":
    np.savez_compressed(sys.argv[1], **build_classes())

"""Makes tables.npz from the tables of llama.cpp, which are read as data:

python tools/unicode_tables.py llama.cpp/src/unicode-data.cpp tables.npz
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.tables import LOWERCASE, NFD, UNICODE_SIZE, UPPERCASE, WHITESPACE


def rows(source: str, name: str, width: int) -> NDArray[np.uint32]:
    """uint32[n, width]: the lines of the initializer of `name` that hold `width` hexadecimal numbers."""
    body = source[source.index("{", source.index(name)) :]
    lines = body[: body.index("};")].splitlines()
    numbers = [[int(x, 16) for x in re.findall(r"0x([0-9A-Fa-f]+)", line)] for line in lines]
    return np.array([row for row in numbers if len(row) == width], np.uint32).reshape(-1, width)


def build_tables(source: str) -> dict[str, NDArray[np.uint32] | NDArray[np.uint16]]:
    """The arrays of tables.npz (see `tables.load_tables`) from the text of unicode-data.cpp."""
    ranges = rows(source, "unicode_ranges_flags", 2)
    white = np.sort(rows(source, "unicode_set_whitespace", 1)[:, 0])
    lower, upper = rows(source, "unicode_map_lowercase", 2), rows(source, "unicode_map_uppercase", 2)
    nfd = rows(source, "unicode_ranges_nfd", 3)
    flags = np.zeros(UNICODE_SIZE, np.uint16)
    for (first, value), (end, _) in zip(ranges[:-1].tolist(), ranges[1:].tolist(), strict=True):
        flags[first:end] = value
    flags[white] |= WHITESPACE
    flags[lower[:, 1]] |= LOWERCASE
    flags[upper[:, 1]] |= UPPERCASE
    flags[nfd[:, 2]] |= NFD
    start = np.flatnonzero(np.r_[True, flags[1:] != flags[:-1]])
    return {
        "flag_start": start.astype(np.uint32),
        "flag_value": flags[start],
        "whitespace": white,
        "lower_from": lower[:, 0],
        "lower_to": lower[:, 1],
        "upper_from": upper[:, 0],
        "upper_to": upper[:, 1],
        "nfd_first": nfd[:, 0],
        "nfd_last": nfd[:, 1],
        "nfd_to": nfd[:, 2],
    }


if __name__ == "__main__":
    made: dict[str, Any] = {**build_tables(Path(sys.argv[1]).read_text(encoding="utf-8"))}
    np.savez_compressed(sys.argv[2], **made)

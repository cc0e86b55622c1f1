"""Makes nfc.npz, the tables of NFC in Unicode 16.0, from a module `unicodedata` of that version:

python tools/nfc_tables.py nfc.npz

Python 3.14 has it; elsewhere `pip install unicodedata2==16.0.0`. No other version will do: llama.cpp's NFC is this one,
whatever Python's is.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

VERSION = "16.0.0"
UNICODE_SIZE = 0x110000
HANGUL = range(0xAC00, 0xD7A4)
SURROGATES = range(0xD800, 0xE000)


def unicode_data() -> Any:
    """The module that has the data. RuntimeError where none is of the right version."""
    for name in ("unicodedata", "unicodedata2"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if module.unidata_version == VERSION:
            return module
    raise RuntimeError(f"no module has the data of Unicode {VERSION}: pip install unicodedata2=={VERSION}")


def build_nfc(data: Any) -> dict[str, NDArray[Any]]:
    """The arrays of nfc.npz (see `jittok.common.unicode.nfc.load_nfc`) from a module like `unicodedata`."""
    classes = np.array([data.combining(chr(c)) for c in range(UNICODE_SIZE)], np.uint8)
    starts = np.flatnonzero(np.diff(classes, prepend=0))
    rows = []
    for c in range(UNICODE_SIZE):
        mapping = data.decomposition(chr(c))
        if mapping and not mapping.startswith("<") and c not in HANGUL and c not in SURROGATES:
            first, second = [*(int(code, 16) for code in mapping.split()), 0][:2]
            rows.append((c, first, second, second != 0 and data.normalize("NFC", chr(first) + chr(second)) == chr(c)))
    table = np.array(rows, np.uint32)
    return {
        "class_start": starts.astype(np.uint32),
        "class_value": classes[starts],
        "decomposed": table[:, 0],
        "first": table[:, 1],
        "second": table[:, 2],
        "composes": table[:, 3].astype(np.uint8),
    }


if __name__ == "__main__":
    made: dict[str, Any] = {**build_nfc(unicode_data())}
    np.savez_compressed(sys.argv[1], **made)

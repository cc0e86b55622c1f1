"""Bytes that need not be UTF-8 as texts that are, a part at a time, as a bad byte becomes three."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok._jit import U8, frozen
from jittok.inputs import PADDING, Documents

AT_ONCE = 1 << 20
"""Bytes that are read at once."""


def well_formed(text: bytes, replace: bool) -> U8:
    """A text with PADDING behind it, and U+FFFD for what is no UTF-8. UnicodeDecodeError, of some part of the text,
    unless it may be replaced."""
    out = bytearray()
    _write(text, "replace" if replace else "strict", out.extend)
    out += PADDING
    return frozen(np.frombuffer(out, np.uint8), np.uint8)


def _write(text: bytes, errors: str, write: Callable[[bytes], Any]) -> None:
    decoder, parts = codecs.getincrementaldecoder("utf-8")(errors), memoryview(text)
    for at in range(0, len(text), AT_ONCE):
        write(decoder.decode(parts[at : at + AT_ONCE], at + AT_ONCE >= len(text)).encode())


def well_formed_copies(
    docs: Documents, starts: NDArray[np.int64], stops: NDArray[np.int64], tokens: NDArray[np.int32]
) -> tuple[Documents, NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Fragments with U+FFFD for what is no UTF-8."""
    out, ends = bytearray(), np.empty(starts.size, np.int64)
    for k, (start, stop, token) in enumerate(zip(starts.tolist(), stops.tolist(), tokens.tolist(), strict=True)):
        if token < 0:
            _write(docs.between(start, stop), "replace", out.extend)
        ends[k] = len(out)
    begins, stops = frozen(np.append(0, ends[:-1]), np.int64), frozen(ends, np.int64)
    data = frozen(np.frombuffer(out, np.uint8), np.uint8)
    return Documents(data, begins, stops), begins, stops, frozen(tokens.copy(), np.int32)

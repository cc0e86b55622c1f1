"""Repair of invalid UTF-8: malformed sequences become U+FFFD, a part of a text at a time, as one byte becomes three."""

from __future__ import annotations

import codecs

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.inputs import PADDING, Documents
from jittok.kernels.jit import U8, frozen

CHUNK_BYTES = 1 << 17
"""Bytes that are read at once."""
GROWTH = 3
"""Bytes that one which is invalid UTF-8 becomes: U+FFFD."""


def well_formed(text: bytes, replace: bool) -> U8:
    """A text with PADDING after it, and U+FFFD in place of invalid UTF-8. Without `replace`, raises UnicodeDecodeError
    with the offset in a part of the text."""
    out = np.empty((GROWTH if replace else 1) * len(text) + len(PADDING), np.uint8)  # untouched pages take no memory
    size = _write(text, "replace" if replace else "strict", out, 0)
    out[size : size + len(PADDING)] = 0
    return frozen(out[: size + len(PADDING)], np.uint8)


def _write(text: bytes, errors: str, out: NDArray[np.uint8], size: int) -> int:
    """Write the text to out[size:]. Returns the offset after it."""
    decoder, parts = codecs.getincrementaldecoder("utf-8")(errors), memoryview(text)
    for at in range(0, len(text), CHUNK_BYTES):
        part = decoder.decode(parts[at : at + CHUNK_BYTES], at + CHUNK_BYTES >= len(text)).encode()
        out[size : size + len(part)] = np.frombuffer(part, np.uint8)
        size += len(part)
    return size


def well_formed_copies(
    docs: Documents, starts: NDArray[np.int64], stops: NDArray[np.int64], tokens: NDArray[np.int32]
) -> tuple[Documents, NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Copies of fragments with U+FFFD in place of invalid UTF-8."""
    out = np.empty(GROWTH * int(np.where(tokens < 0, stops - starts, 0).sum()), np.uint8)
    ends, size = np.empty(starts.size, np.int64), 0
    for k, (start, stop, token) in enumerate(zip(starts.tolist(), stops.tolist(), tokens.tolist(), strict=True)):
        if token < 0:
            size = _write(docs.between(start, stop), "replace", out, size)
        ends[k] = size
    begins, stops = frozen(np.append(0, ends[:-1]), np.int64), frozen(ends, np.int64)
    data = frozen(out[:size], np.uint8)
    return Documents(data, begins, stops), begins, stops, frozen(tokens.copy(), np.int32)

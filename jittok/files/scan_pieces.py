"""The pieces of a sentencepiece model, read from the bytes of the file at once.

A message a piece, read field by field, takes Python longer than all that is then made of them. This kernel knows pieces
as sentencepiece writes them and stops at anything else: `sentencepiece` continues from there, and words all errors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.models import BYTE, NORMAL
from jittok.kernels.jit import JIT, U8, OutI64, OutU8, OutU32, WouldCompile, as_int64, frozen, kernel

LEAST_BYTES = 1 << 14
"""Bytes of a file from which on this is worth it."""
LEAST_PIECE = 5
"""Bytes that a piece takes: a tag and a size for it and for its text, and one of text."""
PIECE, TEXT, SCORE, KIND = 0x0A, 0x0A, 0x15, 0x18
"""Tags of fields: number << 3 | wire type."""
MORE = 0x80
"""A byte of a number with this bit is not its last one."""
NO_NUMBER = 0x7F800000
"""The exponent of infinities and of what is no number."""


class ScannedPieces(NamedTuple):
    """Pieces that are at the beginning of a file."""

    stop: int  # the byte after them
    texts: list[bytes]
    types: list[int]
    scores: list[float]


def first_pieces(content: bytes) -> ScannedPieces:
    """The pieces of a model up to the first that is not written as usual; none of a small file."""
    if not JIT or len(content) < LEAST_BYTES:
        return ScannedPieces(0, [], [], [])
    capacity = len(content) // LEAST_PIECE + 1  # pages that are not used cost nothing
    starts, stops = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    types, scores = np.empty(capacity, np.uint8), np.empty(capacity, np.uint32)
    end = np.zeros(1, np.int64)
    try:
        count = read_pieces(frozen(np.frombuffer(content, np.uint8), np.uint8), starts, stops, types, scores, end)
    except WouldCompile:
        return ScannedPieces(0, [], [], [])
    texts = [content[i:j] for i, j in zip(starts[:count].tolist(), stops[:count].tolist(), strict=True)]
    if not _all_utf8(texts):
        return ScannedPieces(0, [], [], [])
    return ScannedPieces(int(end[0]), texts, types[:count].tolist(), _floats(scores[:count]))


def _floats(bits: NDArray[np.uint32]) -> list[float]:
    return bits.view(np.float32).astype(np.float64).tolist()  # type: ignore[no-any-return]


def _all_utf8(texts: list[bytes]) -> bool:
    """Whether each text is UTF-8: none begins inside of a character, and all together are."""
    try:
        b"".join(texts).decode()
    except UnicodeDecodeError:
        return False
    return not any(MORE <= text[0] < 0xC0 for text in texts)


@kernel
def read_pieces(data: U8, starts: OutI64, stops: OutI64, types: OutU8, scores: OutU32, end: OutI64) -> int:
    """How many pieces are at the beginning of a file: texts of a byte or more, scores that are numbers, known types.

    starts, stops: int64[bytes // LEAST_PIECE + 1] of their texts; types, scores: of as many, the scores as bits
    end: int64[1] the byte after the last
    """
    count, at = 0, 0
    while at + 1 < data.size and data[at] == PIECE and data[at + 1] < MORE:
        i, stop = at + 2, at + 2 + as_int64(data[at + 1])
        if stop > data.size:
            break
        begin, after, score, kind = i, i, 0, NORMAL
        known = True
        while known and i < stop:
            tag = as_int64(data[i])
            if tag == TEXT and i + 1 < stop and data[i + 1] < MORE:
                begin, after = i + 2, i + 2 + as_int64(data[i + 1])
                i, known = after, after <= stop
            elif tag == SCORE and i + 5 <= stop:
                score = (
                    as_int64(data[i + 1])
                    | as_int64(data[i + 2]) << 8
                    | as_int64(data[i + 3]) << 16
                    | as_int64(data[i + 4]) << 24
                )
                i, known = i + 5, score & NO_NUMBER != NO_NUMBER
            elif tag == KIND and i + 1 < stop:
                kind = as_int64(data[i + 1])
                i, known = i + 2, NORMAL <= kind <= BYTE
            else:
                known = False
        if not known or begin == after:
            break
        starts[count], stops[count], types[count], scores[count] = begin, after, kind, score
        count, at = count + 1, stop
    end[0] = at
    return count

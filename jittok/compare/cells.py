"""Walks two tokenizations of the same documents in parallel to find where they differ.

A *cell* is the text between two adjacent offsets where both have a border between tokens. A *parting* is a cell in
which the tokens of the two differ. Tokens with empty spans (an added space) belong to the cell that begins there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.inputs import Documents
from jittok.kernels.jit import I32, I64, U8, OutI64, frozen, helper, kernel
from jittok.kernels.memory import Window, add, get_i32, get_i64, get_u8, multiply, put_i64, window

DOCUMENT, START, STOP, FIRST_A, LAST_A, FIRST_B, LAST_B, KEY = range(8)
"""Columns of a parting: its text in the document, its tokens in both (from first up to last), a hash of all."""
COLUMNS = 8
_PRIME, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


class Side(NamedTuple):
    """The tokens of all documents, by one tokenizer."""

    offsets: I64  # int64[documents + 1] tokens up to the end of each
    numbers: I32  # int32[tokens] a number for the text of each token: see `spelling.shared_numbers`
    spans: I64  # int64[2 * tokens] span of each token in its document; starts are ascending


def partings(docs: Documents, a: Side, b: Side) -> NDArray[np.int64]:
    """int64[partings, COLUMNS] in order of documents and offsets."""
    starts, stops = frozen(docs.starts, np.int64), frozen(docs.stops, np.int64)
    out = np.empty(COLUMNS * 1024, np.int64)
    count = find_partings(docs.data, starts, stops, a, b, out)
    if COLUMNS * count > out.size:
        out = np.empty(COLUMNS * count, np.int64)
        find_partings(docs.data, starts, stops, a, b, out)
    return out[: COLUMNS * count].reshape(-1, COLUMNS)


@kernel
def find_partings(data: U8, starts: I64, stops: I64, a: Side, b: Side, out: OutI64) -> int:
    """Write the partings to `out`, as far as its capacity goes; returns how many there are. Linear in tokens and in the
    bytes of partings."""
    text, found, count = window(data), window(out), 0
    numbers_a, spans_a, numbers_b, spans_b = window(a.numbers), window(a.spans), window(b.numbers), window(b.spans)
    for document in range(starts.size):
        i, end_i = a.offsets[document], a.offsets[document + 1]
        j, end_j = b.offsets[document], b.offsets[document + 1]
        done, size = 0, stops[document] - starts[document]
        while i < end_i or j < end_j:
            first_i, first_j = i, j
            start = min(_start(spans_a, i, end_i, size), _start(spans_b, j, end_j, size))
            start = max(start, done)
            reach = start
            while True:
                if i < end_i and (
                    get_i64(spans_a, 2 * i) < reach or (i == first_i and get_i64(spans_a, 2 * i) <= start)
                ):
                    reach = max(reach, get_i64(spans_a, 2 * i + 1))
                    i += 1
                elif j < end_j and (
                    get_i64(spans_b, 2 * j) < reach or (j == first_j and get_i64(spans_b, 2 * j) <= start)
                ):
                    reach = max(reach, get_i64(spans_b, 2 * j + 1))
                    j += 1
                else:
                    break
            done = reach
            if not _same(numbers_a, first_i, i, numbers_b, first_j, j):
                if COLUMNS * (count + 1) <= out.size:
                    at = COLUMNS * count
                    put_i64(found, at + DOCUMENT, document)
                    put_i64(found, at + START, start)
                    put_i64(found, at + STOP, reach)
                    put_i64(found, at + FIRST_A, first_i)
                    put_i64(found, at + LAST_A, i)
                    put_i64(found, at + FIRST_B, first_j)
                    put_i64(found, at + LAST_B, j)
                    origin = starts[document]
                    key = _text_hash(text, origin + start, origin + reach)
                    key = _number_hash(key, numbers_a, first_i, i)
                    put_i64(found, at + KEY, np.int64(_number_hash(key, numbers_b, first_j, j)))
                count += 1
    return count


@helper
def _start(spans: Window, k: int, end: int, size: int) -> int:
    """Where token k begins, the end of the text after the last."""
    return get_i64(spans, 2 * k) if k < end else size


@helper
def _same(a: Window, i: int, end_i: int, b: Window, j: int, end_j: int) -> bool:
    """Whether two ranges of tokens have the same texts."""
    if end_i - i != end_j - j:
        return False
    while i < end_i:
        if get_i32(a, i) != get_i32(b, j):
            return False
        i += 1
        j += 1
    return True


@helper
def _text_hash(text: Window, i: int, stop: int) -> np.uint64:
    key = np.uint64(stop - i)
    while i < stop:
        key = _mixed(key, np.uint64(get_u8(text, i)))
        i += 1
    return key


@helper
def _number_hash(key: np.uint64, numbers: Window, i: int, stop: int) -> np.uint64:
    key = _mixed(key, np.uint64(stop - i))
    while i < stop:
        key = _mixed(key, np.uint64(get_i32(numbers, i)))
        i += 1
    return key


@helper
def _mixed(key: np.uint64, number: np.uint64) -> np.uint64:
    """A step of a hash of 64 bits."""
    key = multiply(add(key, number) ^ (key >> _SHIFT), _PRIME)
    return key ^ (key >> _SHIFT)


@kernel
def differing(a_offsets: I64, a: I32, b_offsets: I64, b: I32, out: OutI64) -> int:
    """Write the numbers of documents whose tokens differ to out: int64[documents]; how many."""
    count, numbers_a, numbers_b = 0, window(a), window(b)
    for document in range(a_offsets.size - 1):
        if not _same(
            numbers_a, a_offsets[document], a_offsets[document + 1],
            numbers_b, b_offsets[document], b_offsets[document + 1],
        ):  # fmt: skip
            out[count] = document
            count += 1
    return count

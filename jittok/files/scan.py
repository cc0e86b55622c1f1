"""The large parts of a tokenizer.json, its vocabulary and its merges, read from the bytes of the file at once.

A JSON library makes an object of every text and every pair: half a million of them, which are counted, joined and cut
again. These kernels write the texts one after the other instead. They know JSON as real files have it, and give up at
anything else: then the file is read as a whole by the library, which also words all errors. What is around these
parts is always read by the library.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.files.json_values import (
    BAD,
    CLOSE,
    CLOSE_LIST,
    COLON,
    COMMA,
    F64,
    MOST_POWER,
    NINE,
    OPEN,
    OPEN_LIST,
    QUOTE,
    SPACE,
    ZERO,
    after_comma,
    after_mark,
    read_number,
    read_text,
    skip_blanks,
    skip_text,
    skip_value,
)  # fmt: skip
from jittok.kernels.jit import JIT, U8, OutF64, OutI64, OutU8, as_int64, frozen, helper, kernel

LEAST_BYTES = 1 << 16
"""Bytes of a file from which on this is worth it."""
MOST_ID_DIGITS = 9
_POWERS = frozen([float(f"1e{k}") for k in range(MOST_POWER + 1)], np.float64)
_PARTS = {"vocab": frozen(np.frombuffer(b"vocab", np.uint8), np.uint8),
          "merges": frozen(np.frombuffer(b"merges", np.uint8), np.uint8)}  # fmt: skip
_VERSION = tuple(b"#version")
_MODEL = frozen(np.frombuffer(b"model", np.uint8), np.uint8)


class ScannedTexts(NamedTuple):
    """Texts one after the other, and the number beside each: ids, or scores. No numbers for merges, whose left and
    right parts are in turns."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    numbers: NDArray[np.int64] | NDArray[np.float64]


def worth_it(content: bytes) -> bool:
    """Whether a file is large enough, and kernels run."""
    return JIT and len(content) >= LEAST_BYTES


def large_parts(content: bytes) -> dict[str, tuple[int, int, ScannedTexts]]:
    """Parts of "model" -> where each is in the file and what it says. Those that are not known are left out."""
    data = frozen(np.frombuffer(content, np.uint8), np.uint8)
    model = find_member(data, 0, _MODEL, 0, 0)
    parts, start, stop = {}, 0, 0
    for name, key in _PARTS.items() if model >= 0 else ():
        begin = find_member(data, model, key, start, stop)
        found = None if begin < 0 else _texts_of(data, begin, name)
        if found is not None:
            start, stop = begin, found[0]
            parts[name] = (start, *found)
    return parts


def _texts_of(data: U8, start: int, name: str) -> tuple[int, ScannedTexts] | None:
    """(where it ends, what it says) of one part; None where it is not as these kernels know it."""
    size = data.size - start
    texts, ends = np.empty(size, np.uint8), np.empty(size // 2 + 2, np.int64)  # pages that are not used cost nothing
    numbers: NDArray[np.int64] | NDArray[np.float64] = np.empty(0, np.int64)
    if name == "merges":
        count = read_merges(data, start, texts, ends)
    elif data[start] == OPEN:
        numbers = np.empty(size // 4 + 1, np.int64)
        count = read_ids(data, start, texts, ends, numbers)
    else:
        numbers = np.empty(size // 4 + 1, np.float64)
        count = read_scores(data, start, _POWERS, texts, ends, numbers)
    if count <= 0:
        return None
    stop, ends[0] = int(ends[0]), 0
    rows = ends[: count + 1].copy()
    return stop, ScannedTexts(
        frozen(texts[: rows[-1]].copy(), np.uint8), frozen(rows, np.int64), numbers[:count].copy()
    )


@kernel
def find_member(data: U8, start: int, key: U8, known: int, known_stop: int) -> int:
    """Where the value of the first member of an object with this key begins, or BAD.

    The object is at data[start]; a value that begins at `known` ends at `known_stop`, if known > 0.
    """
    stop = data.size
    i = skip_blanks(data, start, stop)
    if i >= stop or data[i] != OPEN:
        return BAD
    while True:
        i = skip_blanks(data, i + 1, stop)
        if i >= stop or data[i] != QUOTE:
            return BAD
        begin = i + 1
        i = skip_text(data, i, stop)
        if i < 0:
            return BAD
        same = i - 1 - begin == key.size
        if same:
            for k in range(key.size):
                same = same and data[begin + k] == key[k]
        begin = after_mark(data, i, COLON)
        if begin < 0:
            return BAD
        if same and begin < stop:
            return begin
        i = known_stop if 0 < known == begin else skip_value(data, begin, stop)
        if i < 0:
            return BAD
        i = skip_blanks(data, i, stop)
        if i >= stop or data[i] != COMMA:
            return BAD


@kernel
def read_ids(data: U8, start: int, texts: OutU8, ends: OutI64, numbers: OutI64) -> int:
    """The members of the object at data[start], from texts to ids; how many, or BAD.

    texts: uint8[bytes from there on], numbers: int64[a quarter of that + 1]
    ends: int64[half of that + 2] where each text ends; before the first, where the object ends
    """
    stop, count, at, closed = data.size, 0, 0, False
    i = skip_blanks(data, start + 1, stop)
    while not closed:
        i, at = read_text(data, i, stop, texts, at)
        i = after_mark(data, i, COLON)
        if i < 0:
            return BAD
        value, begin = 0, i
        while i < stop and ZERO <= data[i] <= NINE:
            value = 10 * value + (as_int64(data[i]) - ZERO)
            i += 1
            if i - begin > MOST_ID_DIGITS:
                return BAD
        if i == begin or (i - begin > 1 and data[begin] == ZERO):
            return BAD
        count += 1
        ends[count], numbers[count - 1] = at, value
        i, closed = after_comma(data, i, CLOSE)
        if i < 0:
            return BAD
    ends[0] = i
    return count


@kernel
def read_merges(data: U8, start: int, texts: OutU8, ends: OutI64) -> int:
    """Left and right parts of the merges at data[start], a list of lines or of pairs; how many parts, or BAD.

    A line has one space. texts, ends: as for `read_ids`
    """
    stop, count, at, closed = data.size, 0, 0, False
    if data[start] != OPEN_LIST:
        return BAD
    i = skip_blanks(data, start + 1, stop)
    pairs = i < stop and data[i] == OPEN_LIST
    while not closed:
        if pairs:
            i, at = read_text(data, after_mark(data, i, OPEN_LIST), stop, texts, at)
            cut = at
            i, at = read_text(data, after_mark(data, i, COMMA), stop, texts, at)
            i = after_mark(data, i, CLOSE_LIST)
            if i < 0:
                return BAD
        else:
            begin = at
            i, at = read_text(data, i, stop, texts, at)
            if i < 0:
                return BAD
            cut = BAD
            for k in range(begin, at):
                if texts[k] == SPACE:
                    if cut != BAD:
                        return BAD
                    cut = k
            if cut == BAD or _is_version(texts, begin, at):
                return BAD
            for k in range(cut, at - 1):
                texts[k] = texts[k + 1]
            at -= 1
        ends[count + 1], ends[count + 2] = cut, at
        count += 2
        i, closed = after_comma(data, i, CLOSE_LIST)
        if i < 0:
            return BAD
    ends[0] = i
    return count


@helper
def _is_version(texts: OutU8, begin: int, end: int) -> bool:
    """Whether a line begins with "#version": it is no merge."""
    if end - begin < len(_VERSION):
        return False
    for k in range(len(_VERSION)):
        if texts[begin + k] != _VERSION[k]:
            return False
    return True


@kernel
def read_scores(data: U8, start: int, powers: F64, texts: OutU8, ends: OutI64, numbers: OutF64) -> int:
    """The rows of the list at data[start], pairs of a text and a score; how many, or BAD.

    powers: float64[309] of ten; texts, ends: as for `read_ids`
    numbers: float64[as there] the scores as `numbers.as_read` reads them
    """
    stop, count, at, closed = data.size, 0, 0, False
    if data[start] != OPEN_LIST:
        return BAD
    i = skip_blanks(data, start + 1, stop)
    while not closed:
        i, at = read_text(data, after_mark(data, i, OPEN_LIST), stop, texts, at)
        i, number = read_number(data, after_mark(data, i, COMMA), stop, powers)
        i = after_mark(data, i, CLOSE_LIST)
        if i < 0:
            return BAD
        count += 1
        ends[count], numbers[count - 1] = at, number
        i, closed = after_comma(data, i, CLOSE_LIST)
        if i < 0:
            return BAD
    ends[0] = i
    return count

"""The large parts of a tokenizer.json, its vocabulary and its merges, read from the bytes of the file at once.

A JSON library makes an object of every text and every pair: half a million of them, which are counted, joined and cut
again. These kernels write the texts behind each other instead. They know JSON as real files have it, and give up at
anything else: then the file is read as a whole by the library, which also words all errors. What stands around these
parts is always read by the library.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import JIT, U8, OutF64, OutI64, OutU8, frozen, helper, kernel, wide
from jittok._raw import window
from jittok.structures.valid import is_malformed

BAD = -1
"""Something that these kernels do not know."""
LEAST = 1 << 16
"""Bytes of a file from which on this is worth it."""
QUOTE, BACKSLASH, COMMA, COLON, MINUS, POINT, ZERO, NINE = (ord(c) for c in '"\\,:-.09')
OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, SPACE = (ord(c) for c in "{}[] ")
TAB, LINE, RETURN = 9, 10, 13
LOWER_E, UPPER_E, PLUS, LOWER_U = (ord(c) for c in "eE+u")
MOST_DIGITS, MOST_ID_DIGITS = 19, 9
"""Of a number that 64 bits hold in any case, and of an id."""
MOST_POWER = 308
F64 = Annotated[NDArray[np.float64], ("f8", "in")]
_POWERS = frozen([float(f"1e{k}") for k in range(MOST_POWER + 1)], np.float64)
_PARTS = {"vocab": frozen(np.frombuffer(b"vocab", np.uint8), np.uint8),
          "merges": frozen(np.frombuffer(b"merges", np.uint8), np.uint8)}  # fmt: skip
_VERSION = tuple(b"#version")
_MODEL = frozen(np.frombuffer(b"model", np.uint8), np.uint8)


class Texts(NamedTuple):
    """Texts behind each other, and the number beside each: ids, or scores. No numbers for merges, whose left and right
    parts stand in turns."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    numbers: NDArray[np.int64] | NDArray[np.float64]


def worth_it(content: bytes) -> bool:
    """Whether a file is large enough, and kernels run."""
    return JIT and len(content) >= LEAST


def large_parts(content: bytes) -> dict[str, tuple[int, int, Texts]]:
    """Parts of "model" -> where each stands in the file and what it says. Those that are not known are left out."""
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


def _texts_of(data: U8, start: int, name: str) -> tuple[int, Texts] | None:
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
    return stop, Texts(frozen(texts[: rows[-1]].copy(), np.uint8), frozen(rows, np.int64), numbers[:count].copy())


@kernel
def find_member(data: U8, start: int, key: U8, known: int, behind: int) -> int:
    """Where the value of the first member of an object with this key begins, or BAD.

    The object is at data[start]; a value that begins at `known` ends at `behind`, if known > 0.
    """
    stop = data.size
    i = _skip_blanks(data, start, stop)
    if i >= stop or data[i] != OPEN:
        return BAD
    while True:
        i = _skip_blanks(data, i + 1, stop)
        if i >= stop or data[i] != QUOTE:
            return BAD
        begin = i + 1
        i = _skip_text(data, i, stop)
        if i < 0:
            return BAD
        same = i - 1 - begin == key.size
        if same:
            for k in range(key.size):
                same = same and data[begin + k] == key[k]
        i = _skip_blanks(data, i, stop)
        if i >= stop or data[i] != COLON:
            return BAD
        begin = _skip_blanks(data, i + 1, stop)
        if same and begin < stop:
            return begin
        i = behind if 0 < known == begin else _skip_value(data, begin, stop)
        if i < 0:
            return BAD
        i = _skip_blanks(data, i, stop)
        if i >= stop or data[i] != COMMA:
            return BAD


@helper
def _skip_blanks(data: U8, i: int, stop: int) -> int:
    while i < stop and (data[i] == SPACE or data[i] == LINE or data[i] == RETURN or data[i] == TAB):
        i += 1
    return i


@helper
def _skip_text(data: U8, i: int, stop: int) -> int:
    """Behind the text that begins at i with a quote, or BAD."""
    i += 1
    while i < stop:
        byte = data[i]
        i += 1
        if byte == QUOTE:
            return i
        if byte == BACKSLASH:
            i += 1
    return BAD


@helper
def _skip_value(data: U8, i: int, stop: int) -> int:
    """Behind the value at i, or BAD. Brackets are only counted."""
    depth = 0
    while i < stop:
        byte = data[i]
        if byte == QUOTE:
            i = _skip_text(data, i, stop)
            if i < 0:
                return BAD
            if depth == 0:
                return i
            continue
        if byte == OPEN or byte == OPEN_LIST:
            depth += 1
        elif byte == CLOSE or byte == CLOSE_LIST:
            if depth == 0:
                return i  # of the object around a number
            depth -= 1
            if depth == 0:
                return i + 1
        elif depth == 0 and (byte == COMMA or byte == SPACE or byte == LINE or byte == RETURN or byte == TAB):
            return i
        i += 1
    return BAD


@helper
def _hex(data: U8, i: int, stop: int) -> int:
    """The number of four hexadecimal digits at i, or BAD."""
    if i + 4 > stop:
        return BAD
    value = 0
    for k in range(4):
        byte = wide(data[i + k])
        if ZERO <= byte <= NINE:
            value = value << 4 | (byte - ZERO)
        elif 0x41 <= byte <= 0x46 or 0x61 <= byte <= 0x66:
            value = value << 4 | ((byte & 0xDF) - 0x41 + 10)
        else:
            return BAD
    return value


@helper
def _put_character(texts: OutU8, at: int, c: int) -> int:
    """Write a code point; where it ends."""
    if c < 0x80:
        texts[at] = c
        return at + 1
    size = 2 if c < 0x800 else 3 if c < 0x10000 else 4
    texts[at] = (0xF00 >> size & 0xFF) | c >> 6 * (size - 1)
    for k in range(1, size):
        texts[at + k] = 0x80 | (c >> 6 * (size - 1 - k) & 0x3F)
    return at + size


@helper
def _read_escape(data: U8, i: int, stop: int, texts: OutU8, at: int) -> tuple[int, int]:
    """(behind the escape, where what it stands for ends), of the escape whose letter is at i; (BAD, 0) for none."""
    if i >= stop:
        return BAD, 0
    letter = wide(data[i])
    if letter == LOWER_U:
        c = _hex(data, i + 1, stop)
        i += 5
        if 0xD800 <= c < 0xDC00 and i + 1 < stop and data[i] == BACKSLASH and data[i + 1] == LOWER_U:
            low = _hex(data, i + 2, stop)
            if not 0xDC00 <= low < 0xE000:
                return BAD, 0
            c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00)
            i += 6
        elif c < 0 or 0xD800 <= c < 0xE000:
            return BAD, 0
        return i, _put_character(texts, at, c)
    if letter == QUOTE or letter == BACKSLASH or letter == 0x2F:
        c = letter
    elif letter == 0x62:
        c = 8
    elif letter == 0x66:
        c = 12
    elif letter == 0x6E:
        c = LINE
    elif letter == 0x72:
        c = RETURN
    elif letter == 0x74:
        c = TAB
    else:
        return BAD, 0
    texts[at] = c
    return i + 1, at + 1


@helper
def _read_text(data: U8, i: int, stop: int, texts: OutU8, at: int) -> tuple[int, int]:
    """(behind the text, where it ends in `texts`), of the text at i; (BAD, 0) where there is none that is right."""
    if i >= stop or data[i] != QUOTE:
        return BAD, 0
    i += 1
    begin, high = at, 0
    while i < stop:
        byte = wide(data[i])
        i += 1
        if byte == QUOTE:
            if high >= 0x80 and is_malformed(window(texts), begin, at):
                return BAD, 0
            return i, at
        if byte == BACKSLASH:
            i, at = _read_escape(data, i, stop, texts, at)
            if i < 0:
                return BAD, 0
        elif byte < SPACE:
            return BAD, 0
        else:
            high |= byte
            texts[at] = byte
            at += 1
    return BAD, 0


@helper
def _behind_comma(data: U8, i: int, close: int) -> tuple[int, bool]:
    """(where the next element begins, False), (behind what holds them, True) if it is closed here, or (BAD, True)."""
    i = _skip_blanks(data, i, data.size)
    if i < data.size and data[i] == COMMA:
        return _skip_blanks(data, i + 1, data.size), False
    if i < data.size and data[i] == close:
        return i + 1, True
    return BAD, True


@kernel
def read_ids(data: U8, start: int, texts: OutU8, ends: OutI64, numbers: OutI64) -> int:
    """The members of the object at data[start], from texts to ids; how many, or BAD.

    texts: uint8[bytes from there on], numbers: int64[a quarter of that + 1]
    ends: int64[half of that + 2] where each text ends; in front of the first, where the object ends
    """
    stop, count, at, closed = data.size, 0, 0, False
    i = _skip_blanks(data, start + 1, stop)
    while not closed:
        i, at = _read_text(data, i, stop, texts, at)
        if i < 0:
            return BAD
        i = _skip_blanks(data, i, stop)
        if i >= stop or data[i] != COLON:
            return BAD
        i = _skip_blanks(data, i + 1, stop)
        value, begin = 0, i
        while i < stop and ZERO <= data[i] <= NINE:
            value = 10 * value + (wide(data[i]) - ZERO)
            i += 1
            if i - begin > MOST_ID_DIGITS:
                return BAD
        if i == begin or (i - begin > 1 and data[begin] == ZERO):
            return BAD
        count += 1
        ends[count], numbers[count - 1] = at, value
        i, closed = _behind_comma(data, i, CLOSE)
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
    i = _skip_blanks(data, start + 1, stop)
    pairs = i < stop and data[i] == OPEN_LIST
    while not closed:
        if pairs:
            if i >= stop or data[i] != OPEN_LIST:
                return BAD
            i, at = _read_text(data, _skip_blanks(data, i + 1, stop), stop, texts, at)
            if i < 0:
                return BAD
            ends[count + 1] = at
            i = _skip_blanks(data, i, stop)
            if i >= stop or data[i] != COMMA:
                return BAD
            i, at = _read_text(data, _skip_blanks(data, i + 1, stop), stop, texts, at)
            if i < 0:
                return BAD
            i = _skip_blanks(data, i, stop)
            if i >= stop or data[i] != CLOSE_LIST:
                return BAD
            i += 1
        else:
            begin = at
            i, at = _read_text(data, i, stop, texts, at)
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
            ends[count + 1] = cut
        count += 2
        ends[count] = at
        i, closed = _behind_comma(data, i, CLOSE_LIST)
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
    i = _skip_blanks(data, start + 1, stop)
    while not closed:
        if i >= stop or data[i] != OPEN_LIST:
            return BAD
        i, at = _read_text(data, _skip_blanks(data, i + 1, stop), stop, texts, at)
        if i < 0:
            return BAD
        i = _skip_blanks(data, i, stop)
        if i >= stop or data[i] != COMMA:
            return BAD
        i, number = _read_number(data, _skip_blanks(data, i + 1, stop), stop, powers)
        if i < 0:
            return BAD
        i = _skip_blanks(data, i, stop)
        if i >= stop or data[i] != CLOSE_LIST:
            return BAD
        count += 1
        ends[count], numbers[count - 1] = at, number
        i, closed = _behind_comma(data, i + 1, CLOSE_LIST)
        if i < 0:
            return BAD
    ends[0] = i
    return count


@helper
def _digits(data: U8, i: int, stop: int, value: np.uint64) -> tuple[int, np.uint64]:
    """(behind the digits at i, value with them)."""
    while i < stop and ZERO <= data[i] <= NINE:
        value = value * np.uint64(10) + np.uint64(wide(data[i]) - ZERO)
        i += 1
    return i, value


@helper
def _read_number(data: U8, i: int, stop: int, powers: F64) -> tuple[int, float]:
    """(behind the number, its value), (BAD, 0.0) for one that is not told as easily as those of real files."""
    negative = i < stop and data[i] == MINUS
    if negative:
        i += 1
    begin = i
    i, whole = _digits(data, i, min(stop, begin + MOST_DIGITS), np.uint64(0))
    digits, exponent = i - begin, 0
    if digits == 0 or (digits > 1 and data[begin] == ZERO):
        return BAD, 0.0
    is_whole = True
    if i < stop and data[i] == POINT:
        is_whole, begin = False, i + 1
        i, whole = _digits(data, begin, min(stop, begin + MOST_DIGITS - digits), whole)
        exponent = begin - i
        if exponent == 0:
            return BAD, 0.0
    if i + 1 < stop and (data[i] == LOWER_E or data[i] == UPPER_E):
        is_whole, below = False, data[i + 1] == MINUS
        i += 2 if below or data[i + 1] == PLUS else 1
        begin = i
        i, power = _digits(data, i, min(stop, begin + 3), np.uint64(0))
        if i == begin:
            return BAD, 0.0
        exponent += -np.int64(power) if below else np.int64(power)
    number = np.float64(whole)
    if (is_whole and negative and number == 0) or exponent < -MOST_POWER or exponent > MOST_POWER:
        return BAD, 0.0
    if exponent < 0:
        number /= powers[-exponent]
    else:
        number *= powers[exponent]
    if np.isinf(number):
        return BAD, 0.0
    return i, -number if negative else number

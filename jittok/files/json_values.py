"""JSON values in the bytes of a file, for the kernels of `scan`: where a value ends, and strings and numbers."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import U8, OutU8, as_int64, helper
from jittok.kernels.memory import window
from jittok.kernels.structures.utf8_check import is_malformed

BAD = -1
"""Something that these kernels do not know."""
QUOTE, BACKSLASH, SLASH, COMMA, COLON, MINUS, POINT, ZERO, NINE = (ord(c) for c in '"\\/,:-.09')
OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, SPACE = (ord(c) for c in "{}[] ")
TAB, LINE, RETURN = 9, 10, 13
LOWER_E, UPPER_E, PLUS, LOWER_U = (ord(c) for c in "eE+u")
MOST_DIGITS = 19
"""Of a number that 64 bits hold in any case."""
MOST_POWER = 308
F64 = Annotated[NDArray[np.float64], ("f8", "in")]


@helper
def skip_blanks(data: U8, i: int, stop: int) -> int:
    """Where something else than white space stands from i on, or stop."""
    while i < stop and (data[i] == SPACE or data[i] == LINE or data[i] == RETURN or data[i] == TAB):
        i += 1
    return i


@helper
def after_mark(data: U8, i: int, mark: int) -> int:
    """Where something is after white space, a mark and white space; BAD if another is there, or i is BAD."""
    if i < 0:
        return BAD
    i = skip_blanks(data, i, data.size)
    if i >= data.size or data[i] != mark:
        return BAD
    return skip_blanks(data, i + 1, data.size)


@helper
def skip_text(data: U8, i: int, stop: int) -> int:
    """After the text that begins at i with a quote, or BAD."""
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
def skip_value(data: U8, i: int, stop: int) -> int:
    """After the value at i, or BAD. Brackets are only counted."""
    depth = 0
    while i < stop:
        byte = data[i]
        if byte == QUOTE:
            i = skip_text(data, i, stop)
            if i < 0:
                return BAD
            if depth == 0:
                return i
            continue
        if byte in (OPEN, OPEN_LIST):
            depth += 1
        elif byte in (CLOSE, CLOSE_LIST):
            if depth == 0:
                return i  # of the object around a number
            depth -= 1
            if depth == 0:
                return i + 1
        elif depth == 0 and byte in (COMMA, SPACE, LINE, RETURN, TAB):
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
        byte = as_int64(data[i + k])
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
    """(after the escape, where what it stands for ends), of the escape whose letter is at i; (BAD, 0) for none."""
    if i >= stop:
        return BAD, 0
    letter = as_int64(data[i])
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
    if letter in (QUOTE, BACKSLASH, SLASH):
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
def read_text(data: U8, i: int, stop: int, texts: OutU8, at: int) -> tuple[int, int]:
    """(after the text, where it ends in `texts`), of the text at i; (BAD, 0) where there is none that is right, or i
    is BAD."""
    if i < 0 or i >= stop or data[i] != QUOTE:
        return BAD, 0
    i += 1
    begin, high = at, 0
    while i < stop:
        byte = as_int64(data[i])
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
def after_comma(data: U8, i: int, close: int) -> tuple[int, bool]:
    """(where the next element begins, False), (after what holds them, True) if it is closed here, or (BAD, True)."""
    i = skip_blanks(data, i, data.size)
    if i < data.size and data[i] == COMMA:
        return skip_blanks(data, i + 1, data.size), False
    if i < data.size and data[i] == close:
        return i + 1, True
    return BAD, True


@helper
def _digits(data: U8, i: int, stop: int, value: np.uint64) -> tuple[int, np.uint64]:
    """(after the digits at i, value with them)."""
    while i < stop and ZERO <= data[i] <= NINE:
        value = value * np.uint64(10) + np.uint64(as_int64(data[i]) - ZERO)
        i += 1
    return i, value


@helper
def read_number(data: U8, i: int, stop: int, powers: F64) -> tuple[int, float]:
    """(after the number, its value), (BAD, 0.0) for one that is not told as easily as those of real files, and where
    i is BAD."""
    if i < 0:
        return BAD, 0.0
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
        exponent += -as_int64(power) if below else as_int64(power)
    number = float(whole)
    if (is_whole and negative and number == 0) or exponent < -MOST_POWER or exponent > MOST_POWER:
        return BAD, 0.0
    if exponent < 0:
        number /= powers[-exponent]
    else:
        number *= powers[exponent]
    if np.isinf(number):
        return BAD, 0.0
    return i, -number if negative else number

"""White space at the ends of a text: Rust's char::is_whitespace, in UTF-8."""

from __future__ import annotations

from jittok.kernels.jit import helper
from jittok.kernels.memory import Window, get_u8


@helper
def _white_size(data: Window, at: int, stop: int) -> int:
    """Bytes of the white space character at data[at:stop], 0 where there is none. Rust's char::is_whitespace."""
    byte = get_u8(data, at)
    if byte == 32 or 9 <= byte <= 13:
        return 1
    if byte == 0xC2 and at + 1 < stop:
        second = get_u8(data, at + 1)
        return 2 if second in (0x85, 0xA0) else 0
    if byte not in (0xE1, 0xE2, 0xE3) or at + 2 >= stop:
        return 0
    rest = get_u8(data, at + 1) << 8 | get_u8(data, at + 2)
    if byte == 0xE1:
        return 3 if rest == 0x9A80 else 0
    if byte == 0xE3:
        return 3 if rest == 0x8080 else 0
    if 0x8080 <= rest <= 0x808A or rest in (0x80A8, 0x80A9, 0x80AF, 0x819F):
        return 3
    return 0


@helper
def white_after(data: Window, at: int, stop: int) -> int:
    """The end of the white space at data[at:stop]."""
    size = 1
    while at < stop and size > 0:
        size = _white_size(data, at, stop)
        at += size
    return at


@helper
def white_before(data: Window, at: int, start: int) -> int:
    """The start of the white space before `at`, at least `start`."""
    while at > start:
        begin = at - 1
        while begin > start and begin > at - 3 and get_u8(data, begin) & 0xC0 == 0x80:
            begin -= 1
        if _white_size(data, begin, at) != at - begin:
            break
        at = begin
    return at

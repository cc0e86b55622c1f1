"""Read UTF-8 as llama.cpp's BPE does, and write what it is rewritten to before it is split."""

from __future__ import annotations

import numpy as np

from jittok.kernels.jit import helper
from jittok.kernels.memory import Window, get_u8, get_word, put_u8
from jittok.kernels.structures.utf8 import is_shortest

_HIGH = np.uint64(0x8080808080808080)
BAD = -1


@helper
def decode(text: Window, i: int, stop: int, shortest: int) -> tuple[int, int]:
    """(code point, length) of the sequence at i, (BAD, 1) if it is malformed. Surrogates are accepted.

    shortest: if 1, overlong forms and values above U+10FFFF are malformed; if 0, any value up to 0x1FFFFF with its
    continuation bytes is accepted. Source: llama.cpp, unicode_cpt_from_utf8.
    """
    byte = get_u8(text, i)
    if byte < 0x80:
        return byte, 1
    size = 2 if byte & 0xE0 == 0xC0 else 3 if byte & 0xF0 == 0xE0 else 4 if byte & 0xF8 == 0xF0 else 0
    if size == 0 or i + size > stop:
        return BAD, 1
    c = byte & (0x7F >> size)
    for k in range(1, size):
        follower = get_u8(text, i + k)
        if follower & 0xC0 != 0x80:
            return BAD, 1
        c = c << 6 | follower & 0x3F
    if shortest != 0 and not is_shortest(byte, get_u8(text, i + 1)):
        return BAD, 1
    return c, size


@helper
def first_malformed(text: Window, start: int, stop: int) -> int:
    """The offset of the first malformed sequence (overlong forms and values above U+10FFFF included), or stop.
    Surrogates are accepted."""
    i = start
    while i < stop:
        while i + 8 <= stop and get_word(text, i) & _HIGH == np.uint64(0):
            i += 8
        if i >= stop:
            break
        c, size = decode(text, i, stop, 1)
        if c == BAD:
            return i
        i += size
    return stop


@helper
def put_code_point(out: Window, at: int, c: int) -> int:
    """Write a code point in UTF-8 (three bytes for a surrogate) at `at`; returns the offset after it."""
    if c < 0x80:
        put_u8(out, at, c)
        return at + 1
    if c < 0x800:
        put_u8(out, at, 0xC0 | c >> 6)
        put_u8(out, at + 1, 0x80 | c & 0x3F)
        return at + 2
    if c < 0x10000:
        put_u8(out, at, 0xE0 | c >> 12)
        put_u8(out, at + 1, 0x80 | c >> 6 & 0x3F)
        put_u8(out, at + 2, 0x80 | c & 0x3F)
        return at + 3
    put_u8(out, at, 0xF0 | c >> 18)
    put_u8(out, at + 1, 0x80 | c >> 12 & 0x3F)
    put_u8(out, at + 2, 0x80 | c >> 6 & 0x3F)
    put_u8(out, at + 3, 0x80 | c & 0x3F)
    return at + 4

"""UTF-8 as llama.cpp reads and writes it; surrogates pass, in and out.

A byte that starts nothing well-formed is one bad byte. Nothing here ever reads after `stop`. `shortest` (0 or 1) is
`Vocab.shortest_utf8`: overlong forms and values above U+10FFFF are bad; else they pass, up to 0x1FFFFF.
"""

from __future__ import annotations

from jittok.common.unicode.tables import REPLACEMENT
from jittok.kernels.jit import U8, OutU8, as_int64, helper
from jittok.kernels.memory import Window, get_u8, window


@helper
def lead_length(byte: int) -> int:
    """Length of a character by its first byte alone; 1 for a continuation byte."""
    return 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4


@helper
def well_formed(text: Window, i: int, stop: int, shortest: int) -> int:
    """Bytes of the character at text[i:stop], i < stop; 0 for a bad byte."""
    byte = get_u8(text, i)
    if byte < 0x80:
        return 1
    if byte < 0xC0 or byte >= 0xF8:
        return 0
    size = lead_length(byte)
    if i + size > stop:
        return 0
    for k in range(i + 1, i + size):
        if get_u8(text, k) & 0xC0 != 0x80:
            return 0
    return 0 if shortest and not is_shortest(byte, get_u8(text, i + 1)) else size


@helper
def is_shortest(first: int, second: int) -> bool:
    """Whether a sequence of two bytes or more that begins so is the shortest form of a value up to U+10FFFF."""
    if first < 0xE0:
        return first >= 0xC2
    if first == 0xE0:
        return second >= 0xA0
    if first == 0xF0:
        return second >= 0x90
    return first < 0xF4 or (first == 0xF4 and second < 0x90)


@helper
def decode(text: U8, i: int, stop: int, shortest: int) -> tuple[int, int]:
    """(code point, bytes) of the character at text[i:stop], i < stop; (REPLACEMENT, 1) for a bad byte."""
    size = well_formed(window(text), i, stop, shortest)
    if size == 0:
        return REPLACEMENT, 1
    if size == 1:
        return as_int64(text[i]), 1
    code = as_int64(text[i]) & 0x7F >> size
    for k in range(i + 1, i + size):
        code = code << 6 | as_int64(text[k]) & 0x3F
    return code, size


@helper
def encoded_length(code: int) -> int:
    """Bytes of a code point, which may be up to 0x1FFFFF."""
    return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4


@helper
def encoded_byte(code: int, size: int, k: int) -> int:
    """Byte k of a code point that takes `size` bytes."""
    if size == 1:
        return code
    if k == 0:
        return 0xF00 >> size & 0xFF | code >> 6 * (size - 1)
    return 0x80 | code >> 6 * (size - 1 - k) & 0x3F


@helper
def encode(code: int, out: OutU8, at: int) -> int:
    """Write a code point to out[at:], at most four bytes; returns the offset after it."""
    size = encoded_length(code)
    for k in range(size):
        out[at + k] = encoded_byte(code, size, k)
    return at + size

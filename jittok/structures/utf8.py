"""UTF-8 as llama.cpp reads and writes it: overlong forms, surrogates and values up to 0x1FFFFF pass, in and out.

A byte that starts nothing well-formed is one bad byte. Nothing here ever reads behind `stop`.
"""

from __future__ import annotations

from jittok._jit import U8, OutU8, helper, wide
from jittok.unicode.tables import REPLACEMENT


@helper
def lead_length(byte: int) -> int:
    """Bytes of a character judged by its first byte alone; a byte that continues one counts as one."""
    return 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4


@helper
def well_formed(text: U8, i: int, stop: int) -> int:
    """Bytes of the character at text[i:stop], i < stop; 0 for a bad byte."""
    byte = wide(text[i])
    if byte < 0x80:
        return 1
    if byte < 0xC0 or byte >= 0xF8:
        return 0
    size = lead_length(byte)
    if i + size > stop:
        return 0
    for k in range(i + 1, i + size):
        if wide(text[k]) & 0xC0 != 0x80:
            return 0
    return size


@helper
def decode(text: U8, i: int, stop: int) -> tuple[int, int]:
    """(code point, bytes) of the character at text[i:stop], i < stop; (REPLACEMENT, 1) for a bad byte."""
    size = well_formed(text, i, stop)
    if size == 0:
        return REPLACEMENT, 1
    if size == 1:
        return wide(text[i]), 1
    code = wide(text[i]) & 0x7F >> size
    for k in range(i + 1, i + size):
        code = code << 6 | wide(text[k]) & 0x3F
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
    """Write a code point to out[at:], at most four bytes; returns the place behind it."""
    size = encoded_length(code)
    for k in range(size):
        out[at + k] = encoded_byte(code, size, k)
    return at + size

"""llama.cpp's Unicode tables and its reading of bytes as code points; loaded when first used.

The tables are those of Unicode 15.1 whatever Python's version knows: categories as flags, one-to-one lower case, and
the first code point of each canonical decomposition. Arrays are for kernels; the functions of one code point are for
the references and for people. Made by `tools/unicode_tables.py`. Source: llama.cpp, unicode.cpp and unicode-data.cpp.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

UNICODE_SIZE = 0x110000
LAST_CODE_POINT = UNICODE_SIZE - 1
REPLACEMENT = 0xFFFD
"""What a byte that belongs to no sequence is read as."""

UNDEFINED, NUMBER, LETTER, SEPARATOR, MARK, PUNCTUATION, SYMBOL, CONTROL = (1 << i for i in range(8))
"""Categories: every code point has exactly one. CONTROL is Cc, Cf, Co and Cs, UNDEFINED is Cn."""
CATEGORY = 0xFF
WHITESPACE, LOWERCASE, UPPERCASE, NFD = 0x100, 0x200, 0x400, 0x800
"""Flags beside the category. The last three mark targets of the maps and decide nothing."""

COLLAPSED_BYTE = {NUMBER: 0xD1, LETTER: 0xD2, PUNCTUATION: 0xD3, MARK: 0xD4, SYMBOL: 0xD5}
"""The byte that stands for a code point above U+007F of a category in collapsed text."""
COLLAPSED_OTHER = 0xD0
"""The same for control and undefined code points."""
COLLAPSED_SPACE = 0x0B
"""The same for white space, whatever its category; the wide engine takes it too."""


@cache
def load_tables() -> dict[str, NDArray[np.uint32]]:
    """The arrays of tables.npz by name.

    flag_start, flag_value: runs of equal flags; whitespace: sorted code points; lower_from, lower_to (and upper_...):
    pairs; nfd_first, nfd_last, nfd_to: ranges and the code point that their decompositions begin with.
    """
    with np.load(os.path.join(os.path.dirname(__file__), "tables.npz")) as file:
        return dict(file)


@cache
def flag_table() -> NDArray[np.uint16]:
    """uint16[0x110000]: the flags of every code point."""
    tables = load_tables()
    starts = tables["flag_start"].astype(np.int64)
    lengths = np.append(starts[1:], UNICODE_SIZE) - starts
    return np.repeat(tables["flag_value"].astype(np.uint16), lengths)


def lower_map() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(int64[n], int64[n]): code points that have a lower case, rising, and what it is."""
    tables = load_tables()
    return tables["lower_from"].astype(np.int64), tables["lower_to"].astype(np.int64)


def nfd_map() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(int64[n], int64[n]): code points that decompose, rising, and what their decomposition begins with."""
    tables = load_tables()
    first, last = tables["nfd_first"].astype(np.int64), tables["nfd_last"].astype(np.int64)
    lengths = last - first + 1
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(first, lengths) + within, np.repeat(tables["nfd_to"].astype(np.int64), lengths)


@cache
def _flags() -> memoryview:
    return flag_table().data  # its elements are Python's integers


@cache
def _lower() -> dict[int, int]:
    before, after = lower_map()
    return dict(zip(before.tolist(), after.tolist(), strict=True))


@cache
def _nfd() -> dict[int, int]:
    before, after = nfd_map()
    return dict(zip(before.tolist(), after.tolist(), strict=True))


def flags(c: int) -> int:
    """Category and flags of a code point; UNDEFINED above U+10FFFF."""
    return int(_flags()[c]) if c < UNICODE_SIZE else UNDEFINED


def is_whitespace(c: int) -> bool:
    """Whether `c` is one of Unicode's 25 White_Space code points."""
    return bool(flags(c) & WHITESPACE)


def lower(c: int) -> int:
    """The lower case of a code point, which is always one code point here."""
    return _lower().get(c, c)


def nfd(c: int) -> int:
    """The first code point of the canonical decomposition; llama.cpp drops the others."""
    return _nfd().get(c, c)


def sequence_length(byte: int) -> int:
    """Length of a character judged by its first byte alone; continuation bytes count as one."""
    return (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4)[byte >> 4]


def well_formed(text: bytes | bytearray, at: int, shortest: bool) -> int:
    """Length of the sequence at `at`, 0 if there is none. Surrogates in three bytes pass.

    shortest: overlong forms and values above U+10FFFF are none; else only the continuation bytes are checked, and
    values up to 0x1FFFFF pass (llama.cpp's way before b11739). Source: llama.cpp, `unicode_cpt_from_utf8`.
    """
    byte = text[at]
    size = (
        1 if byte < 0x80 else 0 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4 if byte < 0xF8 else 0
    )
    tail = text[at + 1 : at + size]
    if not size or len(tail) != size - 1 or any(b & 0xC0 != 0x80 for b in tail):
        return 0
    c = value(text, at, size)
    return size if not shortest or (c <= LAST_CODE_POINT and len(utf8(c)) == size) else 0


def value(text: bytes | bytearray, at: int, size: int) -> int:
    """The number that a sequence of `size` bytes holds."""
    c = text[at] if size == 1 else text[at] & 0x7F >> size
    for byte in text[at + 1 : at + size]:
        c = c << 6 | byte & 0x3F
    return c


def decode(text: bytes | bytearray, shortest: bool = True) -> Iterator[tuple[int, int, int]]:
    """(code point, start, stop) of each sequence; a byte that begins none is U+FFFD alone.

    shortest: as for `well_formed`. Source: llama.cpp, `unicode_cpts_from_utf8`.
    """
    at = 0
    while at < len(text):
        size = well_formed(text, at, shortest)
        yield value(text, at, size) if size else REPLACEMENT, at, at + (size or 1)
        at += size or 1


def code_points(text: bytes | bytearray, shortest: bool = True) -> list[int]:
    """The code points of `decode`."""
    return [c for c, _, _ in decode(text, shortest)]


def utf8(c: int) -> bytes:
    """The shortest form of a code point: three bytes for a surrogate, four up to 0x1FFFFF.

    llama.cpp dies on what is above U+10FFFF wherever it writes characters (only PLaMo-2 does not): callers refuse it.
    """
    if c < 0x80:
        return bytes([c])
    size = 2 + (c >= 0x800) + (c >= 0x10000)
    lead = 0xF00 >> size & 0xFF
    return bytes([lead | c >> 6 * (size - 1), *(0x80 | c >> 6 * k & 0x3F for k in range(size - 2, -1, -1))])


def _byte_alphabet() -> list[int]:
    shown = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = iter(range(0x100, 0x200))
    return [byte if byte in shown else next(hidden) for byte in range(0x100)]


CHARACTER_OF_BYTE = _byte_alphabet()
"""Byte encoding: the printable character that each byte is written as in the tokens of byte-level BPE."""
BYTE_OF_CHARACTER = {c: byte for byte, c in enumerate(CHARACTER_OF_BYTE)}
"""The way back."""
ENCODED_BYTE = [utf8(c) for c in CHARACTER_OF_BYTE]
"""CHARACTER_OF_BYTE as UTF-8."""


def byte_encode(text: bytes | bytearray) -> bytes:
    """Each byte as its printable character, in UTF-8. Source: llama.cpp, `unicode_byte_to_utf8`."""
    return b"".join([ENCODED_BYTE[byte] for byte in text])

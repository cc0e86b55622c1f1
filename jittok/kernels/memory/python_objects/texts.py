"""Texts read where Python keeps them: the addresses of the characters of many `bytes` and `str`, without a copy.

This leans on how CPython lays a tuple, a bytes object and an ASCII str out, which is no one's promise. So each layout
is tried on known objects first, and that of a str is learnt from them. Where anything is not found as expected, or
windows are no addresses (checked code, no compiler), nothing is ever read in place.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import I64, OutI64, OutU8, frozen, kernel
from jittok.kernels.memory import FAST, get_i64, get_u8, put_u8, window
from jittok.kernels.memory.python_objects.c_api import function

_ITEMS = tuple.__basicsize__ if FAST else 0
TEXT_OF_BYTES = bytes.__basicsize__ - 1
"""Where the text of a bytes object begins."""
_TYPE, _SIZE, STATE_WORD = 1, 2, 4
"""Words of a bytes object: reference count, type, size, hash, text; of a str: the same, but its state in the fifth."""
_READ = 0x100
"""PyBUF_READ of the C API."""


class StrLayout(NamedTuple):
    """How an ASCII str is laid out: all `bits` of its state are set, and its characters begin `header` bytes in."""

    header: int
    bits: int


Found = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Places and sizes."""


class _Text(str):
    """A str of another type, whose characters lie elsewhere."""

    __slots__ = ()


@kernel
def read_texts(
    objects: I64, of_bytes: int, of_str: int, header: int, ascii_bits: int, addresses: OutI64, sizes: OutI64
) -> int:
    """Where the bytes of texts lie, and how many there are; -1 - the number of characters for a str that is not ASCII.

    objects: int64[n] addresses of Python objects that somebody keeps alive; of_bytes, of_str: addresses of the types;
    header, ascii_bits: see `StrLayout`. Returns n, or the number of the first object of another type.
    """
    for k in range(objects.size):
        kind, size = get_i64(objects[k], _TYPE), get_i64(objects[k], _SIZE)
        if kind == of_bytes:
            addresses[k], sizes[k] = objects[k] + TEXT_OF_BYTES, size
        elif kind == of_str:
            is_ascii = get_i64(objects[k], STATE_WORD) & ascii_bits == ascii_bits
            addresses[k], sizes[k] = objects[k] + header, size if is_ascii else -1 - size
        else:
            return k
    return objects.size


@kernel
def gather(addresses: I64, sizes: I64, out: OutU8) -> int:
    """Copy texts from addresses one after the other into `out`, which has capacity for them; how many bytes."""
    target, at = window(out), 0
    for k in range(addresses.size):
        position, size = addresses[k], sizes[k]
        for i in range(size):
            put_u8(target, at + i, get_u8(position, i))
        at += size
    return at


def memory_at(address: int, size: int) -> NDArray[np.uint8]:
    """A read-only view of memory that somebody else keeps alive."""
    view = function("PyMemoryView_FromMemory", ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
    return np.frombuffer(view(address, size, _READ), np.uint8)


def addresses_of(texts: tuple[Any, ...]) -> NDArray[np.int64]:
    """Addresses of the objects of a tuple, int64[n]: CPython keeps them in a row."""
    if not texts:
        return np.zeros(0, np.int64)
    return memory_at(id(texts) + _ITEMS, 8 * len(texts)).view(np.int64).copy()


NO_STR = StrLayout(0, 0)
"""The layout of str is not known."""


def _read(texts: tuple[Any, ...], layout: StrLayout) -> Found | None:
    objects = addresses_of(texts)
    addresses, sizes = np.empty(objects.size, np.int64), np.empty(objects.size, np.int64)
    # a type that no object has stands for str where its layout is unknown
    of_str = id(str) if layout.bits else 0
    done = read_texts(frozen(objects, np.int64), id(bytes), of_str, layout.header, layout.bits, addresses, sizes)
    return (addresses, sizes) if done == objects.size else None


@functools.cache
def bytes_data_offset() -> int:
    """How many bytes into a bytes object its text begins, tried on a few; 0 where that is not known."""
    if not FAST or sys.implementation.name != "cpython" or np.dtype(np.intp).itemsize != 8 or TEXT_OF_BYTES != 32:
        return 0
    right = all(
        _word(text, _TYPE) == id(bytes)
        and _word(text, _SIZE) == len(text)
        and text_at(id(text) + TEXT_OF_BYTES, len(text)) == text
        for text in BYTES
    )
    return TEXT_OF_BYTES if right else 0


BYTES = b"", b"a", bytes(300), b"\xff" * 7


@functools.cache
def can_read_in_place() -> bool:
    """Whether the texts of a tuple are found as this Python lays tuples and texts out, tried on known ones."""
    if not bytes_data_offset() or addresses_of(BYTES).tolist() != [id(text) for text in BYTES]:
        return False
    layout, (plain, wide, _) = str_layout(), samples()
    texts: tuple[Any, ...] = (*BYTES, *plain, *wide) if layout.bits else BYTES
    found = _read(texts, layout)
    if found is None:
        return False
    for text, position, size in zip(texts, found[0].tolist(), found[1].tolist(), strict=True):
        if isinstance(text, str) and not text.isascii():
            if size != -1 - len(text):
                return False
        elif size != len(text) or text_at(position, size) != (text.encode() if isinstance(text, str) else text):
            return False
    return True


def samples() -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """ASCII str, others, and those of another type: short, long, interned, made just now, of each width."""
    joined = str(b"in place", "ascii")  # no constant, which Python would intern
    plain = ("", "a", "\0", "\x7f", joined, "x" * 300, sys.intern("interned_text"), chr(65) * 4097)
    wide = ("\x80", "\xe9", "\xe9" * 300, joined + "\xff", "\u20ac", "a\u20ac" * 9, "\U0001f600", joined + "\U0001f600")
    return plain, wide, (_Text(""), _Text(joined), _Text("\xe9"), _Text("\u20ac" * 5), _Text("x" * 300))


@functools.cache
def str_layout() -> StrLayout:
    """How this Python lays an ASCII str out, learnt from known ones and checked by what Python's C API says of them;
    NO_STR where they do not tell."""
    if not bytes_data_offset():
        return NO_STR
    plain, wide, other = ([state_of(text) for text in texts] for texts in samples())
    is_ascii = common_bits(plain) & ~any_bits(wide)
    is_compact = common_bits(plain + wide) & ~any_bits(other)
    if is_ascii.bit_count() != 1 or is_compact.bit_count() != 1:
        return NO_STR
    layout = StrLayout(sys.getsizeof("") - 1, is_ascii | is_compact)
    return layout if is_right(layout) else NO_STR


def is_right(layout: StrLayout) -> bool:
    """Whether all known str are found by a layout as they are: those that are ASCII byte for byte and where the C API
    says, and no others."""
    plain, wide, _ = samples()
    where = function("PyUnicode_AsUTF8AndSize", ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    if any(_word(text, _TYPE) != id(str) or _word(text, _SIZE) != len(text) for text in (*plain, *wide)):
        return False
    if any(state_of(text) & layout.bits == layout.bits for text in wide):
        return False
    return all(
        state_of(text) & layout.bits == layout.bits and where(text, None) == id(text) + layout.header for text in plain
    )


def _word(thing: object, word: int) -> int:
    return ctypes.c_int64.from_address(id(thing) + 8 * word).value


def state_of(text: str) -> int:
    """The 32 bits of a str that say its kind and whether it is ASCII."""
    return ctypes.c_uint32.from_address(id(text) + 8 * STATE_WORD).value


def common_bits(states: list[int]) -> int:
    """Bits that all states have."""
    return functools.reduce(int.__and__, states)


def any_bits(states: list[int]) -> int:
    """Bits that any state has."""
    return functools.reduce(int.__or__, states)


def text_at(address: int, size: int) -> bytes:
    """A copy of `size` bytes at an address from `texts_in_place`, whose tuple must be alive."""
    return ctypes.string_at(int(address), int(size))


def texts_in_place(texts: tuple[Any, ...]) -> Found | None:
    """(addresses of the texts, their sizes), int64[n] each, valid as long as the tuple is; None when one of them is no
    `bytes` or `str` or texts cannot be read in place. A `str` that is not ASCII has no place: its size is -1 - the
    number of its characters."""
    return _read(texts, str_layout()) if can_read_in_place() else None


def joined_texts(addresses: NDArray[np.int64], sizes: NDArray[np.int64], spare: int) -> NDArray[np.uint8]:
    """Texts from `texts_in_place`, whose tuple must be alive, one after the other and before `spare` zeros."""
    size = int(sizes.sum())
    data = np.empty(size + spare, np.uint8)
    data[size:] = 0
    gather(frozen(addresses, np.int64), frozen(sizes, np.int64), data)
    return data


def bytes_in_place(texts: list[bytes]) -> list[int]:
    """Addresses of the bytes of bytes objects, valid as long as these are."""
    return [id(text) + TEXT_OF_BYTES for text in texts]

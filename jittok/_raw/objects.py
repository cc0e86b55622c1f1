"""Texts read where Python keeps them: the addresses of the characters of many `bytes` objects, without a copy.

This leans on how CPython lays a tuple and a bytes object out, which has not changed in decades but is nobody's promise.
So the layout is tried on a known tuple first, and where it is not found so, or windows are no addresses (checked code,
no compiler), nothing is ever read in place.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok._jit import I64, OutI64, frozen, kernel
from jittok._raw import FAST, get_i64

_ITEMS = tuple.__basicsize__ if FAST else 0
_TEXT = bytes.__basicsize__ - 1
_TYPE, _SIZE = 1, 2
"""Words of a bytes object: reference count, type, size, hash, text."""


@kernel
def read_sizes(objects: I64, kind: int, sizes: OutI64) -> int:
    """Sizes of bytes objects, up to the first object that is of another type; how many.

    objects: int64[n] addresses of Python objects that somebody keeps alive; kind: address of the type `bytes`
    """
    for k in range(objects.size):
        if get_i64(objects[k], _TYPE) != kind:
            return k
        sizes[k] = get_i64(objects[k], _SIZE)
    return objects.size


def _addresses(texts: tuple[Any, ...]) -> NDArray[np.int64]:
    items = (ctypes.c_int64 * len(texts)).from_address(id(texts) + _ITEMS)
    return np.array(items, np.int64)


@functools.cache
def can_read_in_place() -> bool:
    """Whether this Python lays its objects out as expected, tried on a few."""
    if not FAST or sys.implementation.name != "cpython" or np.dtype(np.intp).itemsize != 8:
        return False
    sample = (b"", b"a", bytes(300), b"\xff" * 7)
    objects = _addresses(sample)
    if objects.tolist() != [id(text) for text in sample] or _TEXT != 32:
        return False
    sizes = np.zeros(len(sample), np.int64)
    if read_sizes(frozen(objects, np.int64), id(bytes), sizes) != len(sample):
        return False
    return all(text_at(at + _TEXT, len(text)) == text for at, text in zip(objects.tolist(), sample, strict=True))


def text_at(address: int, size: int) -> bytes:
    """A copy of `size` bytes at an address from `texts_in_place`, whose tuple must be alive."""
    return ctypes.string_at(int(address), int(size))


def texts_in_place(texts: tuple[Any, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """(addresses of the texts, their sizes), int64[n] each, valid as long as the tuple is; None when one of them is no
    `bytes` object or texts cannot be read in place."""
    if not can_read_in_place():
        return None
    objects = _addresses(texts)
    sizes = np.empty(objects.size, np.int64)
    if read_sizes(frozen(objects, np.int64), id(bytes), sizes) != objects.size:
        return None
    objects += _TEXT
    return objects, sizes

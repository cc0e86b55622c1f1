"""Memory taken from the system page by page as it is touched, in huge pages where there are any: zeroed for tables, and
for scratch."""

from __future__ import annotations

import contextlib
import mmap
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import frozen

HUGE = 2 << 20
"""Bytes of a huge page on the processors in use; smaller arrays do not need one."""


def mapping(size: int, huge: bool = True) -> mmap.mmap:
    """Zeroed pages of this process alone, huge ones where there are any and they are wanted."""
    if os.name == "nt":
        return mmap.mmap(-1, size)
    mapped = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if huge and hasattr(mmap, "MADV_HUGEPAGE"):  # Linux
        with contextlib.suppress(OSError):  # a hint, which the system may not support
            mapped.madvise(mmap.MADV_HUGEPAGE)
    return mapped


def zeroed(count: int, dtype: Any) -> NDArray[Any]:
    """`count` zeroed elements that begin on the border of a cache line.

    A large array gets a mapping of its own: the C library may reuse memory and then write all the zeros. It begins on
    the border of a huge page, so that the system can back it by huge pages.
    """
    size = count * np.dtype(dtype).itemsize
    border = HUGE if size >= HUGE else 64
    raw = np.frombuffer(mapping(size + border), np.uint8) if size >= HUGE else np.zeros(size + border, np.uint8)
    skip = -raw.ctypes.data % border
    return raw[skip : skip + size].view(dtype)


def scratch(count: int, dtype: Any, huge: bool = True) -> NDArray[Any]:
    """`count` uninitialized elements, which take memory only when touched. huge: whether most of them will be.

    A large array of NumPy is in the C library's memory, for which NumPy requests huge pages. There the library's own
    header before an array, or its first elements, already take two megabytes.
    """
    size = count * np.dtype(dtype).itemsize
    return np.empty(count, dtype) if size < HUGE else np.frombuffer(mapping(size, huge), dtype, count)


def in_huge_pages(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only copy of a large array in huge pages, for tables that are read at random; a small one as it is."""
    if array.nbytes < HUGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return array
    copy = zeroed(array.size, array.dtype)
    copy[:] = array
    return frozen(copy, array.dtype)

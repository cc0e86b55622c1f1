"""Memory for the ids of large calls, reused once the caller has released them.

Page faults of new memory take a tenth of the time of encoding, and more than all of it where the system has to find
free memory first. The C library returns large arrays to the system as soon as they are free, and copies an array that
turns out too small. Here an array is the beginning of a mapping of its own with capacity for twice as many ids, but at
most SPARE more: pages that are never touched take no memory. When the array and all views of it are gone, the next call
reuses its mapping.

Whether an array is gone is checked when memory is needed. There is no finalizer: Python would lose a Ctrl-C that comes
while it runs one.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import weakref
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.pretoken_cache.default_size import default_cache_bytes
from jittok.kernels.structures.pages import HUGE, mapping

LEAST_IDS = 1 << 20
"""Fewer ids come from NumPy: the C library keeps memory of that size."""
MOST_MAPPINGS = 2 + (os.cpu_count() or 1)
"""Mappings of one tokenizer that are kept for the next calls: each thread may make some, and one call's ids are often
released only after the next one."""
KEPT_BYTES = default_cache_bytes()
"""Bytes of all of these together."""
SPARE = 1 << 24
"""Spare ids of a mapping at most: they are not touched, but take address space."""
WORD = np.dtype(np.int32).itemsize
POSSIBLE = hasattr(mmap, "MADV_DONTNEED") and hasattr(mmap, "MADV_HUGEPAGE")
"""Linux. Other systems count memory that is not touched, or clear it when it is mapped."""


class Mapping:
    """A memory mapping, how many of its bytes may have been touched, and a weak reference to the array in it."""

    __slots__ = ("holder", "pages", "skip", "touched")

    def __init__(self, count: int) -> None:
        self.pages = mapping(WORD * (count + min(count, SPARE)) + HUGE)
        self.skip = -np.frombuffer(self.pages, np.uint8).ctypes.data % HUGE
        self.touched = 0
        self.holder: Callable[[], object] = _nobody

    def array(self) -> NDArray[np.int32]:
        """An array over all of it. The mapping is not reused while this array or a view of it exists."""
        ids = np.frombuffer(self.pages, np.int32, self.count, self.skip)
        self.holder = weakref.ref(ids)
        return ids

    @property
    def count(self) -> int:
        """Its capacity in ids."""
        return (len(self.pages) - self.skip) // WORD

    def cut(self, used: int) -> None:
        """Return touched pages after the first `used` bytes to the system, if they are many: the caller may keep the
        ids for long."""
        if self.touched > 2 * used + HUGE:
            start = -(-used // HUGE) * HUGE
            with contextlib.suppress(OSError):
                self.pages.madvise(mmap.MADV_DONTNEED, self.skip + start, min(self.touched, WORD * self.count) - start)
            self.touched = used


def _nobody() -> object:
    return None


class BufferPool:
    """The mappings that calls may reuse (`kept`, which several pools may share), and the one that was given last."""

    def __init__(self, kept: list[Mapping] | None = None) -> None:
        self._kept = [] if kept is None else kept
        self._given: Mapping | None = None

    def array(self, count: int) -> NDArray[np.int32]:
        """An array for at least `count` ids, not initialized."""
        self._given = None
        if not POSSIBLE or count < LEAST_IDS:
            return np.empty(count, np.int32)
        try:
            given = self._free(count) or Mapping(count)
        except (OSError, ValueError, OverflowError):  # no address space for that; the spare capacity is not needed
            return np.empty(count, np.int32)
        given.touched = max(given.touched, WORD * count)
        self._given = given
        return given.array()

    def detach(self, ids: NDArray[np.int32], count: int) -> NDArray[np.int32]:
        """The first `count` ids of the array that was given last, for the caller. What is left over is returned to the
        system if it is much."""
        given, self._given = self._given, None
        if given is not None:
            given.touched = max(given.touched, WORD * count)
            given.cut(WORD * count)
            self._keep(given)
        elif 5 * count < 4 * ids.size:
            ids.resize(count, refcheck=False)  # no one else has a reference: the rest is released in place
        # Otherwise the small rest stays: the C library reuses memory of the same size without a system call.
        return ids[:count]

    def drop(self, first: int, last: int) -> int:
        """Return the pages of ids first .. last - 1 of the array that was given last to the system; their content is
        lost. Returns the offset up to which they were released."""
        start, stop = -(-WORD * first // HUGE) * HUGE, WORD * last // HUGE * HUGE
        if self._given is None or start >= stop:
            return first
        with contextlib.suppress(OSError):
            self._given.pages.madvise(mmap.MADV_DONTNEED, self._given.skip + start, stop - start)
        return stop // WORD

    def forget(self) -> None:
        """Release the array that was given last: its ids are not needed."""
        self._given = None

    def _free(self, count: int) -> Mapping | None:
        """A mapping without an array in use, which no other thread can take. One that is too small is released."""
        for found in tuple(self._kept):
            if found.holder() is not None:
                continue
            try:
                self._kept.remove(found)
            except ValueError:  # another thread has taken it
                continue
            if found.holder() is not None:  # another thread has taken it and put it back, with its ids
                self._kept.append(found)
            elif found.count >= count:
                return found
        return None

    def _keep(self, given: Mapping) -> None:
        """Keep a mapping for reuse while there are few, so that little memory stays once all ids are released."""
        bytes_ = given.touched + sum(each.touched for each in tuple(self._kept))
        if len(self._kept) < MOST_MAPPINGS and bytes_ <= KEPT_BYTES:
            self._kept.append(given)

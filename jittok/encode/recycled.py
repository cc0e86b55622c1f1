"""Memory for the ids of large calls, used again once nobody has the ids.

First touches of new pages are a tenth of the time of encoding, and more than all of it where the system must find
memory first. The C library gives large arrays back to the system as soon as they are free, and one that turns out too
small is copied to another. Here an array is the beginning of a mapping of its own with room for twice as many ids: room
that is never touched is no memory. When the array and all views of it are gone, its mapping is kept for the next call.
Until then the system may take its pages for others (MADV_FREE).
"""

from __future__ import annotations

import contextlib
import mmap
import weakref

import numpy as np
from numpy.typing import NDArray

from jittok.piece_cache.bound import default_cache_bytes
from jittok.structures.pages import HUGE, mapping

LEAST = 1 << 20
"""Fewer ids come from NumPy: the C library keeps memory of that size."""
MOST_IDLE = 2
"""Mappings that are kept while nobody has ids in them: one call's ids are often let go of only after the next call."""
IDLE_BYTES = default_cache_bytes()
"""Bytes that idle mappings may have together."""
WORD = np.dtype(np.int32).itemsize
POSSIBLE = hasattr(mmap, "MADV_FREE") and hasattr(mmap, "MADV_HUGEPAGE")
"""Linux. Other systems count memory that is not touched, or clear it when it is mapped."""


class Mapping:
    """Pages of this process, and how many of their bytes may have been touched."""

    __slots__ = ("pages", "skip", "touched")

    def __init__(self, count: int) -> None:
        self.pages = mapping(2 * WORD * count + HUGE)
        self.skip = -np.frombuffer(self.pages, np.uint8).ctypes.data % HUGE
        self.touched = 0

    @property
    def count(self) -> int:
        """Ids that there is room for."""
        return (len(self.pages) - self.skip) // WORD

    def advise(self, advice: int, start: int) -> None:
        """Tell the system about all that was touched from byte `start` on."""
        start = -(-start // HUGE) * HUGE
        if self.touched > start:
            with contextlib.suppress(OSError):  # a kernel that does not know this advice
                self.pages.madvise(advice, self.skip + start, min(self.touched, WORD * self.count) - start)


class Recycled:
    """Mappings that nobody has ids in (`idle`, which several may share), and the one that was given last."""

    def __init__(self, idle: list[Mapping] | None = None) -> None:
        self._idle = [] if idle is None else idle
        self._given: Mapping | None = None

    def array(self, count: int) -> NDArray[np.int32]:
        """An array for at least so many ids, of any content."""
        self._given = None
        if not POSSIBLE or count < LEAST:
            return np.empty(count, np.int32)
        try:
            given = self._fitting(count) or Mapping(count)
        except (OSError, ValueError, OverflowError):  # no address space for so much: some of it is not needed
            return np.empty(count, np.int32)
        given.touched = max(given.touched, WORD * count)
        array = np.frombuffer(given.pages, np.int32, given.count, given.skip)
        weakref.finalize(array, _take_back, self._idle, given).atexit = False
        self._given = given
        return array

    def taken(self, ids: NDArray[np.int32], count: int) -> NDArray[np.int32]:
        """The first `count` ids of the array that was given last, for whoever wanted them. What is left over goes back
        to the system if it is much."""
        given, self._given = self._given, None
        if given is not None:
            given.touched = max(given.touched, WORD * count)
            _cut(given, WORD * count)
        elif 5 * count < 4 * ids.size:
            ids.resize(count, refcheck=False)  # nobody else has seen it: what is left over goes back in place
        # Otherwise the little that is left over stays: the C library hands memory of the same size out again without
        # asking the system.
        return ids[:count]

    def _fitting(self, count: int) -> Mapping | None:
        while True:
            try:
                found = self._idle.pop()
            except IndexError:
                return None
            if found.count >= count:
                return found


def _cut(given: Mapping, used: int) -> None:
    """No more than twice as much memory as is used stays with ids that somebody may keep for long."""
    if given.touched > 2 * used + HUGE:
        given.advise(mmap.MADV_DONTNEED, used)
        given.touched = used


def _take_back(idle: list[Mapping], found: Mapping) -> None:
    """Called when the array of a mapping and all its views are gone, in whichever thread."""
    if found.touched > IDLE_BYTES:
        return
    found.advise(mmap.MADV_FREE, 0)
    idle.append(found)
    while len(idle) > MOST_IDLE or sum(each.touched for each in tuple(idle)) > IDLE_BYTES:
        with contextlib.suppress(IndexError):  # another thread was faster
            del idle[0]

"""Memory for the ids of large calls, used again once no one has the ids.

First touches of new pages are a tenth of the time of encoding, and more than all of it where the system must find
memory first. The C library gives large arrays back to the system as soon as they are free, and one that turns out too
small is copied to another. Here an array is the beginning of a mapping of its own with capacity for twice as many ids,
but at most SPARE more: room that is never touched is no memory. When the array and all views of it are gone, the next
call takes its mapping.

Whether an array is gone is asked when memory is wanted. Nothing runs at the moment when it goes: Python would lose a
Ctrl-C that comes while it runs a finalizer.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import weakref
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from jittok.pretoken_cache.default_size import default_cache_bytes
from jittok.structures.pages import HUGE, mapping

LEAST_IDS = 1 << 20
"""Fewer ids come from NumPy: the C library keeps memory of that size."""
MOST_MAPPINGS = 2 + (os.cpu_count() or 1)
"""Mappings of one tokenizer that are kept for the next calls: each thread may make some, and one call's ids are often
released only after the next one."""
KEPT_BYTES = default_cache_bytes()
"""Bytes that they may have together."""
SPARE = 1 << 24
"""Ids beyond those asked for that a mapping has capacity for at most: not touched, but address space all the same."""
WORD = np.dtype(np.int32).itemsize
POSSIBLE = hasattr(mmap, "MADV_DONTNEED") and hasattr(mmap, "MADV_HUGEPAGE")
"""Linux. Other systems count memory that is not touched, or clear it when it is mapped."""


class Mapping:
    """Pages of this process, how many of their bytes may have been touched, and who has the ids in them."""

    __slots__ = ("holder", "pages", "skip", "touched")

    def __init__(self, count: int) -> None:
        self.pages = mapping(WORD * (count + min(count, SPARE)) + HUGE)
        self.skip = -np.frombuffer(self.pages, np.uint8).ctypes.data % HUGE
        self.touched = 0
        self.holder: Callable[[], object] = _nobody

    def array(self) -> NDArray[np.int32]:
        """All of it. As long as this array or a view of it is there, the mapping is not used again."""
        ids = np.frombuffer(self.pages, np.int32, self.count, self.skip)
        self.holder = weakref.ref(ids)
        return ids

    @property
    def count(self) -> int:
        """Ids that there is capacity for."""
        return (len(self.pages) - self.skip) // WORD

    def cut(self, used: int) -> None:
        """Give back what was touched, but for the first `used` bytes, if it is much: somebody may keep ids for long."""
        if self.touched > 2 * used + HUGE:
            start = -(-used // HUGE) * HUGE
            with contextlib.suppress(OSError):
                self.pages.madvise(mmap.MADV_DONTNEED, self.skip + start, min(self.touched, WORD * self.count) - start)
            self.touched = used


def _nobody() -> object:
    return None


class BufferPool:
    """The mappings that calls may use again (`kept`, which several may share), and the one that was given last."""

    def __init__(self, kept: list[Mapping] | None = None) -> None:
        self._kept = [] if kept is None else kept
        self._given: Mapping | None = None

    def array(self, count: int) -> NDArray[np.int32]:
        """An array for at least so many ids, of any content."""
        self._given = None
        if not POSSIBLE or count < LEAST_IDS:
            return np.empty(count, np.int32)
        try:
            given = self._free(count) or Mapping(count)
        except (OSError, ValueError, OverflowError):  # no address space for so much: some of it is not needed
            return np.empty(count, np.int32)
        given.touched = max(given.touched, WORD * count)
        self._given = given
        return given.array()

    def detach(self, ids: NDArray[np.int32], count: int) -> NDArray[np.int32]:
        """The first `count` ids of the array that was given last, for whoever wanted them. What is left over goes back
        to the system if it is much."""
        given, self._given = self._given, None
        if given is not None:
            given.touched = max(given.touched, WORD * count)
            given.cut(WORD * count)
            self._keep(given)
        elif 5 * count < 4 * ids.size:
            ids.resize(count, refcheck=False)  # no one else has seen it: what is left over goes back in place
        # Otherwise the little that is left over stays: the C library hands memory of the same size out again without
        # asking the system.
        return ids[:count]

    def drop(self, first: int, last: int) -> int:
        """Give back the pages of ids first .. last - 1 of the array that was given last, whose content is lost; up to
        which they went."""
        start, stop = -(-WORD * first // HUGE) * HUGE, WORD * last // HUGE * HUGE
        if self._given is None or start >= stop:
            return first
        with contextlib.suppress(OSError):
            self._given.pages.madvise(mmap.MADV_DONTNEED, self._given.skip + start, stop - start)
        return stop // WORD

    def forget(self) -> None:
        """Let go of the array that was given last, for good: no one wants its ids."""
        self._given = None

    def _free(self, count: int) -> Mapping | None:
        """A mapping that no one has ids in, and no other thread takes. One that is too small is released."""
        for found in tuple(self._kept):
            if found.holder() is not None:
                continue
            try:
                self._kept.remove(found)
            except ValueError:  # another thread was faster
                continue
            if found.holder() is not None:  # so fast that it has brought it back, with its ids
                self._kept.append(found)
            elif found.count >= count:
                return found
        return None

    def _keep(self, given: Mapping) -> None:
        """Remember a mapping while there are few, so that little memory stays where no one has ids any more."""
        bytes_ = given.touched + sum(each.touched for each in tuple(self._kept))
        if len(self._kept) < MOST_MAPPINGS and bytes_ <= KEPT_BYTES:
            self._kept.append(given)

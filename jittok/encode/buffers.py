"""The memory that encoding writes to, kept between calls: a `Workspace` for each thread, and a pool for ids.

Page faults of new memory take a tenth of the time of encoding, and more than all of it where the system has to find
free memory first. The C library returns large arrays to the system as soon as they are free, and copies an array that
turns out too small. So the ids of large calls are the beginning of a mapping of its own (`BufferPool`) with capacity
for twice as many ids, but at most SPARE more: pages that are never touched take no memory. When the array and all views
of it are gone, the next call reuses its mapping.

Whether an array is gone is checked when memory is needed. There is no finalizer: Python would lose a Ctrl-C that comes
while it runs one.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import weakref
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.pipeline import read_only_array
from jittok.encode import limits
from jittok.kernels.fragments import PAD, REPORT_SIZE
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import LONG_WORK_BYTES, Call, run_interruptible
from jittok.kernels.pretoken_cache.default_size import default_cache_bytes
from jittok.kernels.special import partition
from jittok.kernels.structures.long_keys import LONG as LONG_KEY
from jittok.kernels.structures.pages import HUGE, mapping
from jittok.vocab import Vocab

LONG_WEIGHT = 16
"""The time that a text may take, as a multiple of the usual, if tokens are so long that trie walks from each offset
are, too."""
LEAST_DETACHED = 1 << 20
"""From this many fragments on the arrays are given away; fewer are copied, and the workspace keeps its arrays."""
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


def _pair(size: int, dtype: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """A new array and a read-only view of it: one kernel writes the array, another reads the view."""
    array = np.empty(size, dtype)
    view = array.view()
    view.flags.writeable = False
    return array, view


def _again(call: Call, args: tuple[Any, ...], _documents: Documents) -> Any:
    """`call.again`. The argument keeps the documents alive, whatever happens to their owner meanwhile."""
    return call.again(*args)


class Workspace:
    """The arrays of one thread. They only grow; their content has no meaning between two calls."""

    def __init__(self, kept: list[Mapping] | None = None, weight: int = 1) -> None:
        """kept: mappings that several workspaces may reuse; weight: the time that a text may take, as a multiple of the
        usual."""
        self.weight = weight
        self.report = np.zeros(REPORT_SIZE, np.int64)
        self.special_work = partition.make_work(64)
        self.longest = 0
        self.queued = 0  # which capacity the queue has (an index), see `Encoder._give_work`
        self.long: Documents | None = None
        self.scratch: Any = None
        self.calls: dict[Any, Call] = {}
        self.frames: dict[int, Any] = {}  # by id of their rules, see `short_text`
        self.ready, self.generation = array("q", [0]), 1  # see `short_text`
        self.recycled = BufferPool(kept)
        self.ids = np.empty(0, np.int32)
        self.written = 0  # ids of the last texts, whose pages are in memory
        self.counting, self.passed = False, 0  # whether ids are only counted, and how many were discarded already
        self.grow_fragments(64)
        self.grow_ends(1)
        self.one_start = read_only_array([0], np.int64)
        self.one_stop, self.read_one_stop = _pair(1, np.int64)
        capacity, text = _pair(limits.LONGEST_HELD + PAD, np.uint8)
        capacity[:] = 0
        self._capacity = capacity.data
        self.held = Documents(text, self.one_start, self.read_one_stop)
        self._copied: NDArray[np.uint8] | None = None

    def expect(self, docs: Documents, size: int) -> None:
        """Announce that `size` bytes of these documents are encoded next: if they are many, kernels are interruptible
        by Ctrl-C."""
        self.long = docs if size * self.weight >= LONG_WORK_BYTES else None

    def grown(self, texts: Any) -> None:
        """The same for the result of a step: a short document may become a long text."""
        if self.long is None and texts.data.size >= LONG_WORK_BYTES and texts.size >= LONG_WORK_BYTES:
            self.long = texts

    def run(self, kernel: Any, *args: Any) -> Any:
        """Call a kernel. Most arguments are those of the last call, whose frame is reused."""
        call = self.calls.get(kernel)
        if call is None:
            call = self.calls[kernel] = kernel.call(*args)
        if self.long is not None:
            return run_interruptible(_again, call, args, self.long)
        return call.again(*args)

    def hold(self, text: bytes) -> Documents:
        """Copy a text of up to LONGEST_HELD bytes to `held`. The arrays are the same each time, so no word of a frame
        changes."""
        size = len(text)
        self._capacity[:size] = text
        self.one_stop[0] = size
        return self.held

    def copy(self, docs: Documents, first: int, last: int) -> Documents:
        """Copy documents first .. last - 1 to memory that no one else can write to; valid until the next copy. The
        buffer of a stretch is kept: page faults of new memory would take longer than copying."""
        if self._copied is None:
            self._copied = np.empty(5 * limits.BYTES_PER_COPY, np.uint8)
        return docs.own(first, last, self._copied)

    def grow_fragments(self, capacity: int) -> None:
        """Allocate arrays for `capacity` fragments and the ends of their ids."""
        self.starts, self.read_starts = _pair(capacity, np.int64)
        self.stops, self.read_stops = _pair(capacity, np.int64)
        self.tokens, self.read_tokens = _pair(capacity, np.int32)
        self.ends = np.empty(capacity, np.int64)

    def detach_fragments(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """Starts, stops and tokens of the first `count` fragments, for the caller. Many are not copied: the workspace
        gives its arrays away."""
        starts, stops, tokens = self.read_starts[:count], self.read_stops[:count], self.read_tokens[:count]
        if count < LEAST_DETACHED:
            return starts.copy(), stops.copy(), tokens.copy()
        self.grow_fragments(64)
        self.forget()
        return starts, stops, tokens

    def grow_ends(self, capacity: int) -> None:
        """Allocate an array for the ends of the documents' fragments."""
        self.document_ends = np.empty(capacity, np.int64)

    def grow_ids(self, capacity: int, keep: int) -> None:
        """Allocate an array for `capacity` ids; the first `keep` are kept."""
        ids = self.recycled.array(capacity)
        ids[self.passed : keep] = self.ids[self.passed : keep]
        self.ids = ids

    def discard_prefix(self, count: int) -> None:
        """Discard the first `count` ids, which are not needed any more. Where ids are only counted, their pages are
        released."""
        if self.counting and count > self.passed:
            self.passed = self.recycled.drop(self.passed, count)

    def detach_ids(self, count: int) -> NDArray[np.int32]:
        """The first `count` ids, for the caller. The workspace gives its array away."""
        ids, self.ids = self.ids, np.empty(0, np.int32)
        return self.recycled.detach(ids, count)

    def forget(self) -> None:
        """Drop the frames of kernels' last calls, which keep their texts and arrays alive."""
        self.calls.clear()
        self.frames.clear()
        self.generation += 1

    def give_long(self, size: int) -> None:
        """Allocate scratch for the search for long special tokens in texts of up to `size` bytes. At least twice as
        much as before, so that texts that become longer and longer start a few searches over, not all."""
        size = max(size, 2 * self.special_work.long.size)
        self.special_work = partition.make_work(self.special_work.keys.size, size)
        self.generation += 1

    def trim(self, most: int) -> None:
        """Release arrays of more than `most` elements, so that no memory for a long text stays. Two kinds stay: arrays
        of ids whose capacity is only a bound, as most of their pages were never touched; and scratch, for its
        pre-token cache."""
        self.counting, self.passed = False, 0
        if self.long is not None:
            self.long = None
            self.forget()
        if self.written > most or self.ids.size > 16 * most:
            self.ids = np.empty(0, np.int32)
            self.recycled.forget()
        if self.starts.size > most:
            self.grow_fragments(64)
        if max(self.special_work.keys.size, self.special_work.long.size) > most:
            self.special_work = partition.make_work(64)
        if self.document_ends.size > most:
            self.grow_ends(1)


def weight_of(vocab: Vocab | Pipeline) -> int:
    """The time that a text may take, as a multiple of the usual. A file's added tokens count besides its model's."""
    parts = (vocab.model_offsets, vocab.added_offsets) if isinstance(vocab, Pipeline) else (vocab.token_offsets,)
    return LONG_WEIGHT if any(int(np.diff(part).max(initial=0)) > LONG_KEY for part in parts) else 1


# ---- memory for ids


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

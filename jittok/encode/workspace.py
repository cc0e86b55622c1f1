"""The arrays that one thread encodes with, kept between calls."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.encode.buffer_pool import BufferPool, Mapping
from jittok.kernels.fragments import PAD, REPORT_SIZE
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import LONG_WORK_BYTES, Call, run_interruptible
from jittok.kernels.special import partition
from jittok.kernels.structures.long_keys import LONG as LONG_KEY
from jittok.vocab import Vocab

LONGEST_HELD = 1 << 11
"""Single texts of up to this many bytes are copied to the workspace, where kernels can read past their ends."""
BYTES_PER_COPY = 1 << 20
"""Bytes of texts that are copied at once from memory that others may write to."""
LONG_WEIGHT = 16
"""The time that a text may take, as a multiple of the usual, if tokens are so long that trie walks from each offset
are, too."""
LEAST_DETACHED = 1 << 20
"""From this many fragments on the arrays are given away; fewer are copied, and the workspace keeps its arrays."""


def read_only_array(values: Any, dtype: Any = np.int64) -> NDArray[Any]:
    """A read-only array."""
    array = np.array(values, dtype)
    array.flags.writeable = False
    return array


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
        self.one_start = read_only_array([0])
        self.one_stop, self.read_one_stop = _pair(1, np.int64)
        capacity, text = _pair(LONGEST_HELD + PAD, np.uint8)
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
            self._copied = np.empty(5 * BYTES_PER_COPY, np.uint8)
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
        """Allocate scratch for the search for long special tokens in texts of up to `size` bytes."""
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

"""The arrays that one thread encodes with, kept between calls."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok._jit import LONG_WORK_BYTES, Call, run_interruptible
from jittok.encode.buffer_pool import BufferPool, Mapping
from jittok.fragments import PAD, REPORT_SIZE
from jittok.inputs import Documents
from jittok.pipeline import Pipeline
from jittok.special import partition
from jittok.structures.long_keys import LONG as LONG_KEY
from jittok.vocab import Vocab

LONGEST_HELD = 1 << 11
"""Single texts of up to this many bytes are copied to the workspace, where kernels can read past their ends."""
BYTES_PER_COPY = 1 << 20
"""Bytes of texts that are copied at once from memory that others may write to."""
LONG_WEIGHT = 16
"""How many times as long as usual a text may take where tokens are so long that walks from each place are, too."""
LEAST_DETACHED = 1 << 20
"""So many fragments are handed over; fewer are copied, as the workspace then keeps its arrays."""


def read_only_array(values: Any, dtype: Any = np.int64) -> NDArray[Any]:
    """A read-only array."""
    array = np.array(values, dtype)
    array.flags.writeable = False
    return array


def _pair(size: int, dtype: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """A new array and a read-only view of it: a kernel writes the one, another reads the other."""
    array = np.empty(size, dtype)
    view = array.view()
    view.flags.writeable = False
    return array, view


def _again(call: Call, args: tuple[Any, ...], _documents: Documents) -> Any:
    """`call.again`, keeping the documents alive, whatever happens to their owner meanwhile."""
    return call.again(*args)


class Workspace:
    """The arrays of one thread. They only grow; what they hold means nothing between two calls."""

    def __init__(self, kept: list[Mapping] | None = None, weight: int = 1) -> None:
        """kept: memory that several workspaces may use again; weight: how many times as long as usual a text may
        take."""
        self.weight = weight
        self.report = np.zeros(REPORT_SIZE, np.int64)
        self.special_work = partition.make_work(64)
        self.longest = 0
        self.queued = 0  # how much room a word without a chain has, see `Encoder._give_work`
        self.long: Documents | None = None
        self.scratch: Any = None
        self.calls: dict[Any, Call] = {}
        self.frames: dict[int, Any] = {}  # by id of their rules, see `short_text`
        self.ready, self.generation = array("q", [0]), 1  # see `short_text`
        self.recycled = BufferPool(kept)
        self.ids = np.empty(0, np.int32)
        self.written = 0  # ids of the last texts, whose pages are there
        self.counting, self.passed = False, 0  # whether no one reads the ids, and how many have gone already
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
        """What is encoded next, so many bytes of these documents: if they are many, Ctrl-C may leave the kernels."""
        self.long = docs if size * self.weight >= LONG_WORK_BYTES else None

    def grown(self, texts: Any) -> None:
        """The same of texts that steps have made: a short document may become a long text."""
        if self.long is None and texts.data.size >= LONG_WORK_BYTES and texts.size >= LONG_WORK_BYTES:
            self.long = texts

    def run(self, kernel: Any, *args: Any) -> Any:
        """Call a kernel. Most arguments are those of the last call, whose addresses are still known."""
        call = self.calls.get(kernel)
        if call is None:
            call = self.calls[kernel] = kernel.call(*args)
        if self.long is not None:
            return run_interruptible(_again, call, args, self.long)
        return call.again(*args)

    def hold(self, text: bytes) -> Documents:
        """`held` with a text of up to HELD bytes, the same arrays each time: no word of a frame changes."""
        size = len(text)
        self._capacity[:size] = text
        self.one_stop[0] = size
        return self.held

    def copy(self, docs: Documents, first: int, last: int) -> Documents:
        """Documents first .. last - 1 where no one else can write to them, until the next copy. Room for a stretch
        is kept: first touches of new memory would take longer than copying."""
        if self._copied is None:
            self._copied = np.empty(5 * BYTES_PER_COPY, np.uint8)
        return docs.own(first, last, self._copied)

    def grow_fragments(self, capacity: int) -> None:
        """Room for fragments and for where their ids end."""
        self.starts, self.read_starts = _pair(capacity, np.int64)
        self.stops, self.read_stops = _pair(capacity, np.int64)
        self.tokens, self.read_tokens = _pair(capacity, np.int32)
        self.ends = np.empty(capacity, np.int64)

    def detach_fragments(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """Where the first `count` fragments start and stop, and their tokens, for the caller. Many are not copied: the
        workspace has none any more."""
        starts, stops, tokens = self.read_starts[:count], self.read_stops[:count], self.read_tokens[:count]
        if count < LEAST_DETACHED:
            return starts.copy(), stops.copy(), tokens.copy()
        self.grow_fragments(64)
        self.forget()
        return starts, stops, tokens

    def grow_ends(self, capacity: int) -> None:
        """Room for where the fragments of documents end."""
        self.document_ends = np.empty(capacity, np.int64)

    def grow_ids(self, capacity: int, keep: int) -> None:
        """Room for ids, of which the first `keep` are kept."""
        ids = self.recycled.array(capacity)
        ids[self.passed : keep] = self.ids[self.passed : keep]
        self.ids = ids

    def discard_prefix(self, count: int) -> None:
        """No one looks at the first `count` ids any more. Where ids are only counted, they are no memory then."""
        if self.counting and count > self.passed:
            self.passed = self.recycled.drop(self.passed, count)

    def detach_ids(self, count: int) -> NDArray[np.int32]:
        """The first `count` ids, for the caller: the workspace has none any more."""
        ids, self.ids = self.ids, np.empty(0, np.int32)
        return self.recycled.detach(ids, count)

    def forget(self) -> None:
        """Let go of what kernels were called with: until now it kept texts and arrays alive that no one else has."""
        self.calls.clear()
        self.frames.clear()
        self.generation += 1

    def give_long(self, size: int) -> None:
        """Room for texts of so many bytes in which long special tokens are searched for."""
        self.special_work = partition.make_work(self.special_work.keys.size, size)
        self.generation += 1

    def trim(self, most: int) -> None:
        """Let go of arrays of more than `most` elements, so that nothing of a long text stays. Two kinds stay: capacity
        for ids that was asked for as a bound, because most of its pages were never touched; and work, because its cache
        knows pieces."""
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
    """How many times as long as usual a text may take. The added tokens of a file are apart from those of its model."""
    parts = (vocab.model_offsets, vocab.added_offsets) if isinstance(vocab, Pipeline) else (vocab.token_offsets,)
    return LONG_WEIGHT if any(int(np.diff(part).max(initial=0)) > LONG_KEY for part in parts) else 1

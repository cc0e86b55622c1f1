"""One long document on several threads: split at safe cuts, and joined again.

Special tokens are cut out first, in the document as a whole. Fragments do not influence each other, so a part may begin
with any of them. A long fragment may also be cut before a space with four ASCII letters on its left and one on its
right, if the model allows it (`can_split_at_spaces`). Four letters, because the first byte of a malformed character
affects at most three bytes after it.

Parts are handed out in order and are small, so that their ids are still in the cache when they are copied (`InOrder`).

Spans of a document with very many fragments, such as one that is mostly special tokens, are computed in chunks
(`align_in_chunks`). A fragment takes 28 bytes (start, stop, token, end of its ids): with a token at every second byte,
all of them at once would take more memory than the result.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok.encode import limits
from jittok.encode.buffers import BufferPool, Workspace
from jittok.encode.encoder import failure_of
from jittok.errors import JittokError
from jittok.kernels.fragments import TEXT
from jittok.kernels.inputs import Documents

if TYPE_CHECKING:
    from jittok.encode.cutters import EncodeOptions
    from jittok.encode.encoder import Encoder
    from jittok.kernels.jit.pool import Pool

PARTS_PER_THREAD = 4
"""Parts for each thread that may wait for it."""
IDS_PER_COPY = 1 << 18
"""Ids that a thread copies at once, where many are put together."""
SEARCH_BYTES = 1 << 14
"""Bytes that are searched for a safe cut."""
SPARE_FRAGMENTS = 64
_PLACE = re.compile(rb"[A-Za-z]{4} (?=[A-Za-z])")

Fragments = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]
Encode = Callable[[Workspace, Any, int], int]
"""encode(workspace, job, at) -> the end of the ids of a part, which it writes to the workspace from `at` on."""


def part_fragments(docs: Documents, fragments: Fragments, parts: int) -> tuple[Fragments, list[int]]:
    """(starts, stops and tokens of fragments, some of them cut; the first fragment of each part, then their number).

    Parts have about the same number of bytes, if there are safe cuts. If no fragment is cut, the arrays are returned as
    they are: there may be a fragment for every two bytes, or for fewer.
    """
    starts, stops, tokens = fragments
    ends = stops - starts
    np.cumsum(ends, out=ends)
    marks = int(ends[-1]) * np.arange(1, parts) // parts
    cuts: list[tuple[int, int]] = []  # (fragment, offset)
    first = [0]
    for mark, fragment in zip(marks.tolist(), np.searchsorted(ends, marks, "right").tolist(), strict=True):
        stop = int(stops[fragment])
        at = stop - (int(ends[fragment]) - mark)
        begins = fragment + 1 + len(cuts)  # index of the fragment after this one, in the new arrays
        found = None if tokens[fragment] >= 0 else _PLACE.search(docs.between(at, min(at + SEARCH_BYTES, stop)))
        if found is not None:
            cut = fragment, at + found.end() - 1
            if cut in cuts[-1:]:
                continue
            cuts.append(cut)
        elif stop - at > SEARCH_BYTES:
            continue
        if first[-1] < begins < starts.size + len(cuts):
            first.append(begins)
    where, positions = [fragment for fragment, _ in cuts], [position for _, position in cuts]
    new = [fragment + 1 for fragment in where]
    pieces = fragments
    if cuts:
        pieces = np.insert(starts, new, positions), np.insert(stops, where, positions), np.insert(tokens, new, TEXT)
    for column in pieces:
        column.flags.writeable = False
    return pieces, [*first, starts.size + len(cuts)]


def joined_parts(run: Pool, parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """The parts concatenated; empties the list. Each part is copied by several threads, as page faults take longer than
    copying, and released before the next, so that only one part at a time is in memory twice."""
    ids, at = np.empty(sum(part.size for part in parts), np.int32), 0
    while parts:
        part = parts.pop(0)
        to = ids[at : at + part.size]
        positions = range(0, part.size, IDS_PER_COPY)
        list(
            run.map(
                lambda k, to=to, part=part: np.copyto(to[k : k + IDS_PER_COPY], part[k : k + IDS_PER_COPY]), positions
            )
        )
        at += part.size
    return ids


class InOrder:
    """Ids of parts that several threads encode, in one array. Each thread copies its own.

    The offset of a part's ids is known once all parts before it are encoded. Until then its thread keeps them and goes
    on with another part, so threads wait only at the end. When the array is full, another one is begun, and all are
    joined at the end: no array moves while a thread writes to it. capacity: called after the first part is encoded,
    when a better guess is possible; None: ids are only counted. memory: the pool that the array is from.
    """

    def __init__(self, capacity: Callable[[], int] | None, memory: BufferPool | None = None) -> None:
        self.count = 0  # ids of all parts whose offset is known
        self._memory = memory or BufferPool()
        self._keep, self._capacity = capacity is not None, capacity
        self._arrays = [np.empty(0, np.int32)]
        self._before = 0  # ids in all arrays but the last
        self._known = threading.Condition()
        self._jobs: deque[Any] = deque()  # of parts that no thread has taken yet
        self._given = self._taken = 0  # parts that were ever put in there, and taken from it
        self._all_given = False
        self._sizes: dict[int, int] = {}  # of parts that are encoded, while one before them is not
        self._placed = 0  # parts whose offset is known
        self._places: dict[int, NDArray[np.int32]] = {}  # views for their ids, until these are copied
        self._failures: dict[int, BaseException] = {}

    def run(
        self,
        pool: Pool,
        threads: int,
        jobs: Iterable[Any],
        encode: Encode,
        acquire: Callable[[], Workspace],
        release: Callable[[Workspace], None],
    ) -> NDArray[np.int32]:
        """All ids. `jobs`, one for each part, are read by the caller's thread, a few ahead of what is encoded. Raises
        the error of the first part that failed, or that of reading the jobs if all parts before it succeeded."""
        try:
            futures = [pool.submit(self._work, encode, acquire, release) for _ in range(threads)]
            self._give(jobs, PARTS_PER_THREAD * threads)
            for future in futures:
                future.result()
        except BaseException as error:  # an interrupt: the threads stop after their current parts
            self._fail(-1, error)
            raise
        if self._failures:
            raise self._failures[min(self._failures)]
        return self._joined(pool)

    def _give(self, jobs: Iterable[Any], ahead: int) -> None:
        """Queue the jobs for the threads, at most `ahead` at a time."""
        try:
            for job in jobs:
                with self._known:
                    self._known.wait_for(lambda: len(self._jobs) < ahead or self._failures)
                    if self._failures:
                        break
                    self._jobs.append(job)
                    self._given += 1
                    self._known.notify_all()
        except Exception as error:  # noqa: BLE001  parts before may fail yet
            self._fail(self._given, error)
        with self._known:
            self._all_given = True
            self._known.notify_all()

    def _work(self, encode: Encode, acquire: Callable[[], Workspace], release: Callable[[Workspace], None]) -> None:
        """The loop of each thread."""
        part, workspace = 0, acquire()
        waiting: list[tuple[int, NDArray[np.int32]]] = []
        try:
            done = 0
            for part, job in self._taken_in_order():
                at = done if waiting else 0
                done = encode(workspace, job, at)
                self._encoded(part, done - at)
                if self._keep:
                    waiting.append((part, workspace.ids[at:done]))
                    self._copy(waiting)
            self._wait_and_copy(waiting)
        except BaseException as error:  # noqa: BLE001  raised by `run`, if it is the first
            self._fail(part, error)
            if not isinstance(error, JittokError):
                return  # the workspace is dropped: its arrays may be inconsistent
        release(workspace)

    def _taken_in_order(self) -> Iterator[tuple[int, Any]]:
        """Numbers and jobs of parts that no thread has taken yet, up to the last or to the first that failed."""
        while True:
            with self._known:
                self._known.wait_for(lambda: self._jobs or self._all_given or self._failures)
                if not self._jobs or self._taken > min(self._failures, default=self._taken):
                    return
                part, job = self._taken, self._jobs.popleft()
                self._taken += 1
                if not self._all_given:
                    self._known.notify_all()
            yield part, job

    def _fail(self, part: int, error: BaseException) -> None:
        """Record the failure of a part: no part after it is begun."""
        with self._known:
            self._failures[part] = error
            self._known.notify_all()

    def _encoded(self, part: int, size: int) -> None:
        """Record that a part has `size` ids. Assigns offsets to it and to the parts that waited for it, if no part
        before it is missing."""
        with self._known:
            self._sizes[part] = size
            while self._placed in self._sizes:
                size = self._sizes.pop(self._placed)
                if self._keep:
                    self._places[self._placed] = self._place(size)
                self._placed, self.count = self._placed + 1, self.count + size
            self._known.notify_all()

    def _place(self, size: int) -> NDArray[np.int32]:
        start = self.count - self._before
        if start + size > self._arrays[-1].size:
            if start:
                self._arrays[-1] = self._arrays[-1][:start]
            else:
                self._arrays.pop()  # it is empty: it need not be joined with the next one
            capacity = self._capacity() if self._capacity and not self.count else self.count // 2
            self._arrays.append(self._memory.array(max(size, capacity)))
            self._before, start = self.count, 0
        return self._arrays[-1][start : start + size]

    def _copy(self, waiting: list[tuple[int, NDArray[np.int32]]]) -> None:
        """Copy the ids of those parts (number, ids) whose offset is known, and leave the others in the list."""
        while waiting:
            part, ids = waiting[0]
            with self._known:
                position = self._places.pop(part, None)
            if position is None:
                return
            position[:] = ids
            del waiting[0]

    def _wait_and_copy(self, waiting: list[tuple[int, NDArray[np.int32]]]) -> None:
        if waiting:
            last = waiting[-1][0]
            with self._known:
                self._known.wait_for(lambda: last < self._placed or self._failures)
            self._copy(waiting)

    def _joined(self, pool: Pool) -> NDArray[np.int32]:
        if len(self._arrays) > 1:
            self._arrays[-1] = self._arrays[-1][: self.count - self._before]
            return joined_parts(pool, self._arrays)
        ids = self._arrays.pop()
        return self._memory.detach(ids, self.count) if self._keep else ids


# ---- spans of a document with many fragments


def align_in_chunks(
    encoder: Encoder, workspace: Workspace, docs: Documents, base: int, document: int, fragments: int,
    rule: EncodeOptions, extra_results: Callable[..., NDArray[np.int64]],
) -> tuple[int, NDArray[np.int64]]:  # fmt: skip
    """Encode one document in chunks. Returns the number of its ids, which are left in the workspace, and int64[n, 2]
    the result of `extra_results` for them (see `batch.stretches`). fragments: those of the document in the workspace.
    Raises EncodingFailed."""
    origin, size = int(docs.starts[document]), docs.size(document, document + 1)
    positions = np.int32 if size < 1 << 31 else np.int64
    far_starts, far_stops, tokens = workspace.detach_fragments(fragments)
    starts = np.subtract(far_starts, origin, dtype=positions, casting="unsafe")
    del far_starts
    stops = np.subtract(far_stops, origin, dtype=positions, casting="unsafe")
    del far_stops
    workspace.grow_fragments(limits.FRAGMENTS_PER_STEP)
    workspace.grow_ids(int(encoder.ids_per_byte * size) + fragments + SPARE_FRAGMENTS, 0)
    spans = np.empty(
        (encoder.model.IDS_PER_BYTE * size + fragments + SPARE_FRAGMENTS, 2), np.int64
    )  # most of it is never touched
    count = 0
    for first in range(0, fragments, limits.FRAGMENTS_PER_STEP):
        number = min(limits.FRAGMENTS_PER_STEP, fragments - first)
        some = slice(first, first + number)
        np.add(starts[some], origin, out=workspace.starts[:number])
        np.add(stops[some], origin, out=workspace.stops[:number])
        workspace.tokens[:number] = tokens[some]
        cut = workspace.read_starts, workspace.read_stops, workspace.read_tokens
        part = int((workspace.stops[:number] - workspace.starts[:number]).sum())
        done = encoder.encode_fragments(workspace, docs, *cut, number, part, rule, count)
        if not isinstance(done, int):
            raise failure_of(docs, base, document, done)
        found = extra_results(
            docs, document, document + 1, np.array([number]), workspace.starts[:number], workspace.stops[:number],
            workspace.tokens[:number], workspace.ends[:number] - count, workspace.ids[count:done],
        )  # fmt: skip
        if done > len(spans):
            spans = np.concatenate([spans[:count], np.empty((2 * (done - count) + len(spans), 2), np.int64)])
        spans[count:done] = found
        count = done
    spans.resize((count, 2), refcheck=False)
    spans.flags.writeable = False
    return count, spans

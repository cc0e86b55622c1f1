"""One task: its ranges are read, encoded, laid out, hashed and written by the threads that work on it.

A free thread reads the next range. Results are written in order, by the thread that has the next one; so no thread only
reads or only writes, and the bytes are those of one thread. Errors are raised in the order of the ranges, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from jittok.corpus.formats.base import Format, Rows
from jittok.corpus.inputs.remote import is_url
from jittok.corpus.inputs.sources import Exchanged, look_at
from jittok.corpus.progress import Counts
from jittok.corpus.ranges.digests import Digests
from jittok.corpus.ranges.encoder import Encoded, keep_freed_memory
from jittok.corpus.ranges.split import of_side
from jittok.corpus.ranges.units import Key, RawRange, Unit, read_unit
from jittok.corpus.shards.shuffling import id_width, keys_of_range, spooled
from jittok.corpus.shards.writer import Laid, laid_out, streams_of
from jittok.corpus.store.base import Unreachable
from jittok.corpus.tasks.output import TaskOutput, Work
from jittok.corpus.tasks.records import Done
from jittok.errors import CorpusError, InWords
from jittok.kernels.jit.pool import Cancellation

READY = 2
"""Results that may wait for the one before them, for each thread."""
PATIENCE = 0.2
"""Seconds between two looks at whether the work is still wanted."""


def found_again(work: Work, units: Sequence[Unit]) -> None:
    """Look at the inputs of some units on this machine, where others have found them. CorpusError for one of another
    size, or one that was written since: its time of change may be another on a copy, its time of writing not. One that
    is not here is a fault of this machine, whatever `on_error` is: its documents are not lost, another machine has
    them."""
    sources = work.encoder.sources
    for i in dict.fromkeys(i for unit in units for i in range(unit.source, unit.last + 1)):
        source = sources[i]
        if source.inode or source.size is None or is_url(source.path):
            continue
        try:
            size, stamp, inode = look_at(source.path)
        except OSError as error:
            expected = "the input that was planned: is its folder mounted on this machine?"
            raise Unreachable(source.path, InWords(error.strerror or str(error)), expected) from error
        if (size, stamp.partition(" ")[0]) != (source.size, source.stamp.partition(" ")[0]):
            found = InWords(f"{size} bytes, written {stamp.partition(' ')[0]}")
            expected = f"{source.size} bytes, written {source.stamp.partition(' ')[0]}, as when the corpus was planned"
            raise Exchanged(source.path, found, expected)
        sources[i] = work.sources[i] = replace(source, stamp=stamp, inode=inode)  # type: ignore[index]


Report = Callable[[Counts], None]
"""Called after each range with what it has added."""


class Gate:
    """Threads write in a `with` of it; once it is closed, none does and none can begin."""

    def __init__(self) -> None:
        self._writers, self._open, self._changed = 0, True, threading.Condition()

    def __enter__(self) -> None:
        with self._changed:
            if not self._open:
                raise CancelledError
            self._writers += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._writers -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Wait for the threads that write, and let no other begin."""
        with self._changed:
            self._open = False
            while self._writers:
                self._changed.wait(PATIENCE)


class _Result(NamedTuple):
    encoded: Encoded
    laid: list[Laid]  # one a side


class TaskRun:
    """A task that is under way; any number of threads may call `work` at once."""

    def __init__(
        self, work: Work, number: int, stop: Cancellation, gate: Gate | None = None, report: Report | None = None
    ) -> None:
        keep_freed_memory()
        self.context, self.number, self.stop, self.report = work, number, stop, report
        self._gate = gate or Gate()
        self.units = list(work.plan.units_of(number, work.sources))
        if work.elsewhere:
            found_again(work, self.units)
        self.done: Done | None = None
        self._digests: Digests = []
        self._raws = self._read_all()
        self._reading, self._turn = threading.Lock(), threading.Condition()
        self._read = self._next = self._threads = 0
        self._exhausted = self._writing = self._closed = False
        self._ready: dict[int, _Result | BaseException] = {}
        self._streams = streams_of(work.formats)
        self._tables = any(type(form).sink is not Format.sink for form in work.formats)
        self._width = id_width(work.encoder.tok.vocab_size)
        self._output: TaskOutput | None = None

    # ---- the threads

    @property
    def has_more(self) -> bool:
        """Whether another thread could be of use."""
        return not self._exhausted and not self._closed

    def abandon(self) -> None:
        """End the task early: its result is not needed."""
        with self._turn:
            self._closed = True
            self._turn.notify_all()

    def work(self) -> None:
        """Read, encode and write ranges until there are none left. Raises the first error of the task, and
        CancelledError when it is stopped; then nothing of it remains but what has been published."""
        stranded = False
        with self._turn:
            self._threads += 1
        try:
            while (taken := self._take()) is not None:
                number, raw = taken
                self._put(number, self._result(raw))
                del raw, taken
            self._close_if_last()
        finally:
            with self._turn:
                self._threads -= 1
                if not self._threads and self.done is None and (self._closed or self._exhausted or self.stop.is_set()):
                    stranded = not self._closed and not self.stop.is_set()
                    self._closed = True
                    self._drop()
                self._turn.notify_all()
        if stranded:
            raise neither(self.context, self.number)

    def _take(self) -> tuple[int, RawRange | BaseException] | None:
        """The next range and its number, or the error of reading it; None at the end."""
        with self._reading:
            self.stop.check()
            if self._exhausted or self._closed:
                return None
            raw: RawRange | BaseException | None
            try:
                raw = next(self._raws, None)
            except Exception as error:  # noqa: BLE001  raised when its turn comes, after those of ranges before it
                raw, self._exhausted = error, True
            if raw is None:
                self._exhausted = True
                return None
            self._read += 1
            return self._read - 1, raw

    def _read_all(self) -> Generator[RawRange, None, None]:
        for unit in self.units:
            yield from read_unit(unit, self.context.sources, self.context.options, digests=self._digests)

    def _result(self, raw: RawRange | BaseException) -> _Result | BaseException:
        if isinstance(raw, BaseException):
            return raw
        try:
            encoded = self.context.encoder(raw, self.stop)
            laid = [self._laid(raw.key, of_side(encoded, side)) for side in self.context.options.sides]
            encoded.ids = np.broadcast_to(np.int32(0), encoded.ids.shape)  # those that are needed are in `laid`
            encoded.mask = None
            return _Result(encoded, laid)
        except Exception as error:  # noqa: BLE001  as above; CancelledError among them
            return error

    def _laid(self, key: Key, encoded: Encoded) -> Laid:
        rows = Rows(
            encoded.ids, encoded.lengths, encoded.sources, encoded.places, encoded.kept, encoded.mask,
            encoded.text_bytes,
        )  # fmt: skip
        seed = self.context.options.shuffle_documents
        if seed is None:
            laid = laid_out(rows, self._streams)
        else:
            laid = spooled(rows, keys_of_range(seed, key, rows.lengths.size), self._width)
            rows = laid.rows
        if (
            seed is not None or not self._tables
        ):  # the streams are all that is written: results that wait hold no ids beside them
            rows.ids, rows.mask = np.broadcast_to(np.int32(0), rows.ids.shape), None
        return laid

    def _put(self, number: int, result: _Result | BaseException) -> None:
        """Give a result, and write all whose turn it is unless another thread does."""
        with self._turn:
            self._ready[number] = result
            del result
            while self._next not in self._ready and len(self._ready) > READY * self._threads and not self._closed:
                self.stop.check()
                self._turn.wait(PATIENCE)
            if self._writing or self._closed:
                return
            self._writing = True
        try:
            while True:
                with self._turn:
                    found = self._ready.pop(self._next, None)
                    if found is None:
                        self._writing = False  # under the lock: who gives the next result writes it
                        return
                if isinstance(found, BaseException):
                    raise found
                self._write(found)
                del found
                with self._turn:
                    self._next += 1
                    self._turn.notify_all()
        except BaseException:
            with self._turn:
                self._writing, self._closed = False, True
            raise

    def _close_if_last(self) -> None:
        with self._turn:
            if self._closed or not self._exhausted or self._writing or self._next < self._read:
                return
            self._writing = True
        try:
            self._finish()
        finally:
            with self._turn:
                self._writing, self._closed = False, True

    # ---- what is written

    def _write(self, result: _Result) -> None:
        with self._gate:
            if self._output is None:
                self._output = TaskOutput(self.context, self.number, self.stop.check)
            self._output.add(result.encoded, result.laid)
        if self.report is not None:
            encoded = result.encoded
            size = encoded.lengths.size
            self.report(Counts(size, int(encoded.ids.size), encoded.text_bytes, encoded.new))

    def _finish(self) -> None:
        _check_unchanged(self.units, self.context)
        with self._gate:
            if self._output is None:
                self._output = TaskOutput(self.context, self.number, self.stop.check)
            self.done = self._output.finish(self._digests)

    def _drop(self) -> None:
        self._raws.close()
        self._ready.clear()
        if self._output is not None:
            self._output.drop()


def neither(work: Work, number: int) -> CorpusError:
    """The error for a task that has ended and is neither done nor failed nor stopped, which is a fault of jittok."""
    found = InWords("ranges that no thread has written, which is a fault of jittok: please report it")
    return CorpusError(f"{work.store.place}, task {number}", found, "all of them: run the same command again")


def _check_unchanged(units: Sequence[Unit], work: Work) -> None:
    """CorpusError when an input of these units has been written to since it was found; one that has gone was read."""
    for i in dict.fromkeys(i for unit in units for i in range(unit.source, unit.last + 1)):
        with suppress(FileNotFoundError):
            work.sources[i].check_unchanged()

"""One task: its ranges are read, encoded, laid out, hashed and written by the threads that work on it.

A free thread reads the next range. Results are written in order, by the thread that has the next one; so no thread only
reads or only writes, and the bytes are those of one thread. Errors are raised in the order of the ranges, too.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from jittok.corpus.formats.base import Format, Rows
from jittok.corpus.inputs.remote import is_url
from jittok.corpus.inputs.sources import Exchanged, Source, look_at
from jittok.corpus.options import Options
from jittok.corpus.progress import Counts
from jittok.corpus.ranges import tables
from jittok.corpus.ranges.cutting import newlines_before
from jittok.corpus.ranges.digests import Digests
from jittok.corpus.ranges.documents import Bad
from jittok.corpus.ranges.encoder import Encoded, RangeEncoder, keep_freed_memory
from jittok.corpus.ranges.units import RawRange, Unit, read_unit
from jittok.corpus.shards.writer import FileFacts, Laid, ShardWriter, laid_out, streams_of
from jittok.corpus.store import Store
from jittok.corpus.store.base import Unreachable
from jittok.corpus.tasks.plan import WORK, Plan, id_there
from jittok.corpus.tasks.records import BadRow, Done, label_of, write_done
from jittok.errors import CorpusError, InWords
from jittok.kernels.jit.pool import Cancellation

SCRATCH = f"{WORK}/w"
READY = 2
"""Results that may wait for the one before them, for each thread."""
PATIENCE = 0.2
"""Seconds between two looks at whether the work is still wanted."""
COUNTED = 4 << 30
"""Bytes of an input in which lines are counted to name one in a message."""
FEW_BAD = 1000
"""This many documents without any text at the start mean that the run reads the wrong field."""


class Superseded(CorpusError):
    """A corpus that has been finished, or begun anew, while this process was at a task of it."""


class Work(NamedTuple):
    """What all tasks of a corpus share. It can be pickled."""

    store: Store
    plan: Plan
    sources: Sequence[Source]
    options: Options
    formats: Sequence[Format]
    encoder: RangeEncoder
    elsewhere: bool = False  # its inputs were found by another process, perhaps on another machine


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
    laid: Laid


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
        self._output: TaskOutput | None = None
        self._first_begin = 0

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
                    self._closed = True
                    self._drop()
                self._turn.notify_all()

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
            if not self._read and isinstance(raw, RawRange):
                self._first_begin = raw.begin
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
            rows = Rows(encoded.ids, encoded.lengths, encoded.sources, encoded.places, encoded.kept, encoded.mask)
            laid = laid_out(rows, self._streams)
            if not self._tables:  # the streams are all that is written: results that wait hold no ids beside them
                encoded.ids = rows.ids = np.broadcast_to(np.int32(0), rows.ids.shape)
                encoded.mask = rows.mask = None
            return _Result(encoded, laid)
        except Exception as error:  # noqa: BLE001  as above; CancelledError among them
            return error

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
                        return
                if isinstance(found, BaseException):
                    raise found
                self._write(found)
                del found
                with self._turn:
                    self._next += 1
                    self._turn.notify_all()
        except BaseException:
            self._closed = True
            raise
        finally:
            self._writing = False

    def _close_if_last(self) -> None:
        with self._turn:
            if self._closed or not self._exhausted or self._writing or self._next < self._read:
                return
            self._writing = True
        try:
            self._finish()
        finally:
            self._writing, self._closed = False, True

    # ---- what is written

    def _write(self, result: _Result) -> None:
        with self._gate:
            if self._output is None:
                self._output = TaskOutput(self.context, self.number, self.units)
            self._output.add(result.encoded, result.laid, self._line_of)
        if self.report is not None:
            encoded = result.encoded
            size = encoded.lengths.size
            self.report(Counts(size, int(encoded.ids.size), encoded.text_bytes, encoded.new))

    def _finish(self) -> None:
        _check_unchanged(self.units, self.context)
        with self._gate:
            if self._output is None:
                self._output = TaskOutput(self.context, self.number, self.units)
            self.done = self._output.finish(self._digests)

    def _drop(self) -> None:
        self._raws.close()
        self._ready.clear()
        if self._output is not None:
            self._output.drop()

    def _line_of(self, bad: BadRow) -> str:
        """A bad document in words: its file and line, counted from the start of the file where that is not far."""
        source = self.context.sources[bad.source]
        if bad.absolute:
            return f"{source.path}, line {bad.line}"
        if self._first_begin > COUNTED:
            return f"{source.path}, line {bad.line} after byte {self._first_begin}"
        with source.open() as file:
            before = newlines_before(file, self._first_begin)
        return f"{source.path}, line {bad.line + before}"


def _check_unchanged(units: Sequence[Unit], work: Work) -> None:
    """CorpusError when an input of these units has been written to since it was found; one that has gone was read."""
    for i in dict.fromkeys(i for unit in units for i in range(unit.source, unit.last + 1)):
        with suppress(FileNotFoundError):
            work.sources[i].check_unchanged()


class TaskOutput:
    """The shards of a task: written one after the other, published when they are full, and recorded at the end."""

    def __init__(self, work: Work, number: int, units: Sequence[Unit]) -> None:
        self.work, self.number = work, number
        self._folder = f"{SCRATCH}/{label_of(number)}.{secrets.token_hex(8)}"
        self.scratch = work.store.scratch(self._folder)
        self._writer: ShardWriter | None = None
        self._held: tuple[dict[str, Any], list[FileFacts]] | None = None  # a full shard: is it the only one?
        self._ranges: list[list[int]] = []
        self._shards: list[dict[str, Any]] = []
        self._counts = dict.fromkeys(("documents", "tokens", "text_bytes", "blank", "bad", "lost", "read"), 0)
        self._bad: list[BadRow] = []
        self._known: set[tuple[int, str]] = set()
        first = units[0] if units else None
        self._first = -1 if first is None else first.source
        source = None if first is None else work.sources[first.source]
        begins_inside = first is not None and first.part > 0 and source is not None
        self._relative = begins_inside and source is not None and source.kind in ("lines", "jsonl")
        rows = 0
        if begins_inside and first is not None and source is not None and source.kind == "parquet":
            rows = tables.rows_before(source, first.start)
        self._seen = (max(self._first, 0), rows)

    def add(self, encoded: Encoded, laid: Laid, where: Callable[[BadRow], str]) -> None:
        """One range, in order. CorpusError for a bad document, unless it may be left out."""
        if self._writer is None:
            self._publish_held(several=True)
            self._writer = ShardWriter(self.scratch / str(len(self._shards)), self.work.formats)
        bad = self._bad_rows(encoded)
        options = self.work.options
        if bad and options.on_error == "fail":
            raise CorpusError(
                where(bad[0]), InWords(bad[0].found),
                f"{bad[0].expected} (to continue: --on-error skip or --on-error replace)",
            )  # fmt: skip
        self._writer.append(laid, encoded.text_bytes)
        self._ranges.append([*encoded.key, int(encoded.lengths.size), int(encoded.ids.size)])
        for name, count in (
            ("documents", encoded.lengths.size), ("tokens", encoded.ids.size), ("text_bytes", encoded.text_bytes),
            ("blank", encoded.blank), ("bad", len(bad)), ("lost", encoded.lost), ("read", encoded.new),
        ):  # fmt: skip
            self._counts[name] += int(count)
        self._bad += bad
        if self.number == 0:
            refuse_nothing(self._counts, options, FEW_BAD, self._bad, where)
        if options.shard_bytes and self._writer.text_bytes >= options.shard_bytes:
            self._close_shard()

    def _bad_rows(self, encoded: Encoded) -> list[BadRow]:
        """The bad documents of a range. The damage of an input is told once."""
        source = encoded.key.source
        base = self._seen[1] if self._seen[0] == source else 0
        found = []
        for bad in encoded.bad:
            if bad.input and (bad.source, bad.found) in self._known:
                continue
            if bad.input:
                self._known.add((bad.source, bad.found))
            found.append(self._bad_row(bad, base if bad.source == source else 0))
        self._seen = (source, base + encoded.seen)
        return found

    def _bad_row(self, bad: Bad, base: int) -> BadRow:
        absolute = not self._relative or bad.source != self._first
        shard = len(self._shards)
        return BadRow(shard, bad.source, bad.line + base, absolute, bad.input, bad.found, bad.expected)

    def _close_shard(self) -> None:
        if self._writer is None:
            return
        self._check_plan()
        files = self._writer.finish()
        shard = self._writer.shard
        fact = {"documents": shard.documents, "tokens": shard.tokens, "ranges": self._ranges}
        self._held, self._writer, self._ranges = (fact, files), None, []
        self._shards.append(fact)

    def _publish_held(self, several: bool) -> None:
        """Give the last full shard its names: those of the only one of the task, or of one of several."""
        if self._held is None:
            return
        self._check_plan()
        fact, files = self._held
        label = label_of(self.number, len(self._shards) - 1 if several else None)
        fact["shard"] = label
        fact["files"] = []
        for file in files:
            name = file.name.format(label)
            self.work.store.publish(file.path, name, f"{self.work.plan.id[:16]} {label} {file.sha256}")
            fact["files"].append({"name": name, "bytes": file.bytes, "sha256": file.sha256})
        self._held = None

    def finish(self, digests: Digests) -> Done:
        """Publish what is left, and write the record."""
        if self._writer is None and not self._shards:
            self._writer = ShardWriter(self.scratch / "0", self.work.formats)
        self._close_shard()
        self._publish_held(several=len(self._shards) > 1)
        done = Done(
            self.work.plan.id, self.number, **self._counts, last=self._seen, shards=self._shards, digests=digests
        )
        self._check_plan()
        write_done(self.work.store, done, self._bad)
        self.drop()
        return done

    def _check_plan(self) -> None:
        """Superseded when the corpus is no longer the one that this task belongs to: nothing of it may be written."""
        store = self.work.store
        if (there := id_there(store)) != self.work.plan.id:
            found = "no plan: it has been finished or removed" if there is None else "another plan: it was begun anew"
            raise Superseded(store.place, InWords(found), "the plan that this process began with")

    def drop(self) -> None:
        """Remove what lies on this machine."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        with suppress(OSError):
            self.work.store.clear(self._folder)


def has_text(counts: dict[str, int], options: Options) -> bool:
    """Whether any document had a text; with "replace" those without one are documents too. The part for validation may
    be without any."""
    kept = counts["documents"] - (counts["lost"] if options.on_error == "replace" else 0)
    return kept > 0 or not counts["bad"] or options.part == "val"


def refuse_nothing(
    counts: dict[str, int], options: Options, least: int, bad: Sequence[BadRow], where: Callable[[BadRow], str]
) -> None:
    """CorpusError when no document so far had a text, of `least` or more: then not the documents are wrong."""
    if has_text(counts, options) or counts["bad"] < least:
        return
    first = bad[0] if bad else None
    found = f"no text in any of {counts['bad']:,} documents; here {first.found if first else 'nothing'}"
    place = where(first) if first else "the inputs"
    raise CorpusError(place, InWords(found), first.expected if first else "texts (--field, --column)")

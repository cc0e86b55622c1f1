"""Counts the words of files, with the readers of the corpus compiler: ranges, and a ledger to resume from.

With a work folder, counts are written there from time to time, with the names of their ranges. A resumed call counts
only the ranges that are in no complete run.
"""

from __future__ import annotations

import codecs
import fnmatch
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

from jittok.common.display.progress import Progress, Show, Shown, shown
from jittok.common.writers.atomic_files import naming
from jittok.corpus.inputs.decompression import Read, open_unpacked
from jittok.corpus.inputs.finding import Seen, check_looks, check_options, find_sources
from jittok.corpus.inputs.sources import STDIN, Source
from jittok.corpus.options import Options as Reading
from jittok.corpus.ranges.cutting import LINE_END_BYTES, Limit
from jittok.corpus.ranges.documents import Bad, read_texts
from jittok.corpus.ranges.units import GROUP, Key, RawRange, Unit, read_unit, units
from jittok.corpus.store.disk import check_own, component, open_regular
from jittok.errors import CorpusError, InWords
from jittok.train.counting.count import CountRun, How, in_turn, scaled
from jittok.train.counting.counter import Counter
from jittok.train.counting.counts import UNIT, Counts
from jittok.train.counting.ledger import LEDGER, Ledger
from jittok.train.counting.lines import Lines
from jittok.train.counting.runs import check_run, write_run
from jittok.train.counting.splitters import DocumentChunks

RANGE_BYTES = 2 << 20
"""The default of training: what is read ahead takes several times as much."""
LEAST_RANGE = 1 << 18
RANGES_OF_MEMORY = 32
OWN_NAME = re.compile(rf"run-\d{{6,}}\.words|{re.escape(LEDGER)}|stretches")
"""Of what a work folder holds; `stretches` is a work folder in it."""
LEDGER_BEGINS = b'00000000 {"plan":'
"""The first line of a ledger, without its checksum."""
KEEP_EVERY = 64 << 20
"""Bytes of text after which a thread writes its counts to the work folder: a kill costs a third of a second of work."""
CHUNKED = 1
"""Key.part of the ranges of a document in pieces; Key.at is the byte at which one begins."""
PACKED = 16
"""A packed file may be this many times longer than it looks."""


def sources_of(
    inputs: Sequence[str | os.PathLike[str]], reading: Reading, left_out: list[str] | None = None
) -> list[Source]:
    """The sources of all inputs. A named file with an unknown extension is text, unless its content looks like
    another kind. A named pipe is read once, like standard input. `left_out` receives what is skipped in folders and
    globs."""
    found: list[Source] = []
    for name in inputs or [""]:
        plain = os.fspath(name)
        named = Path(plain).exists() and not Path(plain).is_dir()  # in place of a folder, a glob, a URL or "-"
        some, others = find_sources([plain] if plain else [], reading, any_name=named)
        found += some
        if left_out is not None:
            left_out += others
    check_looks(found, reading, files=True)
    seen = Seen()
    for source in found:
        seen.add(source.path)
    return found


def count_files(
    inputs: Sequence[str | os.PathLike[str]],
    how: How,
    reading: Reading | None = None,
    weights: Mapping[str, float] | None = None,
    work: str | os.PathLike[str] | None = None,
    progress: Show = False,
    left_out: list[str] | None = None,
    beside: Sequence[Source] = (),
) -> Counts:
    """Words of all documents of files.

    weights: pattern of names -> what each word of such a file counts (the first that matches; 1 without)
    work: a folder from which an interrupted call goes on
    progress: as for `jittok.train`
    left_out: gets what of folders and globs is not read
    beside: what else is read as `reading` says, which an option of it may be meant for

    CorpusError for what cannot be read, with file and line.
    """
    reading = reading or Reading(range_bytes=RANGE_BYTES)
    if how.memory is not None:
        step = max(LEAST_RANGE, min(reading.range_bytes, how.memory // RANGES_OF_MEMORY))
        reading = replace(reading, range_bytes=step)
    sources = sources_of(inputs, reading, left_out)
    check_options([*sources, *beside], reading)
    run = _Run(sources, how, reading, dict(weights or {}), Path(work) if work is not None else None)
    try:
        with shown(progress) as show:
            return run.go(show)
    finally:
        run.close()


class _Read(NamedTuple):
    """The numbers of a range that remain after its texts are counted and released."""

    documents: int
    size: int  # bytes of them
    seen: int  # lines, rows, documents of the range, of whatever kind
    bad: Bad | None  # the first that could not be read


class _Run:
    """One call of `count_files`."""

    def __init__(
        self, sources: list[Source], how: How, reading: Reading, weights: dict[str, float], work: Path | None
    ) -> None:
        self.sources, self.reading, self.how = sources, reading, how
        self.weights = self._weights_of(weights)
        if work is not None:
            work.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                work.mkdir(0o700)
            if work.is_symlink():  # others may let it lead elsewhere
                raise CorpusError(str(work), InWords("a link"), "a folder, by its own name: links are not followed")
            check_own(work, work.lstat(), work.parent.stat())
            _check_work(work)
        self.tally = CountRun(how, work, 1 if self.weights is None else UNIT)
        self.pieces = DocumentChunks(how.cutter(), how.special, how.lines is not None)  # type: ignore[arg-type]
        self.work, self.done = work, set[tuple[int, ...]]()
        self.ledger: Ledger | None = None
        self._lock, self._number = threading.Lock(), 0
        self._ranges: dict[int, list[RawRange]] = {}  # of each counter: what it has counted since its last run
        self._since: dict[int, list[int]] = {}  # of each counter: documents and bytes then
        if work is not None:
            try:
                self._take_up(work)
            except BaseException:
                self.close()
                raise

    def _weights_of(self, weights: dict[str, float]) -> Any:
        """int64[sources], or None where all are 1."""
        if not weights:
            return None
        unused = set(weights)
        found = []
        for source in self.sources:
            name = next((name for name in weights if fnmatch.fnmatch(source.path, name)), None)
            unused.discard(name or "")
            found.append(weights[name] if name is not None else 1.0)
        if unused:
            raise CorpusError("--weight", ", ".join(sorted(unused)), "patterns that match an input")
        return scaled(found)

    def _plan(self) -> dict[str, Any]:
        how = {name: getattr(self.how, name) for name in ("name", "lines", "like", "by", "sample", "seed")}
        weights = None if self.weights is None else self.weights.tolist()
        inputs = [[source.path, source.size, source.stamp] for source in self.sources]
        reading = self.reading.identity()
        return {"how": how, "special": list(self.how.special), "reading": reading, "inputs": inputs, "weights": weights}

    def _take_up(self, work: Path) -> None:
        """Resume from an earlier call: the ranges of its complete runs are not counted again."""
        streams = [source.path for source in self.sources if source.size is None]
        if streams:
            raise CorpusError("--work", ", ".join(streams), "files: a stream cannot be read again after a crash")
        self.ledger = Ledger(work / LEDGER)
        if not self.ledger.hold():
            raise CorpusError(
                str(work),
                InWords("another process that counts there"),
                "one writer at a time: wait until it has finished",
            )
        plan = self._plan()
        if not self.ledger.facts:
            self.ledger.add({"plan": plan}, sync=True)
        elif self.ledger.facts[0].get("plan") != plan:
            raise CorpusError(
                str(work), InWords("counts of other inputs or options"), "those it was begun with, or a new folder"
            )
        for fact in self.ledger.facts[1:]:
            name = component(fact.get("run"), self.ledger.path)
            try:
                path, ranges = work / name, {tuple(key) for key in fact["ranges"]}
                number = int(name.removeprefix("run-").removesuffix(".words"))
                documents, size, crc = (int(fact[key]) for key in ("documents", "bytes", "crc"))
                if min(number, documents, size) < 0:
                    raise ValueError("a number below 0")
            except (LookupError, TypeError, ValueError, OverflowError) as error:
                expected = "lines that jittok wrote: use a new folder to start again"
                raise CorpusError(
                    str(self.ledger.path), InWords(f"{type(error).__name__}: {error}"), expected
                ) from None
            self._number = max(self._number, number + 1)  # threads write at once: what is missing may have any number
            if ranges & self.done or not check_run(path, crc):
                continue
            self.tally.runs.append(path)
            self.tally.documents += documents
            self.tally.bytes += size
            self.done |= ranges

    def go(self, show: Shown) -> Counts:
        """Count the remaining ranges."""
        start = time.monotonic()
        sizes = [source.size for source in self.sources]
        total = None if None in sizes else sum(size or 0 for size in sizes)
        documents = size = read = 0
        lines = (-1, 0)  # a source, and how many of its lines have been seen
        with self.tally.pool() as pool:
            jobs = ((lambda raw=raw: (raw, self._count(raw))) for raw in self._raw_ranges())
            for raw, (read_of, cut) in in_turn(pool, self.tally.threads, jobs):
                self.tally.tail.add(cut)
                goes_on = lines[0] == raw.key.source and self.sources[raw.key.source].kind != "txt"
                base = lines[1] if goes_on else 0
                lines = (raw.key.source, base + read_of.seen)
                if read_of.bad is not None and self.reading.on_error == "fail":
                    bad = read_of.bad
                    where = f"{self.sources[bad.source].path}, line {bad.line + base}"
                    raise CorpusError(where, InWords(bad.found), f"{bad.expected} (--on-error skip leaves it out)")
                documents += read_of.documents - is_continued(raw.key, self.sources[raw.key.source])
                size += read_of.size
                read += raw.new
                seconds = time.monotonic() - start
                show(Progress("count", read, total, "bytes", seconds, documents, text_bytes=size))
        for source in self.sources:
            source.check_unchanged()
        if self.ledger is not None:
            for counter in self.tally.counters.all:
                self._keep(counter)
                counter.clear()
        return self.tally.finish()

    def _raw_ranges(self) -> Iterator[RawRange]:
        again = self.how.lines is not None  # all of them decide which line is the last one
        for unit, is_long in self._units():
            whole = (unit.source, unit.part, 0)
            one_range = unit.stop > 0 and self.sources[unit.source].kind in ("lines", "jsonl")
            if not again and whole in self.done and one_range:
                continue
            if is_long:
                ranges = read_long(unit, self.sources, self.reading, self.pieces)
            else:
                ranges = read_unit(unit, self.sources, self.reading)
            for raw in ranges:
                if again or tuple(raw.key) not in self.done:
                    yield raw

    def _units(self) -> Iterator[tuple[Unit, bool]]:
        """All units, and whether each is one long document, to be read in pieces."""
        for unit in units(self.sources, self.reading):
            if self.how.in_pieces:
                yield from text_units(unit, self.sources, self.reading.range_bytes)
            else:
                yield unit, False

    def _count(self, raw: RawRange) -> tuple[_Read, Lines | None]:
        texts = read_texts(raw, self.sources[raw.key.source].kind, self.reading, stop=self.tally.stop)
        size = int((texts.docs.stops - texts.docs.starts).sum())  # nearly, for texts as Python keeps them
        found = _Read(texts.docs.starts.size, size, texts.seen, texts.bad[0] if texts.bad else None)
        if texts.bad and self.reading.on_error == "fail":
            return found, None
        weights = None if self.weights is None else self.weights[texts.sources]
        raw.payload = None
        docs, weights, lines = self.tally.cut(texts.docs, weights)
        if tuple(raw.key) in self.done:
            return found, lines
        continued = lines is None and is_continued(raw.key, self.sources[raw.key.source])
        if self.ledger is None:
            self.tally.add_and_give_back(docs, weights, continued)
        else:
            counter = self.tally.add(docs, weights, continued)
            since = self._since.setdefault(id(counter), [0, 0])
            self._ranges.setdefault(id(counter), []).append(raw)
            if self.tally.is_full(counter) or counter.bytes - since[1] > KEEP_EVERY:
                self._keep(counter)
                counter.clear()
            self.tally.counters.give(counter)
        return found, lines

    def _keep(self, counter: Counter) -> None:
        """Write the words of a counter as a run, and record it in the ledger."""
        ranges = self._ranges.pop(id(counter), [])
        since = self._since.get(id(counter), [0, 0])
        if not ranges or self.work is None or self.ledger is None:
            return
        with self._lock:
            name = f"run-{self._number:06d}.words"
            self._number += 1
        with naming(self.work):
            crc = write_run(self.work / name, counter.table)
        fact = {"run": name, "crc": crc, "ranges": [list(raw.key) for raw in ranges],
                "documents": counter.documents - since[0], "bytes": counter.bytes - since[1]}  # fmt: skip
        self._since[id(counter)] = [counter.documents, counter.bytes]
        with self._lock, naming(self.work):
            self.ledger.add(fact, sync=True)
            self.tally.runs.append(self.work / name)

    def close(self) -> None:
        """Close the files."""
        if self.ledger is not None:
            self.ledger.close()
        self.tally.close()


def _check_work(work: Path) -> None:
    """CorpusError for a folder that holds other files than those of such calls: runs and the ledger are deleted at
    the end."""
    strange = sorted(path.name for path in work.iterdir() if not OWN_NAME.fullmatch(path.name))
    try:
        with os.fdopen(open_regular(work / LEDGER, os.O_RDONLY | getattr(os, "O_BINARY", 0)), "rb") as file:
            begin = file.read(len(LEDGER_BEGINS)).lstrip(b"\0")  # zeros: the power failed
    except FileNotFoundError:
        begin = b""
    if not re.fullmatch(rb"[0-9a-f]*", begin[:8]) or not LEDGER_BEGINS[8:].startswith(begin[8:]):
        strange.append(f"a {LEDGER} that is another's")
    if strange:
        found = InWords(", ".join(strange)[:80])
        raise CorpusError(str(work), found, "an empty folder, or one that jittok train began: it is deleted at the end")


def finished(work: str | os.PathLike[str]) -> None:
    """Remove the runs and the ledger of a work folder, if there is one, and the folder if nothing else is in it."""
    folder = Path(work)
    for path in folder.iterdir() if folder.is_dir() else ():
        if OWN_NAME.fullmatch(path.name) and not path.is_dir():
            path.unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def is_continued(key: Key, source: Source) -> bool:
    """Whether the document of a range began in an earlier one."""
    return source.kind == "txt" and key.part == CHUNKED and key.at > 0


def text_units(unit: Unit, sources: Sequence[Source], step: int) -> Iterator[tuple[Unit, bool]]:
    """(unit, whether it is one long document) of a unit of whole files."""
    if unit.stop != GROUP:
        yield unit, sources[unit.source].kind == "txt"
        return
    first = unit.source
    for k in range(unit.source, unit.last + 1):
        if sources[k].kind == "txt" and _is_long(sources[k], step):
            if k > first:
                yield Unit(first, 0, k - 1, 0, GROUP), False
            yield Unit(k, 0, k, 0, 0), True
            first = k + 1
    if first <= unit.last:
        yield Unit(first, 0, unit.last, 0, GROUP), False


def _is_long(source: Source, step: int) -> bool:
    return source.size is None or source.size * (PACKED if source.packing else 1) > step


def read_long(unit: Unit, sources: Sequence[Source], reading: Reading, pieces: DocumentChunks) -> Iterator[RawRange]:
    """The pieces of one file's document; whole if it is to be left out when a byte of it is no text."""
    source = sources[unit.source]
    if reading.on_error == "skip" and (source.size is None or not _is_text(source)):
        yield from read_unit(unit if source.size is None else unit._replace(stop=GROUP), sources, reading)
        return
    limit = Limit(source.path, reading.max_document_bytes)
    file = source.open()
    try:
        read, done = _reader(file, source), 0
        for at, piece in pieces.read(read, reading.range_bytes, limit):
            position = file.tell() if source.packing and source.size is not None else at + len(piece)
            key = Key(unit.source, CHUNKED, at)
            yield RawRange(key, unit.last, [(unit.source, piece)], position, position - done, offset=at)
            done = position
    finally:
        if source.path != STDIN:
            file.close()


def _reader(file: IO[bytes], source: Source) -> Read:
    return file.read if source.path == STDIN else open_unpacked(file, source.packing, source.path)


def _is_text(source: Source) -> bool:
    """Whether all of a file is UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with closing(source.open()) as file:
        read = _reader(file, source)
        try:
            while piece := read(LINE_END_BYTES):
                decoder.decode(piece)
            decoder.decode(b"", True)
        except UnicodeDecodeError:
            return False
    return True

"""Cuts inputs into units and ranges: by offsets in the input alone, never by threads, machines or time.

A unit is a part of the input that can be found without reading what precedes it: an interval of an uncompressed file
of lines, row groups of a Parquet file, several small files, or else a whole file. A range is what one thread encodes
at a time: the documents that begin in bytes [k * range_bytes, (k + 1) * range_bytes) of the text of a unit. A
document belongs to the range in which it begins, however long it is. A range of small files takes documents until it
has that many bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

from jittok.corpus.inputs.decompression import Read, open_unpacked
from jittok.corpus.inputs.kinds import TABLES
from jittok.corpus.inputs.remote import naming_input
from jittok.corpus.inputs.sources import LOST_AT, STDIN, Exchanged, Lost, Source, is_damage, lost
from jittok.corpus.options import FIRST_CUTS, MOST_BYTES, Options
from jittok.corpus.ranges import tables
from jittok.corpus.ranges.cutting import Limit, cut_lines, cut_separated, everything, interval
from jittok.errors import CorpusError, InWords

GROUP_FILES = 4096
"""Most files of one document each that share a range."""


class Key(NamedTuple):
    """The position of a range; keys of later ranges compare greater."""

    source: int
    part: int
    at: int


GROUP = -1
"""Unit.stop of a group: files that are read one after the other."""


class Unit(NamedTuple):
    """A part of the input that can be read on its own: bytes [start, stop) of a source, row groups [start, stop) of
    a Parquet file, a whole source (0, 0), or sources first .. last (stop is GROUP)."""

    source: int
    part: int
    last: int
    start: int
    stop: int


class Piece(NamedTuple):
    """The part of one file in a range of a group."""

    source: int
    kind: str
    before: int  # lines, rows or documents of the file before it
    payload: Any  # as in RawRange; the bytes of a file that is one document


@dataclass
class RawRange:
    """The bytes or rows of one range, unchecked."""

    key: Key
    last: int  # last source it has anything of
    payload: Any  # bytes (lines), [bytes] (a document each), [(source, bytes)] (whole files), an Arrow array (rows),
    # [Piece] (of a group)
    read: int  # bytes of source `last` that have been read so far
    new: int  # bytes read for this range, for progress
    prefix: list[Any] | None = None  # [source, bytes, digest] of what was read, for input that cannot be read twice
    lost: tuple[Lost, ...] = ()  # inputs that end here because they are damaged
    pieces: bool = False  # it is of a group
    offset: int = 0  # bytes of the document before it, where training reads a long one in pieces


def units(sources: Sequence[Source], options: Options, first: int = 0) -> Iterator[Unit]:
    """All units in order, from source `first` on. Reads the footers of large Parquet files on the way."""
    step, i = options.range_bytes, 0
    while i < len(sources):
        source = sources[i]
        last = _group_end(sources, i, options) if _joins(source, options) else i
        if last > i or (source.kind == "txt" and source.size is not None):
            if i >= first:
                yield Unit(i, 0, last, 0, GROUP)
            i = last + 1
            continue
        if i < first:
            pass
        elif source.kind == "parquet":
            yield from _row_groups(i, source, options)
        elif source.kind in ("lines", "jsonl") and not source.packing and source.size is not None:
            for part, start in enumerate(range(0, source.size, step)):
                yield Unit(i, part, i, start, min(start + step, source.size))
        else:
            yield Unit(i, 0, i, 0, 0)
        i += 1


def _row_groups(i: int, source: Source, options: Options) -> Iterator[Unit]:
    step = options.range_bytes if options.cuts > FIRST_CUTS else 0
    try:
        parts = list(tables.groups_together(source, options.column, step))
    except (OSError, CorpusError) as error:
        if options.on_error == "fail" or not is_damage(error):
            raise
        yield Unit(i, 0, i, 0, 0)
        return
    for part, (start, stop) in enumerate(parts):
        yield Unit(i, part, i, start, stop)


def _joins(source: Source, options: Options) -> bool:
    """Whether a file is read together with its neighbors: it is one document, or smaller than a range."""
    if source.size is None:
        return False
    return source.kind == "txt" or (options.cuts > FIRST_CUTS and source.size < options.range_bytes)


def _group_end(sources: Sequence[Source], first: int, options: Options) -> int:
    """The last source of a group: files are grouped until they have the bytes of a range on disk."""
    last, size, step = first, sources[first].size or 0, options.range_bytes
    while size < step and last + 1 < len(sources) and last - first + 1 < GROUP_FILES:
        following = sources[last + 1]
        if not _joins(following, options):
            break
        last, size = last + 1, size + (following.size or 0)
    return last


def read_unit(unit: Unit, sources: Sequence[Source], options: Options, first: int = 0) -> Iterator[RawRange]:
    """The ranges of one unit from number `first` on, without those of which nothing can be read.

    Raises OSError, CorpusError (damaged files), ImportError. Unless `on_error` is "fail", a damaged file ends in a
    range that reports it.
    """
    if first > LOST_AT:
        return
    source = sources[unit.source]
    try:
        with naming_input(source.path):
            yield from _read_unit(unit, sources, options, first)
    except (OSError, CorpusError) as error:
        if options.on_error == "fail" or not is_damage(error):
            raise
        record = lost(unit.source, 1, error)
        yield RawRange(
            Key(unit.source, unit.part, LOST_AT), unit.last, [], source.size or 0, 0, lost=(record,), pieces=True
        )


def _read_unit(unit: Unit, sources: Sequence[Source], options: Options, first: int) -> Iterator[RawRange]:
    source = sources[unit.source]
    if unit.stop == GROUP:
        yield from _group(unit, sources, options, first)
    elif source.kind == "txt":
        if not first:
            yield from _one_stream(unit, source, options)
    elif source.kind == "parquet":
        if not unit.stop:  # its footer could not be read
            tables.row_groups(source)
            raise Exchanged(
                source.path, InWords("a file that was replaced while it was read"), "a file that no one else writes to"
            )
        yield from _numbered(unit, tables.parquet_rows(source, range(unit.start, unit.stop), options, first), source)
    elif source.kind == "arrow":
        yield from _numbered(unit, tables.arrow_rows(source, options, first), source)
    elif unit.stop:
        if first:
            return
        with source.open() as file:
            block = interval(file, unit.start, unit.stop, Limit(source.path, options.max_document_bytes, "line"))
        raw = RawRange(Key(unit.source, unit.part, 0), unit.last, block, unit.stop, unit.stop - unit.start)
        del block  # the encoder takes it out of `raw`, and it is free while this waits
        yield raw
    else:
        yield from _stream(unit, source, options, first)


def _numbered(unit: Unit, rows: Iterator[tuple[int, Any, float]], source: Source) -> Iterator[RawRange]:
    done = 0
    for at, array, share in rows:
        read = int((source.size or 0) * share)
        raw = RawRange(Key(unit.source, unit.part, at), unit.last, array, read, max(read - done, 0) if done else 0)
        del array  # the encoder takes it out of `raw`, and it is free while this waits
        yield raw
        done = read


def _group(unit: Unit, sources: Sequence[Source], options: Options, first: int) -> Iterator[RawRange]:
    """Ranges of files that are read one after the other. Damage is reported in the range where it is met."""
    step = options.range_bytes if options.cuts > FIRST_CUTS else MOST_BYTES
    found: list[Piece] = []
    bad: list[Lost] = []
    size = at = new = 0

    def ready(last: int) -> RawRange:
        read = sources[last].size or 0
        return RawRange(Key(unit.source, 0, at), last, found, read, new, lost=tuple(bad), pieces=True)

    for i in range(unit.source, unit.last + 1):
        source, before = sources[i], 0
        new += source.size or 0
        try:
            with naming_input(source.path):
                for payload in _payloads(source, options):
                    found.append(Piece(i, source.kind, before, payload))
                    size += bytes_of(payload)
                    before += _count(source.kind, payload)
                    if size >= step:
                        if at >= first:
                            yield ready(i)
                        found, bad, size, new, at = [], [], 0, 0, at + 1
        except (OSError, CorpusError) as error:
            if options.on_error == "fail" or not is_damage(error):
                raise
            bad.append(lost(i, before + 1, error))
    if (found or bad or not at) and at >= first:
        yield ready(unit.last)


def _payloads(source: Source, options: Options) -> Iterator[Any]:
    """The content of a small file, or of a file that is one document, in parts of a range."""
    if source.kind in TABLES:
        with source.open() as file:
            content = file.read()
        if source.kind == "arrow":
            rows = tables.arrow_rows(source, options, 0, content)
        else:
            rows = tables.parquet_rows(source, None, options, 0, content)
        yield from (array for _, array, _ in rows)
        return
    with opened(source) as raw:
        read = open_unpacked(raw, source.packing, source.path)
        if source.kind == "txt":
            yield everything(read, Limit(source.path, options.max_document_bytes))
        else:
            yield from (block for _, block in _blocks(read, source, options))


@contextmanager
def opened(source: Source) -> Iterator[IO[bytes]]:
    """The bytes of an input as they are on disk; standard input stays open. CorpusError for an empty compressed
    file."""
    if source.packing and source.size == 0:  # some readers take nothing at all for the end of the data
        raise CorpusError(source.path, InWords("an empty file"), f"whole .{source.packing} data")
    raw = source.open()
    try:
        yield raw
    finally:
        if source.path != STDIN:
            raw.close()


def _blocks(read: Read, source: Source, options: Options) -> Iterator[tuple[int, Any]]:
    if source.kind == "separated":
        limit = Limit(source.path, options.max_document_bytes, "document")
        return cut_separated(read, options.range_bytes, (options.separator or "").encode(), limit)
    return cut_lines(read, options.range_bytes, Limit(source.path, options.max_document_bytes, "line"))


def bytes_of(payload: Any) -> int:
    """Approximate bytes of text in a range."""
    if isinstance(payload, list):
        return sum(map(len, payload))
    return len(payload) if isinstance(payload, bytes) else int(payload.nbytes)


def _count(kind: str, payload: Any) -> int:
    """Number of lines, rows or documents."""
    if kind in ("lines", "jsonl"):
        return payload.count(b"\n") if payload else 0
    return 1 if isinstance(payload, bytes) else len(payload)


def _one_stream(unit: Unit, source: Source, options: Options) -> Iterator[RawRange]:
    """Standard input, or another stream, as one document."""
    with opened(source) as raw:
        read = raw.read if source.path == STDIN else open_unpacked(raw, source.packing, source.path)
        tally = _Tally(unit.source, read)
        text = everything(tally.read, Limit(source.path, options.max_document_bytes))
    prefix = tally.prefix() if source.path == STDIN else None
    yield RawRange(Key(unit.source, 0, 0), unit.last, [(unit.source, text)], tally.size, tally.size, prefix)


class _Tally:
    """Counts and hashes what is read."""

    def __init__(self, source: int, read: Read) -> None:
        self.source, self.size, self._read, self._digest = source, 0, read, hashlib.sha256()

    def read(self, count: int) -> bytes:
        """Up to `count` bytes."""
        piece = self._read(count)
        self._digest.update(piece)
        self.size += len(piece)
        return piece

    def prefix(self) -> list[Any]:
        """[source, bytes so far, their digest]."""
        return [self.source, self.size, self._digest.hexdigest()]


def _stream(unit: Unit, source: Source, options: Options, first: int) -> Iterator[RawRange]:
    """Ranges of inputs that can only be read from the start: compressed files, standard input, texts with
    separators."""
    with opened(source) as raw:
        read, done = open_unpacked(raw, source.packing, source.path), 0
        tally = _Tally(unit.source, read) if source.size is None else None  # a stream has no offset
        if tally is not None:
            read = tally.read
        for at, block in _blocks(read, source, options):
            position = raw.tell() if tally is None else tally.size
            if at >= first:
                prefix = None if tally is None else tally.prefix()
                yield RawRange(Key(unit.source, 0, at), unit.last, block, position, position - done, prefix)
            done = position

"""Cuts inputs into units and ranges: by offsets in the input alone, never by threads, machines or time.

A unit is a part of the input that can be found without reading what precedes it: an interval of an uncompressed file
of lines, row groups of a Parquet file, several small files, or else a whole file. A range is what one thread encodes
at a time: the documents that begin in bytes [k * range_bytes, (k + 1) * range_bytes) of the text of a unit. A
document belongs to the range in which it begins, however long it is. A range of small files takes documents until it
has that many bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from typing import IO, Any, NamedTuple

from jittok.corpus.inputs.decompression import Read, open_unpacked
from jittok.corpus.inputs.kinds import TABLES
from jittok.corpus.inputs.remote import fetch_soon, naming_input
from jittok.corpus.inputs.sources import LOST_AT, STDIN, Exchanged, Lost, Source, is_damage, lost
from jittok.corpus.options import FIRST_CUTS, MOST_BYTES, Options
from jittok.corpus.ranges import tables
from jittok.corpus.ranges.cutting import Limit, cut_lines, cut_separated, everything, interval_at
from jittok.corpus.ranges.digests import Digest, Digests, Hashed, HashedRows
from jittok.errors import CorpusError, InWords

SOON = 8
"""Files of a group that are fetched at once, where they lie on a server."""
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
    begin: int = 0  # bytes of text of the file before it


@dataclass
class RawRange:
    """The bytes or rows of one range, unchecked."""

    key: Key
    last: int  # last source it has anything of
    payload: Any  # bytes (lines), [bytes] (a document each), [(source, bytes)] (whole files), an Arrow array (rows),
    # [Piece] (of a group)
    read: int  # bytes of source `last` that have been read so far
    new: int  # bytes read for this range, for progress
    lost: tuple[Lost, ...] = ()  # inputs that end here because they are damaged
    pieces: bool = False  # it is of a group
    offset: int = 0  # bytes of the document before it, where training reads a long one in pieces
    begin: int = 0  # bytes of text of source `key.source` before it; of a table the rows


def units(sources: Sequence[Source], options: Options, first: int = 0, part: int = 0) -> Iterator[Unit]:
    """All units in order, from `part` of source `first` on, with which a unit must begin (of Parquet: all of that
    source's). Reads the footers of large Parquet files on the way."""
    step, i = options.range_bytes, first
    while i < len(sources):
        source = sources[i]
        last = _group_end(sources, i, options) if _joins(source, options) else i
        if last > i or (source.kind == "txt" and source.size is not None):
            yield Unit(i, 0, last, 0, GROUP)
            i = last + 1
            continue
        if source.kind == "parquet":
            yield from _row_groups(i, source, options)
        elif source.kind in ("lines", "jsonl") and not source.packing and source.size is not None:
            begin = part if i == first else 0
            for number, start in enumerate(range(begin * step, source.size, step), begin):
                yield Unit(i, number, i, start, min(start + step, source.size))
        else:
            yield Unit(i, 0, i, 0, 0)
        i += 1


def units_at(sources: Sequence[Source], options: Options, places: Iterable[tuple[int, int]]) -> Iterator[Unit]:
    """The units that begin at these sources and parts, which are sorted; without those that are not there any more."""
    for source, group in groupby(places, key=lambda place: place[0]):
        wanted = [part for _, part in group]
        left = set(wanted)
        for unit in units(sources, options, source, wanted[0]):
            if unit.source != source:
                break
            if unit.part in left:
                left.remove(unit.part)
                yield unit
            if not left:
                break


def _row_groups(i: int, source: Source, options: Options) -> Iterator[Unit]:
    step = options.range_bytes if options.cuts > FIRST_CUTS else 0
    try:
        parts = list(tables.groups_together(source, options.of_tables, step))
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


def size_of(unit: Unit, sources: Sequence[Source], options: Options) -> int:
    """Bytes of input of a unit: of its interval, of the packed files, of the texts of row groups; 0 for a stream."""
    source = sources[unit.source]
    if unit.stop == GROUP or not unit.stop:
        return sum(sources[i].size or 0 for i in range(unit.source, unit.last + 1))
    if source.kind == "parquet":
        return tables.bytes_of_groups(source, options.of_tables, range(unit.start, unit.stop))
    return unit.stop - unit.start


def read_unit(
    unit: Unit, sources: Sequence[Source], options: Options, first: int = 0, digests: Digests | None = None
) -> Iterator[RawRange]:
    """The ranges of one unit from number `first` on, without those of which nothing can be read. `digests`: gets the
    digest of what has been read to its end.

    Raises OSError, CorpusError (damaged files), ImportError. Unless `on_error` is "fail", a damaged file ends in a
    range that reports it.
    """
    if first > LOST_AT:
        return
    source = sources[unit.source]
    try:
        with naming_input(source.path):
            yield from _read_unit(unit, sources, options, first, digests)
    except (OSError, CorpusError) as error:
        if options.on_error == "fail" or not is_damage(error):
            raise
        record, begin = lost(unit.source, 1, error), 0
        if source.kind == "parquet" and unit.stop:
            with suppress(OSError, CorpusError):
                begin = tables.rows_before(source, unit.start)
        yield RawRange(
            Key(unit.source, unit.part, LOST_AT), unit.last, [], source.size or 0, 0, lost=(record,), pieces=True,
            begin=begin,
        )  # fmt: skip


def _read_unit(
    unit: Unit, sources: Sequence[Source], options: Options, first: int, digests: Digests | None
) -> Iterator[RawRange]:
    source = sources[unit.source]
    if unit.stop == GROUP:
        yield from _group(unit, sources, options, first, digests)
    elif source.kind == "txt":
        if not first:
            yield from _one_stream(unit, source, options, digests)
    elif source.kind == "parquet":
        if not unit.stop:  # its footer could not be read
            tables.row_groups(source)
            raise Exchanged(
                source.path, InWords("a file that was replaced while it was read"), "a file that no one else writes to"
            )
        rows = tables.parquet_rows(source, range(unit.start, unit.stop), options, first)
        yield from _numbered(unit, rows, source, digests)
    elif source.kind == "arrow":
        yield from _numbered(unit, tables.arrow_rows(source, options, first), source, digests)
    elif unit.stop:
        if first:
            return
        digest = None if digests is None else hashlib.sha256()
        with source.open() as file:
            limit = Limit(source.path, options.max_document_bytes, "line")
            begin, block = interval_at(file, unit.start, unit.stop, limit, digest)
        size = unit.stop - unit.start
        if digest is not None and digests is not None:
            digests.append(Digest(unit.source, unit.part, size, digest.hexdigest()))
        raw = RawRange(Key(unit.source, unit.part, 0), unit.last, block, unit.stop, size, begin=begin)
        del block  # the encoder takes it out of `raw`, and it is free while this waits
        yield raw
    else:
        yield from _stream(unit, source, options, first, digests)


def _numbered(
    unit: Unit, rows: Iterator[tuple[int, Any, float]], source: Source, digests: Digests | None
) -> Iterator[RawRange]:
    done, hashed = 0, HashedRows()
    begin = tables.rows_before(source, unit.start) if source.kind == "parquet" else 0
    for at, array, share in rows:
        if digests is not None:
            hashed.update(array)
        read = int((source.size or 0) * share)
        raw = RawRange(
            Key(unit.source, unit.part, at), unit.last, array, read, max(read - done, 0) if done else 0, begin=begin
        )
        begin += len(array)
        del array  # the encoder takes it out of `raw`, and it is free while this waits
        yield raw
        done = read
    if digests is not None:
        digests.append(hashed.digest(unit.source, unit.part))


def _group(
    unit: Unit, sources: Sequence[Source], options: Options, first: int, digests: Digests | None
) -> Iterator[RawRange]:
    """Ranges of files that are read one after the other. Damage is reported in the range where it is met."""
    step = options.range_bytes if options.cuts > FIRST_CUTS else MOST_BYTES
    found: list[Piece] = []
    bad: list[Lost] = []
    size = at = new = 0

    def ready(last: int) -> RawRange:
        """What was found so far as a range; nothing here keeps its content meanwhile."""
        nonlocal found, bad, size, new, at
        read = sources[last].size or 0
        raw = RawRange(Key(unit.source, 0, at), last, found, read, new, lost=tuple(bad), pieces=True)
        found, bad, size, new, at = [], [], 0, 0, at + 1
        return raw

    for i in range(unit.source, unit.last + 1):
        source, before, begin = sources[i], 0, 0
        held = fetch_soon((each.path, each.size, each.stamp) for each in sources[i : min(i + SOON, unit.last + 1)])
        new += source.size or 0
        try:
            with naming_input(source.path):
                for payload in _payloads(i, source, options, digests):
                    found.append(Piece(i, source.kind, before, payload, begin))
                    size += bytes_of(payload)
                    before += _count(source.kind, payload)
                    begin += _span(payload, options)
                    del payload
                    if size >= step:
                        made = ready(i)
                        if made.key.at >= first:
                            yield made
                        del made
        except (OSError, CorpusError) as error:
            if options.on_error == "fail" or not is_damage(error):
                raise
            bad.append(lost(i, before + 1, error))
    del held
    if (found or bad or not at) and at >= first:
        yield ready(unit.last)


def _payloads(i: int, source: Source, options: Options, digests: Digests | None) -> Iterator[Any]:
    """The content of a small file, or of a file that is one document, in parts of a range."""
    if source.kind in TABLES:
        with source.open() as file:
            content = file.read()
        digest = None if digests is None else Digest(i, 0, len(content), hashlib.sha256(content).hexdigest())
        if source.kind == "arrow":
            rows = tables.arrow_rows(source, options, 0, content)
        else:
            rows = tables.parquet_rows(source, None, options, 0, content)
        yield from (array for _, array, _ in rows)
        if digest is not None and digests is not None:
            digests.append(digest)
        return
    with opened(source) as raw:
        hashed = Hashed(raw, digests is not None)
        read = open_unpacked(hashed.file, source.packing, source.path)
        if source.kind == "txt":
            yield everything(read, Limit(source.path, options.max_document_bytes))
        else:
            yield from (block for _, block in _blocks(read, source, options))
        hashed.add_to(digests, i, 0)


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


def _span(payload: Any, options: Options) -> int:
    """Bytes that the content of a range takes in the text of its file."""
    if isinstance(payload, list):
        return sum(map(len, payload)) + len(payload) * len((options.separator or "").encode())
    return len(payload) if isinstance(payload, bytes) else 0


def _one_stream(unit: Unit, source: Source, options: Options, digests: Digests | None) -> Iterator[RawRange]:
    """Standard input, or another stream, as one document."""
    with opened(source) as raw:
        packed = source.packing if source.path != STDIN else ""
        hashed = Hashed(raw, digests is not None)
        text = everything(
            open_unpacked(hashed.file, packed, source.path), Limit(source.path, options.max_document_bytes)
        )
        hashed.add_to(digests, unit.source, 0)
    raw_range = RawRange(Key(unit.source, 0, 0), unit.last, [(unit.source, text)], hashed.size, hashed.size)
    del text  # the encoder takes it out of the range
    yield raw_range


def _stream(unit: Unit, source: Source, options: Options, first: int, digests: Digests | None) -> Iterator[RawRange]:
    """Ranges of inputs that can only be read from the start: compressed files, standard input, texts with
    separators."""
    with opened(source) as raw:
        hashed, done, begin = Hashed(raw, digests is not None), 0, 0
        read = open_unpacked(hashed.file, source.packing, source.path)
        for at, block in _blocks(read, source, options):
            span = _span(block, options)
            if at >= first:
                key = Key(unit.source, 0, at)
                made = RawRange(key, unit.last, block, hashed.size, hashed.size - done, begin=begin)
                del block  # as in `_read_unit`
                yield made
                del made
            done, begin = hashed.size, begin + span
        hashed.add_to(digests, unit.source, 0)

"""Where the input is cut: by places in the input alone, never by threads, machines or time.

A unit is a piece of input that can be found without reading what is before it: an interval of a plain file of lines,
a row group, a whole file otherwise. A range is the work of one thread at a time: of a unit, the documents that begin in
bytes [k * range_bytes, (k + 1) * range_bytes) of its text. A document belongs where it begins, however long.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, NamedTuple

from jittok.corpus import tables
from jittok.corpus.far import naming_input
from jittok.corpus.limits import Limit, newlines, newlines_before
from jittok.corpus.options import Options
from jittok.corpus.sources import STDIN, Source
from jittok.corpus.unpack import Read, open_unpacked

AHEAD = 1 << 20
"""Bytes read at once to find the end of a line that leaves its interval."""
GROUP_FILES = 4096
"""Files of one document each that share a range, at most."""


class Key(NamedTuple):
    """The place of a range; keys of later ranges are greater."""

    source: int
    part: int
    at: int


class Unit(NamedTuple):
    """A piece of input that can be read on its own: sources first .. last, bytes [start, stop) or row group `part`."""

    source: int
    part: int
    last: int
    start: int
    stop: int


@dataclass
class RawRange:
    """The bytes or rows of one range, not looked at yet."""

    key: Key
    last: int  # last source it has anything of
    payload: Any  # bytes (lines), [bytes] (a document each), [(source, bytes)] (whole files), an Arrow array (rows)
    read: int  # bytes of source `last` that have been read so far
    new: int  # bytes read for this range, for progress
    prefix: list[Any] | None = None  # [source, bytes, digest] of what was read, for input that cannot be read twice
    offset: int = 0  # bytes of the document in front of it, where training reads a long one in pieces


def units(sources: Sequence[Source], options: Options, first: int = 0) -> Iterator[Unit]:
    """All units in order, from source `first` on. Footers of Parquet files are read on the way."""
    step, i = options.range_bytes, 0
    while i < len(sources):
        source = sources[i]
        if source.kind == "txt" and source.size is not None:
            last = _group_end(sources, i, step)
            if i >= first:
                yield Unit(i, 0, last, 0, 0)
            i = last + 1
            continue
        if i < first:
            pass
        elif source.kind == "parquet":
            for group in range(tables.row_groups(source)):
                yield Unit(i, group, i, 0, 0)
        elif source.kind in ("lines", "jsonl") and not source.packing and source.size is not None:
            for part, start in enumerate(range(0, source.size, step)):
                yield Unit(i, part, i, start, min(start + step, source.size))
        else:
            yield Unit(i, 0, i, 0, 0)
        i += 1


def _group_end(sources: Sequence[Source], first: int, step: int) -> int:
    """The last source of a group: whole files are gathered until they have `step` bytes on disk."""
    last, size = first, sources[first].size or 0
    while size < step and last + 1 < len(sources) and last - first + 1 < GROUP_FILES:
        following = sources[last + 1]
        if following.kind != "txt" or following.size is None:
            break
        last, size = last + 1, size + following.size
    return last


def read_unit(unit: Unit, sources: Sequence[Source], options: Options, first: int = 0) -> Iterator[RawRange]:
    """The ranges of one unit from number `first` on; ranges of which nothing can be read are left out.

    Raises OSError, CorpusError (damaged files), ImportError.
    """
    with naming_input(sources[unit.source].path):
        yield from _read_unit(unit, sources, options, first)


def _read_unit(unit: Unit, sources: Sequence[Source], options: Options, first: int) -> Iterator[RawRange]:
    source = sources[unit.source]
    if source.kind == "txt":
        if not first:
            yield from _whole_files(unit, sources, options)
    elif source.kind == "parquet":
        yield from _numbered(unit, tables.parquet_rows(source, unit.part, options, first), source)
    elif source.kind == "arrow":
        yield from _numbered(unit, tables.arrow_rows(source, options, first), source)
    elif unit.stop:
        if first:
            return
        with source.open() as file:
            block = interval(file, unit.start, unit.stop, Limit(source.path, options.max_document_bytes, "line"))
        yield RawRange(Key(unit.source, unit.part, 0), unit.last, block, unit.stop, unit.stop - unit.start)
    else:
        yield from _stream(unit, source, options, first)


def _numbered(unit: Unit, rows: Iterator[tuple[int, Any, float]], source: Source) -> Iterator[RawRange]:
    done = 0
    for at, array, share in rows:
        read = int((source.size or 0) * share)
        yield RawRange(Key(unit.source, unit.part, at), unit.last, array, read, max(read - done, 0) if done else 0)
        done = read


def _whole_files(unit: Unit, sources: Sequence[Source], options: Options) -> Iterator[RawRange]:
    found, size, prefix = [], 0, None
    for i in range(unit.source, unit.last + 1):
        limit = Limit(sources[i].path, options.max_document_bytes)
        if sources[i].path == STDIN:
            tally = _Tally(i, sources[i].open().read)
            found.append((i, _everything(tally.read, limit)))
            size, prefix = tally.size, tally.prefix()
            continue
        with naming_input(sources[i].path), sources[i].open() as raw:
            found.append((i, _everything(open_unpacked(raw, sources[i].packing, sources[i].path), limit)))
        size += sources[i].size or 0
    read = sources[unit.last].size
    yield RawRange(Key(unit.source, 0, 0), unit.last, found, size if read is None else read, size, prefix)


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


def _everything(read: Read, limit: Limit) -> bytes:
    parts, size = [], 0
    while piece := read(AHEAD):
        size += len(piece)
        limit.check(size)
        parts.append(piece)
    return b"".join(parts)


def interval(file: IO[bytes], start: int, stop: int, limit: Limit) -> bytes:
    """The lines that begin in [start, stop), whole. CorpusError for one that is too long."""
    before = max(start - 1, 0)
    file.seek(before)
    block = file.read(stop - before)
    if start:  # the line that is under way belongs to an earlier interval
        newline = block.find(b"\n")
        block = block[newline + 1 :] if newline >= 0 else b""
    parts = [block]
    size = len(block) - (block.rfind(b"\n") + 1)  # of the last line
    while size and (piece := file.read(AHEAD)):
        newline = piece.find(b"\n")
        if newline >= 0:
            parts.append(piece[: newline + 1])
            break
        parts.append(piece)
        size += len(piece)
        limit.check(size, partial(newlines_before, file, stop))
    whole = b"".join(parts)
    if len(whole) > limit.most:
        limit.before = newlines_before(file, stop) - newlines(block)
        limit.lines(whole)
    return whole


def _stream(unit: Unit, source: Source, options: Options, first: int) -> Iterator[RawRange]:
    """Ranges of what can only be read from its start: packed files, standard input, texts with separators."""
    raw = source.open()
    try:
        read, done = open_unpacked(raw, source.packing, source.path), 0
        tally = _Tally(unit.source, read) if source.size is None else None  # a stream cannot tell its place
        if tally is not None:
            read = tally.read
        blocks: Iterator[tuple[int, Any]]
        if source.kind == "separated":
            limit = Limit(source.path, options.max_document_bytes, "document")
            blocks = cut_separated(read, options.range_bytes, (options.separator or "").encode(), limit)
        else:
            blocks = cut_lines(read, options.range_bytes, Limit(source.path, options.max_document_bytes, "line"))
        for at, block in blocks:
            place = raw.tell() if tally is None else tally.size
            if at >= first:
                prefix = None if tally is None else tally.prefix()
                yield RawRange(Key(unit.source, 0, at), unit.last, block, place, place - done, prefix)
            done = place
    finally:
        if source.path != STDIN:
            raw.close()


def cut_lines(read: Read, step: int, limit: Limit) -> Iterator[tuple[int, bytes]]:
    """(k, the lines that begin in bytes [k * step, (k + 1) * step)) for each k that has any. CorpusError for a line
    that is too long, when so much of it has been read."""
    carry, at = b"", 0  # a line begins at `at`, where carry lies
    while True:
        k = at // step
        need = (k + 1) * step - at
        parts, have = [carry], len(carry)
        while have < need and (piece := read(need - have)):
            parts.append(piece)
            have += len(piece)
        block = b"".join(parts)
        cut = block.find(b"\n", need - 1) if have >= need else -1
        if cut < 0:
            parts = [block]
            carry = b""
            size = len(block) - (block.rfind(b"\n") + 1)  # of the last line
            limit.check(size, partial(newlines, block))
            while piece := read(min(step, AHEAD)):
                newline = piece.find(b"\n")
                if newline >= 0:
                    parts.append(piece[: newline + 1])
                    carry = piece[newline + 1 :]
                    break
                parts.append(piece)
                size += len(piece)
                limit.check(size, partial(newlines, block))
            block = b"".join(parts)
        else:
            block, carry = block[: cut + 1], block[cut + 1 :]
        if not block:
            return
        yield k, limit.lines(block)
        at += len(block)


def cut_separated(read: Read, step: int, separator: bytes, limit: Limit) -> Iterator[tuple[int, list[bytes]]]:
    """(k, the documents that begin in bytes [k * step, (k + 1) * step)). Nothing behind the last separator is none.
    CorpusError for a document that is too long, when so much of it has been read."""
    buffer, at, ended = bytearray(), 0, False  # a document begins at `at`, where buffer lies
    while True:
        k = at // step
        need, start, look = (k + 1) * step - at, 0, 0
        found: list[bytes] = []
        while start < need:
            place = buffer.find(separator, look)
            if place < 0:
                if ended:
                    break
                look = max(start, len(buffer) - len(separator) + 1)
                limit.check(look - start, partial(len, found))
                piece = read(AHEAD)
                ended = not piece
                buffer += piece
                continue
            found.append(bytes(buffer[start:place]))
            start = look = place + len(separator)
        if start < need and start < len(buffer):  # the last document, without a separator behind it
            found.append(bytes(buffer[start:]))
            start = len(buffer)
        limit.texts(found)
        if found:
            yield k, found
        del buffer[:start]
        at += start
        if ended and not buffer:
            return

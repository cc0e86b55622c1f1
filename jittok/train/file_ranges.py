"""Files of text in ranges, as the corpus compiler reads them; a long file of one document in ranges of its pieces."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import IO

from jittok.corpus.decompression import Read, open_unpacked
from jittok.corpus.limits import Limit
from jittok.corpus.options import Options as Reading
from jittok.corpus.ranges import GROUP, LINE_END_BYTES, Key, RawRange, Unit, read_unit
from jittok.corpus.sources import STDIN, Source
from jittok.train.document_chunks import DocumentChunks

CHUNKED = 1
"""Key.part of the ranges of a document in pieces; Key.at is the byte at which one begins."""
PACKED = 16
"""A packed file may be this many times longer than it looks."""


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

"""Checks of Parquet and Arrow files before pyarrow reads them: their unpacked sizes, and that each is one file.

- A page of Parquet, or a buffer of Arrow, is unpacked as a whole, and a file of a few kilobytes may hold one of two
  gigabytes. pyarrow exposes neither the size of a page nor the offset of a buffer before it has unpacked them. So this
  module parses page headers (Thrift's compact protocol, of which all but the two sizes is skipped) and the few
  FlatBuffers fields that lead to the buffers, before each of which its unpacked size is stored.
- Readers of concatenated files (cat a.parquet b.parquet) find the footer of the second and apply its offsets to the
  first. Writers put the footer right after the data that it refers to, except for an index that pyarrow does not
  expose. So a single file has no unreferenced bytes at its end, while a concatenated one has at least the end of
  another file there. Only that is refused: valid files may have gaps.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jittok.corpus.inputs.sources import OPTION
from jittok.errors import CorpusError, InWords

LARGE_PAGE = 256 << 20
"""Unpacked size that a page or buffer may always have, however short documents must be: writers put many documents in
one."""
PARQUET, ARROW = b"PAR1", b"ARROW1"
"""How these files begin and end."""
ENCRYPTED = b"PARE"
INDEX = 16 << 20
"""Largest index between the last page and the footer. If it is larger, only a file without an index before another
one is detected."""
ASKED = 16
"""Offsets that are tested for the end of a footer: a file may contain the magic bytes at millions of offsets, and
each test may read much."""
WHOLE_PARQUET, WHOLE_ARROW = "a whole Parquet file", "a whole Arrow IPC file or stream"
ONE_FILE = "a single file: concatenated tables are not one table, so pass each file (or write them as one)"


class ParquetFooter(NamedTuple):
    """Check that a file is one Parquet file."""

    facts: Any  # `ParquetFile.metadata`
    columns: Sequence[int]  # those that pyarrow may be asked about


class ParquetColumn(NamedTuple):
    """Check the pages of a column of one row group."""

    chunk: Any  # the ColumnChunkMetaData of pyarrow


class ArrowMessages(NamedTuple):
    """Check that a file is one Arrow IPC file or stream, and the buffers of its messages."""

    stream: bool  # messages follow each other without a footer


class Refused(Exception):
    """What was found (words or bytes), and what was expected."""


def check_table(
    file: Any, where: str, part: ParquetFooter | ParquetColumn | ArrowMessages, most: int = 0, believe: bool = False
) -> None:
    """CorpusError where a part of a table is not what pyarrow may read. `file`: opened, and read from anywhere.

    Pages and buffers may have `most` bytes unpacked (those of a document), and LARGE_PAGE in any case. `believe`: trust
    the file's sum of the sizes of pages, and do not check buffers: each header of a remote file is a
    request. `where`: of the error.
    """
    most = max(most, LARGE_PAGE)
    try:
        if isinstance(part, ParquetFooter):
            _check_parquet(file, part.facts, part.columns)
        elif isinstance(part, ParquetColumn):
            _check_pages(file, part.chunk, most, believe)
        else:
            _check_messages(file, most, part.stream, believe)
    except Refused as error:
        found, expected = error.args
        raise CorpusError(where, InWords(found) if isinstance(found, str) else found, expected) from error.__cause__


def _read(file: Any, at: int, size: int) -> bytes:
    if at < 0 or size < 0:
        raise IndexError("before the file")
    file.seek(at)
    return file.read(size)  # type: ignore[no-any-return]


# ---- Parquet: one file


def _check_parquet(file: Any, facts: Any, columns: Sequence[int]) -> None:
    """Refused where another file is before a Parquet file."""
    footer = file.seek(0, os.SEEK_END) - 2 * len(PARQUET) - facts.serialized_size
    gap = footer - _end_of_pages(facts, footer, columns)
    if gap <= 0:
        return
    found, first = _read(file, 0, len(PARQUET)), max(gap - INDEX, len(PARQUET))
    if found not in (PARQUET, ENCRYPTED):
        raise Refused(found, f"{PARQUET!r}, as Parquet files begin: {ONE_FILE}")
    # the second file begins where no one names anything, or before, where it has an index
    around = _read(file, first - len(PARQUET), gap - first + 2 * len(PARQUET))
    at = around.rfind(2 * PARQUET)
    for _ in range(ASKED):
        if at < 0:
            break
        if _ends_here(file, first + at):
            raise Refused(f"another Parquet file before byte {first + at}", ONE_FILE)
        at = around.rfind(2 * PARQUET, 0, at + 2 * len(PARQUET) - 1)


def _end_of_pages(facts: Any, footer: int, columns: Sequence[int]) -> int:
    """End of the last page. Of a file with many row groups only the last is examined, as writers append."""
    ends = [len(PARQUET)]
    for group in range(facts.num_row_groups - 1, -1, -1):
        row_group = facts.row_group(group)
        ends += [place_of(row_group.column(k))[1] for k in columns]
        if row_group.num_rows:
            break
    return min(max(ends), footer)


def place_of(chunk: Any) -> tuple[int, int]:
    """[start, stop): the bytes of a column of a row group in its file."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        start = min(start, chunk.dictionary_page_offset)
    return start, start + chunk.total_compressed_size


def _ends_here(file: Any, end: int) -> bool:
    """Whether a complete Parquet footer ends at an offset: a text may contain the magic bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = int.from_bytes(_read(file, end - 8, 4), "little") if end >= 8 else 0
    if not 0 < size <= end - 12:
        return False
    footer = _read(file, end - 8 - size, size + 8)
    try:
        pq.read_metadata(io.BytesIO(PARQUET + footer))
    except (pa.ArrowException, OSError):
        return False
    return True


# ---- Parquet: pages. Thrift's compact protocol

HEAD, LONGEST_HEAD = 1 << 10, 16 << 20
"""Bytes of a header that are read at first, and at most."""
_UNPACKED, _PACKED = 2, 3
"""Fields of a header: the size of its page, uncompressed and compressed."""
_STOP, _TRUE, _FALSE, _BYTE, _INT16, _INT32, _INT64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
_DEEPEST = 16


def _check_pages(file: Any, chunk: Any, most: int, believe: bool) -> None:
    if believe and chunk.total_uncompressed_size <= most:
        return
    for size in page_sizes(file, chunk):
        if size > most:
            raise Refused(f"a page of {size} bytes", f"up to {most}: write smaller pages or row groups ({OPTION})")


def page_sizes(file: Any, chunk: Any) -> Iterator[int]:
    """Unpacked size of each page of a column of a row group. Refused for an invalid page header."""
    at, stop = place_of(chunk)
    while at < stop:
        sizes, after = _head(file, at, stop)
        yield sizes[_UNPACKED]
        at = after + sizes[_PACKED]


def _head(file: Any, at: int, stop: int) -> tuple[dict[int, int], int]:
    """The numbers of the header at an offset, by field, and the offset after it."""
    capacity = HEAD
    while True:
        file.seek(at)
        raw = file.read(min(capacity, stop - at))
        try:
            fields, after = _struct(raw, 0, 0)
        except IndexError:
            if len(raw) < capacity or capacity >= LONGEST_HEAD:
                break
            capacity *= 16
            continue
        if min(fields.get(_UNPACKED, -1), fields.get(_PACKED, -1)) < 0:
            break
        return fields, at + after
    raise Refused(f"no page header at byte {at}", WHOLE_PARQUET)


def _number(raw: bytes, at: int) -> tuple[int, int]:
    """A varint, and the offset after it."""
    number = shift = 0
    while True:
        byte = raw[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
        if shift > 63:
            raise IndexError("a number that does not end")


def _signed(raw: bytes, at: int) -> tuple[int, int]:
    number, at = _number(raw, at)
    return number >> 1 ^ -(number & 1), at


def _struct(raw: bytes, at: int, depth: int) -> tuple[dict[int, int], int]:
    """The integer fields of a struct, and the offset after it. IndexError if it is truncated."""
    found, field = dict[int, int](), 0
    while raw[at] != _STOP:
        kind, step = raw[at] & 15, raw[at] >> 4
        at += 1
        if step:
            field += step
        else:
            field, at = _signed(raw, at)
        if kind in (_INT16, _INT32, _INT64):
            found[field], at = _signed(raw, at)
        elif kind not in (_TRUE, _FALSE):
            at = _after(raw, at, kind, depth)
    return found, at + 1


def _after(raw: bytes, at: int, kind: int, depth: int) -> int:
    """The offset after a value. In a list, a boolean is a byte."""
    if kind in (_TRUE, _FALSE, _BYTE):
        return at + 1
    if kind == _DOUBLE:
        return at + 8
    if kind in (_INT16, _INT32, _INT64):
        return _number(raw, at)[1]
    if kind == _BINARY:
        size, at = _number(raw, at)
        return at + size
    if kind == _STRUCT and depth < _DEEPEST:
        return _struct(raw, at, depth + 1)[1]
    if kind in (_LIST, _SET) and depth < _DEEPEST:
        count, kind, at = raw[at] >> 4, raw[at] & 15, at + 1
        if count == 15:
            count, at = _number(raw, at)
        for _ in range(count):
            at = _after(raw, at, kind, depth + 1)
            if at > len(raw):
                break
        return at
    raise IndexError("a valid page header")


# ---- Arrow: one file, and its messages

_BLOCK = struct.Struct("<qi4xq")  # of a footer: where a message is, bytes of its head and of its body
_BUFFER = struct.Struct("<qq")  # where it begins in the body, and its bytes
_CONTINUES = -1
_DICTIONARIES, _BATCHES = 2, 3
"""Fields of a footer."""
_KIND, _HEADER, _BODY = 1, 2, 3
"""Fields of a message: what it is (a dictionary or a batch, see below), that, and the bytes after its head."""
_DICTIONARY, _BATCH = 2, 3
_DATA = 1
"""Field of a dictionary: the batch of its values."""
_BUFFERS, _PACKING = 2, 3
"""Fields of a batch."""


def _check_messages(file: Any, most: int, stream: bool, believe: bool) -> None:
    try:
        if not stream:
            _check_arrow(file, _gap(file))
        if believe:
            return
        for size in unpacked_sizes(file, stream):
            if size > most:
                raise Refused(f"a buffer of {size} bytes", f"up to {most}: write smaller batches ({OPTION})")
    except (struct.error, IndexError, OverflowError) as error:
        raise Refused("messages that lead nowhere or end too early", WHOLE_ARROW) from error


def _check_arrow(file: Any, gap: int) -> None:
    """Refused where another file is before an Arrow IPC file. `gap`: bytes between the last message and the footer."""
    found, first = _read(file, 0, len(ARROW)), max(gap - INDEX, len(ARROW))
    if found != ARROW:
        raise Refused(found, f"{ARROW!r}, as Arrow IPC files begin: {ONE_FILE}")
    if gap <= first:
        return
    around = _read(file, first - len(ARROW), gap - first + 2 * len(ARROW) + 2)
    at = around.rfind(ARROW + ARROW + b"\0\0")
    begin = first + at
    size = begin - len(ARROW) - 4  # where the first file has the length of its footer
    if at >= 0 and 0 < int.from_bytes(_read(file, size, 4), "little") <= size:
        raise Refused(f"another Arrow file before byte {begin}", ONE_FILE)


def unpacked_sizes(file: Any, stream: bool) -> Iterator[int]:
    """Unpacked size of each compressed buffer. struct.error for malformed data."""
    for body, head in _of_stream(file) if stream else _of_file(file):
        message = _table(head, 0)
        batch = _inner(head, message, _HEADER)
        kind = _byte(head, message, _KIND)
        if kind not in (_DICTIONARY, _BATCH) or batch is None:
            continue
        if kind == _DICTIONARY:
            batch = _inner(head, batch, _DATA)
        if batch is None or _field(head, batch, _PACKING) is None:
            continue
        for start, size in _structs(head, batch, _BUFFERS, _BUFFER):
            if size:
                yield max(0, struct.unpack("<q", _read(file, body + start, 8))[0])  # -1: it is not packed


def _gap(file: Any) -> int:
    """Bytes of an IPC file between the last message that its footer names and the footer."""
    footer, at = _footer(file)
    return at - max((sum(block) for block in _blocks(footer)), default=len(ARROW) + 2)


def _footer(file: Any) -> tuple[bytes, int]:
    """The footer of an IPC file, and where it begins."""
    file.seek(0, os.SEEK_END)
    end = file.tell() - len(ARROW) - 4
    size = struct.unpack("<i", _read(file, end, 4))[0]
    return _read(file, end - size, size), end - size


def _blocks(footer: bytes) -> Iterator[tuple[int, ...]]:
    """Offset of each message, and the sizes of its header and its body."""
    for field in (_DICTIONARIES, _BATCHES):
        yield from _structs(footer, _table(footer, 0), field, _BLOCK)


def _of_file(file: Any) -> Iterator[tuple[int, bytes]]:
    """(offset of the body, header) of each message that the footer lists."""
    for at, head, _ in _blocks(_footer(file)[0]):
        raw = _read(file, at, head)
        size, before = _size(raw)
        yield at + head, raw[before : before + size]


def _of_stream(file: Any) -> Iterator[tuple[int, bytes]]:
    """The same for a stream of messages. Refused where the stream has no end marker, or where data follows it:
    readers would take both for the end."""
    at = 0
    while start := _read(file, at, 8):
        size, before = _size(start.ljust(8, b"\0"))
        if size <= 0:
            if _read(file, at + before, 1 << 12).strip(b"\0"):
                raise Refused("a stream with data after its end", "one stream: write several as one")
            return
        if len(start) < 8:
            break
        head = _read(file, at + before, size)
        yield at + before + size, head
        position = _field(head, _table(head, 0), _BODY)
        body = struct.unpack_from("<q", head, position)[0] if position is not None else 0
        if body < 0:
            raise IndexError("a message that leads back")
        at += before + size + body
    raise Refused("a stream without its end, as a writer that was killed leaves it", "a whole Arrow IPC stream")


def _size(start: bytes) -> tuple[int, int]:
    """Size of a header, and of what precedes it."""
    first, second = struct.unpack_from("<ii", start)
    return (second, 8) if first == _CONTINUES else (first, 4)


# ---- FlatBuffers: a table is the offset of one in its bytes


def _table(raw: bytes, at: int) -> int:
    """The table that the number at an offset points to."""
    return at + int(struct.unpack_from("<I", raw, at)[0])


def _field(raw: bytes, table: int, number: int) -> int | None:
    """Offset of a field, None where it is absent."""
    fields = table - struct.unpack_from("<i", raw, table)[0]
    if fields < 0:
        raise IndexError("fields before all bytes")
    if 4 + 2 * number >= struct.unpack_from("<H", raw, fields)[0]:
        return None
    offset = struct.unpack_from("<H", raw, fields + 4 + 2 * number)[0]
    return table + offset if offset else None


def _inner(raw: bytes, table: int, number: int) -> int | None:
    at = _field(raw, table, number)
    return None if at is None else _table(raw, at)


def _byte(raw: bytes, table: int, number: int) -> int:
    at = _field(raw, table, number)
    return 0 if at is None else raw[at]


def _structs(raw: bytes, table: int, number: int, kind: struct.Struct) -> Iterator[tuple[int, ...]]:
    """The elements of a field that is a list of structs."""
    at = _inner(raw, table, number)
    if at is not None:
        for k in range(struct.unpack_from("<I", raw, at)[0]):
            yield kind.unpack_from(raw, at + 4 + k * kind.size)

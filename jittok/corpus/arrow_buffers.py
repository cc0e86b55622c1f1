"""Unpacked sizes of the compressed buffers of an Arrow IPC file or stream, checked before one is unpacked.

A batch is unpacked whole, and a few kilobytes may hold a buffer of gigabytes. The unpacked size is stored before
each compressed buffer. The offsets of the buffers are in the messages, and pyarrow does not expose them before it
has unpacked the batch; so this module reads the few FlatBuffers fields that lead to them.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any

from jittok.corpus.concatenated_tables import check_arrow
from jittok.corpus.limits import OPTION
from jittok.corpus.parquet_pages import LARGE_PAGE
from jittok.errors import CorpusError, InWords

_MAGIC = b"ARROW1"
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


class Unended(Exception):
    """Found and expected, for a stream that does not end exactly once, at the end of its file."""


def check_buffers(file: Any, most: int, where: str, stream: bool, believe: bool = False) -> None:
    """CorpusError where a compressed buffer is larger than a document may be and than `parquet_pages.LARGE_PAGE`, or
    where a file is not one. `file`: an open file that can seek; `stream`: messages follow each other without a
    footer; `believe`: do not check the sizes, as each header of a remote file costs a request."""
    most = max(most, LARGE_PAGE)
    try:
        if not stream:
            check_arrow(file, _behind_messages(file), where)
        if believe:
            return
        for size in unpacked_sizes(file, stream):
            if size > most:
                raise CorpusError(
                    where, InWords(f"a buffer of {size} bytes"), f"up to {most}: write smaller batches ({OPTION})"
                )
    except Unended as error:
        raise CorpusError(where, InWords(error.args[0]), error.args[1]) from None
    except (struct.error, IndexError, OverflowError) as error:
        found = InWords("messages that lead nowhere or end too early")
        raise CorpusError(where, found, "a whole Arrow IPC file or stream") from error


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


def _read(file: Any, at: int, size: int) -> bytes:
    if at < 0 or size < 0:
        raise IndexError("before the file")
    file.seek(at)
    return file.read(size)  # type: ignore[no-any-return]


def _behind_messages(file: Any) -> int:
    """Bytes of an IPC file, read from anywhere, between the last message that its footer names and the footer."""
    footer, at = _footer(file)
    return at - max((sum(block) for block in _blocks(footer)), default=len(_MAGIC) + 2)


def _footer(file: Any) -> tuple[bytes, int]:
    """The footer of an IPC file, and where it begins."""
    file.seek(0, os.SEEK_END)
    end = file.tell() - len(_MAGIC) - 4
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
    """The same for a stream of messages. Unended where the stream has no end marker, or where data follows it:
    readers would take both for the end."""
    at = 0
    while start := _read(file, at, 8):
        size, before = _size(start.ljust(8, b"\0"))
        if size <= 0:
            if _read(file, at + before, 1 << 12).strip(b"\0"):
                raise Unended("a stream with data after its end", "one stream: write several as one")
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
    raise Unended("a stream without its end, as a writer that was killed leaves it", "a whole Arrow IPC stream")


def _size(start: bytes) -> tuple[int, int]:
    """Size of a header, and of what precedes it."""
    first, second = struct.unpack_from("<ii", start)
    return (second, 8) if first == _CONTINUES else (first, 4)


# ---- FlatBuffers: places are those of tables in their bytes


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

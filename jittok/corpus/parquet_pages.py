"""Unpacked sizes of the pages of a Parquet column, read from their headers before a page is decompressed.

A page is decompressed as a whole, and a file of a few kilobytes may hold a page of two gigabytes. pyarrow exposes
the total size of a column as the file states it, but not the size of a page. So this module parses the page headers:
Thrift's compact protocol, of which all but the two sizes is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jittok.corpus.limits import OPTION
from jittok.errors import CorpusError, InWords

LARGE_PAGE = 256 << 20
"""Unpacked size that a page may always have, however short documents must be: writers put many documents in one
page."""
HEAD, LONGEST_HEAD = 1 << 10, 16 << 20
"""Bytes of a header that are read at first, and at most."""
_UNPACKED, _PACKED = 2, 3
"""Fields of a header: the size of its page, uncompressed and compressed."""
_STOP, _TRUE, _FALSE, _BYTE, _INT16, _INT32, _INT64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
_DEEPEST = 16


def check_pages(file: Any, column: Any, most: int, where: str, believe: bool = False) -> None:
    """CorpusError where a page of this column of a row group is larger than a document may be, and than LARGE. `file`:
    the Parquet file, opened; `column`: what pyarrow knows of it; most: bytes of a document; believe: that all pages
    together have the size that the file says, as each head is a request where a file is far away."""
    most = max(most, LARGE_PAGE)
    if believe and column.total_uncompressed_size <= most:
        return
    for size in page_sizes(file, column, where):
        if size > most:
            raise CorpusError(
                where, InWords(f"a page of {size} bytes"), f"up to {most}: write smaller pages or row groups ({OPTION})"
            )


def page_sizes(file: Any, column: Any, where: str) -> Iterator[int]:
    """Unpacked size of each page of a column. CorpusError for an invalid page header."""
    starts = [column.data_page_offset]
    if column.has_dictionary_page and column.dictionary_page_offset:
        starts.append(column.dictionary_page_offset)
    at = min(starts)
    stop = at + column.total_compressed_size
    while at < stop:
        sizes, after = _head(file, at, stop, where)
        yield sizes[_UNPACKED]
        at = after + sizes[_PACKED]


def _head(file: Any, at: int, stop: int, where: str) -> tuple[dict[int, int], int]:
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
    raise CorpusError(where, InWords(f"no page header at byte {at}"), "a whole Parquet file")


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
            at = _behind(raw, at, kind, depth)
    return found, at + 1


def _signed(raw: bytes, at: int) -> tuple[int, int]:
    number, at = _number(raw, at)
    return number >> 1 ^ -(number & 1), at


def _behind(raw: bytes, at: int, kind: int, depth: int) -> int:
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
            at = _behind(raw, at, kind, depth + 1)
            if at > len(raw):
                break
        return at
    raise IndexError("a valid page header")

"""How large the pages of a Parquet column are unpacked, by their heads: asked before a page is unpacked.

A page is unpacked whole, whatever is read of it, and a file of some kilobytes may hold one of two gigabytes. pyarrow
tells the size of all pages of a column together, as the file says it, but not that of one. So the heads are read here:
Thrift's compact protocol, of which all is skipped but the two sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jittok.corpus.limits import OPTION
from jittok.errors import CorpusError, InWords

LARGE_PAGE = 256 << 20
"""Bytes that a page may have unpacked, however short documents have to be: writers put many of them in one page."""
HEAD, LONGEST_HEAD = 1 << 10, 16 << 20
"""Bytes that are read of a head at first, and at most."""
_UNPACKED, _PACKED = 2, 3
"""Fields of a head: the sizes of its page unpacked, and as it is in the file."""
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
    """Bytes of each page of a column, unpacked. CorpusError for what is no head of a page."""
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
    """The numbers of the head that begins at `at`, by field, and the offset after it."""
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
    raise CorpusError(where, InWords(f"no head of a page at byte {at}"), "a whole Parquet file")


def _number(raw: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and the offset after it."""
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
    """The whole numbers among the fields of a struct, and the offset after it. IndexError where it does not end."""
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
    """The place after a value. In a list, a truth value is a byte."""
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
    raise IndexError("nothing that stands in the head of a page")

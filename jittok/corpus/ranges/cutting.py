"""Cuts a text into the documents that begin in [k * step, (k + 1) * step), and limits their size while it is read."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import IO, Any

import numpy as np

from jittok.corpus.inputs.decompression import Read
from jittok.corpus.inputs.remote import fetch_part_soon
from jittok.corpus.inputs.sources import OPTION, TooLong
from jittok.errors import InWords


class Limit:
    """The size limit for the documents of one input; it also counts them, for messages."""

    def __init__(self, path: str, most: int, thing: str = "") -> None:
        """`thing`: the unit that messages count: "line", "row" or "document"; empty where a file is one document."""
        self.path, self.most, self.thing = path, most, thing
        self.before = 0

    def check(self, size: int, after: Callable[[], int] = int) -> None:
        """CorpusError if a document of this size is too long. `after()`: number of documents between those counted
        and this one."""
        if size > self.most:
            where = f"{self.path}, {self.thing} {self.before + after() + 1}" if self.thing else self.path
            raise TooLong(where, InWords(f"a document of {size} bytes or more"), f"up to {self.most} bytes ({OPTION})")

    def lines(self, block: bytes) -> bytes:
        """Check and count the lines of a block, and return it."""
        if len(block) > self.most:
            sizes = [len(line) for line in block.split(b"\n")]
            for number, size in enumerate(sizes):
                self.check(size, partial(int, number))
        self.before += newlines(block)
        return block

    def texts(self, texts: Sequence[bytes]) -> None:
        """Check texts, and count them."""
        for text in texts:
            self.check(len(text))
            self.before += 1

    def rows(self, array: Any, first: int) -> None:
        """Check the rows of an Arrow array; the first of them is row `first` of the input, counted from 0."""
        if array.nbytes <= self.most:
            return
        import pyarrow.compute as pc

        sizes = pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False)
        row = int(sizes.argmax())
        self.check(int(sizes[row]), partial(int, first + row))


def newlines(block: bytes) -> int:
    """The number of line feeds."""
    return int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))


def newlines_before(file: IO[bytes], position: int) -> int:
    """The number of line feeds before an offset in a file."""
    file.seek(0)
    found = 0
    while position > 0 and (piece := file.read(min(position, 1 << 20))):
        found, position = found + newlines(piece), position - len(piece)
    return found


LINE_END_BYTES = 1 << 20
"""Bytes read at once to find the end of a line that leaves its interval."""


def everything(read: Read, limit: Limit) -> bytes:
    """All bytes, held in memory once."""
    found = io.BytesIO()
    while piece := read(LINE_END_BYTES):
        found.write(piece)
        limit.check(found.tell())
    return found.getvalue()


def interval(file: IO[bytes], start: int, stop: int, limit: Limit) -> bytes:
    """The complete lines that begin in [start, stop). CorpusError for one that is too long."""
    return interval_at(file, start, stop, limit)[1]


LINE_ENDS_WITHIN = 32 << 10
"""Bytes in which the end of a line is looked for first: most lines end there."""


def interval_at(file: IO[bytes], start: int, stop: int, limit: Limit, digest: Any = None) -> tuple[int, bytes]:
    """(the offset of the first of them, the complete lines that begin in [start, stop)); `digest` is updated with the
    bytes [start, stop). CorpusError for a line that is too long.

    Where they begin and end is found first, so that they are read at once, to where they stay.
    """
    fetch_part_soon(file, max(start - 1, 0), stop + LINE_ENDS_WITHIN)
    at = _line_begin(file, start, stop, digest) if start else 0
    if at >= stop:
        return stop, b""
    end = _line_end(file, stop)
    file.seek(at)
    whole = file.read(end - at) if end else _with_long_line(file, at, stop, limit)
    if digest is not None:
        with memoryview(whole) as view:
            digest.update(view[: stop - at])
    if len(whole) > limit.most:
        limit.before = newlines_before(file, at)
        limit.lines(whole)
    return at, whole


def _line_begin(file: IO[bytes], start: int, stop: int, digest: Any) -> int:
    """The offset of the first line that begins in [start, stop), or `stop` if there is none; `digest` is updated with
    what comes before it."""
    at = start - 1
    file.seek(at)
    while at < stop and (piece := file.read(min(stop - at, LINE_ENDS_WITHIN if at < start else LINE_END_BYTES))):
        found = piece.find(b"\n", 0, stop - 1 - at) + 1
        if digest is not None:
            digest.update(piece[max(start - at, 0) : found or len(piece)])
        if found:
            return at + found
        at += len(piece)
    return stop


def _line_end(file: IO[bytes], stop: int) -> int:
    """The offset after the last line that begins before `stop`, or the end of the file; 0 if that is far away."""
    at = stop - 1
    file.seek(at)
    for size in (LINE_ENDS_WITHIN, LINE_END_BYTES):
        piece = file.read(size)
        newline = piece.find(b"\n")
        if newline >= 0 or len(piece) < size:
            return at + (newline + 1 or len(piece))
        at += len(piece)
    return 0


def _with_long_line(file: IO[bytes], at: int, stop: int, limit: Limit) -> bytes:
    """The lines that begin in [at, stop), where `file` is at `at`, and where the last of them is long."""
    block = file.read(stop - at)
    unfinished = len(block) - (block.rfind(b"\n") + 1)
    out = io.BytesIO()  # which grows in place, where a list of parts would be there beside the whole
    out.write(block)
    del block
    while piece := file.read(LINE_END_BYTES):
        newline = piece.find(b"\n")
        out.write(piece[: newline + 1] if newline >= 0 else piece)
        if newline >= 0:
            break
        unfinished += len(piece)
        limit.check(unfinished, partial(newlines_before, file, stop))
    return out.getvalue()


def cut_lines(read: Read, step: int, limit: Limit) -> Iterator[tuple[int, bytes]]:
    """(k, the lines that begin in bytes [k * step, (k + 1) * step)) for each k that has any. CorpusError as soon as
    a line exceeds the limit."""
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
            carry = b""
            size = len(block) - (block.rfind(b"\n") + 1)  # of the last line
            limit.check(size, partial(newlines, block))
            out = io.BytesIO()  # as in `interval`
            out.write(block)
            while piece := read(min(step, LINE_END_BYTES)):
                newline = piece.find(b"\n")
                out.write(piece[: newline + 1] if newline >= 0 else piece)
                if newline >= 0:
                    carry = piece[newline + 1 :]
                    break
                size += len(piece)
                limit.check(size, partial(newlines, block))
            block = out.getvalue()
            del out
        else:
            block, carry = block[: cut + 1], block[cut + 1 :]
        del parts
        if not block:
            return
        at += len(block)
        lines = [limit.lines(block)]
        del block  # nothing here keeps what is yielded
        yield k, lines.pop()


def _copied(buffer: bytearray, start: int, stop: int) -> bytes:
    """A part of a buffer, copied once."""
    with memoryview(buffer) as view:
        return bytes(view[start:stop])


def cut_separated(read: Read, step: int, separator: bytes, limit: Limit) -> Iterator[tuple[int, list[bytes]]]:
    """(k, the documents that begin in bytes [k * step, (k + 1) * step)). An empty rest after the last separator is
    not a document. CorpusError as soon as a document exceeds the limit."""
    buffer, at, ended = bytearray(), 0, False  # a document begins at `at`, where buffer lies
    while True:
        k = at // step
        need, start, look = (k + 1) * step - at, 0, 0
        found: list[bytes] = []
        while start < need:
            position = buffer.find(separator, look)
            if position < 0:
                if ended:
                    break
                look = max(start, len(buffer) - len(separator) + 1)
                limit.check(look - start, partial(len, found))
                piece = read(LINE_END_BYTES)
                ended = not piece
                buffer += piece
                continue
            found.append(_copied(buffer, start, position))
            start = look = position + len(separator)
        if start < need and start < len(buffer):  # the last document, without a separator after it
            found.append(_copied(buffer, start, len(buffer)))
            start = len(buffer)
        limit.texts(found)
        del buffer[:start]
        at += start
        if found:
            given = [found]
            del found
            yield k, given.pop()
        if ended and not buffer:
            return

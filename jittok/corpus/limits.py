"""The size limit of a document, checked while it is read, before it fills the memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import IO, Any

import numpy as np

from jittok.errors import CorpusError, InWords

OPTION = "--max-document-bytes"


class TooLong(CorpusError):
    """A document above the limit: it stops a run, whatever `on_error` is."""


class Limit:
    """The size limit for the documents of one input; it also counts them, for messages."""

    def __init__(self, path: str, most: int, thing: str = "") -> None:
        """`thing`: the unit that messages count: "line", "row" or "document"; empty where a file is one document."""
        self.path, self.most, self.thing = path, most, thing
        self.before = 0

    def check(self, size: int, after: Callable[[], int] = int) -> None:
        """CorpusError if a document of this size is too long. `behind()`: number of documents between those counted
        and this one."""
        if size > self.most:
            where = f"{self.path}, {self.thing} {self.before + after() + 1}" if self.thing else self.path
            raise TooLong(where, InWords(f"a document of {size} bytes or more"), f"up to {self.most} bytes ({OPTION})")

    def lines(self, block: bytes, count: bool = True) -> bytes:
        """Check and count the lines of a block, and return it."""
        if len(block) > self.most:
            sizes = [len(line) for line in block.split(b"\n")]
            for number, size in enumerate(sizes):
                self.check(size, partial(int, number))
        if count:
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

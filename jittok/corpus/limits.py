"""The most bytes that one document may have: checked while it is read, before it fills the memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import IO, Any

import numpy as np

from jittok.errors import CorpusError, InWords

OPTION = "--max-document-bytes"


class TooLong(CorpusError):
    """A document that is longer than one may be: it stops a run, whatever `on_error` says."""


class Limit:
    """The documents of one input: how long they may be, and how many of them have been read (for what is said)."""

    def __init__(self, path: str, most: int, thing: str = "") -> None:
        """`thing`: what documents are counted as: "line", "row", "document", nothing where a file is one."""
        self.path, self.most, self.thing = path, most, thing
        self.before = 0

    def check(self, size: int, after: Callable[[], int] = int) -> None:
        """CorpusError for a document of so many bytes, if they are too many. after(): how many documents are between
        those counted and this one."""
        if size > self.most:
            where = f"{self.path}, {self.thing} {self.before + after() + 1}" if self.thing else self.path
            raise TooLong(where, InWords(f"a document of {size} bytes or more"), f"up to {self.most} bytes ({OPTION})")

    def lines(self, block: bytes, count: bool = True) -> bytes:
        """The same lines, checked, and counted."""
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
        """Check the rows of an Arrow array, whose first is number `first` of all, from 0 on."""
        if array.nbytes <= self.most:
            return
        import pyarrow.compute as pc

        sizes = pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False)
        row = int(sizes.argmax())
        self.check(int(sizes[row]), partial(int, first + row))


def newlines(block: bytes) -> int:
    """How many there are."""
    return int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))


def newlines_before(file: IO[bytes], position: int) -> int:
    """How many are before a place in a file."""
    file.seek(0)
    found = 0
    while position > 0 and (piece := file.read(min(position, 1 << 20))):
        found, position = found + newlines(piece), position - len(piece)
    return found

"""Bytes of a file, read on demand at given offsets; and a variant that keeps what was read.

Not mapped: whoever cuts a mapped file kills the process that looks at it (SIGBUS), and no one can be kept from cutting
a model. A file that is cut after it was opened is MalformedVocab.
"""

from __future__ import annotations

import os
import stat
import weakref

import numpy as np
from numpy.typing import NDArray

from jittok.errors import InWords, MalformedVocab

_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
"""Without waiting: a pipe would wait for somebody to write. Of a regular file this changes nothing."""


class FileBytes:
    """`size`, as it was when the file was opened, and slices of step 1, each read again into an array of its own.

    Opening raises OSError, and MalformedVocab for what is no regular file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        self._descriptor = os.open(path, _FLAGS)
        weakref.finalize(self, os.close, self._descriptor)
        self.opened = self.facts()
        if not stat.S_ISREG(self.opened.st_mode):
            found = "a directory" if stat.S_ISDIR(self.opened.st_mode) else "a device or pipe"
            raise MalformedVocab(self.name, "file", InWords(found), "a GGUF file")
        self.size = self.opened.st_size

    def facts(self) -> os.stat_result:
        """What the system says of the open file now; `opened`: what it said at first."""
        return os.fstat(self._descriptor)

    def __getitem__(self, part: slice) -> NDArray[np.uint8]:
        start, stop, _ = part.indices(self.size)
        out = np.empty(max(stop - start, 0), np.uint8)
        at = 0
        while at < out.size:
            count = self._read_into(out[at:].data, start + at)
            if count == 0:
                raise MalformedVocab(
                    self.name,
                    f"byte {start + at}",
                    InWords("the end"),
                    f"{self.size} bytes (was it truncated while being read?)",
                )
            at += count  # one call reads 2 GB at most
        return out

    def _read_into(self, out: memoryview, location: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._descriptor, [out], location)
        os.lseek(self._descriptor, location, os.SEEK_SET)
        found = os.read(self._descriptor, len(out))
        out[: len(found)] = found
        return len(found)


class HeldBytes:
    """The bytes of a source up to the last one that was asked for, each read once and kept: those that are parsed are
    those that are hashed, even if somebody writes to the file or to the memory meanwhile.

    `complete` turns False, and nothing is kept any more, when more than `most` bytes are asked for.
    """

    def __init__(self, source: FileBytes | NDArray[np.uint8], most: int) -> None:
        self.size, self.complete = source.size, True
        self._source, self._most = source, most
        self._held, self._count = np.empty(0, np.uint8), 0

    def __getitem__(self, part: slice) -> NDArray[np.uint8]:
        start, stop, _ = part.indices(self.size)
        if stop > self._most:
            self.complete, self._most, self._held, self._count = False, 0, np.empty(0, np.uint8), 0
            return self._source[start:stop].copy()
        if stop > self._count:
            self._read_up_to(stop)
        return self._held[start:stop]

    def _read_up_to(self, stop: int) -> None:
        if stop > self._held.size:
            capacity = np.empty(min(max(stop, 2 * self._held.size), self.size), np.uint8)
            capacity[: self._count] = self._held[: self._count]  # slices that were given keep the bytes before
            self._held = capacity
        self._held[self._count : stop] = self._source[self._count : stop]
        self._count = stop

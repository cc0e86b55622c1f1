"""Bytes of a file, read on demand at given offsets; and a variant that caches them.

The file is not memory-mapped: truncating a mapped file kills its readers (SIGBUS), and other processes may truncate a
model at any time. A file that is truncated after it was opened raises MalformedVocab.
"""

from __future__ import annotations

import os
import stat
import weakref

import numpy as np
from numpy.typing import NDArray

from jittok.errors import InWords, MalformedVocab

_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
"""Non-blocking: opening a pipe would wait for a writer. This has no effect on a regular file."""


class FileBytes:
    """`size` when the file was opened, and slices of step 1, each read into a new array.

    Opening raises OSError, and MalformedVocab for anything but a regular file.
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
        """The current status of the open file; `opened` is that at opening."""
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
    """The bytes of a source up to the last one that was requested, each read once and cached: the parsed bytes are
    those that are hashed, even if the file or the memory changes in the meantime.

    When more than `most` bytes are requested, `complete` becomes False, and nothing is cached any more.
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
            capacity[: self._count] = self._held[: self._count]  # slices returned earlier keep the old bytes
            self._held = capacity
        self._held[self._count : stop] = self._source[self._count : stop]
        self._count = stop

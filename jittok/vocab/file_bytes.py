"""Bytes of a file, read where they are asked for, and nothing else of it.

Not mapped: whoever cuts a mapped file kills the process that looks at it (SIGBUS), and nobody can be kept from cutting
a model. A file that is cut after it was opened is MalformedVocab.
"""

from __future__ import annotations

import os
import weakref

import numpy as np
from numpy.typing import NDArray

from jittok.errors import InWords, MalformedVocab

_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class FileBytes:
    """`size`, as it was when the file was opened, and slices of step 1, each read anew into an array of its own."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        self._descriptor = os.open(path, _FLAGS)
        weakref.finalize(self, os.close, self._descriptor)
        self.size = os.fstat(self._descriptor).st_size

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
                    f"{self.size} bytes: it was cut while it was read",
                )
            at += count  # one call reads 2 GB at most
        return out

    def _read_into(self, out: memoryview, place: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._descriptor, [out], place)
        os.lseek(self._descriptor, place, os.SEEK_SET)
        found = os.read(self._descriptor, len(out))
        out[: len(found)] = found
        return len(found)

"""Numbers of a file that are read where they are asked for. Not mapped: whoever cuts a mapped file kills the process
that looks at it, and no one can be kept from cutting a corpus."""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.errors import CorpusError, InWords


def read_array(path: Path, dtype: Any, header: int = 0, count: int | None = None) -> NDArray[Any]:
    """Numbers of a file after `header` bytes, all that there are or `count`. CorpusError if it is too short."""
    there = max(path.stat().st_size - header, 0) // np.dtype(dtype).itemsize
    if count is None:
        count = there
    elif not 0 <= count <= there:
        raise CorpusError(str(path), InWords(f"room for {there} numbers"), f"{count}, as it was written with")
    found = np.fromfile(path, dtype, count, offset=header)
    if found.size != count:
        raise CorpusError(str(path), InWords(f"{found.size} numbers"), f"{count}: the file has been cut")
    return found


class DiskIds:
    """Ids of a file: `size`, `dtype`, and slices of step 1, each read again into a read-only array of its own."""

    def __init__(self, path: Path, dtype: Any, header: int = 0, size: int | None = None) -> None:
        self.path, self.dtype, self.header = Path(path), np.dtype(dtype), header
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(path, flags)
        weakref.finalize(self, os.close, self._descriptor)
        there = max(os.fstat(self._descriptor).st_size - header, 0) // self.dtype.itemsize
        self.size = there if size is None else size
        if not 0 <= self.size <= there:
            raise CorpusError(str(path), InWords(f"room for {there} ids"), f"{self.size}, as it was written with")
        self._turn = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return DiskIds, (self.path, self.dtype, self.header, self.size)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> NDArray[Any]:
        start, stop, step = part.indices(self.size)
        if step != 1:
            raise ValueError(f"found a step of {step}, expected 1")
        width = self.dtype.itemsize
        raw = self._read(max(stop - start, 0) * width, self.header + start * width)
        if len(raw) != max(stop - start, 0) * width:
            raise CorpusError(
                str(self.path), InWords(f"its end before id {stop}"), f"{self.size} ids: the file has been cut"
            )
        return np.frombuffer(raw, self.dtype)

    def _read(self, count: int, position: int) -> bytes:
        if hasattr(os, "pread"):
            raw = os.pread(self._descriptor, count, position)
            while len(raw) < count and (more := os.pread(self._descriptor, count - len(raw), position + len(raw))):
                raw += more  # one call reads 2 GB at most
            return raw
        with self._turn:
            os.lseek(self._descriptor, position, os.SEEK_SET)
            return os.read(self._descriptor, count)

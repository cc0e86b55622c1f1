"""Files of shards as a reader of single rows needs them: opened when first used, compared with the manifest, read and
never mapped, as truncating a mapped file would kill the process."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from jittok.common.locks import Lock
from jittok.corpus.store.blocks import Seekable
from jittok.errors import CorpusError, InWords

if TYPE_CHECKING:
    from jittok.corpus.reading.far import FarFile

OPEN_FILES = 128
"""Files that a reader has open at once; opening one takes 20 microseconds."""
KEPT_OFFSETS = 1 << 25
"""Bytes of offsets of documents that a process keeps in memory."""
PART = 1 << 22
"""Bytes that are hashed at once."""


class Listed:
    """A file as the manifest has it: local, or `far`, of which pieces are fetched. `opened`: while it is open."""

    __slots__ = ("far", "opened", "path", "sha256", "size")

    def __init__(self, path: Path | str, size: int, sha256: str, far: FarFile | None = None) -> None:
        self.path, self.size, self.sha256, self.far = path, size, sha256, far
        self.opened: OpenFile | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Listed, (self.path, self.size, self.sha256, self.far)


class Numbers(NamedTuple):
    """`size` numbers of one width in a file, from byte `at` on."""

    file: Listed
    dtype: np.dtype[Any]
    at: int
    size: int


_TURN = Lock()
"""Of systems without positions of their own for each reading."""


def _read(descriptor: int, target: memoryview, at: int) -> int:
    with _TURN:
        os.lseek(descriptor, at, os.SEEK_SET)
        found = os.read(descriptor, len(target))
    target[: len(found)] = found
    return len(found)


def _preadv(descriptor: int, target: memoryview, at: int) -> int:
    return os.preadv(descriptor, (target,), at)


_read_some = _preadv if hasattr(os, "preadv") else _read


def read_at(descriptor: int, target: memoryview, at: int) -> int:
    """Fill `target` from byte `at` of a file on; how many bytes there were."""
    done = _read_some(descriptor, target, at)
    while 0 < done < len(target):  # one call reads 2 GB at most
        found = _read_some(descriptor, target[done:], at + done)
        if not found:
            break
        done += found
    return done


class OpenFile:
    """A descriptor that is closed when nobody reads any more."""

    def __init__(self, path: Path | str) -> None:
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        self.descriptor = os.open(path, flags)

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)


class Files:
    """The files that a reader has open, at most OPEN_FILES: of more, the one that was opened first is closed."""

    def __init__(self, check: str) -> None:
        self.check = check
        self.order: deque[Listed] = deque()
        self.kept = 0  # bytes of offsets
        self._hashed: set[str] = set()
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Files, (self.check,)

    def read_into(self, file: Listed, target: memoryview, at: int) -> None:
        """Fill `target` from byte `at` of a file on. CorpusError where it ends before."""
        if file.far is not None:
            self._check_far(file)
            file.far.read_into(target, at)
            return
        opened = file.opened or self.open(file)  # held while it is read, so it stays open
        found = read_at(opened.descriptor, target, at)
        if found != len(target):
            raise CorpusError(
                str(file.path), InWords(f"its end after byte {at + found}"), f"{file.size} bytes: the file has been cut"
            )

    def open(self, file: Listed) -> OpenFile:
        """Open a local file: its size is compared, and its digest the first time if that was asked."""
        try:
            opened = OpenFile(file.path)
        except FileNotFoundError:
            raise CorpusError(str(file.path), InWords("no such file"), "a shard that the manifest lists") from None
        size = os.fstat(opened.descriptor).st_size
        if size != file.size:
            raise CorpusError(str(file.path), InWords(f"{size} bytes"), f"{file.size}, as the manifest says")
        if self.check == "sha256" and str(file.path) not in self._hashed:
            self._compare(file, lambda part, at: read_at(opened.descriptor, part, at))
        with self._lock:
            file.opened = opened
            self.order.append(file)
            while len(self.order) > OPEN_FILES:
                self.order.popleft().opened = None
        return opened

    def _check_far(self, file: Listed) -> None:
        if self.check == "sha256" and str(file.path) not in self._hashed:
            assert file.far is not None
            self._compare(file, file.far.read_into)

    def _compare(self, file: Listed, read: Any) -> None:
        digest, part = hashlib.sha256(), memoryview(bytearray(PART))
        for at in range(0, file.size, PART):
            some = part[: min(PART, file.size - at)]
            read(some, at)
            digest.update(some)
        if digest.hexdigest() != file.sha256:
            found = InWords(f"SHA-256 {digest.hexdigest()}")
            raise CorpusError(str(file.path), found, f"{file.sha256}, as the manifest says: it was changed")
        self._hashed.add(str(file.path))

    def reader(self, file: Listed) -> IO[bytes]:
        """A file as libraries read it. CorpusError, once it is read, for one that is not as the manifest says."""
        return cast("IO[bytes]", _Reader(self, file))

    def array(self, numbers: Numbers, first: int = 0, count: int | None = None) -> NDArray[Any]:
        """Some of the numbers, in memory of their own."""
        found = np.empty(numbers.size - first if count is None else count, numbers.dtype)
        if found.size:
            self.read_into(numbers.file, found.data.cast("B"), numbers.at + first * numbers.dtype.itemsize)
        return found


class _Reader(Seekable):
    """A file of a shard, from wherever it is."""

    def __init__(self, opened: Files, file: Listed) -> None:
        self._files, self._file, self._size = opened, file, file.size

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        there = max(self._size - self._at, 0)
        found = bytearray(there if size is None or size < 0 else min(size, there))
        if found:
            self._files.read_into(self._file, memoryview(found), self._at)
        self._at += len(found)
        return bytes(found)

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, as far as there are bytes; their number."""
        view = memoryview(buffer).cast("B")
        found = self.read(len(view))
        view[: len(found)] = found
        return len(found)

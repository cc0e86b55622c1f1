"""Files of shards as a reader of single rows needs them: opened when first used, compared with the manifest, read and
never mapped, as truncating a mapped file would kill the process."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.locks import Lock
from jittok.errors import CorpusError, InWords

OPEN_FILES = 128
"""Files that a process has open at once; opening one takes 20 microseconds."""
PART = 1 << 22
"""Bytes that are hashed at once."""
CHECKS = ("size", "sha256")


class Listed(NamedTuple):
    """A file as the manifest has it."""

    path: Path
    size: int
    sha256: str


class Numbers(NamedTuple):
    """`size` numbers of one width in a file, from byte `at` on."""

    file: Listed
    dtype: np.dtype[Any]
    at: int
    size: int


_TURN = Lock()
"""Of systems without positions of their own for each reading."""


def read_at(descriptor: int, target: memoryview, at: int) -> int:
    """Fill `target` from byte `at` of a file on; how many bytes there were."""
    done = 0
    while done < len(target):
        found = _read(descriptor, target[done:] if done else target, at + done)
        if not found:
            break
        done += found
    return done


def _read(descriptor: int, target: memoryview, at: int) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, (target,), at)
    with _TURN:
        os.lseek(descriptor, at, os.SEEK_SET)
        found = os.read(descriptor, len(target))
    target[: len(found)] = found
    return len(found)


class OpenFile:
    """A descriptor that is closed when nobody reads any more."""

    def __init__(self, path: Path) -> None:
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        self.descriptor = os.open(path, flags)

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)


class Files:
    """The files that a reader has open, at most OPEN_FILES."""

    def __init__(self, check: str) -> None:
        self.check = check
        self._open: OrderedDict[Path, OpenFile] = OrderedDict()
        self._hashed: set[Path] = set()
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Files, (self.check,)

    def read_into(self, file: Listed, target: memoryview, at: int) -> None:
        """Fill `target` from byte `at` of a file on. CorpusError where it ends before."""
        found = self._at(file, target, at)
        if found != len(target):
            raise CorpusError(
                str(file.path), InWords(f"its end after byte {at + found}"), f"{file.size} bytes: the file has been cut"
            )

    def _at(self, file: Listed, target: memoryview, at: int) -> int:
        opened = self.opened(file)  # held while it is read, so it stays open
        return read_at(opened.descriptor, target, at)

    def opened(self, file: Listed) -> OpenFile:
        """The open file; where it is opened, its size is compared, and its digest the first time if that was asked."""
        with self._lock:
            opened = self._open.get(file.path)
            if opened is not None:
                self._open.move_to_end(file.path)
                return opened
        opened = self._first(file)
        with self._lock:
            self._open[file.path] = opened
            while len(self._open) > OPEN_FILES:
                self._open.popitem(last=False)
        return opened

    def _first(self, file: Listed) -> OpenFile:
        try:
            opened = OpenFile(file.path)
        except FileNotFoundError:
            raise CorpusError(str(file.path), InWords("no such file"), "a shard that the manifest lists") from None
        size = os.fstat(opened.descriptor).st_size
        if size != file.size:
            raise CorpusError(str(file.path), InWords(f"{size} bytes"), f"{file.size}, as the manifest says")
        if self.check == "sha256" and file.path not in self._hashed:
            found = _digest(opened, size)
            if found != file.sha256:
                raise CorpusError(
                    str(file.path), InWords(f"SHA-256 {found}"), f"{file.sha256}, as the manifest says: it was changed"
                )
            self._hashed.add(file.path)
        return opened

    def array(self, numbers: Numbers, first: int = 0, count: int | None = None) -> NDArray[Any]:
        """Some of the numbers, in memory of their own."""
        found = np.empty(numbers.size - first if count is None else count, numbers.dtype)
        if found.size:
            self.read_into(numbers.file, found.data.cast("B"), numbers.at + first * numbers.dtype.itemsize)
        return found


def _digest(opened: OpenFile, size: int) -> str:
    digest, part, at = hashlib.sha256(), memoryview(bytearray(PART)), 0
    while at < size:
        found = read_at(opened.descriptor, part[: min(PART, size - at)], at)
        if not found:
            break  # it was cut meanwhile: another digest
        digest.update(part[:found])
        at += found
    return digest.hexdigest()

"""Durable writes: each function states what it guarantees. Everything that changes a corpus directory uses them."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jittok.corpus.folders import create

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

try:
    from isal.isal_zlib import crc32 as _crc32
except ImportError:  # no wheel for this machine: the same numbers, slower
    from zlib import crc32 as _crc32

crc32: Callable[..., int] = _crc32
BYTES_PER_READ = 4 << 20


def append(descriptor: int, data: Any) -> None:
    """All of `data` at the end of a file opened for appending. Raises OSError, with part of it written."""
    left = memoryview(data).cast("B")
    while len(left):
        left = left[os.write(descriptor, left) :]


def crc_of(data: Any) -> int:
    """CRC-32 of a buffer."""
    return crc32(memoryview(data).cast("B")) if memoryview(data).nbytes else 0


def crc_of_text(text: str) -> str:
    """CRC-32 of a text in UTF-8, eight hex digits."""
    return f"{zlib.crc32(text.encode()):08x}"


FOLDERS_OPEN = os.name != "nt"
"""Whether this system can open directories: Windows cannot, and writes their entries itself."""


def flush(descriptor: int) -> None:
    """Flush a file to the drive. macOS's fsync leaves data in the drive's cache."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is None:
        os.fsync(descriptor)
        return
    try:
        fcntl.fcntl(descriptor, full)
    except OSError:  # a network's file system does not know it
        os.fsync(descriptor)


def sync(path: Path) -> None:
    """When this returns, the file (of a directory: its entries) survives a loss of power."""
    if not FOLDERS_OPEN and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        flush(descriptor)
    except OSError:
        if not path.is_dir():  # some file systems know no fsync of folders
            raise
    finally:
        os.close(descriptor)


def rename(old: Path, new: Path) -> None:
    """Rename a finished file to its final name, atomically."""
    old.replace(new)


def write_new(path: Path, data: bytes) -> None:
    """Write a small file atomically and durably: temporary file, fsync, rename, fsync of the directory."""
    part = path.with_name(f".{path.name}.part")
    with open(create(part), "wb") as file:  # noqa: PTH123  a descriptor
        append(file.fileno(), data)
        flush(file.fileno())
    rename(part, path)
    sync(path.parent)

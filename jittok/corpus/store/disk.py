"""How a corpus directory is changed: directories opened by descriptor, without following links, and durable writes.

Another user who can write beside a corpus could put a link where a directory or a file is expected, or a line into
a record. Neither leads outside: a directory is reached through its descriptor, a name is a single path component,
and a file is a regular one without other links. Each function that writes states what it guarantees.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jittok.errors import CorpusError, InWords
from jittok.kernels.jit.trust import doubt

BY_DESCRIPTOR = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and Path("/proc/self/fd").is_dir()
"""Whether paths can be resolved relative to a descriptor. Elsewhere links are checked by name, just before."""
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
LONGEST_NAME = 255
NO_FOLDER = (errno.ENOTDIR, errno.ELOOP, errno.EMLINK, None)
"""Error numbers for a link and for a path that is not a directory."""
BYTES_PER_READ = 4 << 20
FOLDERS_OPEN = os.name != "nt"
"""Whether this system can open directories: Windows cannot, and writes their entries itself."""


def is_component(name: object) -> bool:
    """Whether a name is one component of a path, so that it cannot lead out of a folder."""
    return (
        isinstance(name, str)
        and 0 < len(name) <= LONGEST_NAME
        and name not in (".", "..")
        and not any(mark in name for mark in "/\\\0:")
    )


def component(name: object, where: object) -> str:
    """A name from a record or a manifest. CorpusError unless it is one component."""
    if not isinstance(name, str) or not is_component(name):
        raise CorpusError(
            str(where), InWords(f"the name {name!r}"), "a plain file name: jittok did not write this line"
        )
    return name


def file_name(name: object, where: object) -> tuple[str, str]:
    """Folder and file of a name such as "npy/00000.ids.npy". CorpusError for anything else."""
    parts = name.split("/") if isinstance(name, str) else []
    if len(parts) != 2 or not all(map(is_component, parts)):
        raise CorpusError(str(where), InWords(f"the name {name!r}"), "FORMAT/FILE: jittok did not write this line")
    return parts[0], parts[1]


def open_regular(path: Path, flags: int) -> int:
    """A descriptor of a regular file without another name; no link is followed. CorpusError for anything else."""
    try:
        descriptor = os.open(path, flags | NO_LINK, 0o644)
    except OSError as error:
        if path.is_symlink() or path.is_dir():
            raise CorpusError(str(_shown(path)), InWords("a link or a folder"), "a file that jittok wrote") from error
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        what = "a file that has another name too" if stat.S_ISREG(found.st_mode) else "something other than a file"
        raise CorpusError(str(_shown(path)), what, "a file that jittok wrote")
    return descriptor


def create(path: Path) -> int:
    """A descriptor of a new file to append to; what had its name goes, and no link is followed. OSError."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | NO_LINK | getattr(os, "O_BINARY", 0), 0o644)


def check_own(position: Path, found: os.stat_result, around: os.stat_result) -> None:
    """CorpusError for a work folder that more users may write to than to the folder `around` it, as what lies there is
    believed.

    Who may write to the folder around it could exchange it anyway, unless that one is sticky, as /tmp is. So a work
    folder is no less safe on a shared drive, where all files have one owner and one mode, or in a team's folder.
    """
    reason = doubt(found)
    if reason is None:
        return
    writers = 0 if around.st_mode & stat.S_ISVTX else around.st_mode
    owners = (0, os.geteuid(), around.st_uid)
    if found.st_uid not in owners or found.st_mode & ~writers & (stat.S_IWGRP | stat.S_IWOTH):
        expected = (
            "your own folder that no other user can write to: remove it, or run chmod go-w if everything in it is yours"
        )
        raise CorpusError(str(position), InWords(f"a folder that {reason}"), expected)


def _shown(path: Path) -> Path:
    """A path for people, not through a descriptor."""
    try:
        return path.parent.resolve() / path.name
    except OSError:
        return path


class Folder:
    """An open directory. `path` keeps leading to it, even when its name is reused meanwhile."""

    def __init__(self, position: Path, inside: Folder | None = None) -> None:
        self.position = position
        if not BY_DESCRIPTOR:
            if inside is not None and (position.is_symlink() or not position.is_dir()):
                raise NotADirectoryError(position)
            self._descriptor, self.path = -1, position
        elif inside is None:
            self._descriptor = os.open(position, _FOLDER)
        else:
            self._descriptor = os.open(position.name, _FOLDER | NO_LINK, dir_fd=inside._descriptor)
        if self._descriptor >= 0:
            self.path = Path(f"/proc/self/fd/{self._descriptor}")

    def inner(self, name: str, make: bool = True, mode: int = 0o777) -> Folder | None:
        """A folder in this one, made unless it is there; None if it is not there and `make` is false.

        CorpusError for a link, a file or anything else of that name.
        """
        position = self.position / component(name, self.position)
        if make:
            with contextlib.suppress(FileExistsError):
                (self.path / name).mkdir(mode)
        try:
            return Folder(position, self)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in NO_FOLDER:
                raise OSError(error.errno, error.strerror, str(position)) from error
            what = "a link" if position.is_symlink() else "something other than a folder"
            raise CorpusError(str(position), what, "a folder that jittok made: remove what is there") from error

    def check_own(self, around: Folder) -> None:
        """CorpusError if more users may write to it than to the folder around it."""
        check_own(self.position, self.path.stat(), around.path.stat())

    def remove(self, name: str) -> None:
        """Remove an empty folder in this one."""
        (self.path / component(name, self.position)).rmdir()

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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


def append(descriptor: int, data: Any) -> None:
    """All of `data` at the end of a file opened for appending. Raises OSError, with part of it written."""
    left = memoryview(data).cast("B")
    while len(left):
        left = left[os.write(descriptor, left) :]


def crc_of_text(text: str) -> str:
    """CRC-32 of a text in UTF-8, eight hex digits."""
    return f"{zlib.crc32(text.encode()):08x}"


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
    with open(create(part), "wb") as file:
        append(file.fileno(), data)
        flush(file.fileno())
    rename(part, path)
    sync(path.parent)

"""Which files of a cache may be run or followed: those that only this user, or root, could have written.

Folder and file are opened without following links and asked through their descriptors, so nothing can be exchanged
between the question and the use. A user who may write to a folder may put anything in it, so both are checked.

Here and wherever else each start comes by, paths are `str`: `pathlib` takes 4 ms to import.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

log = logging.getLogger("jittok")

BY_DESCRIPTOR = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "geteuid")
"""Whether this system has users, and opens files below a folder's descriptor."""
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_told: set[str] = set()


class Distrusted(OSError):
    """A file or folder that somebody else could have written."""


def doubt(found: os.stat_result) -> str | None:
    """Why somebody else could have written a file or folder, None if no one could."""
    if not hasattr(os, "geteuid"):
        return None
    if found.st_uid not in (0, os.geteuid()):
        return f"belongs to user {found.st_uid}"
    if found.st_mode & _OTHERS_WRITE:
        return f"may be written by others (mode {stat.S_IMODE(found.st_mode):o})"
    return None


def doubt_of_way(folder: str) -> str | None:
    """Why somebody else could put another folder in the place of this absolute one, None if no one could.

    Who writes to a folder above may exchange what is in it for another folder of this user, say one that was unpacked
    from an archive; not so where the sticky bit is set, as for /tmp. A link may lead to such a folder as well. A group
    may write to the folders above: many systems give each user one alone.
    """
    if not hasattr(os, "geteuid"):
        return None
    for above in dict.fromkeys([*_parents(folder), *_parents(os.path.realpath(folder))]):
        mode = os.stat(above).st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"lies in {above}, which everybody may write to (mode {stat.S_IMODE(mode):o})"
    for each in (folder, *_parents(folder)):
        found = os.lstat(each)
        if stat.S_ISLNK(found.st_mode) and found.st_uid not in (0, os.geteuid()):
            return f"is reached by the link {each} of user {found.st_uid}"
    return None


def _parents(path: str) -> Iterator[str]:
    """The folders above an absolute path, the nearest first."""
    while (above := os.path.dirname(path)) != path:
        yield above
        path = above


def check(descriptor: int, name: object) -> None:
    """Distrusted unless only this user or root can have written what is open."""
    reason = doubt(os.fstat(descriptor))
    if reason is not None:
        raise Distrusted(f"{name} {reason}")


def tell_once(about: object, message: str, *args: object) -> None:
    """A warning, once a process for each folder: what is kept there is asked for dozens of times."""
    level = logging.DEBUG if str(about) in _told else logging.WARNING
    _told.add(str(about))
    log.log(level, message, *args)


@contextmanager
def _folder_of(path: str) -> Iterator[int]:
    """The descriptor of the folder of root/part/name, root and part asked for their owner and mode."""
    folder = os.path.dirname(path)
    above, name = os.path.split(folder)
    root = os.open(above, _FOLDER)
    try:
        check(root, above)
        part = os.open(name, _FOLDER | _NO_LINK, dir_fd=root)
    finally:
        os.close(root)
    try:
        check(part, folder)
        yield part
    finally:
        os.close(part)


def open_file(path: str) -> int:
    """A descriptor to read root/part/name with. OSError if it is not there or no file, Distrusted if it is not ours."""
    if not BY_DESCRIPTOR:
        return os.open(path, _FILE)
    with _folder_of(path) as folder:
        descriptor = os.open(os.path.basename(path), _FILE, dir_fd=folder)
    try:
        check(descriptor, path)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Distrusted(f"{path} is no regular file")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_file(path: str) -> bytes:
    """The content of root/part/name, in a folder of ours. OSError."""
    with open(open_file(path), "rb") as file:
        return file.read()


def open_to_lock(path: str) -> int:
    """A descriptor of the empty file root/part/name, made if it is not there, in a folder of ours. OSError."""
    _make_folders(os.path.dirname(path))
    flags = os.O_RDWR | os.O_CREAT | _NO_LINK | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    if not BY_DESCRIPTOR:
        return os.open(path, flags, 0o600)
    with _folder_of(path) as folder:
        return os.open(os.path.basename(path), flags, 0o600, dir_fd=folder)


def names_in(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """(name, facts) of the regular files of root/part, a folder of ours. OSError."""
    opened: contextlib.AbstractContextManager[Any] = contextlib.nullcontext(folder)
    with _folder_of(os.path.join(folder, "any")) if BY_DESCRIPTOR else opened as path, os.scandir(path) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                yield entry.name, entry.stat(follow_symlinks=False)


def remove(path: str) -> None:
    """Delete root/part/name, in a folder of ours. OSError."""
    if not BY_DESCRIPTOR:
        os.unlink(path)
        return
    with _folder_of(path) as folder:
        os.unlink(os.path.basename(path), dir_fd=folder)


def make_folder(folder: str) -> None:
    """A folder that no one else can write to; as it is if it is there. OSError."""
    with contextlib.suppress(FileExistsError):
        os.makedirs(folder, mode=0o755)


def _make_folders(folder: str) -> None:
    """root/part, each alone: what is made on the way to one may get another mode."""
    make_folder(os.path.dirname(folder))
    make_folder(folder)


def write_file(path: str, *parts: bytes | memoryview) -> None:
    """root/part/name, seen by others whole or not at all: written beside its place, then renamed. OSError."""
    front, name = os.path.split(path)
    _make_folders(front)
    if not BY_DESCRIPTOR:
        _write(front, name, None, parts)
        return
    with _folder_of(path) as folder:
        _write("", name, folder, parts)


def _write(front: str, name: str, folder: int | None, parts: tuple[bytes | memoryview, ...]) -> None:
    new, path = os.path.join(front, f".new-{os.urandom(12).hex()}"), os.path.join(front, name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | getattr(os, "O_BINARY", 0)
    descriptor = os.open(new, flags, 0o600, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            for part in parts:
                file.write(part)
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, 0o644)
        os.replace(new, path, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new, dir_fd=folder)
        raise

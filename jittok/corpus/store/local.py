"""A local folder as a store. Folders are reached by descriptor, without following links (`disk`)."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jittok.corpus.store import disk
from jittok.corpus.store.base import Store, Stored, components, is_name
from jittok.corpus.store.disk import Folder
from jittok.errors import CorpusError, InWords

PART = ".part"
"""Ends the names of files that are being written; they begin with a dot."""
TEMPORARY = re.compile(rf"\..+\.[0-9a-f]{{16}}{re.escape(PART)}", re.DOTALL)
"""Their names."""
GUARD = ".guard"
"""Ends the name of the file that is there while an object is replaced."""
GUARD_SECONDS = 60.0
"""A guard older than this was left by a process that died."""
READING = os.O_RDONLY | disk.NO_LINK | getattr(os, "O_BINARY", 0)
NO_LINKS = (errno.EPERM, errno.ENOSYS, getattr(errno, "ENOTSUP", errno.EPERM), errno.EMLINK, errno.EXDEV)
"""Error numbers of file systems without hard links."""


class LocalStore(Store):
    """The files below a folder, which is made when something is written."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.local: Path = Path(folder)
        self.place = str(self.local)

    def objects(self, under: str = "") -> Iterator[Stored]:
        """The files below a folder, sorted by name."""
        found: list[Stored] = []
        with contextlib.suppress(FileNotFoundError), self._folder(_parts(under, self.place), False) as folder:
            self._walk(folder, under, found)
        return iter(sorted(found))

    def _walk(self, folder: Folder, before: str, found: list[Stored]) -> None:
        with os.scandir(folder.path) as entries:
            there = sorted(entries, key=lambda entry: entry.name)
        for entry in there:
            name = f"{before}/{entry.name}" if before else entry.name
            if _is_temporary(entry.name) or not is_name(name):
                continue
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                facts = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(facts.st_mode):
                    found.append(_stored(name, facts))
                elif stat.S_ISDIR(facts.st_mode) and (inner := folder.inner(entry.name, make=False)) is not None:
                    with inner:
                        self._walk(inner, name, found)

    def head(self, name: str) -> Stored | None:
        """Facts of a file, None if it is not there."""
        try:
            with self._opened(name) as descriptor:
                return _stored(name, os.fstat(descriptor))
        except FileNotFoundError:
            return None

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Bytes [start, stop) of a file."""
        with self._opened(name) as descriptor, open(os.dup(descriptor), "rb") as file:  # noqa: PTH123  a descriptor
            file.seek(start)
            return file.read() if stop is None else file.read(max(stop - start, 0))

    def read_tagged(self, name: str) -> tuple[bytes, str]:
        """All bytes of a file, and its tag."""
        with self._opened(name) as descriptor, open(os.dup(descriptor), "rb") as file:  # noqa: PTH123
            return file.read(), _stored(name, os.fstat(descriptor)).tag

    def create(self, name: str, data: bytes) -> bool:
        """Write a file if there is none of this name; whether there was none. It is there whole or not at all, on
        file systems without hard links from its first byte on."""
        *above, last = components(name, self.place)
        with self._folder(above) as folder:
            path = folder.path / last
            if os.path.lexists(path):
                return False
            new = folder.path / _temporary(last)
            try:
                self._write(new, data)
                made = _linked(new, path, data)
            finally:
                new.unlink(missing_ok=True)
            if made:
                disk.sync(folder.path)
            return made

    def replace(self, name: str, data: bytes, tag: str) -> bool:
        """Write a file if the one that is there has this tag; whether it had. A file beside it guards the comparison;
        one that was left by a process that died is removed after a minute."""
        *above, last = components(name, self.place)
        with self._folder(above) as folder, _guarded(folder.path / f".{last}{GUARD}") as guarded:
            if not guarded:
                return False
            found = self.head(name)
            if found is None or found.tag != tag:
                return False
            self._put(folder, last, data)
            return True

    def put(self, name: str, data: bytes) -> None:
        """Write a file, whatever was there: temporary file, fsync, rename, fsync of the folder."""
        *above, last = components(name, self.place)
        with self._folder(above) as folder:
            self._put(folder, last, data)

    def _put(self, folder: Folder, last: str, data: bytes) -> None:
        new = folder.path / _temporary(last)
        try:
            self._write(new, data)
            disk.rename(new, folder.path / last)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        disk.sync(folder.path)

    def publish(self, path: Path, name: str, mark: str = "") -> None:  # noqa: ARG002  a folder keeps no marks
        """Sync and rename a finished file of the same disk."""
        *above, last = components(name, self.place)
        disk.sync(path)
        with self._folder(above) as folder:
            disk.rename(path, folder.path / last)
            disk.sync(folder.path)

    def mark_of(self, name: str) -> str:  # noqa: ARG002
        """Nothing: a folder keeps no marks."""
        return ""

    def delete(self, name: str) -> None:
        """Remove a file."""
        *above, last = components(name, self.place)
        with contextlib.suppress(FileNotFoundError), self._folder(above, False) as folder:
            (folder.path / last).unlink(missing_ok=True)

    def clear(self, under: str) -> None:
        """Remove a folder with everything in it."""
        *above, last = components(under, self.place)
        with contextlib.suppress(FileNotFoundError), self._folder(above, False) as folder:
            _remove(folder, last)

    def scratch(self, name: str) -> Path:
        """The new empty folder `name`, which only this user can write to."""
        self.clear(name)
        *above, last = components(name, self.place)
        with self._folder(above) as folder:
            (folder.path / last).mkdir(0o700)
        return self.local.joinpath(*above, last)

    def discard_unfinished(self, under: str = "") -> int:
        """Remove the temporary files of a folder, not of those in it; their number."""
        count = 0
        with contextlib.suppress(FileNotFoundError), self._folder(_parts(under, self.place), False) as folder:
            for name in os.listdir(folder.path):  # noqa: PTH208  names
                if TEMPORARY.fullmatch(name):
                    (folder.path / name).unlink(missing_ok=True)
                    count += 1
        return count

    def _write(self, path: Path, data: bytes) -> None:
        with open(disk.create(path), "wb") as file:  # noqa: PTH123  a descriptor
            disk.append(file.fileno(), data)
            disk.flush(file.fileno())

    @contextmanager
    def _folder(self, parts: tuple[str, ...] | list[str], make: bool = True) -> Iterator[Folder]:
        """An open folder in this store. FileNotFoundError; CorpusError for a link or a file of that name."""
        if make:
            self.local.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as opened:
            try:
                folder = opened.enter_context(Folder(self.local))
            except NotADirectoryError as error:
                raise CorpusError(self.place, InWords("a file"), "a folder") from error
            for part in parts:
                inner = folder.inner(part, make=make)
                if inner is None:
                    raise self.absent("/".join(parts))
                folder = opened.enter_context(inner)
            yield folder

    @contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        """A descriptor of a regular file. FileNotFoundError; CorpusError for a link, a folder or anything else."""
        *above, last = components(name, self.place)
        try:
            with self._folder(above, False) as folder:
                descriptor = os.open(folder.path / last, READING)
        except OSError as error:
            if error.errno == errno.ENOENT:
                raise self.absent(name) from None
            if error.errno in disk.NO_FOLDER or error.errno == errno.EISDIR:
                raise CorpusError(self.where(name), InWords("a link or a folder"), "a file") from error
            raise OSError(error.errno, error.strerror, self.where(name)) from error
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise CorpusError(self.where(name), InWords("something other than a file"), "a file")
            yield descriptor
        finally:
            os.close(descriptor)


def _parts(under: str, place: str) -> tuple[str, ...]:
    return components(under, place) if under else ()


def _stored(name: str, facts: os.stat_result) -> Stored:
    return Stored(name, facts.st_size, f"{facts.st_mtime_ns}-{facts.st_ino}-{facts.st_size}", facts.st_mtime)


def _temporary(name: str) -> str:
    return f".{name[:200]}.{secrets.token_hex(8)}{PART}"


def _is_temporary(name: str) -> bool:
    return name.startswith(".") and name.endswith((PART, GUARD))


def _linked(new: Path, path: Path, data: bytes) -> bool:
    """Give a finished file its name if that is free; whether it was. The count of links decides: on a network's disk
    the answer to a link that was made may be lost."""
    try:
        os.link(new, path, follow_symlinks=False)
    except FileExistsError:
        return new.stat().st_nlink == 2
    except (OSError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno not in NO_LINKS:
            raise
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | disk.NO_LINK, 0o644)
        except FileExistsError:
            return False
        with open(descriptor, "wb") as file:  # noqa: PTH123
            disk.append(file.fileno(), data)
            disk.flush(file.fileno())
    return True


@contextmanager
def _guarded(path: Path) -> Iterator[bool]:
    """Whether this process holds the guard, within a second."""
    until = time.monotonic() + 1.0
    while True:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | disk.NO_LINK, 0o644))
            break
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):
                if time.time() - path.lstat().st_mtime > GUARD_SECONDS:
                    path.unlink()
                    continue
            if time.monotonic() > until:
                yield False
                return
            time.sleep(0.01)
    try:
        yield True
    finally:
        path.unlink(missing_ok=True)


def _remove(folder: Folder, name: str) -> None:
    """Remove a file, a link, or a folder with everything in it."""
    path = folder.path / name
    facts = path.lstat()
    if not stat.S_ISDIR(facts.st_mode):
        path.unlink(missing_ok=True)
        return
    inner = folder.inner(name, make=False)
    if inner is None:
        return
    with inner:
        for each in os.listdir(inner.path):  # noqa: PTH208  names
            with contextlib.suppress(FileNotFoundError):
                _remove(inner, each)
    with contextlib.suppress(FileNotFoundError):
        path.rmdir()

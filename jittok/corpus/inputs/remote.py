"""Inputs by URL, opened by fsspec; and errors of other libraries that name neither file nor offset."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from jittok.common.writers.atomic_files import naming
from jittok.errors import CorpusError, InWords, JittokError, missing

LOCAL = ("file://", "local://")
"""Schemes of local files."""
HTTP = ("http", "https")
NEAR = 64 << 10
"""Gaps of up to this many bytes between two parts of a remote file are fetched too, as a request takes longer than
the bytes."""


def is_url(path: str) -> bool:
    """Whether fsspec is needed to open it."""
    return "://" in path


def local_name(name: str) -> str:
    """A local file given as a URL becomes a path; any other name is returned unchanged."""
    for start in LOCAL:
        if name.lower().startswith(start):
            return name[len(start) :]
    return name


@contextmanager
def naming_input(path: str) -> Iterator[None]:
    """Context in which errors name the input: an OSError without a file name gets this one, and any other error of a
    URL's libraries becomes a CorpusError."""
    try:
        with naming(path):
            yield
    except (JittokError, ImportError):
        raise
    except OSError as error:
        if is_url(path) and not (error.filename and error.errno):
            if isinstance(error, FileNotFoundError):
                raise FileNotFoundError(*_number_of(error), path) from error
            raise CorpusError(path, InWords(_said(error)), "a readable input") from error
        raise
    except Exception as error:
        if is_url(path) and not isinstance(error, MemoryError):
            raise CorpusError(path, InWords(_said(error)), "a readable input") from error
        raise


def _number_of(error: FileNotFoundError) -> tuple[int, str]:
    import errno

    return error.errno or errno.ENOENT, error.strerror or os.strerror(errno.ENOENT)


def _said(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def filesystem(url: str) -> tuple[Any, str]:
    """The fsspec file system of a URL, and its path there. ImportError for a missing package, CorpusError for an
    unknown URL."""
    try:
        import fsspec
    except ImportError:
        raise missing(f"{url}: reading URLs", "fsspec", "corpus") from None
    try:
        fs, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        if url.partition("://")[0].lower() in HTTP:
            raise missing(f"{url}: reading http", "aiohttp", "corpus") from error
        raise ImportError(f"{url}: {error}", name=error.name) from error
    except ValueError as error:
        raise CorpusError(url, InWords(_said(error)), "a URL that fsspec knows") from error
    return fs, path


def open_far(url: str, exact: bool = False) -> IO[bytes]:
    """A URL as a file that can seek. `exact`: each read is one request for exactly that many bytes."""
    with naming_input(url):
        fs, path = filesystem(url)
        opened: IO[bytes] = fs.open(path, "rb", **({"cache_type": "none"} if exact else {}))
        return opened


def facts_of(url: str) -> tuple[int | None, str]:
    """Size in bytes (None if unknown), and a text that changes when the file does."""
    with naming_input(url):
        fs, inner = filesystem(url)
        facts = fs.info(inner)
    marks = [facts.get(key) for key in ("ETag", "etag", "md5Hash", "mtime", "LastModified", "created")]
    size = facts.get("size")
    return None if size is None else int(size), " ".join(str(mark) for mark in marks if mark is not None)


def matches(url: str) -> list[str]:
    """The URLs that a pattern matches, sorted."""
    with naming_input(url):
        fs, path = filesystem(url)
        return [fs.unstrip_protocol(found) for found in sorted(fs.glob(path))]


def same_place(url: str) -> str:
    """The canonical form of a URL."""
    with naming_input(url):
        fs, path = filesystem(url)
        return str(fs.unstrip_protocol(path))


class Seekable(io.RawIOBase):
    """What a file object of our own needs beside `read`: `_size` and `_at` are its bytes and its offset."""

    _size, _at = 0, 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Seek to an offset."""
        self._at = max({os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence] + offset, 0)
        return self._at

    def tell(self) -> int:
        """The current offset."""
        return self._at


class Fetched(Seekable):
    """A remote file of which some parts are fetched ahead, each byte once; any other read is one request."""

    def __init__(self, far: Any, size: int, positions: Iterable[tuple[int, int]]) -> None:
        super().__init__()
        self._far, self._size = far, size
        joined: list[list[int]] = []
        for start, stop in sorted(positions):
            if joined and start <= joined[-1][1] + NEAR:
                joined[-1][1] = max(joined[-1][1], stop)
            else:
                joined.append([start, stop])
        self._pieces = [(start, self._ask(start, stop)) for start, stop in joined]

    def _ask(self, start: int, stop: int) -> bytes:
        self._far.seek(start)
        found: bytes = self._far.read(max(stop - start, 0))
        return found

    def read(self, count: int = -1) -> bytes:
        """Up to `count` bytes."""
        stop = self._size if count < 0 else min(self._at + count, self._size)
        start, self._at = self._at, max(stop, self._at)
        for position, piece in self._pieces:
            if position <= start and stop <= position + len(piece):
                return piece[start - position : stop - position]
        return self._ask(start, stop)

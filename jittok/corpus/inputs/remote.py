"""Inputs by URL, opened as files; and errors of other libraries that name neither file nor offset."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from jittok.common.writers.atomic_files import naming
from jittok.corpus.inputs.servers import HTTP, FileFacts, fixed_part, matcher, server_of
from jittok.corpus.store import blocks
from jittok.corpus.store.blocks import NoRanges, Seekable
from jittok.corpus.store.client import said
from jittok.corpus.store.opening import LOCAL, scheme_of
from jittok.errors import CorpusError, InWords, JittokError, masked

AT_ONCE = 8 << 20
IN_MEMORY = 64 << 20
"""Bytes of a table that are fetched ahead into memory; more go to a temporary file."""
NEAR = 64 << 10
"""Gaps of up to this many bytes between two parts of a remote file are fetched too, as a request takes longer than
the bytes."""


def is_url(path: str) -> bool:
    """Whether it lies on a server."""
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
    except (JittokError, ImportError, NoRanges):
        raise
    except OSError as error:
        if isinstance(error.filename, str):
            error.filename = masked(error.filename)
        if is_url(path) and not (error.filename and error.errno):
            if isinstance(error, FileNotFoundError):
                raise FileNotFoundError(*_number_of(error), masked(path)) from error
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
    return f"{type(error).__name__}: {said(error)}" if str(error) else type(error).__name__


class FarSource:
    """A file on a server in the state that it was found in, for `store.blocks`."""

    def __init__(self, url: str, size: int, stamp: str) -> None:
        self.url, self.size, self.stamp = url, size, stamp
        self.key = f"{url} {size} {stamp}"

    def fetch(self, start: int, stop: int) -> bytes:
        """Bytes [start, stop)."""
        with naming_input(self.url):
            return server_of(self.url).fetch(FileFacts(self.url, self.size, self.stamp), start, stop)

    def save(self, target: IO[bytes]) -> None:
        """Write all bytes to a file."""
        with naming_input(self.url):
            server_of(self.url).save(FileFacts(self.url, self.size, self.stamp), target)


def open_far(url: str, size: int | None = None, stamp: str = "") -> IO[bytes]:
    """A URL as a file that can seek. `size` and `stamp`: those that it was found with, if it was."""
    if size is None:
        size, stamp = facts_of(url, listed=True)
        if size is None:
            raise nameless(url)
    return blocks.opened(FarSource(url, size, stamp))


def fetch_soon(files: Iterable[tuple[str, int | None, str]]) -> list[object]:
    """Begin to fetch small files that are read next: (path, size, stamp). Local ones are left alone. They are there
    while what this returns is held."""
    left, held = AT_ONCE, list[object]()
    for path, size, stamp in files:
        if not is_url(path) or size is None or size > left:
            break
        left -= size
        held.append(blocks.begin_to_fetch(FarSource(path, size, stamp), 0, size))
    return held


def fetch_part_soon(file: IO[bytes], start: int, stop: int) -> None:
    """Begin to fetch bytes [start, stop) of an open file of a URL, which are read next. Local ones are left alone."""
    blocks.fetch_part_soon(getattr(file, "raw", None), start, stop)


def nameless(url: str) -> CorpusError:
    """The error for a URL whose size is unknown."""
    return CorpusError(
        url, InWords("a URL whose server reports no size"), "a URL with a known size (or download it first)"
    )


_listed: dict[str, FileFacts] = {}
"""Facts of the files that a folder or pattern has led to, so that none is asked for again one by one."""


def facts_of(url: str, listed: bool = False) -> tuple[int | None, str]:
    """Size in bytes (None if unknown), and a text that changes when the file does. `listed`: as its folder's list has
    it, if there was one."""
    if listed and url in _listed:
        return _listed[url][1:3]
    with naming_input(url):
        return server_of(url).facts(url)[1:3]


def matches(pattern: str) -> list[str]:
    """The URLs of files that a pattern matches, sorted."""
    accepted = matcher(pattern)
    with naming_input(pattern):
        found = server_of(pattern).below(fixed_part(pattern))
    return _remembered([each for each in found if accepted.fullmatch(each.url)])


def files_below(url: str) -> list[str]:
    """The URLs of the files in a folder, sorted; none for a file. CorpusError for what is not there."""
    if scheme_of(url) in HTTP:
        return []
    with naming_input(url):
        server = server_of(url)
        if not url.endswith("/"):
            with suppress(FileNotFoundError, IsADirectoryError):
                facts = server.facts(url)
                if facts.size is not None and not facts.folder:
                    _listed[url] = facts
                    return []
        found = server.below(url)
        if not found:
            raise CorpusError(url, InWords("no such file or directory"), "a file, a folder or a pattern")
        return _remembered(found)


def _remembered(found: list[FileFacts]) -> list[str]:
    _listed.update((each.url, each) for each in found if each.size is not None)
    return [each.url for each in found]


def same_place(url: str) -> str:
    """The canonical form of a URL."""
    with naming_input(url):
        return server_of(url).same(url)


class Fetched(Seekable):
    """A remote file of which some parts are fetched ahead, each byte once; any other read is one request."""

    def __init__(self, far: Any, size: int, positions: Iterable[tuple[int, int]]) -> None:
        super().__init__()
        self._far, self._size = far, size
        self._pieces: list[tuple[int, int, bytes | IO[bytes]]] = []
        joined: list[list[int]] = []
        for start, stop in sorted(positions):
            if joined and start <= joined[-1][1] + NEAR:
                joined[-1][1] = max(joined[-1][1], stop)
            else:
                joined.append([start, stop])
        left = IN_MEMORY
        for start, stop in joined:
            left -= stop - start
            self._pieces.append((start, stop, self._ask(start, stop) if left >= 0 else self._on_disk(start, stop)))

    def _on_disk(self, start: int, stop: int) -> IO[bytes]:
        """A part of the file, in a temporary file of this machine."""
        file: IO[bytes] = tempfile.TemporaryFile(prefix="jittok-")  # noqa: SIM115  given to the caller
        for at in range(start, stop, AT_ONCE):
            file.write(self._ask(at, min(at + AT_ONCE, stop)))
        return file

    def _ask(self, start: int, stop: int) -> bytes:
        self._far.seek(start)
        found: bytes = self._far.read(max(stop - start, 0))
        return found

    def close(self) -> None:
        """Remove the temporary files."""
        for _, _, piece in self._pieces:
            if not isinstance(piece, bytes):
                piece.close()
        super().close()

    def read(self, count: int = -1) -> bytes:
        """Up to `count` bytes."""
        stop = self._size if count < 0 else min(self._at + count, self._size)
        start, self._at = self._at, max(stop, self._at)
        for first, last, piece in self._pieces:
            if first <= start and stop <= last:
                if isinstance(piece, bytes):
                    return piece[start - first : stop - first]
                piece.seek(start - first)
                return piece.read(stop - start)
        return self._ask(start, stop)

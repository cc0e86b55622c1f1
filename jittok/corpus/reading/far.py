"""Shards in a bucket: pieces of 4 MB are fetched when they are needed, or before, and kept on disk up to a bound.

A piece is a file named by the digest of its shard, its number and size, so all processes of a machine share it. A
digest after its bytes tells what was damaged on disk, and the folder is one that only this user can write to. What was
used the longest ago is removed when there is too much.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from jittok.common.locks import Lock
from jittok.corpus.reading.files import OpenFile, read_at
from jittok.corpus.store import Store
from jittok.errors import CorpusError, InWords
from jittok.kernels.jit.trust import doubt

PIECE = 1 << 22
"""Bytes that are fetched at once."""
CACHE_BYTES = 16 << 30
"""What pieces may take on disk, unless the user says otherwise."""
OPEN_PIECES = 64
FETCHERS = 4
"""Threads that fetch ahead."""
TURNS = 5
"""Times that a piece is fetched again because another process has removed it meanwhile."""
DIGEST = 8
"""Bytes of BLAKE2b after those of a piece."""
COMPARED = 1 << 16
"""Files that a process remembers to have compared with their digest."""
LEFT_OVER = 3600
"""Seconds after which a file that was not written to its end is removed."""
_NAME = re.compile(r"[0-9a-f]{40}-[0-9]{6,}-[0-9]+")
_NEW = re.compile(r"[0-9a-f]{16}\.new")


def _digest(content: bytes | memoryview) -> bytes:
    return blake2b(content, digest_size=DIGEST).digest()


def _create(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class PieceCache:
    """A folder of pieces, of at most `limit` bytes, that processes of one user share."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder, self.limit = folder, limit
        self._open: OrderedDict[str, OpenFile] = OrderedDict()
        self._lock = Lock()
        self._turns: dict[str, Lock] = {}
        self._compared: dict[str, tuple[int, int]] = {}  # the file, by device and inode, of a name
        self._ahead: Ahead | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return PieceCache, (self.folder, self.limit)

    def opened(self, name: str, size: int, fetch: Callable[[], bytes]) -> OpenFile:
        """A piece of `size` bytes, fetched if it is not there."""
        with self._lock:
            found = self._open.get(name)
            if found is not None:
                self._open.move_to_end(name)
                return found
            turn = self._turns.setdefault(name, Lock())
        with turn:  # one thread fetches, the others of this process wait
            self._check_folder()
            found = self._kept(name, size) or self._fetched(name, size, fetch)
        with self._lock:
            self._turns.pop(name, None)
            self._open[name] = found
            while len(self._open) > OPEN_PIECES:
                self._open.popitem(last=False)
        return found

    def has(self, name: str) -> bool:
        """Whether a piece is there."""
        return name in self._open or (self.folder / name).exists()

    def _check_folder(self) -> None:
        """Make the folder. CorpusError if somebody else could write to it, as what lies there is believed."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        reason = doubt(self.folder.stat())
        if reason is not None:
            raise CorpusError(
                str(self.folder), InWords(f"a cache folder that {reason}"),
                "one of yours that no other user can write to: a new folder, also inside this one, or run chmod go-w",
            )  # fmt: skip

    def _kept(self, name: str, size: int) -> OpenFile | None:
        path = self.folder / name
        try:
            found = OpenFile(path)
        except FileNotFoundError:
            return None
        facts = os.fstat(found.descriptor)
        if facts.st_size != size + DIGEST or doubt(facts) is not None:
            return None  # not written to its end, or by someone else: it is written again
        file = facts.st_dev, facts.st_ino
        if self._compared.get(name) != file:
            content = bytearray(size + DIGEST)
            if read_at(found.descriptor, memoryview(content), 0) != len(content):
                return None
            if _digest(memoryview(content)[:size]) != content[size:]:
                return None  # damaged, say by a power cut
            if len(self._compared) >= COMPARED:
                self._compared.clear()
            self._compared[name] = file
        with contextlib.suppress(OSError):
            os.utime(path)  # it is used now
        return found

    def _fetched(self, name: str, size: int, fetch: Callable[[], bytes]) -> OpenFile:
        content = fetch()
        assert len(content) == size
        path = self.folder / name
        self._compared.pop(name, None)  # the new file may get the inode of the one before
        for _ in range(TURNS):
            new = self.folder / f"{secrets.token_hex(8)}.new"
            try:
                with open(new, "xb", opener=_create) as file:
                    file.write(content)
                    file.write(_digest(content))
                new.replace(path)
            finally:
                new.unlink(missing_ok=True)
            found = self._kept(name, size)
            if found is not None:
                self._remove_oldest(name)
                return found
        raise CorpusError(str(path), InWords("a file that others change"), f"a cache folder with room for {size} bytes")

    def _remove_oldest(self, but: str) -> None:
        """Remove pieces until those of the folder are within its bound, the longest unused first; no other files, but
        what a process that was killed has left."""
        found, total, now = [], 0, time.time()
        for name, facts in self._files():
            if _NAME.fullmatch(name):
                total += facts.st_size
                found.append((facts.st_mtime_ns, facts.st_size, name))
            elif _NEW.fullmatch(name) and now - facts.st_mtime > LEFT_OVER:
                (self.folder / name).unlink(missing_ok=True)
        for _, size, name in sorted(found):
            if total <= self.limit:
                return
            if name != but:
                (self.folder / name).unlink(missing_ok=True)
                total -= size

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        with os.scandir(self.folder) as entries:
            for entry in entries:
                try:
                    facts = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # another process has removed it
                    continue
                if stat.S_ISREG(facts.st_mode):
                    yield entry.name, facts

    def ahead(self, name: str, size: int, fetch: Callable[[], bytes]) -> None:
        """Have a piece fetched by another thread, unless it is there."""
        if self.has(name):
            return
        with self._lock:
            if self._ahead is None or self._ahead.process != os.getpid():
                self._ahead = Ahead()
            self._ahead.give(name, lambda: self.opened(name, size, fetch))


class Ahead:
    """Threads that fetch what will be needed. An error is left to who needs the piece."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._wanted: deque[tuple[str, Callable[[], object]]] = deque()
        self._known: set[str] = set()
        self._running = 0
        self._turn = Lock()

    def give(self, name: str, work: Callable[[], object]) -> None:
        """One more piece, unless it is already wanted."""
        with self._turn:
            if name in self._known:
                return
            self._known.add(name)
            self._wanted.append((name, work))
            if self._running < FETCHERS:
                self._running += 1
                threading.Thread(target=self._run, daemon=True, name="jittok-fetch").start()

    def _run(self) -> None:
        while True:
            with self._turn:
                if not self._wanted:
                    self._running -= 1
                    return
                name, work = self._wanted.popleft()
            with contextlib.suppress(OSError, ValueError):
                work()
            with self._turn:
                self._known.discard(name)


class FarFile:
    """A file of a store, read through a cache of its pieces."""

    def __init__(self, store: Store, name: str, size: int, sha256: str, cache: PieceCache) -> None:
        self.store, self.name, self.size, self.sha256, self.cache = store, name, size, sha256, cache

    def __reduce__(self) -> tuple[Any, ...]:
        return FarFile, (self.store, self.name, self.size, self.sha256, self.cache)

    def read_into(self, target: memoryview, at: int) -> None:
        """Fill `target` from byte `at` on."""
        done, count = 0, len(target)
        while done < count:
            number, skip = divmod(at + done, PIECE)
            name, size = self._piece(number)
            some = min(count - done, size - skip)
            if some <= 0:
                raise CorpusError(
                    self.store.where(self.name), InWords(f"its end before byte {at + count}"), f"{self.size}"
                )
            opened = self.cache.opened(name, size, lambda number=number: self._fetch(number))  # type: ignore[misc]
            if read_at(opened.descriptor, target[done : done + some], skip) != some:
                raise CorpusError(str(self.cache.folder / name), InWords("a file that was cut"), f"{size} bytes")
            done += some

    def ahead(self, at: int, count: int) -> None:
        """Have the pieces of these bytes fetched."""
        for number in range(at // PIECE, min(at + count - 1, self.size - 1) // PIECE + 1):
            name, size = self._piece(number)
            self.cache.ahead(name, size, lambda number=number: self._fetch(number))  # type: ignore[misc]

    def _piece(self, number: int) -> tuple[str, int]:
        size = min(PIECE, self.size - number * PIECE)
        return f"{self.sha256[:40]}-{number:06d}-{size}", size

    def _fetch(self, number: int) -> bytes:
        start, (_, size) = number * PIECE, self._piece(number)
        try:
            found = self.store.read(self.name, start, start + size)
        except FileNotFoundError:
            where = self.store.where(self.name)
            raise CorpusError(where, InWords("no such object"), "a shard that the manifest lists") from None
        if len(found) != size:
            raise CorpusError(
                self.store.where(self.name),
                InWords(f"{start + len(found)} bytes"),
                f"{self.size}, as the manifest says",
            )
        return found

"""Far files read in blocks: each block is fetched once, several at a time, and memory is bounded.

A file is opened many times: to look at its start, for each of its intervals, for the footer of a table. All readers of
a process share the blocks that were fetched last, so what one of them has read the next one need not fetch.
"""

from __future__ import annotations

import atexit
import io
import os
import tempfile
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

from jittok.common.locks import Lock

BLOCK = 256 << 10
"""Bytes of a block; the last one of a file is shorter."""
BLOCKS_OF_A_REQUEST = 8
"""Blocks next to each other that are fetched at once."""
MOST_BLOCKS = 192
"""That are kept: 48 MB."""
AHEAD = 32
"""Blocks that are under way after the one that is read, where a file is read from its start to its end."""
AT_ONCE = 8
"""Requests of this process that are under way at once."""
IN_ORDER = 2
"""Reads, each after the other from the start of a file on, after which it is fetched ahead."""
BUFFER = 128 << 10


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


class NoRanges(Exception):
    """A server that sends whole files only."""


class Far(Protocol):
    """A file on a server, in one state."""

    key: str
    """Distinguishes it, and its state, from all others."""
    size: int

    def fetch(self, start: int, stop: int) -> bytes:
        """Bytes [start, stop) in one request. NoRanges; any other error means that they cannot be had."""

    def save(self, target: IO[bytes]) -> None:
        """Write all bytes to a file, in one request."""


class _Piece:
    """Blocks next to each other, fetched or under way."""

    def __init__(self, first: int, found: Future[bytes]) -> None:
        self.first, self.found = first, found

    def part(self, start: int, stop: int) -> memoryview:
        """Bytes [start, stop) of the file, which are of this piece."""
        at = self.first * BLOCK
        return memoryview(self.found.result())[start - at : stop - at]


class _Run(NamedTuple):
    """Blocks [first, stop), all of one piece."""

    piece: _Piece
    first: int
    stop: int

    def part(self, start: int, stop: int) -> memoryview:
        """Bytes [start, stop) of the file, as far as they are of this run."""
        return self.piece.part(max(start, self.first * BLOCK), min(stop, self.stop * BLOCK))


class _Process:
    """What this process has fetched and is fetching."""

    def close(self) -> None:
        """Remove the temporary files."""
        for file in self.whole.values():
            file.close()
        self.whole.clear()

    def __init__(self) -> None:
        self.number = os.getpid()
        self.lock = Lock()
        self.pool = ThreadPoolExecutor(AT_ONCE, "jittok-fetch")
        self.blocks: OrderedDict[tuple[str, int], _Piece] = OrderedDict()  # read last
        self.there: WeakValueDictionary[tuple[str, int], _Piece] = WeakValueDictionary()  # these, and what files hold
        self.whole: dict[str, IO[bytes]] = {}  # of servers without ranges, on this disk

    def runs(self, far: Far, first: int, stop: int) -> list[_Run]:
        """These blocks, by the pieces that they are of; those that are not there are being fetched."""
        with self.lock:
            known = ((block, self.there.get((far.key, block))) for block in range(first, stop))
            pieces = {block: piece for block, piece in known if piece is not None}
            missing = [block for block in range(first, stop) if block not in pieces]
            while missing:
                begin = end = missing[0]
                while missing and missing[0] == end and end - begin < BLOCKS_OF_A_REQUEST:
                    missing.pop(0)
                    end += 1
                ask = self.pool.submit(far.fetch, begin * BLOCK, min(end * BLOCK, far.size))
                piece = _Piece(begin, ask)
                pieces.update(dict.fromkeys(range(begin, end), piece))
            found: list[_Run] = []
            for block in range(first, stop):
                piece = pieces[block]
                self.blocks[far.key, block] = self.there[far.key, block] = piece
                self.blocks.move_to_end((far.key, block))
                if found and found[-1].piece is piece:
                    found[-1] = found[-1]._replace(stop=block + 1)
                else:
                    found.append(_Run(piece, block, block + 1))
            while len(self.blocks) > max(MOST_BLOCKS, stop - first):
                self.blocks.popitem(last=False)
            return found

    def forget(self, far: Far) -> None:
        """Drop the blocks of a file."""
        with self.lock:
            for name in [name for name in self.there if name[0] == far.key]:
                self.there.pop(name, None)
                self.blocks.pop(name, None)

    def whole_file(self, far: Far) -> IO[bytes]:
        """All of a file, fetched once, in a temporary file of this machine."""
        with self.lock:
            if far.key not in self.whole:
                file: IO[bytes] = tempfile.TemporaryFile(prefix="jittok-")  # noqa: SIM115  kept
                try:
                    far.save(file)
                    file.flush()
                except BaseException:
                    file.close()
                    raise
                self.whole[far.key] = file
            return self.whole[far.key]


_process: list[_Process] = []
_turn = Lock()


def _now() -> _Process:
    """What this process has fetched: after a fork nothing, as the threads that fetch are gone."""
    with _turn:
        if not _process or _process[0].number != os.getpid():
            for old in _process:
                old.close()
            _process[:] = [_Process()]
            atexit.register(_process[0].close)
        return _process[0]


def read_into(far: Far, target: memoryview, start: int) -> int:
    """Fill `target` from byte `start` of a file on; how many bytes there were."""
    stop = min(start + len(target), far.size)
    if start >= stop:
        return 0
    process = _now()
    if far.key in process.whole:
        return _copy_whole(process, far, target, start)
    try:
        at = 0
        for run in process.runs(far, start // BLOCK, -(-stop // BLOCK)):
            part = run.part(start, stop)
            target[at : at + len(part)] = part
            at += len(part)
    except NoRanges:
        process.forget(far)
        return _copy_whole(process, far, target, start)
    except BaseException:
        process.forget(far)
        raise
    return at


def _copy_whole(process: _Process, far: Far, target: memoryview, start: int) -> int:
    file = process.whole_file(far)
    with process.lock:
        file.seek(start)
        return file.readinto(target)  # type: ignore[attr-defined,no-any-return]


class FarFile(Seekable):
    """A file on a server, as a file object. Once it turns out to be read from its start on, it is fetched ahead."""

    def __init__(self, far: Far) -> None:
        super().__init__()
        self._far, self._size = far, far.size
        self._read = self._times = 0  # bytes from the start on that were read in order, and by how many calls
        self._under_way = 0
        self._soon: list[_Run] = []

    def soon(self, start: int, stop: int) -> None:
        """Begin to fetch bytes [start, stop), which are read next. They are held, however much other files read
        meanwhile, until other bytes are, or this is closed."""
        self._soon = begin_to_fetch(self._far, start, stop)

    def close(self) -> None:
        """Hold nothing."""
        self._soon = []
        super().close()

    def readinto(self, target: Any) -> int:
        """Fill a buffer, as far as there are bytes."""
        view = memoryview(target).cast("B")
        in_order = self._at == self._read
        if in_order and self._times >= IN_ORDER and self._at + len(view) + AHEAD // 2 * BLOCK > self._under_way:
            self._under_way = self._at + len(view) + AHEAD * BLOCK
            self.soon(self._at, self._under_way)
        found = read_into(self._far, view, self._at)
        self._at += found
        if in_order:
            self._read, self._times = self._at, self._times + 1
        return found


def opened(far: Far) -> IO[bytes]:
    """A file on a server, opened."""
    return io.BufferedReader(FarFile(far), BUFFER)


def begin_to_fetch(far: Far, start: int, stop: int) -> list[_Run]:
    """Begin to fetch bytes [start, stop) that are read next: they are there while what this returns is held."""
    process, stop = _now(), min(stop, far.size)
    if start >= stop or far.key in process.whole:
        return []
    with suppress(RuntimeError):  # at the end of the process
        return process.runs(far, start // BLOCK, -(-stop // BLOCK))
    return []


def fetch_part_soon(file: Any, start: int, stop: int) -> None:
    """Begin to fetch bytes [start, stop) of a file that was opened here; any other file is left alone."""
    if isinstance(file, FarFile):
        file.soon(start, stop)

"""A source: one input, opened many times as one file in one state; and the errors that concern it alone.

Errors of a single input (damaged, vanished, not readable) may be left out of a run. Errors of the machine (a full disk,
no memory), inputs that changed meanwhile and documents above the size limit stop it.
"""

from __future__ import annotations

import errno
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from jittok.corpus.inputs.kinds import (
    Peeked,
)
from jittok.corpus.inputs.remote import facts_of, is_url, nameless, open_far
from jittok.corpus.store import base
from jittok.errors import CorpusError, InWords

OF_A_FILE = {
    errno.ENOENT, errno.EACCES, errno.EPERM, errno.EIO, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO,
    errno.ENODATA, getattr(errno, "ESTALE", errno.EIO), getattr(errno, "EBADMSG", errno.EIO), errno.ENAMETOOLONG,
}  # fmt: skip
"""Error numbers that concern a single file; the others concern the machine: descriptors, memory, the disk."""
LOST_AT = 1 << 40
"""Key.at of the range that reports the damage of a unit: after all other ranges of the unit."""
OPTION = "--max-document-bytes"
STDIN = "-"
Exchanged = base.Exchanged
"""An input that was changed or replaced since it was found: it stops a run."""


class Lost(NamedTuple):
    """An input, or a unit of it, whose rest cannot be read."""

    source: int
    line: int  # from 1, of what comes after the last line (row, document) of this unit that was read
    found: str
    expected: str


def is_damage(error: BaseException) -> bool:
    """Whether an error concerns a single input: damaged, vanished, or not readable for this user."""
    if isinstance(error, CorpusError):
        return not isinstance(error, TooLong | base.Exchanged | base.Unreachable)
    if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError | NotADirectoryError):
        return True
    return isinstance(error, OSError) and error.errno in OF_A_FILE


def lost(source: int, line: int, error: Any) -> Lost:
    """The record of an error."""
    if isinstance(error, CorpusError):
        found = error.found if isinstance(error.found, str) else repr(error.found)
        return Lost(source, line, str(found), error.expected)
    return Lost(source, line, error.strerror or str(error), "a readable input")


class TooLong(CorpusError):
    """A document above the limit: it stops a run, whatever `on_error` is."""


@dataclass(frozen=True)
class Source:
    """One input. `size` is None for a stream, which is read once; `stamp` changes when the file is written to.

    A file is opened many times: to look at it, to hash it, for each of its parts. All of them are of one file in one
    state (`same`), or what is hashed would not be what was read. `inode`: of a local file; 0 is not compared.
    """

    path: str
    size: int | None
    stamp: str
    kind: str  # "txt" (the file is a document), "lines", "separated", "jsonl", "parquet", "arrow"
    packing: str  # "", "gz", "zst", "bz2", "xz", "lz4"
    inode: int = 0

    def open(self) -> IO[bytes]:
        """The bytes as they lie on disk. Raises OSError, and CorpusError for another file than was found."""
        if self.path == STDIN:
            return standard_input()  # type: ignore[return-value]  # only read and close are called
        if is_url(self.path):
            return open_far(self.path, self.size, self.stamp)
        opened: IO[bytes] = self.same(Path(self.path).open("rb"))  # noqa: SIM115  given to the caller
        return opened

    def same(self, file: Any) -> Any:
        """An open file. CorpusError, and it is closed, if it is not the one that was found, as it was then."""
        if self.inode:
            facts = os.fstat(file.fileno())
            if facts.st_ino != self.inode or (facts.st_size, _stamp(facts)) != (self.size, self.stamp):
                file.close()
                raise self._changed(facts.st_size, _stamp(facts))
        return file

    def check_unchanged(self) -> None:
        """CorpusError when the file is not what it was when the run began."""
        if self.size is None:
            return
        size, stamp, inode = look_at(self.path)
        if (size, stamp) != (self.size, self.stamp) or (self.inode and inode != self.inode):
            raise self._changed(size, stamp)

    def _changed(self, size: int, stamp: str) -> CorpusError:
        another = "another file of " if (size, stamp) == (self.size, self.stamp) else ""
        found = f"{another}{size} bytes, changed {stamp}"
        return Exchanged(self.path, InWords(found), f"{self.size} bytes as when reading began")


def standard_input() -> Peeked:
    """Standard input, whose first bytes may be looked at; the same object for the same stream."""
    if sys.stdin is None:
        raise CorpusError(STDIN, InWords("closed standard input"), "one that can be read")
    raw = sys.stdin.buffer
    known = _known_input.get("raw")
    if known is None or known[0] is not raw:
        known = _known_input["raw"] = (raw, Peeked(raw))
    return known[1]


_known_input: dict[str, tuple[Any, Peeked]] = {}


def look_at(path: str, listed: bool = False) -> tuple[int, str, int]:
    """Size in bytes, a text that changes when the file does (no promise that it only then does), and its inode, 0 for
    what lies elsewhere. `listed`: of a URL, as the list of its folder has it."""
    if is_url(path):
        size, stamp = facts_of(path, listed)
        if size is None:
            raise nameless(path)
        return size, stamp, 0
    found = Path(path).stat()
    return found.st_size, _stamp(found), found.st_ino


def _stamp(found: os.stat_result) -> str:
    return f"{found.st_mtime_ns} {found.st_ctime_ns}"


def changed(source: Source) -> CorpusError:
    """The error for an input that has changed."""
    return CorpusError(
        source.path, InWords("other content"), "the content that it had when the corpus was begun (or a new directory)"
    )

"""Which errors concern a single input, which a run may leave out, and which concern the machine: a full disk, no
memory."""

from __future__ import annotations

import errno
from typing import Any, NamedTuple

from jittok.corpus.limits import TooLong
from jittok.errors import CorpusError

OF_A_FILE = {
    errno.ENOENT, errno.EACCES, errno.EPERM, errno.EIO, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO,
    errno.ENODATA, getattr(errno, "ESTALE", errno.EIO), getattr(errno, "EBADMSG", errno.EIO), errno.ENAMETOOLONG,
}  # fmt: skip
"""Error numbers that concern a single file; the others concern the machine: descriptors, memory, the disk."""
LOST_AT = 1 << 40
"""Key.at of the range that reports the damage of a unit: after all other ranges of the unit."""


class Exchanged(CorpusError):
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
        return not isinstance(error, TooLong | Exchanged)
    if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError | NotADirectoryError):
        return True
    return isinstance(error, OSError) and error.errno in OF_A_FILE


def lost(source: int, line: int, error: Any) -> Lost:
    """The record of an error."""
    if isinstance(error, CorpusError):
        found = error.found if isinstance(error.found, str) else repr(error.found)
        return Lost(source, line, str(found), error.expected)
    return Lost(source, line, error.strerror or str(error), "a readable input")

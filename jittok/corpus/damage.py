"""Which errors are those of one input, which a run may leave out, and which are everybody's: a full disk, no memory."""

from __future__ import annotations

import errno
from typing import Any, NamedTuple

from jittok.corpus.limits import TooLong
from jittok.errors import CorpusError

OF_A_FILE = {
    errno.ENOENT, errno.EACCES, errno.EPERM, errno.EIO, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO,
    errno.ENODATA, getattr(errno, "ESTALE", errno.EIO), getattr(errno, "EBADMSG", errno.EIO), errno.ENAMETOOLONG,
}  # fmt: skip
"""What a system says of one file; other numbers are those of the machine: descriptors, memory, the disk."""
LOST_AT = 1 << 40
"""Key.at of the range that tells of a unit's damage: after all others of the unit."""


class Exchanged(CorpusError):
    """An input that somebody wrote to, or put another in place of, since it was found: it stops a run."""


class Lost(NamedTuple):
    """An input, or a unit of it, that cannot be read on."""

    source: int
    line: int  # from 1, of what comes after the last line (row, document) of this unit that was read
    found: str
    expected: str


def is_damage(error: BaseException) -> bool:
    """Whether an error is one of a single input: damaged, vanished, closed to this user."""
    if isinstance(error, CorpusError):
        return not isinstance(error, TooLong | Exchanged)
    if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError | NotADirectoryError):
        return True
    return isinstance(error, OSError) and error.errno in OF_A_FILE


def lost(source: int, line: int, error: Any) -> Lost:
    """The account of an error."""
    if isinstance(error, CorpusError):
        found = error.found if isinstance(error.found, str) else repr(error.found)
        return Lost(source, line, str(found), error.expected)
    return Lost(source, line, error.strerror or str(error), "an input that can be read")

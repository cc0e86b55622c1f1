"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OPEN_FILES = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")
"""Names of what this process has open already, which may be a file that the shell has made."""


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether a name is that of a device, a pipe or /dev/stdout: it is written to as it is."""
    plain = Path(path)
    return os.fspath(plain).startswith(OPEN_FILES) or (plain.exists() and not plain.is_file() and not plain.is_dir())


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file beside `path` to write to. It takes the place of `path`, and its permissions, when the block ends well,
    and goes when it does not. A stream (see `is_stream`) is written to as it is. OSError names `path`."""
    if is_stream(path):
        yield Path(path)
        return
    place = Path(os.path.realpath(path))
    new = place.with_name(f".jittok-{secrets.token_hex(8)}")
    try:
        os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except OSError as error:
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    try:
        if place.exists():
            new.chmod(stat.S_IMODE(place.stat().st_mode))
        yield new
        new.replace(place)
    finally:
        new.unlink(missing_ok=True)

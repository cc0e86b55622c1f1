"""Atomic files: complete or absent, never partial."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

STDOUT, STDERR = 1, 2
OPEN_FILES = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")
"""Names of what this process has open already, which may be a file that the shell has made."""
BY_DESCRIPTOR = "/proc/self/fd/"
"""Begins the names of files in a folder that is reached by its descriptor."""
HIDDEN = ".jittok-"
"""Begins the names of files that are written first."""


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether a name is that of a device, a pipe or /dev/stdout: it is written to as it is."""
    plain = Path(path)
    return os.fspath(plain).startswith(OPEN_FILES) or (plain.exists() and not plain.is_file() and not plain.is_dir())


def is_standard_output(path: str | os.PathLike[str]) -> bool:
    """Whether what is written to this name comes out where standard output does."""
    try:
        return os.path.samestat(Path(path).stat(), os.fstat(STDOUT))
    except (OSError, ValueError):
        return False


def _open_file(path: str | os.PathLike[str]) -> int | None:
    """The descriptor of a plain file that a name of OPEN_FILES stands for; None for any other name. OSError."""
    name = os.fspath(path)
    if isinstance(name, bytes) or not name.startswith(OPEN_FILES):
        return None
    last = {"stdout": str(STDOUT), "stderr": str(STDERR)}.get(Path(name).name, Path(name).name)
    if not last.isdecimal():
        return None
    try:
        return int(last) if stat.S_ISREG(os.fstat(int(last)).st_mode) else None
    except (OSError, OverflowError) as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from error


@contextmanager
def _at_the_end(descriptor: int) -> Iterator[Path]:
    """A file whose bytes go where the next ones of a descriptor do. Opening its file by name would overwrite
    what is there."""
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory(prefix=HIDDEN) as folder:
        new = Path(folder) / "output"
        yield new
        if descriptor == STDOUT and sys.stdout is not None:
            sys.stdout.flush()
        with new.open("rb") as written, os.fdopen(os.dup(descriptor), "wb") as file:
            shutil.copyfileobj(written, file)


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file beside `path` to write to. It takes the place of `path`, and its permissions, when the block ends well,
    and goes when it does not. A stream (see `is_stream`) is written to as it is. OSError names `path`."""
    descriptor = _open_file(path) if is_stream(path) else None
    if descriptor is not None:
        way: AbstractContextManager[Path] = _at_the_end(descriptor)
    else:
        way = nullcontext(Path(path)) if is_stream(path) else _beside(path)
    with naming(path), way as new:
        yield new


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """An OSError that names no file, as when a disk is full, or one that no one knows, gets this name."""
    try:
        yield
    except OSError as error:
        if error.errno is None or not _is_unnamed(error):
            raise
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from error


def _is_unnamed(error: OSError) -> bool:
    """Whether an error names no file, as when a disk is full, or one that no one knows."""
    name = error.filename
    return not isinstance(name, str) or HIDDEN in name or name.startswith(BY_DESCRIPTOR)


@contextmanager
def _beside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The file that takes the place of another."""
    position = Path(os.path.realpath(path))
    new = position.with_name(f"{HIDDEN}{secrets.token_hex(8)}")
    os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        if position.exists():
            new.chmod(stat.S_IMODE(position.stat().st_mode))
        yield new
        new.replace(position)
    finally:
        new.unlink(missing_ok=True)

"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file beside `path` to write to. It takes the place of `path` when the block ends well, and goes when it does
    not. What is there and is no file, such as /dev/stdout, is written to as it is. OSError names `path`."""
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():
        yield place
        return
    new = place.with_name(f".{place.name[:100]}.{secrets.token_hex(4)}{place.suffix}")
    try:
        os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except OSError as error:
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    try:
        yield new
        new.replace(place)
    finally:
        new.unlink(missing_ok=True)

"""Blocks that must not compile: inside one, a kernel without machine code raises `WouldCompile`."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class WouldCompile(BaseException):
    """A kernel would have to be compiled; the block's owner then takes its fallback. A BaseException, so that no
    `except Exception` on the way swallows it."""


class _Here(threading.local):
    only = False


_here = _Here()


@contextlib.contextmanager
def without_compiling() -> Iterator[None]:
    """In this block, and in this thread, nothing is compiled."""
    before, _here.only = _here.only, True
    try:
        yield
    finally:
        _here.only = before


def compiles() -> bool:
    """Whether this thread may wait for the compiler."""
    return not _here.only

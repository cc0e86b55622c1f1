"""Work that waits for no compiler: in such a block a kernel without machine code raises `WouldCompile`."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class WouldCompile(BaseException):
    """A kernel would have to be compiled: whoever allowed none does its work in another way. No error: nothing that
    deals with errors is to stop it."""


class _Here(threading.local):
    only = False


_here = _Here()


@contextlib.contextmanager
def at_hand_only() -> Iterator[None]:
    """In this block, and in this thread, nothing is compiled."""
    before, _here.only = _here.only, True
    try:
        yield
    finally:
        _here.only = before


def compiles() -> bool:
    """Whether this thread may wait for the compiler."""
    return not _here.only

"""One compile for many processes that begin together: whoever comes second waits for the file of the first.

The lock is one of the system's on a file beside the machine code, so it ends with the process that holds it, however
that ends. A process that has waited too long, or a folder that cannot be locked (some network ones), costs a second
compile, never a failure.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from jittok.common.locks import compiler_is_lost
from jittok.kernels.jit import trust

T = TypeVar("T")
MOST_SECONDS = 120.0
"""A kernel takes seconds; on a machine where fifty processes begin at once, longer."""
FORKED_SECONDS = 5.0
"""The child of a fork amid compiling: its parent may be the one that compiles, and may be waiting for this child."""
POLL_SECONDS = 0.05
ENDING = ".lock"


def _lock(descriptor: int) -> bool:
    """Take the lock if it is free. OSError where files cannot be locked."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the child of a fork does not have it
    except (BlockingIOError, PermissionError):
        return False
    return True


@contextlib.contextmanager
def compile_turn(path: str, is_done: Callable[[], T | None]) -> Iterator[T | None]:
    """With no one else in it for this place, if that can be had; what `is_done` says then."""
    name = path + ENDING
    try:
        descriptor = trust.open_to_lock(name)
    except OSError:
        yield is_done()
        return
    ours = False
    try:
        ours = _wait(descriptor)
        yield is_done()
    finally:
        if ours:
            with contextlib.suppress(OSError):  # who waits for it finds the work done; so does who makes a new one
                trust.remove(name)
        os.close(descriptor)


def _wait(descriptor: int) -> bool:
    """Whether the lock is ours; False when it took too long or cannot be had."""
    seconds = FORKED_SECONDS if compiler_is_lost() else MOST_SECONDS
    end = time.monotonic() + seconds
    try:
        while not _lock(descriptor):
            if time.monotonic() > end:
                trust.log.info("another process has been compiling the same kernel for %d seconds", seconds)
                return False
            time.sleep(POLL_SECONDS)
    except OSError:
        return False
    return True

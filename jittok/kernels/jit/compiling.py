"""What surrounds compiling a kernel.

- `gc_paused`: Python's garbage collector rests while Numba is imported and compiles: it would take a tenth of that time
  and find hardly any garbage.
- `compile_turn`: one compile for many processes that begin together; the others wait for the file of the first. The
  lock is one of the system's on a file beside the machine code, so it ends with the process that holds it, however that
  ends. A process that has waited too long, or a folder that cannot be locked (some network ones), costs a second
  compile, never a failure.
- `compiling`: a status line on a terminal or in a notebook, and one log record per kernel. Pipes and files get nothing:
  other programs read what is written there.
- `compile_outside`: a kernel compiled by another process, for the child of a fork that cannot trust the Numba it has in
  memory.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from jittok.common.locks import Lock, compiler_is_lost
from jittok.kernels.jit import trust
from jittok.kernels.jit.store import log

_resting: list[None] = []
"""Not empty while `gc_paused` has switched the collector off."""


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Without the collector, if it is on."""
    if not gc.isenabled():
        yield
        return
    _resting.append(None)
    gc.disable()
    try:
        yield
    finally:
        _resting.clear()
        if not gc.get_freeze_count():  # what is new to the oldest objects, or it would all be looked at right now
            gc.freeze()
            gc.unfreeze()
        gc.enable()


def _after_fork() -> None:
    """In the child of a fork: the thread that would switch the collector on again is gone."""
    if _resting:
        _resting.clear()
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


T = TypeVar("T")
MOST_SECONDS = 120.0
"""A kernel takes seconds; on a machine where fifty processes begin at once, longer."""
FORKED_SECONDS = 5.0
"""The child of a fork amid compiling: its parent may be the one that compiles, and may be waiting for this child."""
POLL_SECONDS = 0.05
ENDING = ".lock"


def _take_lock(descriptor: int) -> bool:
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
    """A block that one process runs at a time for this path, if files can be locked; yields what `is_done` returns."""
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
        while not _take_lock(descriptor):
            if time.monotonic() > end:
                trust.log.info("another process has been compiling the same kernel for %d seconds", seconds)
                return False
            time.sleep(POLL_SECONDS)
    except OSError:
        return False
    return True


WHY = "once for this machine"


class _Compiled:
    """What this process has compiled."""

    kernels, seconds, notified = 0, 0.0, False


_so_far, _lock = _Compiled(), Lock()


@contextlib.contextmanager
def compiling(name: str) -> Iterator[None]:
    """Tell that a kernel is compiled, for the time of the block."""
    with _lock:
        _so_far.kernels += 1
        number, before = _so_far.kernels, _so_far.seconds
    line = f"jittok: compiling kernel {number}, {name} ({WHY}; {before:.0f} s so far) ..."
    terminal, begin = _terminal(), time.monotonic()
    if terminal is not None:
        _show(terminal, f"\r{line}")
    elif not _so_far.notified and _in_notebook():
        _so_far.notified = True
        _show(sys.stderr, f"jittok: compiling kernels, {WHY}: some seconds each ...\n")
    try:
        yield
    finally:
        seconds = time.monotonic() - begin
        with _lock:
            _so_far.seconds += seconds
        log.info("compiled kernel %d, %s, in %.1f s", number, name, seconds)
        if terminal is not None:
            _show(terminal, "\r" + " " * len(line) + "\r")


def _terminal() -> Any:
    """Standard error, if it is a terminal."""
    with contextlib.suppress(AttributeError, ValueError):  # none, or closed
        return sys.stderr if sys.stderr.isatty() else None
    return None


def _show(terminal: Any, text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        terminal.write(text)
        terminal.flush()


def _in_notebook() -> bool:
    """Whether cells of a notebook run here, whose standard error is shown below them."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from jittok.kernels.jit import compiling; compiling.main()"
)


def compile_outside(module: str, name: str) -> bytes:
    """The object code of the kernel `name` of a module that can be imported. OSError, RuntimeError if it fails."""
    import json
    import subprocess

    command = [sys.executable, "-c", _PROGRAM, json.dumps(sys.path), module, name]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603
    if ended.returncode or not ended.stdout:
        said = ended.stderr.decode("utf-8", "replace").strip()[-1000:]
        raise RuntimeError(f"compiling kernel {module}.{name} in another process ended with {ended.returncode}: {said}")
    return ended.stdout


def main() -> None:
    """What that process does: the code to standard output."""
    from jittok.kernels.jit.compiler import compile_kernel

    module, name = sys.argv[2:4]
    found = getattr(importlib.import_module(module), name)
    sys.stdout.buffer.write(compile_kernel(found.python))

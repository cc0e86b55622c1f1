"""Long work that Ctrl-C can leave.

Python calls the handler of a signal in the main thread, between two steps of Python code, so not while a kernel runs.
Long work is therefore done by another thread, and the main thread waits for a lock, where it can be interrupted. What
the handler raises leaves `run_interruptible` at once. The work itself is never cut short: its thread goes on to the
end of what it was given. That thread keeps the memory alive, and its result is thrown away. The caller drops its
workspace and takes another one next time.

Blocks that must not compile (`without_compiling`): inside one, a kernel without machine code raises `WouldCompile`.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar


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


P = ParamSpec("P")
R = TypeVar("R")

LONG_WORK_BYTES = 1 << 19
"""Bytes of text, or of ids, that may take 50 ms."""


POLL_SECONDS = 0.03
"""Seconds between looks at what other threads were told."""


class _Thread:
    """A thread that does one piece of work after the other. No one waits for it when the process ends."""

    def __init__(self) -> None:
        self._wanted, self._done = _thread.allocate_lock(), _thread.allocate_lock()
        self._wanted.acquire()
        self._done.acquire()
        self._work: Callable[[], Any] | None = None  # None: end
        self._left = False
        self._ended: tuple[Any, BaseException | None] = None, None
        _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        while True:
            self._wanted.acquire()
            work, self._work = self._work, None
            if work is None:
                return
            try:
                self._ended = work(), None
            except BaseException as error:  # noqa: BLE001  raised by `run_interruptible`
                self._ended = None, error
            del work
            self._done.release()
            if self._left:
                return

    def wait_for(self, work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        """What work() returned or raised in this thread. What interrupts the wait is raised, and the thread then ends
        with its work."""
        self._work = work
        try:
            self._wanted.release()
            while not self._done.acquire(
                timeout=POLL_SECONDS
            ):  # a signal that another thread got does not end the wait
                pass
        except BaseException:
            self._left = True
            with contextlib.suppress(RuntimeError):  # it has not begun: it ends when it has done the work
                self._wanted.release()
            raise
        ended, self._ended = self._ended, (None, None)
        return ended


_idle: list[_Thread] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # a child has none of the threads


def run_interruptible(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """work(*args, **kwargs), which a KeyboardInterrupt may leave at any time. Other threads than the main one, which
    no signal reaches, do it themselves."""
    if not compiles():  # what need not be compiled is short
        return work(*args, **kwargs)
    if threading.current_thread() is not threading.main_thread():
        return work(*args, **kwargs)
    worker = _idle.pop() if _idle else _Thread()
    result, error = worker.wait_for(lambda: work(*args, **kwargs))
    _idle.append(worker)  # what interrupts the wait lets go of the worker, too
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]


def interruptible_if_long(size: int) -> Callable[..., Any]:
    """How to call what works on so many bytes: `run_interruptible`, or just so."""
    return run_interruptible if size >= LONG_WORK_BYTES else _at_once


def _at_once(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return work(*args, **kwargs)

"""Locks that threads share and that work after a fork: every lock of the package that outlives a call is made here.

A fork copies only the thread that forks. A lock that another thread held would stay locked in the child for ever. So
the child gets new locks for those (`_renew`). What a lock guards is complete or absent, never half made: whoever makes
it assigns it as the last step. Three things can be half done at a fork:

- Another thread imports a module. The fork waits for the import (`_wait`), because Python does not repair it.
- Another thread is in a function of LLVM. The fork waits for a moment, which is enough for loading machine code.
- Numba compiles. The child does not use this Numba any more, and compiles in a new process (`compiler_is_lost`).
"""

from __future__ import annotations

import _imp
import contextlib
import functools
import importlib
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

IMPORT_SECONDS = 30.0
"""A fork waits no longer for another thread's imports (seconds each, on a busy machine with a cold disk),"""
LLVM_SECONDS = 0.5
"""nor for a call of LLVM: loading takes milliseconds, compiling may take a minute and is not waited for."""
OURS = frozenset(
    ("filelock", "fsspec", "gguf", "isal", "jittok", "llvmlite", "matplotlib", "numba", "numpy", "orjson", "pandas",
     "polars", "pyarrow", "ray", "regex", "rich", "tqdm", "zstandard")
)  # fmt: skip
"""Packages that are imported when they are needed, as parts of the standard library are."""

_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


class Lock:
    """A lock for `with`, which its holder may take again. In the child of a fork nobody else holds it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.lost = False  # whether a fork came while another thread held it
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()

    def renew(self) -> bool:
        """In the child of a fork: free it if its holder is gone, and say so."""
        new = _renewed(self._lock)
        gone = new is not self._lock
        self._lock = new
        return gone


class once(functools.cached_property[T]):  # noqa: N801  as the one it is like
    """`functools.cached_property`, whose lock (up to Python 3.11) a fork leaves usable."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        super().__init__(function)
        if hasattr(self, "lock"):
            self.lock = Lock()


COMPILER = Lock()
"""Held while Numba is imported and compiles."""


def compiler_is_lost() -> bool:
    """Whether this process was forked amid another thread's compiling, so that Numba's state is half of something."""
    return COMPILER.lost


def _renewed(lock: Any) -> Any:
    """In the child of a fork: the lock if it is free or held by this thread, the only one; else a new one."""
    if lock.acquire(blocking=False):
        lock.release()
        return lock
    return threading.RLock()


def _foreign() -> Iterator[tuple[Any, str]]:
    """(owner, attribute) of the locks of Numba and llvmlite, as far as they are imported."""
    compiler = getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)
    if compiler is not None:
        yield compiler, "_lock"
    llvm = _llvm()
    if llvm is not None:
        yield llvm, "_lock"


def _llvm() -> Any:
    """What llvmlite holds while a function of LLVM runs."""
    library = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
    return getattr(library, "_lock", None)


def is_waited_for(module: str) -> bool:
    """Whether a fork waits while another thread imports this module: one that a call may import, and no user's own,
    whose import may take as long as a program runs."""
    package = module.partition(".")[0]
    return package in OURS or package in sys.stdlib_module_names


def _importing() -> bool:
    """Whether another thread imports what we may need. Python does not say so in public."""
    found = getattr(importlib._bootstrap, "_module_locks", {})
    for name, reference in list(found.items()):
        lock = reference()
        owner = getattr(lock, "owner", None)
        held = owner not in (None, threading.get_ident())
        if held and isinstance(name, str) and is_waited_for(name):
            return True
    return False


def _hold_imports() -> bool:
    """Keep other threads from beginning an import until `_release`; False where one of them is amid what may end soon.

    A thread that begins an import holds Python's import lock for a moment, before it owns a module: so whether one
    imports is asked with this lock held. The fork takes it again. It takes the lock of `logging` too, whose holder may
    begin an import: it must be free, or both would wait for ever.
    """
    _imp.acquire_lock()
    of_logging: Any = getattr(logging, "_lock")  # noqa: B009  no name for others
    if not _importing() and of_logging.acquire(blocking=False):
        _held.append(_imp.release_lock)
        _held.append(of_logging.release)
        return True
    _imp.release_lock()
    return False


def _wait() -> None:
    """In front of a fork: let other threads end what a child could not go on with, if that is soon.

    What was registered last is called first in front of a fork. `logging` takes its lock there, which importing modules
    ask for: so it is imported before this is registered.
    """
    end = time.monotonic() + IMPORT_SECONDS
    while not _hold_imports() and time.monotonic() < end:
        time.sleep(0.001)
    llvm = _llvm()
    if llvm is not None and llvm._lock.acquire(timeout=LLVM_SECONDS):
        _held.append(llvm._lock.release)


_held: list[Callable[[], Any]] = []
"""Gives a lock back that `_wait` has taken, for the time of the fork."""


def _release() -> None:
    while _held:
        with contextlib.suppress(RuntimeError):  # in a child `logging` has a new lock, which is free
            _held.pop()()


def _renew() -> None:
    _release()
    for lock in list(_locks):
        lock.lost |= lock.renew()
    for owner, name in _foreign():
        old = getattr(owner, name)
        new = _renewed(old)
        if new is not old:
            setattr(owner, name, new)
            COMPILER.lost = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait, after_in_parent=_release, after_in_child=_renew)

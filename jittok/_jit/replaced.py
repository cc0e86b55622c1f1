"""Parts of Numba replaced for the thread that compiles a kernel, while it does.

One has no substitute: the entry of a kernel unpacks a frame, where Numba's would take its arguments one by one. The
others save time (`lean`).
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from numba.core.cpu import CPUContext
from numba.core.registry import cpu_target

from jittok._jit.machine import LOCK

Replacement = tuple[Any, str, Callable[[Any], Any]]
"""Owner, name, what makes the replacement of the original."""
COMPILING: set[int] = set()
"""The thread that compiles a kernel, if one does."""
_originals: list[tuple[Any, str, Any]] = []
"""What that thread has replaced: owner, name, original."""
_collecting: list[bool] = []
"""Whether garbage was collected before it began."""


@contextlib.contextmanager
def one_kernel(name: str, wrapper: Callable[..., None], others: list[Replacement]) -> Iterator[None]:
    """While the kernel `name` is compiled in this thread; `wrapper` makes its entry in place of Numba's for C."""
    cpu_target.target_context.refresh()  # all declarations, once
    with _replaced([(CPUContext, "create_cfunc_wrapper", _wrapped(name, wrapper)), *others]), _no_collection():
        COMPILING.add(threading.get_ident())
        try:
            yield
        finally:
            COMPILING.clear()


@contextlib.contextmanager
def _replaced(replacements: list[Replacement]) -> Iterator[None]:
    """With these in place; other threads get the originals."""
    thread = threading.get_ident()

    def chosen(ours: Any, original: Any) -> Any:
        def choose(*args: Any, **kwargs: Any) -> Any:
            return (ours if threading.get_ident() == thread else original)(*args, **kwargs)

        return choose

    with LOCK:
        try:
            for owner, name, make in replacements:
                original = getattr(owner, name)
                _originals.append((owner, name, original))
                setattr(owner, name, chosen(make(original), original))
            yield
        finally:
            _put_back()


def _put_back() -> None:
    while _originals:
        owner, name, original = _originals.pop()
        setattr(owner, name, original)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Without the garbage collector, which takes a tenth of compiling: it finds hardly any garbage."""
    enabled = gc.isenabled()
    _collecting[:] = [enabled]
    gc.disable()
    try:
        yield
    finally:
        _collecting.clear()
        if enabled:
            if not gc.get_freeze_count():  # what is new to the oldest objects, or it would all be looked at right now
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _after_fork() -> None:
    """In the child of a fork: undo what a thread that is gone has changed."""
    if threading.get_ident() in COMPILING:
        return
    COMPILING.clear()
    _put_back()
    if _collecting.pop() if _collecting else False:
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _wrapped(kernel_name: str, wrapper: Callable[..., None]) -> Any:
    """What Numba makes of min() and the like gets no wrapper at all."""

    def make(_original: Any) -> Any:
        def create(context: Any, library: Any, *rest: Any) -> None:
            if library.name == kernel_name:
                wrapper(context, library, *rest)

        return create

    return make

"""Parts of Numba replaced for the thread that compiles a kernel, while it does.

One has no substitute: the entry of a kernel unpacks a frame, where Numba's would take its arguments one by one. The
others save time (`numba_shortcuts`).
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from numba.core import entrypoints
from numba.core.cpu import CPUContext
from numba.core.registry import cpu_target

from jittok.kernels.jit.gc_pause import gc_paused
from jittok.kernels.jit.object_code import LOCK

Replacement = tuple[Any, str, Callable[[Any], Any]]
"""Owner, name, what makes the replacement of the original."""
COMPILING: set[int] = set()
"""The thread that compiles a kernel, if one does."""
_originals: list[tuple[Any, str, Any]] = []
"""What that thread has replaced: owner, name, original."""


@contextlib.contextmanager
def one_kernel(name: str, wrapper: Callable[..., None], others: list[Replacement]) -> Iterator[None]:
    """While the kernel `name` is compiled in this thread; `wrapper` makes its entry in place of Numba's for C."""
    alone: Replacement = (entrypoints, "init_all", _without_extensions)
    with gc_paused():
        with _replaced([alone]):
            cpu_target.target_context.refresh()  # all declarations, once
        with _replaced([alone, (CPUContext, "create_cfunc_wrapper", _wrapped(name, wrapper)), *others]):
            COMPILING.add(threading.get_ident())
            try:
                yield
            finally:
                COMPILING.clear()


def _without_extensions(_original: Any) -> Any:
    """Packages that extend Numba are imported before it compiles for the first time, which may take as long as Numba's
    own import; no kernel needs one. What else is compiled in the process still gets them."""
    return lambda: None


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


def _after_fork() -> None:
    """In the child of a fork: undo what a thread that is gone has changed."""
    if threading.get_ident() in COMPILING:
        return
    COMPILING.clear()
    _put_back()


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

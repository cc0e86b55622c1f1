"""Notices of compilation: a status line on a terminal or in a notebook, and one log record per kernel.

Pipes and files get nothing: other programs read what is written there.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from jittok.common.locks import Lock
from jittok.kernels.jit.store import log

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

"""Python's garbage collector rests while Numba is imported and compiles: it takes a tenth of that and finds hardly any
garbage."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator

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

"""Cancellable work: it is done in steps, and another thread may stop it between two of them. No one waits for the
current step.

A signal handler may start such work while other work is under way, so the two share no lock (see `Pool`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager

from jittok.kernels.jit.pool import Pool


class Cancellation(threading.Event):
    """A flag, set when the result is no longer wanted."""

    def check(self) -> None:
        """CancelledError if the flag is set. Called by the working thread, whose result no one will use."""
        if self.is_set():
            raise CancelledError


NEVER_CANCELLED = Cancellation()
"""For work that is never cancelled."""


@contextmanager
def stoppable_pool(threads: int, stop: Cancellation, wait: bool = False) -> Iterator[Pool]:
    """A thread pool whose tasks are cancelled between two steps when an exception is raised, such as Ctrl-C. `wait`:
    raise it only after all threads have ended, which threads that write files need."""
    pool = Pool(threads)
    try:
        yield pool
    except BaseException:
        stop.set()
        pool.shutdown(wait, cancel_futures=True)
        raise
    pool.shutdown()

"""Work that is done in steps, between which another thread may stop it. No one waits for a step that is under way.

The handler of a signal may begin such work of its own while other work is under way: they share no lock, see `Pool`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager

from jittok._jit.pool import Pool


class Cancellation(threading.Event):
    """Set when the work is not wanted any more."""

    def check(self) -> None:
        """CancelledError if it is set. For the thread that works: no one asks it for a result then."""
        if self.is_set():
            raise CancelledError


NEVER_CANCELLED = Cancellation()
"""Of work that no one stops."""


@contextmanager
def stoppable_pool(threads: int, stop: Cancellation, wait: bool = False) -> Iterator[Pool]:
    """Threads that work while nothing fails. Whatever is raised, Ctrl-C above all, stops them between two steps.
    `wait`: it is raised only when they have ended, which threads that write files need."""
    pool = Pool(threads)
    try:
        yield pool
    except BaseException:
        stop.set()
        pool.shutdown(wait, cancel_futures=True)
        raise
    pool.shutdown()

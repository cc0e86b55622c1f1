"""Work that is done in steps, between which another thread may stop it. No one waits for a step that is under way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager


class Stop(threading.Event):
    """Set when the work is not wanted any more."""

    def check(self) -> None:
        """CancelledError if it is set. For the thread that works: no one asks it for a result then."""
        if self.is_set():
            raise CancelledError


NEVER = Stop()
"""Of work that no one stops."""


@contextmanager
def stoppable_pool(threads: int, name: str, stop: Stop, wait: bool = False) -> Iterator[ThreadPoolExecutor]:
    """Threads that work while nothing fails. Whatever is raised, Ctrl-C above all, stops them between two steps.
    `wait`: it is raised only when they have ended, which threads that write files need."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
    try:
        yield pool
    except BaseException:
        stop.set()
        pool.shutdown(wait, cancel_futures=True)
        raise
    pool.shutdown()

"""Threads that take work from a queue, for calls that a signal's handler may interrupt and make again.

Python runs a handler in the main thread, between any two steps. `concurrent.futures` hands work over under a lock of
the whole process: a handler that comes there, and hands work over itself, would wait for itself. Here nothing is held
while work is handed over: the queue may be entered again.
"""

from __future__ import annotations

import _thread
import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from queue import Empty, SimpleQueue
from typing import Any


class Pool:
    """Up to `threads` threads, which begin when there is work. No one waits for them when the process ends."""

    def __init__(self, threads: int) -> None:
        self._most = threads
        self._jobs: SimpleQueue[Any] = SimpleQueue()
        self._ends: list[Any] = []  # a lock for each thread, free when it has ended

    def submit(self, work: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """What work(*args) will have returned or raised."""
        future: Future[Any] = Future()
        self._jobs.put((future, work, args))
        if len(self._ends) < self._most:
            end = _thread.allocate_lock()
            end.acquire()
            try:
                _thread.start_new_thread(self._run, (end,))
                self._ends.append(end)
            except RuntimeError:  # the system gives no more threads
                if not self._ends:
                    raise
                self._most = len(self._ends)
        return future

    def map(self, work: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        """work of each, in order; all are handed over at once."""
        futures = [self.submit(work, *args) for args in zip(*arguments, strict=False)]
        return (future.result() for future in futures)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """No more work comes: threads end when what they have is done. `cancel_futures`: what has not begun is not."""
        if cancel_futures:
            with contextlib.suppress(Empty):
                while True:
                    self._jobs.get_nowait()[0].cancel()
        for _ in self._ends:
            self._jobs.put(None)
        for end in self._ends if wait else ():
            end.acquire()
            end.release()

    def _run(self, end: Any) -> None:
        try:
            while job := self._jobs.get():
                future, work, args = job
                if future.set_running_or_notify_cancel():
                    try:
                        result = work(*args)
                    except BaseException as error:  # noqa: BLE001  raised by `result`
                        future.set_exception(error)
                    else:
                        future.set_result(result)
                        del result
                del job, future, work, args  # or they would live until the next comes
        finally:
            end.release()


class Cancellation(threading.Event):
    """A flag, set when the result of some work is no longer wanted. The work is done in steps and checks it before
    each; no one waits for the current step."""

    def check(self) -> None:
        """CancelledError if the flag is set. Called by the working thread, whose result no one will use."""
        if self.is_set():
            raise CancelledError


NEVER_CANCELLED = Cancellation()
"""For work that is never cancelled."""


@contextlib.contextmanager
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

"""The threads of one process: each does a task of its own, and helps with those of others when none are left.

The calling thread waits where Ctrl-C reaches it, and calls `report`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from jittok.corpus.progress import Counts
from jittok.corpus.tasks.output import Superseded, Work
from jittok.corpus.tasks.records import Done, write_failed
from jittok.corpus.tasks.run import PATIENCE, Gate, Report, TaskRun, neither
from jittok.errors import CorpusError, JittokError
from jittok.kernels.jit.pool import Cancellation, stoppable_pool

OF_A_TASK = (JittokError, OSError, ImportError, ValueError, MemoryError)
"""Errors of a task that may be those of its inputs, so that other tasks go on."""


class Stopped(Exception):
    """A run was asked to stop by a signal. What is done stays done."""


class Crew:
    """Threads that take the tasks of an iterator, in its order.

    When a task fails, those before it are still finished and those after it are not begun, so the error is that of the
    first task that fails, for any number of threads; with `keep_going` all others are done and the failure is kept as
    a record. The iterator gives None where it has waited in vain and there may be tasks later.

    `finished` is called by the calling thread with the record of each task that is done; `ended` by any thread with the
    number of each that is done or has failed.
    """

    def __init__(
        self,
        work: Work,
        tasks: Iterator[int | None],
        threads: int,
        *,
        keep_going: bool = False,
        report: Report | None = None,
        finished: Callable[[Done], None] | None = None,
        ended: Callable[[int], None] | None = None,
        stop: Cancellation | None = None,
    ) -> None:
        self.context, self.tasks, self.threads, self.keep_going = work, tasks, threads, keep_going
        self.report, self.finished, self.ended = report, finished, ended
        self.stop = stop or Cancellation()
        self.errors: dict[int, BaseException] = {}
        self._stop, self._gate = _Both(self.stop), Gate()
        self._running: list[TaskRun] = []
        self._lock, self._taking = threading.Lock(), threading.Lock()  # of what is running; of `tasks`
        self._over = False
        self._events: SimpleQueue[Any] = SimpleQueue()

    def run(self) -> None:
        """Do all tasks. Raises the error of the first that failed, unless it keeps going; Stopped after a signal."""
        try:
            with stoppable_pool(self.threads, self._stop.at_once) as pool:
                for _ in range(self.threads):
                    pool.submit(self._thread)
                self._listen()
        except BaseException:
            self._gate.close()  # a thread may be in a kernel, which no one waits for; none writes any more
            raise
        if self.errors and not self.keep_going:
            raise self.errors[min(self.errors)]
        if self.stop.is_set():
            raise Stopped
        if self._running:
            raise neither(self.context, self._running[0].number)

    def _listen(self) -> None:
        """Call what threads want to have called, until all have ended."""
        left = self.threads
        while left:
            event = self._events.get()
            if event is None:
                left -= 1
                continue
            call, answered = event
            try:
                call()
            finally:
                answered.set()

    def _thread(self) -> None:
        try:
            while (run := self._next()) is not None:
                self._help(run)
        finally:
            self._events.put(None)

    def _next(self) -> TaskRun | None:
        """A task of one's own, or one that others are at; None when there is nothing left to do."""
        while not self._stop.is_set():
            other = self._other()
            if self._taking.acquire(timeout=PATIENCE if other is None else 0):
                try:
                    run = self._take()
                finally:
                    self._taking.release()
                if run is not None:
                    return run
                other = self._other()
                if other is None and self._over:
                    return None
            if other is not None:
                return other
        return None

    def _take(self) -> TaskRun | None:
        """The next task, begun; None when none is free now, or none is left. One thread at a time is here, and may wait
        for long: it holds nothing that those need who help and finish."""
        while not self._over:
            number: int | None = -1
            try:
                with self._lock:
                    self._over = bool(self.errors) and not self.keep_going
                number = -1 if self._over else next(self.tasks, -1)
                if number is None:
                    return None
                if number < 0:
                    self._over = True
                    return None
                run = TaskRun(self.context, number, self._stop, self._gate, self._tell if self.report else None)
            except OF_A_TASK as error:
                self._failed(-1 if number is None else number, error)
                continue
            with self._lock:
                if not self.errors or self.keep_going or number < min(self.errors):
                    self._running.append(run)
                    return run
        return None

    def _other(self) -> TaskRun | None:
        """The task that needs help most."""
        with self._lock:
            return min(self._of_use(), key=lambda run: run._threads, default=None)

    def _of_use(self) -> list[TaskRun]:
        """The tasks that another thread could help with, and whose end is of use."""
        first = min(self.errors) if self.errors and not self.keep_going else None
        return [run for run in self._running if run.has_more and (first is None or run.number < first)]

    def _help(self, run: TaskRun) -> None:
        try:
            run.work()
        except CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001  raised by `run`
            self._failed(run.number, error)
        with self._lock:
            if run.done is None or run not in self._running:
                return
            self._running.remove(run)
        if self.finished is not None:
            self._call(lambda done=run.done: self.finished(done))  # type: ignore[misc]
        if self.ended is not None:
            self.ended(run.number)

    def _failed(self, number: int, error: BaseException) -> None:
        """Keep the error of a task; of number -1, when there are no tasks to be had: those that are begun end."""
        with self._lock:
            self.errors.setdefault(number, error)
            others = isinstance(error, OF_A_TASK) and not isinstance(error, Superseded)  # may be done all the same
            self.keep_going = self.keep_going and number >= 0 and others
            self._running = [run for run in self._running if run.number != number]
            if not self.keep_going and number >= 0:
                for other in self._running:
                    if other.number > number:
                        other.abandon()
        if not isinstance(error, OF_A_TASK):
            self._stop.at_once.set()
        elif self.keep_going:
            with suppress(OSError, CorpusError):  # the error itself is kept, and the task is tried again
                write_failed(self.context.store, number, error)
        if self.ended is not None and number >= 0:
            self.ended(number)

    def _tell(self, written: Counts) -> None:
        report = self.report
        if report is not None:
            self._call(lambda: report(written))

    def _call(self, call: Callable[[], None]) -> None:
        """Have the calling thread call something, and wait for it."""
        answered = threading.Event()
        self._events.put((call, answered))
        while not self._stop.at_once.is_set():
            if answered.wait(PATIENCE):
                return


class _Both(Cancellation):
    """Stops at once, or between two ranges after a signal."""

    def __init__(self, between_ranges: Cancellation) -> None:
        super().__init__()
        self.between_ranges, self.at_once = between_ranges, Cancellation()

    def is_set(self) -> bool:
        """Whether either is set."""
        return self.at_once.is_set() or self.between_ranges.is_set()

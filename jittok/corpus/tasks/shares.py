"""Which tasks a process does: those of its part, or whichever are free, claimed by leases.

Part i of n has the tasks whose number leaves i when divided by n. A part may be run again at any time: what is done is
not done again.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from jittok.corpus.store import Lease, claim
from jittok.corpus.tasks.output import Work
from jittok.corpus.tasks.plan import Plan
from jittok.corpus.tasks.records import listed, name_of, write_failed
from jittok.errors import CorpusError, InWords
from jittok.kernels.jit.pool import Cancellation

PART = re.compile(r"([0-9]{1,9})(?:/([0-9]{1,9}))?")
INDEXES = ("SLURM_ARRAY_TASK_ID", "AWS_BATCH_JOB_ARRAY_INDEX", "CLOUD_RUN_TASK_INDEX", "JOB_COMPLETION_INDEX")
"""Environment variables with the index of a job in its array: of Slurm, AWS Batch, Cloud Run, Kubernetes."""
MOST_LOST = 3
"""Processes that may die at a task, holding its lease, before it counts as failed."""
RENEWED = 3
"""Times that a lease is renewed before it would end."""
LEASE_SECONDS = 120.0
POLL_SECONDS = 5.0
"""Seconds between two looks for tasks whose lease has ended."""


@dataclass(frozen=True)
class Part:
    """Part `index` of `count`, the first of them 0."""

    index: int
    count: int

    def tasks(self, plan: Plan) -> range:
        """The numbers of its tasks; none where there are fewer tasks than parts."""
        return range(self.index, len(plan.tasks), self.count)


def part_of(said: str, parts: int | None, environ: Mapping[str, str] = os.environ) -> Part:
    """The part that a text names: "i", "i/n" or "auto", which reads the variables of a scheduler. `parts`: into how
    many the plan was cut. CorpusError for what is no part."""
    if said == "auto":
        return _of_scheduler(parts, environ)
    found = PART.fullmatch(said)
    if found is None:
        raise CorpusError("--part", said, "I, I/N (0/8 is the first of eight parts) or auto")
    return _checked("--part", int(found[1]), int(found[2]) if found[2] else parts)


def _checked(where: str, index: int, count: int | None) -> Part:
    if count is None:
        raise CorpusError(where, index, "I/N, or a plan made with --parts N")
    if not 0 <= index < count:
        raise CorpusError(where, f"{index}/{count}", f"0 to {count - 1}")
    return Part(index, count)


def _of_scheduler(parts: int | None, environ: Mapping[str, str]) -> Part:
    name = next((name for name in INDEXES if environ.get(name)), None)
    if name is None:
        expected = f"one of {', '.join(INDEXES)}, or --part I/N"
        raise CorpusError("--part auto", InWords("no variable of a scheduler"), expected)
    index = _number(name, environ)
    if name == "SLURM_ARRAY_TASK_ID":
        return _of_slurm(index, parts, environ)
    count = _number("CLOUD_RUN_TASK_COUNT", environ) if name == "CLOUD_RUN_TASK_INDEX" else None
    return _checked(name, index, parts if count is None or parts is not None else count)


def _of_slurm(index: int, parts: int | None, environ: Mapping[str, str]) -> Part:
    """Of an array that may begin at 1. Where only some of its jobs are run again, indexes are those of the whole array,
    from 0: then their number is not that of the parts."""
    count = _number("SLURM_ARRAY_TASK_COUNT", environ) if environ.get("SLURM_ARRAY_TASK_COUNT") else None
    least = _number("SLURM_ARRAY_TASK_MIN", environ) if environ.get("SLURM_ARRAY_TASK_MIN") else 0
    if count is not None and (parts is None or count == parts):
        return _checked("SLURM_ARRAY_TASK_ID", index - least, count)
    return _checked("SLURM_ARRAY_TASK_ID", index, parts)


def _number(name: str, environ: Mapping[str, str]) -> int:
    text = environ.get(name, "")
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise CorpusError(name, text, "an index: a whole number from 0")
    return int(text)


class Claims:
    """Free tasks, one after the other, each with a lease that is renewed until the task is done or failed."""

    def __init__(self, work: Work, stop: Cancellation, seconds: float | None = None) -> None:
        """`seconds`: of a lease, LEASE_SECONDS by default."""
        self.context, self.stop, self.seconds = work, stop, LEASE_SECONDS if seconds is None else seconds
        self.given_up: set[int] = set()  # tasks that have failed, as too many processes died at them
        self._held: dict[int, Lease] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._renewer = threading.Thread(target=self._renew, daemon=True)

    def __enter__(self) -> Claims:
        self._renewer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._renewer.join()
        for number in list(self._held):
            self.release(number)

    def __iter__(self) -> Iterator[int | None]:
        """The numbers of tasks that are this process's now; those that had failed before are tried again. When all
        others are done, failed or leased, it waits for leases to end, and gives None after each look in vain; it ends
        when no task is left."""
        store, count = self.context.store, len(self.context.plan.tasks)
        order = list(range(count))
        start = secrets.randbelow(count)  # so that processes do not all ask for the same ones
        order = order[start:] + order[:start]
        ours: set[int] = set()
        failed = listed(store).failed
        while not self.stop.is_set() and not self._ended.is_set():
            found = listed(store)
            over = found.done | (found.failed - failed) | ours | self.given_up
            free = [number for number in order if number not in over and number not in found.leased]
            leased = [number for number in order if number not in over and number in found.leased]
            taken = False
            for number in [*free, *leased]:
                if self.stop.is_set():
                    return
                if self._claim(number):
                    taken = True
                    ours.add(number)
                    yield number
            if not taken:
                if not leased and not free:
                    return
                self._ended.wait(POLL_SECONDS)
                yield None

    def _claim(self, number: int) -> bool:
        lease = claim(self.context.store, name_of(number, "lease"), self.seconds)
        if lease is None:
            return False
        if self.context.store.head(name_of(number, "done")) is not None:  # since it was listed
            lease.release()
            return False
        if lease.lost >= MOST_LOST:
            self._give_up(number, lease)
            return False
        with self._lock:
            self._held[number] = lease
        return True

    def _give_up(self, number: int, lease: Lease) -> None:
        """Record that a task has failed, at which one process after the other died."""
        store = self.context.store
        found = InWords(f"{lease.lost} processes that died at it")
        expected = "others that live: if the system ended them for memory (status 137), more of it, or fewer --threads"
        write_failed(store, number, CorpusError(f"task {number}", found, expected))
        self.given_up.add(number)
        lease.release()

    def release(self, number: int) -> None:
        """Give up the lease of a task. Where the store cannot be reached, it ends by itself."""
        with self._lock:
            lease = self._held.pop(number, None)
        if lease is not None:
            with suppress(OSError, CorpusError):
                lease.release()

    def _renew(self) -> None:
        while not self._ended.wait(self.seconds / RENEWED):
            with self._lock:
                held = list(self._held.values())
            for lease in held:
                with suppress(OSError, CorpusError):  # the next time; work is done twice at worst
                    lease.renew()

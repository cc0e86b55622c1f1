"""Ray: its tasks do the tasks of a corpus, each in a process of its own, and give back their records.

Texts and ids stay where they are read and written: every worker must be able to reach inputs and output.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from jittok.corpus.inputs.sources import STDIN
from jittok.corpus.tasks.crew import OF_A_TASK
from jittok.corpus.tasks.output import Work
from jittok.corpus.tasks.records import Done
from jittok.corpus.tasks.run import TaskRun
from jittok.errors import CorpusError, InWords, missing
from jittok.kernels.jit.pool import NEVER_CANCELLED

AHEAD = 2
"""Tasks that are handed to Ray for each of its CPUs."""
RETRIES = 5
"""Times that Ray does a task again whose worker was killed."""

_known: dict[str, Work] = {}
"""In a worker: what the tasks of its last run share."""


def run_task(shared: Sequence[Any], token: str, number: int) -> Done | BaseException:
    """Do a task here, and give its record; or its error, if that may be of its inputs. `shared`: a reference to the
    Work of the run `token`, which is fetched and unpacked once a process."""
    import ray

    if token not in _known:
        found = ray.get(shared[0])
        _known.clear()
        _known[token] = found
    run = TaskRun(_known[token], number, NEVER_CANCELLED)
    try:
        run.work()
    except OF_A_TASK as error:
        return error
    assert run.done is not None
    return run.done


def _got(reference: Any, work: Work, number: int) -> Done | BaseException:
    """The record of a task, or its error; that of a worker which died, as often as Ray tries it again, says so."""
    import ray

    try:
        return ray.get(reference)  # type: ignore[no-any-return]
    except ray.exceptions.RayTaskError:  # raised by code, which is wrong
        raise
    except ray.exceptions.RayError as error:
        memory = isinstance(error, ray.exceptions.OutOfMemoryError)
        found = f"{RETRIES + 1} workers that {'Ray ended, for memory' if memory else 'died'} ({type(error).__name__})"
        expected = (
            "workers that live: where it was for memory, --threads of fewer tasks at once, or machines with more; "
        )
        expected += "ray logs tell more; the same command does what is not done"
        return CorpusError(f"{work.store.place}, task {number} on Ray", InWords(found), expected)


def run_on_ray(
    work: Work, tasks: Sequence[int], workers: int | None, finished: Callable[[Done], None] | None = None
) -> None:
    """Do tasks on the cluster that RAY_ADDRESS names, else on a Ray that is started on this machine.

    `workers`: tasks at once, by default one for each CPU of the cluster. Raises the error of the first task that fails,
    when those before it are done.
    """
    try:
        import ray
    except ImportError:
        raise missing("engine 'ray'", "Ray", "ray") from None
    if any(source.path == STDIN for source in work.sources):
        raise CorpusError("--engine ray", InWords("standard input"), "files that every worker can read")
    if not tasks:
        return
    if not ray.is_initialized():
        os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))  # else tasks that fill the memory never end
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.WARNING)
    cpus: dict[str, float] = ray.cluster_resources()
    most = workers or AHEAD * max(int(cpus.get("CPU", 1)), 1)
    sources = [replace(source, inode=0) for source in work.sources]
    work.encoder.sources, before = sources, work.encoder.sources
    shared, token = [ray.put(work._replace(sources=sources, elsewhere=True))], secrets.token_hex(8)
    work.encoder.sources = before
    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(run_task)
    left, errors = list(reversed(tasks)), dict[int, BaseException]()
    pending: dict[Any, int] = {}
    try:
        while left or pending:
            while left and len(pending) < most and not errors:
                number = left.pop()
                pending[remote.remote(shared, token, number)] = number
            if errors:
                left.clear()
                for reference in [ref for ref, number in pending.items() if number > min(errors)]:
                    ray.cancel(reference, force=True)
                    del pending[reference]
                if not pending:
                    break
            (ready, *_), _ = ray.wait(list(pending), num_returns=1)
            number = pending.pop(ready)
            found = _got(ready, work, number)
            if isinstance(found, BaseException):
                errors[number] = found
            elif finished is not None:
                finished(found)
    finally:
        for reference in pending:
            ray.cancel(reference, force=True)
    if errors:
        raise errors[min(errors)]

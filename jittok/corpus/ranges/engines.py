"""Ranges encoded by threads of this process, in order: for `verify`, which compares and does not write."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future

from jittok.corpus.ranges.encoder import Encoded, RangeEncoder
from jittok.corpus.ranges.units import RawRange
from jittok.kernels.jit.pool import Cancellation, stoppable_pool


def encode_on_threads(encoder: RangeEncoder, ranges: Iterator[RawRange], threads: int | None) -> Iterator[Encoded]:
    """Ranges in order, each encoded by one thread. The calling thread reads ahead.
    When the generator is closed, threads end at their next step."""
    from jittok.encode.threads.stretches import thread_count

    count = thread_count(threads)
    pending: deque[Future[Encoded]] = deque()
    stop = Cancellation()
    with stoppable_pool(count, stop) as pool:
        for raw in ranges:
            pending.append(pool.submit(encoder, raw, stop))
            del raw
            while len(pending) > 2 * count:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()

"""Engines that encode the ranges of a corpus: threads of this process, or Ray. Both return ranges in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future

from jittok.corpus.cancellation import Cancellation, stoppable_pool
from jittok.corpus.range_encoder import Encoded, RangeEncoder
from jittok.corpus.ranges import RawRange, read_unit, units
from jittok.corpus.sources import STDIN
from jittok.corpus.state import State, changed

ENGINES = ("threads", "ray")
Engine = Callable[[RangeEncoder, State], Iterator[Encoded]]


def raw_ranges(encoder: RangeEncoder, state: State) -> Iterator[RawRange]:
    """The remaining ranges. CorpusError when standard input differs from that of the interrupted run."""
    sources, options, done = encoder.sources, encoder.options, state.done
    for unit in units(sources, options, 0 if done is None else done.source):
        if done is None or (unit.source, unit.part) > done[:2]:
            yield from read_unit(unit, sources, options)
        elif (unit.source, unit.part) == done[:2]:
            again = sources[unit.source].path == STDIN  # read the last range once more, to see whether it is the same
            ranges = read_unit(unit, sources, options, done.at + (not again))
            if again:
                first = next(ranges, None)
                if first is None or first.prefix != state.prefix:
                    raise changed(sources[unit.source])
            yield from ranges


def encode_on_threads(encoder: RangeEncoder, ranges: Iterator[RawRange], threads: int | None) -> Iterator[Encoded]:
    """Ranges in order, each encoded by one thread. The calling thread reads ahead and yields results to the writer.
    When the generator is closed, threads end at their next step."""
    from jittok.encode.stretches import thread_count

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


def engine_of(name: str, threads: int | None) -> Engine:
    """The engine of a name in ENGINES, with that many threads or actors."""
    if name == "ray":
        from jittok.corpus.ray_engine import encode_on_ray

        return lambda encoder, state: encode_on_ray(encoder, state, threads)
    return lambda encoder, state: encode_on_threads(encoder, raw_ranges(encoder, state), threads)

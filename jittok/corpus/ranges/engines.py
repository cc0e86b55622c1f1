"""Engines that encode the ranges of a corpus: threads of this process, or Ray. Both return ranges in order.

Ray Data runs an actor pool, one tokenizer a process. It restarts a killed worker and repeats its unit. As ranges return
in order and one process writes them, the bytes are those of any other run.
"""

from __future__ import annotations

import logging
import pickle
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple

from jittok.corpus.inputs.sources import STDIN, changed
from jittok.corpus.ranges.encoder import Encoded, RangeEncoder
from jittok.corpus.ranges.units import Key, RawRange, Unit, read_unit, units
from jittok.errors import CorpusError, InWords, JittokError, missing
from jittok.kernels.jit.pool import Cancellation, stoppable_pool

ENGINES = ("threads", "ray")
Engine = Callable[[RangeEncoder, "Done"], Iterator[Encoded]]


class Done(NamedTuple):
    """How far an earlier run has come."""

    key: Key | None = None  # its last range
    prefix: list[Any] | None = None  # what it had read of that range's input: [source, bytes, digest]


NOTHING = Done()


def raw_ranges(encoder: RangeEncoder, earlier: Done = NOTHING) -> Iterator[RawRange]:
    """The remaining ranges. CorpusError when standard input differs from that of the interrupted run."""
    sources, options, done = encoder.sources, encoder.options, earlier.key
    for unit in units(sources, options, 0 if done is None else done.source):
        if done is None or (unit.source, unit.part) > done[:2]:
            yield from read_unit(unit, sources, options)
        elif (unit.source, unit.part) == done[:2]:
            again = sources[unit.source].path == STDIN  # read the last range once more, to see whether it is the same
            ranges = read_unit(unit, sources, options, done.at + (not again))
            if again:
                first = next(ranges, None)
                if first is None or first.prefix != earlier.prefix:
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
        return lambda encoder, earlier: encode_on_ray(encoder, earlier, threads)
    return lambda encoder, earlier: encode_on_threads(encoder, raw_ranges(encoder, earlier), threads)


UNITS_A_BLOCK = 8
FEW_UNITS = 256
COLUMNS = (*Unit._fields, "first")


class _Worker:
    """The encoder in an actor. Errors of the input travel back as results, so that they are reported in order."""

    def __init__(self, encoder: RangeEncoder) -> None:
        self.encoder = encoder

    def __call__(self, batch: dict[str, Any]) -> Iterator[dict[str, list[bytes]]]:
        for row in zip(*(batch[name].tolist() for name in COLUMNS), strict=True):
            *position, first = row
            try:
                for raw in read_unit(Unit(*position), self.encoder.sources, self.encoder.options, first):
                    yield {"result": [pickle.dumps(self.encoder(raw), protocol=5)]}
            except (JittokError, OSError, ImportError) as error:
                yield {"result": [pickle.dumps(error)]}
                return


def encode_on_ray(encoder: RangeEncoder, earlier: Done = NOTHING, workers: int | None = None) -> Iterator[Encoded]:
    """Ranges in order. Connects to the cluster that RAY_ADDRESS names, else starts Ray on this machine.

    `workers`: actors of one CPU each, by default one for each CPU of the cluster; all must be able to read the inputs.
    """
    try:
        import ray
    except ImportError:
        raise missing("engine 'ray'", "Ray", "ray") from None
    if any(source.path == STDIN for source in encoder.sources):
        raise CorpusError("--engine ray", InWords("standard input"), "files that every worker can read")
    items = _todo(encoder, earlier.key)
    if not items:
        return
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.WARNING)
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    cpus: dict[str, float] = ray.cluster_resources()
    count = workers or max(int(cpus.get("CPU", 1)), 1)
    blocks = len(items) if len(items) <= FEW_UNITS else -(-len(items) // UNITS_A_BLOCK)
    dataset = ray.data.from_items(items, override_num_blocks=blocks).map_batches(
        _Worker,
        fn_constructor_args=(encoder,),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=min(count, len(items))),
        num_cpus=1,
    )
    last = (-1, -1, -1)
    for row in dataset.iter_rows():
        found = pickle.loads(row["result"])  # noqa: S301  our own workers made it
        if isinstance(found, BaseException):
            raise found
        assert found.key > last, "preserve_order keeps ranges in order"
        last = found.key
        yield found


def _todo(encoder: RangeEncoder, done: Key | None) -> list[dict[str, int]]:
    """The remaining units, as rows; `first` is the first remaining range of the unit that is under way."""
    items = []
    for unit in units(encoder.sources, encoder.options, 0 if done is None else done.source):
        first = 0
        if done is not None and (unit.source, unit.part) <= done[:2]:
            if (unit.source, unit.part) < done[:2]:
                continue
            first = done.at + 1
        items.append({**unit._asdict(), "first": first})
    return items

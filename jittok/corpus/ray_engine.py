"""Encodes the ranges of a corpus with Ray Data: an actor pool, one tokenizer a process. The driver writes, in order.

Ray restarts a killed worker and repeats its unit. As ranges return in order and one process writes them, the bytes
are those of any other run.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from typing import Any

from jittok.corpus.range_encoder import Encoded, RangeEncoder
from jittok.corpus.ranges import Unit, read_unit, units
from jittok.corpus.sources import STDIN
from jittok.corpus.state import State
from jittok.errors import CorpusError, InWords, JittokError, missing

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


def encode_on_ray(encoder: RangeEncoder, state: State, workers: int | None = None) -> Iterator[Encoded]:
    """Ranges in order. Connects to the cluster that RAY_ADDRESS names, else starts Ray on this machine.

    `workers`: actors of one CPU each, by default one for each CPU of the cluster; all must be able to read the inputs.
    """
    try:
        import ray
    except ImportError:
        raise missing("engine 'ray'", "Ray", "ray") from None
    if any(source.path == STDIN for source in encoder.sources):
        raise CorpusError("--engine ray", InWords("standard input"), "files that every worker can read")
    items = _todo(encoder, state)
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


def _todo(encoder: RangeEncoder, state: State) -> list[dict[str, int]]:
    """The remaining units, as rows; `first` is the first remaining range of the unit that is under way."""
    done, items = state.done, []
    for unit in units(encoder.sources, encoder.options, 0 if done is None else done.source):
        first = 0
        if done is not None and (unit.source, unit.part) <= done[:2]:
            if (unit.source, unit.part) < done[:2]:
                continue
            first = done.at + 1
        items.append({**unit._asdict(), "first": first})
    return items

"""Batches of sequences for one of several ranks, with a state that does not depend on how many there are."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from jittok.corpus.reading.sequences import Found, Sequences
from jittok.errors import CorpusError, InWords

State = dict[str, int | str]
AHEAD = 32
"""Batches for which far shards are fetched before they are asked for."""


class Loader:
    """Batches of `batch` sequences for rank `rank` of `world`.

    All epochs are one stream of sequences. A step takes the next `batch * world` of them, rank r the r-th `batch`. So
    the state is where the stream is (the epoch and the sequence in it) and the seed. It may be loaded by any other
    number of ranks, workers or another batch size: what comes is what would have come.

    An iteration ends with every `epochs`-th epoch, wherever it was resumed; what is left then, less than a step, begins
    the next one. None: without end. drop_last=False: for one rank alone, the end is a smaller batch.

    A DataLoader of PyTorch takes it as a map-style dataset (`DataLoader(loader, batch_size=None, num_workers=4)`):
    `len` steps are left, `loader[k]` is the k-th of them. Its workers hand out each batch once, in order. Then call
    `advance()` in the training process for each batch that was used: without, every pass is over the same batches.
    Workers of a DataLoader follow it, also those that last from epoch to epoch. Where a worker iterates over it
    (in an IterableDataset), it takes every n-th batch.
    """

    def __init__(
        self,
        sequences: Sequences,
        batch: int,
        *,
        rank: int = 0,
        world: int = 1,
        epochs: int | None = 1,
        drop_last: bool = True,
    ) -> None:
        batch, rank, world = operator.index(batch), operator.index(rank), operator.index(world)
        if batch < 1 or world < 1 or not 0 <= rank < world or (epochs is not None and epochs < 1):
            found = f"batch={batch}, rank={rank}, world={world}, epochs={epochs}"
            raise ValueError(f"found {found}, expected batch, world, epochs of 1 or more and 0 <= rank < world")
        if not drop_last and world > 1:
            raise ValueError("drop_last=False: found several ranks, expected one: they would have unequal batches")
        if len(sequences) < (batch * world if drop_last else 1):
            raise ValueError(
                f"found {len(sequences)} sequences, expected {batch * world} or more: one step of all ranks"
            )
        self.sequences, self.batch, self.rank, self.world = sequences, batch, rank, world
        self.epochs, self.drop_last = epochs, drop_last
        self._known: int | None = None  # the batch that far shards were last fetched for
        self._done = 0  # steps of this iteration
        self._told, self._owner, self._follows = _shared_number(), os.getpid(), True
        self._go_to(0)

    def _go_to(self, start: int) -> None:
        """Sequences of the stream before this iteration: workers that were forked are told, too."""
        self._start = start
        if os.getpid() == self._owner:
            self._told.value = start
        else:
            self._follows = False  # a process that goes its own way

    def __getstate__(self) -> dict[str, Any]:
        from multiprocessing.context import get_spawning_popen

        return {**self.__dict__, **({} if get_spawning_popen() is not None else {"_told": None})}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._told is None:  # no worker of the process that it comes from
            self._told, self._owner, self._follows = _shared_number(), os.getpid(), True
            self._told.value = self._start

    def __repr__(self) -> str:
        state = self.state_dict()
        place = f"epoch {state['epoch']}, sequence {state['sequence']}"
        return f"Loader({place}, batch={self.batch}, rank={self.rank}, world={self.world})"

    def _steps(self) -> int:
        """From the start of this iteration to its end."""
        step, left = self.batch * self.world, self._end() - self._start
        if not self.drop_last:
            return -(-left // step)
        return left // step or (left + self._pass()) // step

    def _pass(self) -> int:
        return len(self.sequences) * (self.epochs or 1)

    def _end(self) -> int:
        """Where the epochs end that this iteration is in."""
        return (self._start // self._pass() + 1) * self._pass()

    def __len__(self) -> int:
        """Steps of this iteration, from where it began or was resumed."""
        if self.epochs is None:
            raise TypeError("a loader without end has no length: epochs=None")
        return self._steps()

    def __getitem__(self, number: int) -> Found:
        """This rank's batch of a step of this iteration."""
        if self._follows and os.getpid() != self._owner and _worker_info() is not None:
            self._start = int(self._told.value)
        return self._batch(number)

    def _batch(self, number: int) -> Found:
        at = operator.index(number)
        if at < 0 or (self.epochs is not None and at >= self._steps()):
            raise IndexError(f"batch {at}: expected 0 <= batch < {len(self)}")
        first = self._start + (at * self.world + self.rank) * self.batch
        last = first + self.batch
        if not self.drop_last:
            last = min(last, self._end())
        self._fetch_ahead(at)
        return self.sequences.stream(np.arange(first, last, dtype=np.int64))

    def _fetch_ahead(self, number: int) -> None:
        """Have far shards fetched for the batches that come AHEAD of this one, so many more than the last time."""
        if not self.sequences.far:
            return
        _, workers = _worker()
        known, self._known = self._known, number
        some = range(number, number + AHEAD * workers + 1, workers)
        if known is not None and known == number - workers:
            some = some[-1:]  # those before were told with the last batch
        step = self.batch * self.world
        firsts = [self._start + at * step + self.rank * self.batch for at in some]
        self.sequences.ahead(np.concatenate([np.arange(first, first + self.batch) for first in firsts]))

    def __iter__(self) -> Iterator[Found]:
        self._begin()
        worker, workers = _worker()
        number, steps = worker, None if self.epochs is None else self._steps()
        while steps is None or number < steps:
            found = self._batch(number)
            number += workers
            # in a worker: steps of all, so that each, when resumed, goes on with its own
            self._done = number - worker if steps is None else min(number - worker, steps)
            yield found
        if steps is not None:
            self._done = steps
            self._begin()

    def advance(self, batches: int = 1) -> None:
        """So many more batches of a DataLoader over this loader were used. After the last one, the next iteration
        begins. ValueError for more than there are."""
        if batches < 0 or (self.epochs is not None and self._done + batches > self._steps()):
            raise ValueError(
                f"advance: found {batches}, expected 0 to {self._steps() - self._done}, as many as are left"
            )
        self._done += batches
        if self.epochs is not None and self._done == self._steps():
            self._begin()

    def _begin(self) -> None:
        """Begin an iteration where the last one ended."""
        self._go_to(self._position())
        self._done, self._known = 0, None

    def _position(self) -> int:
        """Sequences of the stream that all ranks have had."""
        position = self._start + self._done * self.batch * self.world
        if not self.drop_last and self._done == self._steps():
            return self._end()
        return position

    def state_dict(self) -> State:
        """Where the stream is: `seed`, `epoch`, `sequence` of it; `of`: which sequences these are of."""
        epoch, sequence = divmod(self._position(), len(self.sequences))
        return {"seed": self.sequences.seed, "epoch": epoch, "sequence": sequence, "of": self.sequences.digest}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a loader of the same sequences was: of any rank, world, batch size and number of workers.

        Raises CorpusError for the state of others: another corpus, length, packing or seed.
        """
        try:
            epoch, sequence = operator.index(state["epoch"]), operator.index(state["sequence"])
            of, seed = state["of"], state["seed"]
        except (KeyError, TypeError) as error:
            raise CorpusError("a loader's state", InWords(f"{error!r}"), "what state_dict gave") from None
        if (of, seed) != (self.sequences.digest, self.sequences.seed):
            mine = f"sequences {self.sequences.digest}, seed {self.sequences.seed}"
            raise CorpusError(
                "a loader's state", InWords(f"sequences {of}, seed {seed}"),
                f"{mine}: of the same corpora, length, packing, order and seed",
            )  # fmt: skip
        if epoch < 0 or not 0 <= sequence < len(self.sequences):
            raise CorpusError(
                "a loader's state", InWords(f"epoch {epoch}, sequence {sequence}"),
                f"an epoch of 0 or more, 0 <= sequence < {len(self.sequences)}",
            )  # fmt: skip
        self._go_to(epoch * len(self.sequences) + sequence)
        self._done, self._known = 0, None


def _shared_number() -> Any:
    """An int64 that processes which are forked or spawned from this one see as well."""
    from multiprocessing.sharedctypes import RawValue

    return RawValue("q", 0)


def _worker_info() -> Any:
    """What PyTorch says of this worker of a DataLoader, None in other processes; it is asked only where it has been
    imported."""
    torch = sys.modules.get("torch.utils.data")
    return torch.get_worker_info() if torch is not None else None


def _worker() -> tuple[int, int]:
    """Which of how many workers of a DataLoader this process is."""
    info = _worker_info()
    return (0, 1) if info is None else (int(info.id), int(info.num_workers))

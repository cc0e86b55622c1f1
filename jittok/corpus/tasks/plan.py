"""The plan of a corpus: its inputs cut into tasks, by names and sizes alone. `plan.json` has it until all are done.

A task is a run of units whose bytes of input reach `shard_bytes`; a unit that has as many alone is a task of its own.
Where documents are shuffled, the runs are of units in a drawn order: so each task has ranges of the whole corpus.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.inputs.sources import Exchanged, Source
from jittok.corpus.options import Options, from_identity
from jittok.corpus.ranges.units import Unit, size_of, units, units_at
from jittok.corpus.shards.plan import INPUTS_FROM, VOCAB_FILE, Fact
from jittok.corpus.shards.shuffling import drawn
from jittok.corpus.store import Store
from jittok.errors import CorpusError, InWords

WORK = ".jittok"
"""The folder of an unfinished corpus."""
PLAN = f"{WORK}/plan.json"
ABANDONED = f"{WORK}/abandoned.json"
"""What the plan becomes while its corpus is removed."""
VERSION = 1
FREE_OPTIONS = ("on_error", "max_document_bytes")
"""Options that may change while a corpus is unfinished: they change no byte of what is done."""
ID, START = re.compile(rb'"id": "([0-9a-f]{64})"'), 128
"""Where the file of a plan has its id: in so many bytes at its start."""


class Task(NamedTuple):
    """A run of units: the first of them, how many there are, and their bytes of input."""

    source: int  # of its first unit; of units in a drawn order, the place of the first in it
    part: int
    units: int
    bytes: int


Counts = tuple[tuple[int, int], ...]
"""The inputs with which units begin, and how many do with each: what is needed to find a unit by its number."""


def plan_of(facts: Fact, sources: Sequence[Source], options: Options, parts: int | None = None) -> Plan:
    """The plan of a corpus, of one task at least. Reads the footers of large Parquet files. CorpusError for standard
    input whose documents are to be shuffled."""
    seed = options.shuffle_documents
    if seed is None:
        places = ((unit.source, unit.part, size_of(unit, sources, options)) for unit in units(sources, options))
        return Plan(facts, tuple(_tasks(places, options)), parts)
    if any(source.size is None for source in sources):
        raise CorpusError("--shuffle-documents", InWords("standard input"), "files, of which parts can be drawn")
    counts, sizes = dict[int, int](), list[int]()
    for unit in units(sources, options):
        counts[unit.source] = counts.get(unit.source, 0) + 1
        sizes.append(size_of(unit, sources, options))
    order = drawn(f"{seed}/units", len(sizes)).tolist()
    places = ((place, 0, sizes[number]) for place, number in enumerate(order))
    return Plan(facts, tuple(_tasks(places, options)), parts, tuple(counts.items()))


def _tasks(places: Iterator[tuple[int, int, int]], options: Options) -> Iterator[Task]:
    """The tasks of units: the place of each, as a Task has that of its first, and its bytes of input."""
    now: Task | None = None
    most, none = options.shard_bytes or float("inf"), True
    for source, part, size in places:
        if now is not None and size >= most:
            yield now
            now = None
        if now is None:
            now, none = Task(source, part, 0, 0), False
        now = now._replace(units=now.units + 1, bytes=now.bytes + size)
        if now.bytes >= most:
            yield now
            now = None
    if now is not None or none:
        yield now or Task(0, 0, 0, 0)


@dataclass(frozen=True)
class Plan:
    """What decides the bytes of a corpus (`facts`: see `shards.plan.make_plan`), its tasks, and the
    number of parts that they are divided into. `counts`: of units, where they are in a drawn order."""

    facts: Fact
    tasks: tuple[Task, ...]
    parts: int | None = None
    counts: Counts = ()
    id: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", _id_of(self))

    @property
    def options(self) -> Options:
        """The options that it was made with."""
        return from_identity(self.facts["options"])

    def units_of(self, number: int, sources: Sequence[Source]) -> Iterator[Unit]:
        """The units of a task, in the order of the inputs."""
        task = self.tasks[number]
        if not task.units:
            return iter(())
        if self.counts:
            return self._drawn(self._order[task.source : task.source + task.units], sources)
        there = units(sources, self.options, task.source, task.part)
        found = (unit for unit in there if (unit.source, unit.part) >= (task.source, task.part))
        return islice(found, task.units)

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        """The numbers of all units in the order that the seed draws."""
        return drawn(f"{self.options.shuffle_documents}/units", sum(count for _, count in self.counts))

    def _drawn(self, numbers: NDArray[np.int64], sources: Sequence[Source]) -> Iterator[Unit]:
        numbers = np.sort(numbers)
        firsts = np.cumsum([0, *(count for _, count in self.counts)])
        at = np.searchsorted(firsts, numbers, "right") - 1
        inputs = np.array([source for source, _ in self.counts], np.int64)[at]
        places = list(zip(inputs.tolist(), (numbers - firsts[at]).tolist(), strict=True))
        found = 0
        for unit in units_at(sources, self.options, places):
            found += 1
            yield unit
        if found < len(places):
            where = sources[places[found][0]].path
            raise Exchanged(where, InWords("fewer ranges than were planned"), "the inputs as they were planned")

    def to_json(self) -> bytes:
        """The content of its file."""
        fact = {
            "version": VERSION, "id": self.id, "parts": self.parts, "plan": self.facts,
            "tasks": [list(task) for task in self.tasks], **({"counts": self.counts} if self.counts else {}),
        }  # fmt: skip
        return json.dumps(fact).encode() + b"\n"


def _id_of(plan: Plan) -> str:
    """SHA-256 of all that decides the bytes: equal for plans that the same records of tasks may belong to."""
    facts = plan.facts
    options = {name: value for name, value in facts["options"].items() if name not in FREE_OPTIONS}
    inputs = [[row["path"], row["bytes"], row["kind"], row["packing"]] for row in facts["inputs"]]
    parts = [
        facts["vocab"]["fingerprint"],
        options,
        facts["writers"],
        facts.get("rules"),
        inputs,
        list(map(list, plan.tasks)),
        *([plan.counts] if plan.counts else []),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def read_plan(store: Store, name: str = PLAN) -> Plan | None:
    """The plan of an unfinished corpus, None if there is none. CorpusError for what is no plan of this version."""
    try:
        content = store.read(name)
    except FileNotFoundError:
        return None
    where = store.where(name)
    try:
        fact = json.loads(content)
        if fact["version"] != VERSION:
            raise CorpusError(where, InWords(f"version {fact['version']}"), f"a plan of version {VERSION}")
        parts = fact["parts"]
        if parts is not None and (type(parts) is not int or parts < 1):
            raise ValueError(f"{parts} parts")
        counts = tuple((_count(source), _count(count)) for source, count in fact.get("counts", ()))
        plan = Plan(fact["plan"], tuple(Task(*map(_count, task)) for task in fact["tasks"]), parts, counts)
        check_facts(plan.facts)
        if plan.id != fact["id"]:
            raise ValueError("another digest than its content has")
    except CorpusError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        found = InWords(f"{type(error).__name__}: {error}"[:200])
        raise CorpusError(where, found, f"a plan that jittok wrote: remove {WORK} to start again") from error
    return plan


def id_there(store: Store) -> str | None:
    """The id of the plan of an unfinished corpus, from the start of its file; None if there is none."""
    try:
        found = ID.search(store.read(PLAN, 0, START))
    except FileNotFoundError:
        return None
    return found[1].decode() if found else None


def _count(number: object) -> int:
    if type(number) is not int or not 0 <= number < 1 << 62:
        raise ValueError(f"the number {str(number)[:80]}")
    return number


def check_facts(facts: Fact) -> None:
    """ValueError, TypeError or LookupError unless these are facts of a plan."""
    from_identity(facts["options"])
    texts: list[Any] = [facts["jittok"], facts["vocab"]["fingerprint"]]
    for row in facts["inputs"]:
        texts += [row["path"], row["kind"], row["packing"], row["stamp"]]
        if row["bytes"] is not None:
            _count(row["bytes"])
    vocab = facts["vocab"]
    texts += [name for name in (*map(vocab.get, ("name", VOCAB_FILE)), facts.get(INPUTS_FROM)) if name is not None]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("names that are no texts")
    if not all(isinstance(fact, dict) for fact in (vocab, facts["writers"], facts.get("rules", {}))):
        raise TypeError("facts that are no table")


def write_plan(store: Store, plan: Plan) -> None:
    """Keep a plan, in place of the one that is there."""
    store.put(PLAN, plan.to_json())

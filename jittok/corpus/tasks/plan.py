"""The plan of a corpus: its inputs cut into tasks, by names and sizes alone. `plan.json` has it until all are done.

A task is a run of units whose bytes of input reach `shard_bytes`; a unit that has as many alone is a task of its own.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from jittok.corpus.inputs.sources import Source
from jittok.corpus.options import Options, from_identity
from jittok.corpus.ranges.units import Unit, size_of, units
from jittok.corpus.shards.plan import INPUTS_FROM, VOCAB_FILE, Fact
from jittok.corpus.store import Store
from jittok.errors import CorpusError, InWords

WORK = ".jittok"
"""The folder of an unfinished corpus."""
PLAN = f"{WORK}/plan.json"
VERSION = 1
FREE_OPTIONS = ("on_error", "max_document_bytes")
"""Options that may change while a corpus is unfinished: they change no byte of what is done."""
ID, START = re.compile(rb'"id": "([0-9a-f]{64})"'), 128
"""Where the file of a plan has its id: in so many bytes at its start."""


class Task(NamedTuple):
    """A run of units: the first of them, how many there are, and their bytes of input."""

    source: int
    part: int
    units: int
    bytes: int


def tasks_of(sources: Sequence[Source], options: Options) -> list[Task]:
    """The tasks of a corpus, one at least. Reads the footers of large Parquet files."""
    found: list[Task] = []
    now: Task | None = None
    most = options.shard_bytes or float("inf")
    for unit in units(sources, options):
        size = size_of(unit, sources, options)
        if now is not None and size >= most:
            found.append(now)
            now = None
        if now is None:
            now = Task(unit.source, unit.part, 0, 0)
        now = now._replace(units=now.units + 1, bytes=now.bytes + size)
        if now.bytes >= most:
            found.append(now)
            now = None
    if now is not None or not found:
        found.append(now or Task(0, 0, 0, 0))
    return found


@dataclass(frozen=True)
class Plan:
    """What decides the bytes of a corpus (`facts`: see `shards.plan.make_plan`), its tasks, and the
    number of parts that they are divided into."""

    facts: Fact
    tasks: tuple[Task, ...]
    parts: int | None = None
    id: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", _id_of(self.facts, self.tasks))

    @property
    def options(self) -> Options:
        """The options that it was made with."""
        return from_identity(self.facts["options"])

    def units_of(self, number: int, sources: Sequence[Source]) -> Iterator[Unit]:
        """The units of a task."""
        task = self.tasks[number]
        if not task.units:
            return iter(())
        there = units(sources, self.options, task.source, task.part)
        found = (unit for unit in there if (unit.source, unit.part) >= (task.source, task.part))
        return islice(found, task.units)

    def to_json(self) -> bytes:
        """The content of its file."""
        fact = {
            "version": VERSION, "id": self.id, "parts": self.parts, "plan": self.facts,
            "tasks": [list(task) for task in self.tasks],
        }  # fmt: skip
        return json.dumps(fact).encode() + b"\n"


def _id_of(facts: Fact, tasks: Sequence[Task]) -> str:
    """SHA-256 of all that decides the bytes: equal for plans that the same records of tasks may belong to."""
    options = {name: value for name, value in facts["options"].items() if name not in FREE_OPTIONS}
    inputs = [[row["path"], row["bytes"], row["kind"], row["packing"]] for row in facts["inputs"]]
    parts = [
        facts["vocab"]["fingerprint"],
        options,
        facts["writers"],
        facts.get("rules"),
        inputs,
        list(map(list, tasks)),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def read_plan(store: Store) -> Plan | None:
    """The plan of an unfinished corpus, None if there is none. CorpusError for what is no plan of this version."""
    try:
        content = store.read(PLAN)
    except FileNotFoundError:
        return None
    where = store.where(PLAN)
    try:
        fact = json.loads(content)
        if fact["version"] != VERSION:
            raise CorpusError(where, InWords(f"version {fact['version']}"), f"a plan of version {VERSION}")
        parts = fact["parts"]
        if parts is not None and (type(parts) is not int or parts < 1):
            raise ValueError(f"{parts} parts")
        plan = Plan(fact["plan"], tuple(Task(*map(_count, task)) for task in fact["tasks"]), parts)
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

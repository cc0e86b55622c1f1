"""Records of tasks, one object each below `.jittok/t`: done, failed, bad documents. Whole or not at all.

A record is believed only where all of it could have been written by the task, for this plan; else the task is done
again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

from jittok.corpus.options import below
from jittok.corpus.ranges.digests import BYTES, TEXTS, Digest
from jittok.corpus.store import Store
from jittok.corpus.store.disk import file_name
from jittok.corpus.tasks.plan import WORK, Plan, _count
from jittok.errors import CorpusError, InWords, JittokError

RECORDS = f"{WORK}/t"
COUNTS = ("documents", "tokens", "text_bytes", "blank", "bad", "lost", "read")
SUMS = ("documents", "tokens", "text_bytes")
"""Counts of a task that are those of its shards."""
RANGE_FIELDS = 5
SHA256 = re.compile("[0-9a-f]{64}")
DIGITS = 5
LABEL = r"(\d{5,})(?:-\d{3,})?"
"""What `label_of` makes: the number of a task first."""


class BadRow(NamedTuple):
    """A bad document, or an input whose rest cannot be read, in the record of a task."""

    shard: int  # of the task; of each side
    source: int
    part: int  # lines are counted from where this unit of the input begins
    line: int
    input: bool
    found: str
    expected: str


class Done(NamedTuple):
    """The record of a task that is done."""

    plan: str
    task: int
    documents: int
    tokens: int
    text_bytes: int
    blank: int
    bad: int
    lost: int  # of the bad, those without any text
    read: int  # bytes of input, for progress
    lines: list[tuple[int, int, int]]  # of inputs cut by bytes: input, unit, the lines that begin in it
    shards: list[dict[str, Any]]  # side, documents, tokens, text_bytes, files (name, bytes, sha256), ranges
    digests: list[Digest]


def name_of(number: int, kind: str) -> str:
    """The name of a record; `kind`: "done", "failed", "bad" or "lease"."""
    return f"{RECORDS}/{number:0{DIGITS}d}.{kind}"


def label_of(number: int, part: int | None = None) -> str:
    """What the names of a shard's files have: NNNNN, or NNNNN-SSS where a task has several shards."""
    return f"{number:0{DIGITS}d}" if part is None else f"{number:0{DIGITS}d}-{part:03d}"


def write_done(store: Store, done: Done, bad: Sequence[BadRow]) -> None:
    """Keep the record of a task, the list of its bad documents first."""
    if bad:
        store.put(name_of(done.task, "bad"), "".join(json.dumps(row) + "\n" for row in bad).encode())
    store.put(name_of(done.task, "done"), json.dumps(done._asdict(), separators=(",", ":")).encode() + b"\n")
    store.delete(name_of(done.task, "failed"))


def delete_done(store: Store, plan: Plan, number: int) -> None:
    """Remove the record of a task, if it is one of this plan."""
    if read_done(store, plan, number) is not None:
        store.delete(name_of(number, "done"))
        store.delete(name_of(number, "bad"))


class Reason(str):
    """Why a task could not be done; `on_command_line` has the command-line spellings of options."""

    on_command_line: str

    def __new__(cls, what: str, on_command_line: str | None = None) -> Reason:
        """The message as Python code meets it, and as a command prints it, where that is another."""
        made = super().__new__(cls, what)
        made.on_command_line = on_command_line or what
        return made


def write_failed(store: Store, number: int, error: BaseException) -> None:
    """Keep why a task could not be done; the next try removes it."""
    fact = {"error": type(error).__name__, "what": " ".join(str(error).split())}
    if isinstance(error, JittokError) and error.on_command_line is not None:
        fact["on_command_line"] = " ".join(error.on_command_line.split())
    store.put(name_of(number, "failed"), json.dumps(fact).encode() + b"\n")


def read_failed(store: Store, number: int) -> Reason:
    """Why a task could not be done."""
    try:
        fact = json.loads(store.read(name_of(number, "failed")))
        return Reason(str(fact["what"]), str(fact.get("on_command_line", fact["what"])))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return Reason("no reason that can be read")


def read_done(store: Store, plan: Plan, number: int) -> Done | None:
    """The record of a task; None if there is none, or none that this plan's task could have written."""
    try:
        fact = json.loads(store.read(name_of(number, "done")))
        done = Done(**fact)
        digests = [Digest(*row) for row in done.digests]
        found = done._replace(digests=digests, lines=[(source, part, seen) for source, part, seen in done.lines])
        _check(found, plan, number)
    except FileNotFoundError:
        return None
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, CorpusError):
        return None
    return found


def _check(done: Done, plan: Plan, number: int) -> None:
    """ValueError, TypeError, LookupError or CorpusError unless the task of this plan could have written it."""
    if done.plan != plan.id or done.task != number:
        raise ValueError("a record of another plan or task")
    for name in COUNTS:
        _count(getattr(done, name))
    inputs = len(plan.facts["inputs"])
    for row in done.lines:
        if _count(row[0]) >= inputs or min(map(_count, row)) < 0:
            raise ValueError(f"lines of input {row[0]}")
    sides = plan.options.sides
    count = len(done.shards) // len(sides)
    labels = [label_of(number)] if count == 1 else [label_of(number, k) for k in range(count)]
    for shard, (label, side) in zip(done.shards, product(labels, sides), strict=True):
        _check_shard(shard, side, label, inputs)
    for name in SUMS:
        if sum(shard[name] for shard in done.shards) != getattr(done, name):
            raise ValueError(f"{name} that are not the sum of its shards")
    for digest in done.digests:
        if not 0 <= _count(digest.source) < inputs or not SHA256.fullmatch(digest.sha256):
            raise ValueError("a digest of no input")
        _count(digest.part)
        _count(digest.size)
        if digest.of not in (BYTES, TEXTS):
            raise ValueError(f"a digest of {digest.of}")


def _check_shard(shard: dict[str, Any], side: str, label: str, inputs: int) -> None:
    if (shard["side"], shard["shard"]) != (side, label):
        raise ValueError(f"shard {below(shard['side'], shard['shard'])!r} in place of {below(side, label)}")
    _count(shard["text_bytes"])
    for file in shard["files"]:
        _, name = file_name(file["name"], label)
        if label not in name or not SHA256.fullmatch(file["sha256"]):
            raise ValueError(f"the file {name!r} of shard {label}")
        _count(file["bytes"])
    before = (-1, -1, -1)
    for row in shard["ranges"]:
        if len(row) != RANGE_FIELDS or any(_count(field) < 0 for field in row) or row[0] >= inputs:
            raise ValueError("a range of another form")
        if tuple(row[:3]) <= before:
            raise ValueError("ranges in another order")
        before = tuple(row[:3])
    for name, column in (("documents", 3), ("tokens", 4)):
        if _count(shard[name]) != sum(row[column] for row in shard["ranges"]):
            raise ValueError(f"{name} that are not the sum of its ranges")


def read_bad(store: Store, done: Done, inputs: int) -> Iterator[BadRow]:
    """The bad documents of a task that is done, of a corpus of so many inputs. CorpusError for lines that no task
    wrote, and for more or fewer of them than its record has."""
    name = name_of(done.task, "bad")
    try:
        lines = store.read(name).splitlines()
        if len(lines) != done.bad:
            raise ValueError(f"{len(lines)} lines in place of {done.bad}")
        for line in lines:
            row = BadRow(*json.loads(line))
            _count(row.line)
            _count(row.part)
            if not 0 <= _count(row.shard) < len(done.shards) or not 0 <= _count(row.source) < inputs:
                raise ValueError(f"shard {row.shard} of {len(done.shards)}, input {row.source} of {inputs}")
            yield row
    except (ValueError, TypeError, RecursionError) as error:
        found = InWords(f"{type(error).__name__}: {error}")
        raise CorpusError(store.where(name), found, f"lines that jittok wrote: remove {WORK} to start again") from error


class Listed(NamedTuple):
    """The numbers of tasks by the records that there are."""

    done: set[int]
    failed: set[int]
    leased: set[int]


def listed(store: Store) -> Listed:
    """Which tasks have records of which kind, by one listing."""
    found: dict[str, set[int]] = {"done": set(), "failed": set(), "lease": set()}
    for entry in store.objects(RECORDS):
        number, _, kind = entry.name.rpartition("/")[2].partition(".")
        if kind in found and number.isdecimal():
            found[kind].add(int(number))
    return Listed(found["done"], found["failed"], found["lease"])

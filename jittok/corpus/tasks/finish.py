"""The end of a corpus: the records of all tasks become its manifest. No byte of a shard is moved or read again.

What only all tasks together can tell is settled here: lines of inputs that several tasks have read, the digest of each
input, and `errors/`. As long as the records are there, this can be done again, with the same result.
"""

from __future__ import annotations

import hashlib
import json
import os
from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import Any, NamedTuple

from jittok.corpus.formats import KEPT
from jittok.corpus.formats.base import MASK
from jittok.corpus.inputs.sources import STDIN
from jittok.corpus.options import below
from jittok.corpus.ranges.digests import joined
from jittok.corpus.shards.manifest import MANIFEST, SIDE, VERSION, Manifest, manifest_text
from jittok.corpus.shards.plan import INPUTS_FROM, VOCAB_FILE
from jittok.corpus.store import Store
from jittok.corpus.store.lease import is_held
from jittok.corpus.tasks.output import has_text, mark_of_file, refuse_nothing
from jittok.corpus.tasks.plan import WORK, Plan, read_plan
from jittok.corpus.tasks.records import (
    SUMS,
    BadRow,
    Done,
    delete_done,
    listed,
    name_of,
    read_bad,
    read_done,
    read_failed,
)
from jittok.errors import CorpusError, InWords

ERRORS = "errors"
"""The folder of the documents that were left out."""
ASKED_AT_ONCE = 32
NAMED = 12
"""Tasks that a message names."""


class Status(NamedTuple):
    """How far an unfinished corpus is, by the records of its tasks."""

    tasks: int
    done: tuple[int, ...]
    failed: dict[int, str]  # why
    claimed: tuple[int, ...]  # not done, and some process has a lease on it; it may be one that failed before
    expired: tuple[int, ...]  # neither done nor failed, and a process has had one: it died, or cannot reach the store
    documents: int
    tokens: int
    parts: int | None

    @property
    def missing(self) -> tuple[int, ...]:
        """The tasks that are not done."""
        return tuple(sorted(set(range(self.tasks)) - set(self.done)))


def status_of(store: Store, plan: Plan) -> Status:
    """How far a corpus is."""
    found = listed(store)
    known = range(len(plan.tasks))
    done = {number: record for number in sorted(found.done) if number in known
            and (record := read_done(store, plan, number)) is not None}  # fmt: skip
    failed: dict[int, str] = {
        number: read_failed(store, number) for number in sorted(found.failed - done.keys()) if number in known
    }
    others = sorted(found.leased - done.keys())
    leased = {number: is_held(store, name_of(number, "lease")) for number in others}
    return Status(
        len(plan.tasks), tuple(done), failed, tuple(number for number, held in leased.items() if held),
        tuple(number for number, held in leased.items() if not held and number not in failed),
        sum(record.documents for record in done.values()), sum(record.tokens for record in done.values()), plan.parts,
    )  # fmt: skip


class Unfinished(CorpusError):
    """A corpus some of whose tasks are not done."""


def _not_done(store: Store, missing: list[int], count: int, failed: list[int]) -> Unfinished:
    """The error that names tasks that are missing, those of them that failed with the reason of the first."""
    said = f"{len(missing):,} of {count:,} tasks not done: {_numbers(missing)}"
    expected = "all tasks done: jittok corpus run"
    if not failed:
        return Unfinished(store.place, InWords(said), expected)
    why = read_failed(store, failed[0])
    expected += " (jittok corpus status tells why each failed)"
    here, there = (
        Unfinished(store.place, InWords(f"{said}; failed: {_numbers(failed)} ({reason})"), expected)
        for reason in (why, why.on_command_line)
    )
    here.on_command_line = there.on_command_line
    return here


def all_done(store: Store, plan: Plan) -> list[Done]:
    """The records of all tasks. Unfinished if some are missing or failed, or if their files are not there; it names
    them."""
    found = listed(store)
    records = [read_done(store, plan, number) if number in found.done else None for number in range(len(plan.tasks))]
    missing = [number for number, record in enumerate(records) if record is None]
    if missing:
        failed = [number for number in missing if number in found.failed]
        raise _not_done(store, missing, len(records), failed)
    done = [record for record in records if record is not None]
    wrong = faults(store, done)
    if wrong:
        number, said = next(iter(sorted(wrong.items())))
        raise Unfinished(store.place, InWords(f"task {number}: {said}"), "its files: jittok corpus run does it again")
    _refuse_others(store, plan, done)
    return done


def _refuse_others(store: Store, plan: Plan, done: list[Done]) -> None:
    """Unfinished for files in a bucket that a process of an earlier corpus has put in place of those of tasks, by their
    marks: it may have died before it could take them back. The records of these tasks go, so that they are done again.

    One request a file; 32 at once.
    """
    if store.local is not None:
        return
    files = [
        (record.task, below(shard["side"], file["name"]), mark_of_file(record.plan, shard["shard"], file["sha256"]))
        for record in done for shard in record.shards for file in shard["files"]
    ]  # fmt: skip
    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        marks = pool.map(store.mark_of, (name for _, name, _ in files))
        wrong = {
            task: name for (task, name, expected), mark in zip(files, marks, strict=True) if mark not in ("", expected)
        }
    for task in wrong:
        delete_done(store, plan, task)
    if wrong:
        task = min(wrong)
        found = InWords(f"task {task}: {wrong[task]} is a file that another corpus wrote here")
        raise Unfinished(store.place, found, "its own: jittok corpus run does it again")


def faults(store: Store, done: list[Done]) -> dict[int, str]:
    """The tasks whose files are not there in their size, and what is wrong with the first of them."""
    listed = [
        (record.task, below(shard["side"], file["name"]), file["bytes"])
        for record in done for shard in record.shards for file in shard["files"]
    ]  # fmt: skip
    folders = {name.rpartition("/")[0] for _, name, _ in listed}
    sizes = {entry.name: entry.size for folder in sorted(folders) for entry in store.objects(folder)}
    found: dict[int, str] = {}
    for task, name, expected in listed:
        size = sizes.get(name)
        if size != expected:
            what = "no such file" if size is None else f"{size} bytes"
            found.setdefault(task, f"{name}: {what} in place of {expected}")
    return found


def _numbers(numbers: list[int]) -> str:
    more = f" and {len(numbers) - NAMED:,} more" if len(numbers) > NAMED else ""
    return ", ".join(map(str, numbers[:NAMED])) + more


def finish(store: Store) -> dict[str, Manifest]:
    """Write the manifest of a corpus all of whose tasks are done, and remove what only they needed. The manifest of
    each side.

    Raises Unfinished, and CorpusError where no corpus was planned or no document had a text.
    """
    plan = read_plan(store)
    if plan is None:
        raise CorpusError(store.place, InWords("no plan"), "a corpus that jittok corpus plan has begun")
    done, sides = all_done(store, plan), plan.options.sides
    bad = _with_lines(store, plan, done)
    _refuse_nothing(plan, done, [row for _, row in bad])
    made = {}
    for side in reversed(sides):  # the manifest of the first says that all is there
        _discard_unfinished(store, plan, side)
        made[side] = _manifest(store, plan, done, bad, side)
        store.put(below(side, MANIFEST), manifest_text(made[side]))
    store.clear(WORK)
    return {side: made[side] for side in sides}


def _discard_unfinished(store: Store, plan: Plan, side: str) -> None:
    """Remove what writers that died have left; never all of a bucket, which may have uploads of other programs."""
    for folder in (*plan.options.formats, KEPT, MASK, ERRORS):
        store.discard_unfinished(below(side, folder))
    if store.local is not None:
        store.discard_unfinished(side)


def _refuse_nothing(plan: Plan, done: list[Done], bad: list[BadRow]) -> None:
    """CorpusError where no document had a text."""
    counts = {name: sum(getattr(record, name) for record in done) for name in ("documents", "lost")}
    counts["bad"] = len(bad)
    if not has_text(counts, plan.options):
        paths = [row["path"] for row in plan.facts["inputs"]]
        refuse_nothing(counts, plan.options, 1, bad[:1], lambda row: f"{paths[row.source]}, line {row.line}")


Bad = list[tuple[int, BadRow]]
"""Bad documents, each with the number of its shard among those of a side."""


def _manifest(store: Store, plan: Plan, done: list[Done], bad: Bad, side: str) -> Manifest:
    """The manifest of a side; writes its `errors/`. It does not depend on who did which task, when and how often."""
    facts = plan.facts
    ours = [shard for record in done for shard in record.shards if shard["side"] == side]
    shards = [{**shard, "files": list(shard["files"])} for shard in ours]
    _write_errors(store, facts, shards, bad)
    counts = {name: sum(shard[name] for shard in ours) for name in SUMS}
    order = ("shard", "documents", "tokens", "files", "ranges")
    return {
        "manifest": VERSION,
        "jittok": facts["jittok"],
        "vocab": _from_side(store, facts["vocab"], VOCAB_FILE, side),
        "options": facts["options"],
        "writers": facts["writers"],
        **{key: facts[key] for key in ("rules",) if key in facts},
        **{key: _from_side(store, facts, key, side)[key] for key in (INPUTS_FROM,) if key in facts},
        **({SIDE: side} if side else {}),
        **counts,
        "blank_lines": sum(record.blank for record in done),
        "bad_documents": len(bad),
        "inputs": _inputs(facts, done, bad),
        "shards": [{key: shard[key] for key in order} for shard in shards],
    }


def _from_side(store: Store, facts: dict[str, Any], key: str, side: str) -> dict[str, Any]:
    """Facts with the path of this key from the folder of a side on, where it is from a local output on."""
    path = facts.get(key)
    if not side or store.local is None or path is None or os.path.isabs(path):  # noqa: PTH117
        return facts
    return {**facts, key: f"../{path}"}


def _inputs(facts: dict[str, Any], done: list[Done], bad: Bad) -> list[dict[str, Any]]:
    """The inputs, with what was read of each."""
    digests = joined(digest for record in done for digest in record.digests)
    lost: dict[int, list[dict[str, Any]]] = {}
    for _, row in bad:
        if row.input:
            lost.setdefault(row.source, []).append({"lines_before": row.line - 1, "found": row.found})
    inputs = []
    for i, row in enumerate(facts["inputs"]):
        digest = None if i in lost else digests.get(i)
        size = digest.size if digest is not None and row["path"] == STDIN else row["bytes"]
        inputs.append({
            "path": row["path"], "bytes": size or 0, "sha256": None if digest is None else digest.sha256,
            "of": None if digest is None else digest.of, "kind": row["kind"], "packing": row["packing"],
        })  # fmt: skip
        if i in lost:
            inputs[-1]["lost"] = lost[i]
    return inputs


def _with_lines(store: Store, plan: Plan, done: list[Done]) -> Bad:
    """The bad documents of all tasks, each with the line of its input, in order. The same damage of an input is told
    once."""
    found: Bad = []
    told: set[tuple[int, str]] = set()
    before, shards = _LinesBefore(done), 0
    for record in done:
        for row in read_bad(store, record, len(plan.facts["inputs"])) if record.bad else ():
            if row.input and (row.source, row.found) in told:
                continue
            if row.input:
                told.add((row.source, row.found))
            found.append((shards + row.shard, row._replace(line=row.line + before(row.source, row.part), part=0)))
        shards += len(record.shards) // len(plan.options.sides)
    return found


class _LinesBefore:
    """How many lines of an input come before a unit of it, by the records of all tasks."""

    def __init__(self, done: list[Done]) -> None:
        self._done = done
        self._known: dict[int, tuple[list[int], list[int]]] = {}

    def __call__(self, source: int, part: int) -> int:
        if not part:
            return 0
        if source not in self._known:
            rows = sorted((k, seen) for record in self._done for i, k, seen in record.lines if i == source)
            self._known[source] = [k for k, _ in rows], list(accumulate((seen for _, seen in rows), initial=0))
        parts, sums = self._known[source]
        return sums[bisect_left(parts, part)]


def _write_errors(store: Store, facts: dict[str, Any], shards: list[dict[str, Any]], bad: Bad) -> None:
    """`errors/NNNNN.jsonl` of the shards of a side that have bad documents, which become files of theirs."""
    lines: dict[int, list[str]] = {}
    for number, row in bad:
        path = facts["inputs"][row.source]["path"]
        fact = {"file": path, "line": row.line, "found": row.found, "expected": row.expected}
        lines.setdefault(number, []).append(json.dumps(fact) + "\n")
    for number, rows in lines.items():
        data, name = "".join(rows).encode(), f"{ERRORS}/{shards[number]['shard']}.jsonl"
        store.put(below(shards[number]["side"], name), data)
        shards[number]["files"].append({"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})

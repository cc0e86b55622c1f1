"""The end of a corpus: the records of all tasks become its manifest. No byte of a shard is moved or read again.

What only all tasks together can tell is settled here: lines of inputs that several tasks have read, the digest of each
input, and `errors/`. As long as the records are there, this can be done again, with the same result.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

from jittok.corpus.formats import KEPT
from jittok.corpus.inputs.sources import STDIN
from jittok.corpus.ranges.digests import joined
from jittok.corpus.shards.manifest import MANIFEST, VERSION, Manifest, manifest_text
from jittok.corpus.shards.plan import INPUTS_FROM
from jittok.corpus.store import Store
from jittok.corpus.tasks.plan import WORK, Plan, read_plan
from jittok.corpus.tasks.records import BadRow, Done, listed, read_bad, read_done, read_failed
from jittok.corpus.tasks.run import has_text, refuse_nothing
from jittok.errors import CorpusError, InWords

ERRORS = "errors"
"""The folder of the documents that were left out."""
NAMED = 12
"""Tasks that a message names."""


class Status(NamedTuple):
    """How far an unfinished corpus is, by the records of its tasks."""

    tasks: int
    done: tuple[int, ...]
    failed: dict[int, str]  # why
    claimed: tuple[int, ...]  # neither done nor failed, and some process has a lease on it
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
    return Status(
        len(plan.tasks), tuple(done), failed, tuple(sorted(found.leased - done.keys() - failed.keys())),
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
    return done


def faults(store: Store, done: list[Done]) -> dict[int, str]:
    """The tasks whose files are not there in their size, and what is wrong with the first of them."""
    folders = {file["name"].partition("/")[0] for record in done for shard in record.shards for file in shard["files"]}
    sizes = {entry.name: entry.size for folder in sorted(folders) for entry in store.objects(folder)}
    found: dict[int, str] = {}
    for record in done:
        for shard in record.shards:
            for file in shard["files"]:
                size = sizes.get(file["name"])
                if size != file["bytes"]:
                    what = "no such file" if size is None else f"{size} bytes"
                    found.setdefault(record.task, f"{file['name']}: {what} in place of {file['bytes']}")
    return found


def _numbers(numbers: list[int]) -> str:
    more = f" and {len(numbers) - NAMED:,} more" if len(numbers) > NAMED else ""
    return ", ".join(map(str, numbers[:NAMED])) + more


def finish(store: Store) -> Manifest:
    """Write the manifest of a corpus all of whose tasks are done, and remove what only they needed.

    Raises Unfinished, and CorpusError where no corpus was planned or no document had a text.
    """
    plan = read_plan(store)
    if plan is None:
        raise CorpusError(store.place, InWords("no plan"), "a corpus that jittok corpus plan has begun")
    done = all_done(store, plan)
    for folder in (*plan.options.formats, KEPT, ERRORS, *([""] if store.local is not None else [])):
        store.discard_unfinished(folder)  # never all of a bucket, which may have uploads of other programs
    manifest = _manifest(store, plan, done)
    store.put(MANIFEST, manifest_text(manifest))
    store.clear(WORK)
    return manifest


def _manifest(store: Store, plan: Plan, done: list[Done]) -> Manifest:
    """The manifest; writes `errors/`. It does not depend on who did which task, when and how often."""
    bad = _with_lines(store, plan, done)
    facts, options = plan.facts, plan.options
    counts = {name: sum(getattr(record, name) for record in done) for name in ("documents", "tokens", "text_bytes",
              "blank", "lost")}  # fmt: skip
    counts["bad"] = len(bad)
    first = [row for _, row in bad[:1]]
    if not has_text(counts, options):
        paths = [row["path"] for row in facts["inputs"]]
        refuse_nothing(counts, options, 1, first, lambda row: f"{paths[row.source]}, line {row.line}")
    shards = [{**shard, "files": list(shard["files"])} for record in done for shard in record.shards]
    _write_errors(store, facts, shards, bad)
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
    order = ("shard", "documents", "tokens", "files", "ranges")
    return {
        "manifest": VERSION,
        "jittok": facts["jittok"],
        "vocab": facts["vocab"],
        "options": facts["options"],
        "writers": facts["writers"],
        **{key: facts[key] for key in ("rules", INPUTS_FROM) if key in facts},
        "documents": counts["documents"],
        "tokens": counts["tokens"],
        "text_bytes": counts["text_bytes"],
        "blank_lines": counts["blank"],
        "bad_documents": counts["bad"],
        "inputs": inputs,
        "shards": [{key: shard[key] for key in order} for shard in shards],
    }


def _with_lines(store: Store, plan: Plan, done: list[Done]) -> list[tuple[int, BadRow]]:
    """(number of its shard in the corpus, bad document with the line of its input) of all tasks, in order. The same
    damage of an input is told once."""
    found: list[tuple[int, BadRow]] = []
    told: set[tuple[int, str]] = set()
    carried, before, shards = -1, 0, 0
    for task, record in zip(plan.tasks, done, strict=True):
        base = before if carried == task.source and task.part > 0 else 0
        for row in read_bad(store, record, len(plan.facts["inputs"])) if record.bad else ():
            if row.input and (row.source, row.found) in told:
                continue
            if row.input:
                told.add((row.source, row.found))
            found.append((shards + row.shard, row if row.absolute else row._replace(line=row.line + base)))
        carried, lines = record.last
        before = lines + (base if carried == task.source else 0)
        shards += len(record.shards)
    return found


def _write_errors(
    store: Store, facts: dict[str, Any], shards: list[dict[str, Any]], bad: list[tuple[int, BadRow]]
) -> None:
    """`errors/NNNNN.jsonl` of the shards that have bad documents, which become files of theirs."""
    lines: dict[int, list[str]] = {}
    for number, row in bad:
        path = facts["inputs"][row.source]["path"]
        fact = {"file": path, "line": row.line, "found": row.found, "expected": row.expected}
        lines.setdefault(number, []).append(json.dumps(fact) + "\n")
    for number, rows in lines.items():
        data, name = "".join(rows).encode(), f"{ERRORS}/{shards[number]['shard']}.jsonl"
        store.put(name, data)
        shards[number]["files"].append({"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})

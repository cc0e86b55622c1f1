"""The start of a run: is there a corpus already, and is it this one? Its plan, and what is done of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from jittok.corpus.inputs.sources import STDIN, Source, changed
from jittok.corpus.options import Options
from jittok.corpus.ranges.digests import RANGES, TEXTS, Digests, joined
from jittok.corpus.ranges.units import Unit, read_unit, units
from jittok.corpus.shards.manifest import Manifest, finished
from jittok.corpus.shards.plan import Fact, differences, different
from jittok.corpus.store import Store
from jittok.corpus.store.disk import Folder
from jittok.corpus.store.lease import is_held
from jittok.corpus.tasks.abandon import files_of_plan, remove
from jittok.corpus.tasks.finish import faults
from jittok.corpus.tasks.output import SCRATCH, has_text
from jittok.corpus.tasks.plan import ABANDONED, WORK, Plan, plan_of, read_plan, write_plan
from jittok.corpus.tasks.records import Done, listed, name_of, read_done
from jittok.errors import CorpusError, InWords, missing

LOCK = ".jittok.lock"
READ_AT_ONCE = 1 << 20


@contextmanager
def locked(store: Store) -> Iterator[None]:
    """Makes a local directory, and keeps other calls that write a whole corpus out of it. CorpusError while one does.
    Who does single tasks needs no lock."""
    if store.local is None:
        yield
        return
    try:
        from filelock import FileLock, Timeout
    except ImportError:
        raise missing("compiling a corpus", "filelock", "cli,corpus") from None
    out = store.local
    out.mkdir(parents=True, exist_ok=True)
    path = out / LOCK
    if path.is_symlink() or (path.exists() and not path.is_file()):
        found = InWords("something other than a file")
        raise CorpusError(str(path), found, "a file that jittok made: remove what is there")
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        found = InWords("another process that is writing it")
        raise CorpusError(str(out), found, "one writer at a time: wait until it has finished") from None
    try:
        yield
    finally:
        lock.release()


def check_out(store: Store) -> None:
    """CorpusError for an output that is not a directory, or that holds files of no run."""
    out = store.local
    if out is None:
        return
    if out.exists() and not out.is_dir():
        raise CorpusError(str(out), InWords("a file"), "a folder, or a path that does not exist yet")
    if out.is_dir() and not os.path.lexists(out / WORK) and not finished(store):
        refuse_strange(store)


def refuse_strange(store: Store) -> None:
    """CorpusError for a directory that holds files of no run."""
    if store.local is not None:
        there = [path.name for path in store.local.iterdir()] if store.local.is_dir() else []
    else:
        there = [entry.name.partition("/")[0] for entry in store.objects()]
    strange = sorted(set(there) - {WORK, LOCK})
    if strange:
        expected = "an empty directory, or one that jittok corpus began to write"
        if store.head(ABANDONED) is not None:
            expected += "; jittok corpus abandon was ended before all was removed: run it again"
        raise CorpusError(store.place, ", ".join(strange)[:80], expected)


def check_work(store: Store, make: bool = False) -> None:
    """CorpusError for a work folder on this machine that others may write to, as what lies there is believed. `make`:
    it is made if there is none."""
    if store.local is None or not store.local.is_dir():
        return
    with Folder(store.local) as around:
        there = around.inner(WORK, make=make, mode=0o700)
        if there is not None:
            with there:
                there.check_own(around)


def begin(store: Store, facts: Fact, sources: Sequence[Source], options: Options, parts: int | None = None) -> Plan:
    """The plan of a corpus: the one that is there if it is of the same run, else a new one, if nothing is done yet.

    Raises CorpusError for a corpus that was begun with something else, and for inputs that have changed since they were
    read.
    """
    check_work(store)
    old = read_plan(store)
    done = [] if old is None else list(done_of(store, old).values())
    if old is not None and any(has_text(_counts(record), old.options) for record in done):
        plan = _gone_on_with(store, old, facts, sources, done)
        if parts is not None:
            plan = replace(plan, parts=parts)
    else:
        plan = plan_of(facts, sources, options, parts)
        if old is None:
            _refuse_ledger(store)
            refuse_strange(store)
        elif done or old.id != plan.id:
            if old.id != plan.id:
                _refuse_busy(store)
            remove(store, old, list(files_of_plan(store, old)))
            old = None
    check_work(store, make=True)
    if plan != old:
        write_plan(store, plan)
    return plan


def _refuse_busy(store: Store) -> None:
    """CorpusError for a corpus that other processes are at, which another plan would take from under them: those with
    leases and, in a folder, with files under way. In a bucket these lie on their machines: who does a part of it is not
    seen, and stops when it notices."""
    held = sorted(number for number in listed(store).leased if is_held(store, name_of(number, "lease")))
    if held or (store.local is not None and next(iter(store.objects(SCRATCH)), None) is not None):
        what = f"a lease on task {held[0]}" if held else "files of tasks that are under way"
        found = InWords(f"another corpus that is not finished, and {what}")
        expected = "no such thing: finish that one with its own options, or stop its processes and run "
        raise CorpusError(store.place, found, f"{expected}jittok corpus abandon")


def _counts(record: Done) -> dict[str, int]:
    return {"documents": record.documents, "lost": record.lost, "bad": record.bad}


def _refuse_ledger(store: Store) -> None:
    """CorpusError for what an earlier version of jittok has begun."""
    if store.head(f"{WORK}/ledger.jsonl") is not None:
        found = InWords("a corpus that an earlier version of jittok began")
        expected = f"one of this version: finish it with that one, or remove {WORK} and the shards to start again"
        raise CorpusError(store.place, found, expected)


def _gone_on_with(store: Store, old: Plan, facts: Fact, sources: Sequence[Source], done: Sequence[Done]) -> Plan:
    """The same plan, with what may change meanwhile."""
    forgiving = old.facts["options"]["on_error"] == "fail" or not any(record.bad for record in done)
    found = differences(old.facts, facts, on_error_may_change=forgiving)
    if found:
        raise different(store.place, found)
    _check_read(old, sources, done)
    options = {**old.facts["options"], **{name: facts["options"][name] for name in ("on_error", "max_document_bytes")}}
    return replace(old, facts={**old.facts, "options": options, "inputs": facts["inputs"]})


def done_of(store: Store, plan: Plan, only: Container[int] | None = None) -> dict[int, Done]:
    """The tasks that are done, and whose files are there; of some tasks, or of all."""
    only = range(len(plan.tasks)) if only is None else only
    numbers = sorted(number for number in listed(store).done if number in only)
    found = {number: record for number in numbers if (record := read_done(store, plan, number)) is not None}
    for number in faults(store, list(found.values())) if found else ():
        del found[number]
    return found


def _check_read(plan: Plan, sources: Sequence[Source], done: Sequence[Done]) -> None:
    """CorpusError when an input of which something was read is not what it was. Where its time stamp is as it was, it
    is taken as unchanged; else what was read is hashed again."""
    stamps = [row["stamp"] for row in plan.facts["inputs"]]
    touched = {i for i, source in enumerate(sources) if stamps[i] != source.stamp or source.path == STDIN}
    for record in done:
        known = {digest[:2]: digest for digest in record.digests if digest.source in touched}
        if not known:
            continue
        again: Digests = []
        for unit in plan.units_of(record.task, sources):
            if not touched.isdisjoint(range(unit.source, unit.last + 1)):
                again += digests_of(unit, sources, plan.options)
        for digest in again:
            if digest[:2] in known and known[digest[:2]] != digest:
                raise changed(sources[digest.source])


def digests_of(unit: Unit, sources: Sequence[Source], options: Options) -> Digests:
    """The digests of what a unit reads."""
    found: Digests = []
    for raw in read_unit(unit, sources, options, digests=found):
        raw.payload = None
    return found


def changed_inputs(manifest: Manifest, sources: Sequence[Source], options: Options, only: Iterable[int]) -> list[int]:
    """Those of some inputs of a finished corpus that are not what they were, by their digests; reads them whole."""
    wanted = {i for i in only if manifest["inputs"][i]["sha256"] is not None}
    in_units = {i for i in wanted if manifest["inputs"][i].get("of") in (RANGES, TEXTS)}
    found: Digests = []
    if in_units:
        for unit in units(sources, options):
            if not in_units.isdisjoint(range(unit.source, unit.last + 1)):
                found += digests_of(unit, sources, options)
    now = {i: (digest.size, digest.sha256) for i, digest in joined(found).items()}
    wrong = []
    for i in sorted(wanted):
        row = manifest["inputs"][i]
        size, digest = now.get(i, (0, "")) if i in in_units else _whole(sources[i])
        if digest != row["sha256"] or (i not in in_units and size != row["bytes"]):
            wrong.append(i)
    return wrong


def _whole(source: Source) -> tuple[int, str]:
    """Size and digest of the bytes of an input."""
    digest, size = hashlib.sha256(), 0
    file = source.open()
    try:
        while piece := file.read(READ_AT_ONCE):
            digest.update(piece)
            size += len(piece)
    finally:
        if source.path != STDIN:
            file.close()
    return size, digest.hexdigest()

"""The end of a corpus that will not be finished: its shards and its plan are removed, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from typing import NamedTuple

from jittok.corpus.formats import KEPT, format_class
from jittok.corpus.formats.base import MASK, Format
from jittok.corpus.options import below
from jittok.corpus.shards.manifest import MANIFEST, finished
from jittok.corpus.store import Store, lease
from jittok.corpus.store.base import Stored
from jittok.corpus.tasks.finish import ERRORS
from jittok.corpus.tasks.output import SCRATCH
from jittok.corpus.tasks.plan import ABANDONED, PLAN, WORK, Plan, read_plan
from jittok.corpus.tasks.records import LABEL, label_of, listed, name_of
from jittok.errors import CorpusError, InWords


class Abandoned(NamedTuple):
    """What is removed, or would be: finished tasks, and their files with those of tasks under way."""

    out: str
    tasks: int
    done: int
    files: int
    bytes: int


def abandon(store: Store, dry_run: bool, tell: Callable[[Abandoned], object]) -> Abandoned:
    """Tell what goes, then remove it, unless it is a dry run. Processes at tasks of the corpus notice, and write
    nothing more.

    CorpusError for a finished corpus, where none was planned, and while processes hold leases.
    """
    if finished(store):
        raise CorpusError(store.place, InWords("a finished corpus"), "an unfinished one; remove a folder as any other")
    plan = read_plan(store) or read_plan(store, ABANDONED)
    if plan is None:
        raise CorpusError(store.place, InWords("no plan"), "an unfinished corpus")
    found = listed(store)
    held = sorted(number for number in found.leased if lease.is_held(store, name_of(number, "lease")))
    if held:
        found_held = InWords(f"processes that have leases, on tasks {', '.join(map(str, held[:12]))}")
        raise CorpusError(store.place, found_held, "none: stop them, and wait two minutes")
    files = list(files_of_plan(store, plan))
    count = len(found.done & set(range(len(plan.tasks))))
    what = Abandoned(store.place, len(plan.tasks), count, len(files), sum(file.size for file in files))
    tell(what)
    if not dry_run:
        remove(store, plan, files)
    return what


def remove(store: Store, plan: Plan, files: list[Stored]) -> None:
    """Remove an unfinished corpus. First the plan, under which others write, then what they are about to publish; the
    plan is kept under another name until all is gone."""
    store.put(ABANDONED, plan.to_json())
    store.delete(PLAN)
    store.clear(SCRATCH)
    names = {file.name for file in files} | {file.name for file in files_of_plan(store, plan)}
    for name in sorted(names):
        store.delete(name)
    folders = [below(side, folder) for side, folder in product(plan.options.sides, _folders(plan))]
    for folder in folders:
        store.discard_unfinished(folder)
    store.clear(WORK)
    if store.local is not None:
        for folder in [*folders, *filter(None, plan.options.sides)]:
            with suppress(OSError):  # files of others keep it
                (store.local / folder).rmdir()


def _folders(plan: Plan) -> list[str]:
    return [*plan.options.formats, KEPT, MASK, ERRORS]


def files_of_plan(store: Store, plan: Plan) -> Iterator[Stored]:
    """The files that tasks of a plan have published, with or without their records, and those of its end: no others."""
    names = [name for form in _formats(plan) for name in form.names()] + [f"{ERRORS}/{{}}.jsonl"]
    shape = re.compile("|".join(re.escape(name).replace(re.escape("{}"), LABEL) for name in names))
    for side, folder in product(plan.options.sides, _folders(plan)):
        for entry in store.objects(below(side, folder)):
            name = entry.name.removeprefix(below(side, ""))
            found = shape.fullmatch(name)
            number = next(filter(None, found.groups()), "") if found else ""
            if number and int(number) < len(plan.tasks) and number == label_of(int(number)):
                yield entry
    for side in plan.options.sides:
        manifest = store.head(below(side, MANIFEST))
        if side and manifest is not None:  # of one side: the end was not reached
            yield manifest


def _formats(plan: Plan) -> list[type[Format]]:
    from jittok.corpus.formats.fields import Fields
    from jittok.corpus.formats.loss_mask import LossMask

    return [*map(format_class, plan.options.formats), Fields, LossMask]

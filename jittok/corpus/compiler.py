"""Documents in, shards out. `compile_corpus` plans a corpus, does its tasks and finishes it, in one call.

The three steps can also be calls of their own, on any number of machines: `plan_corpus`, `run_corpus`, `finish_corpus`.
The output bytes depend on inputs, vocabulary and options alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from jittok.common.display.progress import Show, Shown, shown
from jittok.common.writers.atomic_files import naming
from jittok.corpus.formats import make_formats
from jittok.corpus.formats.base import Facts, Format
from jittok.corpus.inputs.finding import check_looks, check_options, find_sources
from jittok.corpus.inputs.sources import STDIN, Source, changed
from jittok.corpus.options import Options
from jittok.corpus.progress import Counts, progress_of
from jittok.corpus.ranges.encoder import RangeEncoder
from jittok.corpus.shards.manifest import (
    Manifest,
    cuts_of,
    files_of,
    finished,
    read_manifest,
    side_of,
    with_recorded_release,
)
from jittok.corpus.shards.plan import (
    chat_facts,
    differences,
    different,
    input_path,
    make_plan,
    rules_of,
    tokenizer_of,
    writers_of,
)
from jittok.corpus.shards.writer import fault_of
from jittok.corpus.store import Store, open_store
from jittok.corpus.tasks.abandon import Abandoned, abandon
from jittok.corpus.tasks.begin import begin, changed_inputs, check_out, check_work, done_of, locked
from jittok.corpus.tasks.crew import Crew
from jittok.corpus.tasks.finish import Status, finish, status_of
from jittok.corpus.tasks.on_ray import run_on_ray
from jittok.corpus.tasks.output import SCRATCH, Work
from jittok.corpus.tasks.plan import WORK, Plan, read_plan
from jittok.corpus.tasks.records import Done, listed, name_of, read_failed
from jittok.corpus.tasks.shares import Claims, part_of
from jittok.encode.threads.stretches import thread_count
from jittok.errors import CorpusError, InWords
from jittok.kernels.jit.pool import Cancellation

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

ENGINES = ("threads", "ray")
REMEDY = "bring back a copy, or remove the folder and run the same command again, which writes the same bytes"
"""What to do about a finished corpus whose files are damaged."""
Place = str | os.PathLike[str]


@dataclass(frozen=True)
class Summary:
    """The result of a run; `resumed` is the number of documents that were done before it."""

    out: str
    documents: int
    tokens: int
    text_bytes: int
    blank_lines: int
    bad_documents: int
    shards: int
    bytes: int
    seconds: float
    resumed: int
    left_out: tuple[str, ...] = ()
    lost_inputs: int = 0  # inputs of which something, or all, could not be read
    sides: dict[str, Summary] = field(default_factory=dict, hash=False)  # train and val, where documents were divided

    def to_dict(self) -> dict[str, Any]:
        """As plain data; `sides` only where there are some."""
        found = asdict(self)
        return found if self.sides else {name: value for name, value in found.items() if name != "sides"}


def compile_corpus(
    inputs: Sequence[Place],
    tok: Tokenizer,
    out: Place,
    options: Options | None = None,
    *,
    threads: int | None = None,
    engine: str = "threads",
    check_space: bool = True,
    progress: Show = "auto",
    max_document_bytes: int | None = None,
    stop: Cancellation | None = None,
) -> Summary:
    """Write the corpus directory `out`, or resume where an earlier run of the same call was interrupted.

    An interrupted run continues with the release of llama.cpp that it was begun with, unless `tok` was loaded for
    another one. Tasks that are done stay done, and the next call does the others. `progress`: "auto" shows
    how far it is when it lasts; a function is called with each `Progress`, and what it raises ends the call.
    `max_document_bytes` overrides that of the options; when `stop` is set, the call ends with Stopped. Raises
    CorpusError for unreadable input (with file and line), for a directory that was begun with other inputs or options,
    and while another process is writing to it. Raises OSError when the disk is full.
    """
    start = time.perf_counter()
    if engine not in ENGINES:
        raise CorpusError("--engine", engine, f"one of {', '.join(ENGINES)}")
    made = _prepared(inputs, tok, out, options, max_document_bytes)
    store = made.store
    with locked(store), naming(store.grows):
        if finished(store):
            found = summary_of(store, _check_finished(made), start, left_out=made.left_out)
            return replace(found, resumed=found.documents)
        plan = begin(store, made.facts(), made.sources, made.options)
        if store.local is not None:
            store.clear(SCRATCH)  # of calls that were killed: this one is alone here
        with shown(progress) as show:
            run = _Run(made.work(plan), start, show)
            if check_space:
                run.check_space(thread_count(threads))
            run.go(engine, threads, stop)
        return summary_of(store, finish(store), start, run.resumed, made.left_out)


class _Prepared(NamedTuple):
    """What a corpus is made of."""

    store: Store
    tok: Tokenizer
    sources: Sequence[Source]
    left_out: Sequence[str]
    options: Options
    formats: Sequence[Format]
    encoder: RangeEncoder

    def facts(self) -> dict[str, Any]:
        """What decides its bytes."""
        return make_plan(self.tok, self.sources, self.options, self.store)

    def work(self, plan: Plan) -> Work:
        """What its tasks share."""
        return Work(self.store, plan, self.sources, self.options, self.formats, self.encoder)


def _prepared(
    inputs: Sequence[Place], tok: Tokenizer, out: Place, options: Options | None, max_document_bytes: int | None = None
) -> _Prepared:
    if isinstance(inputs, str | os.PathLike):
        raise TypeError(f"inputs: found one name, expected a list: [{os.fspath(inputs)!r}]")
    store, options = open_store(out), options or Options()
    if max_document_bytes is not None:
        options = replace(options, max_document_bytes=max_document_bytes)
    tok, options = with_recorded_release(tok, store), replace(options, cuts=cuts_of(store))
    sources, left_out = inputs_of(inputs, options, store)
    formats = formats_of(tok, sources, options)
    return _Prepared(store, tok, sources, left_out, options, formats, RangeEncoder(tok, sources, options))


def inputs_of(inputs: Sequence[Place], options: Options, store: Store) -> tuple[list[Source], list[str]]:
    """The inputs of a corpus, and what was left out. CorpusError for any that are not what the options expect, and for
    an output that cannot be one: checked before anything is written."""
    check_out(store)
    sources, left_out = find_sources(inputs, options, without=store.local)
    check_looks(sources, options)
    check_options(sources, options)
    return sources, left_out


def formats_of(tok: Tokenizer, sources: Sequence[Source], options: Options) -> list[Format]:
    """The formats of a run. CorpusError for a format that cannot hold the ids."""
    facts = Facts(
        tok.vocab_size,
        tok.name or "",
        tok.fingerprint,
        options.dtype,
        [source.path for source in sources],
        options.keep,
        options.learn is not None,
    )
    return make_formats(options.formats, facts)


class _Run:
    """The tasks that are to be done in one call."""

    def __init__(self, work: Work, start: float, show: Shown, only: Container[int] | None = None) -> None:
        """`only`: the tasks that this call is about, where they are not all."""
        self.work, self.start = work, start
        self.done = done_of(work.store, work.plan, only)
        self._show = show
        self.resumed = sum(record.documents for record in self.done.values())
        self._counts = self._before = Counts(*(
            sum(getattr(record, name) for record in self.done.values()) for name in Counts._fields
        ))  # fmt: skip
        sizes = [source.size for source in work.sources]
        self._total = None if None in sizes else sum(size or 0 for size in sizes)

    def check_space(self, threads: int) -> None:
        """CorpusError when what is still to be written will not fit on the disk, by an estimate from a sample."""
        from jittok.corpus.prediction import check_space

        if self.work.store.local is not None:
            check_space(self.work.store.local, self.work.encoder, self.work.formats, self._before.read, threads)

    def go(self, engine: str, threads: int | None, stop: Cancellation | None) -> None:
        """Do what is not done."""
        todo = [number for number in range(len(self.work.plan.tasks)) if number not in self.done]
        if engine == "ray":
            run_on_ray(self.work, todo, threads, self._tell_done)
            return
        Crew(self.work, iter(todo), thread_count(threads), report=self._tell, stop=stop).run()

    def _tell(self, more: Counts) -> None:
        self._counts = self._counts.plus(more)
        seconds = time.perf_counter() - self.start
        self._show(progress_of(self._counts, self._total, self._before, seconds))

    def _tell_done(self, record: Done) -> None:
        self._tell(Counts(record.documents, record.tokens, record.text_bytes, record.read))


def _check_finished(made: _Prepared) -> dict[str, Manifest]:
    """The manifests of a finished corpus, if it is what this call would write. CorpusError otherwise."""
    check_work(made.store)
    manifests = _manifests(made.store)
    first = next(iter(manifests.values()))
    found = differences(first, made.facts(), on_error_may_change=first["bad_documents"] == 0)
    if found:
        raise different(made.store.place, found)
    wrong = changed_inputs(first, made.sources, made.options, range(len(made.sources)))
    if wrong:
        raise changed(made.sources[wrong[0]])
    for side, manifest in manifests.items():
        _check_files(side_of(made.store, side), manifest)
    made.store.clear(WORK)
    return manifests


def _manifests(store: Store) -> dict[str, Manifest]:
    """The manifest of each side of a finished corpus."""
    return {side: read_manifest(side_of(store, side)) for side in finished(store)}


def _check_files(store: Store, manifest: Manifest) -> None:
    """CorpusError where files of the finished corpus are not what was written."""
    wrong = [(file["name"], fault) for file in files_of(manifest) if (fault := fault_of(store, file)) is not None]
    if wrong:
        name, fault = wrong[0]
        more = f" (and {len(wrong) - 1} more files, which jittok verify names)" if len(wrong) > 1 else ""
        raise CorpusError(store.where(name), f"{fault}{more}", f"what was written: {REMEDY}")


def summary_of(
    store: Store, manifests: dict[str, Manifest], start: float, resumed: int = 0, left_out: Sequence[str] = ()
) -> Summary:
    """The summary of a finished corpus, which was begun at `start`."""
    seconds = time.perf_counter() - start
    found = {side: _summary(side_of(store, side).place, manifest, seconds) for side, manifest in manifests.items()}
    sums = {name: sum(getattr(each, name) for each in found.values()) for name in SUMMED}
    return replace(
        next(iter(found.values())), out=store.place, resumed=resumed, left_out=tuple(left_out), **sums,
        sides=found if len(found) > 1 else {},
    )  # fmt: skip


SUMMED = ("documents", "tokens", "text_bytes", "shards", "bytes")
"""Numbers that are of one side each."""


def _summary(place: str, found: Manifest, seconds: float) -> Summary:
    size = sum(file["bytes"] for file in files_of(found))
    numbers = {key: found[key] for key in ("documents", "tokens", "text_bytes", "blank_lines", "bad_documents")}
    return Summary(
        out=place, shards=len(found["shards"]), bytes=size, seconds=seconds, resumed=0,
        lost_inputs=sum("lost" in row for row in found["inputs"]), **numbers,
    )  # fmt: skip


# ---- the three steps as calls of their own


@dataclass(frozen=True)
class Planned:
    """The result of `plan_corpus`: `parts` as given, and bytes of input."""

    out: str
    tasks: int
    parts: int | None
    inputs: int
    bytes: int
    left_out: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def plan_corpus(
    inputs: Sequence[Place], tok: Tokenizer, out: Place, options: Options | None = None, *, parts: int | None = None
) -> Planned:
    """Begin a corpus: find its inputs, cut them into tasks, and keep that as a small file in `out`.

    No document is read. `parts`: into how many parts `run_corpus` is to share the tasks; it changes no byte. On a
    corpus that is begun it does nothing but set `parts`. Raises CorpusError as `compile_corpus` does.
    """
    if parts is not None and (isinstance(parts, bool) or not isinstance(parts, int) or parts < 1):
        raise CorpusError("--parts", str(parts), "1 or more")
    if any(os.fspath(name) == STDIN for name in inputs):
        raise CorpusError(STDIN, InWords("standard input"), "files that every process can read")
    made = _prepared(inputs, tok, out, options)
    store = made.store
    with locked(store), naming(store.grows):
        if finished(store):
            raise CorpusError(store.place, InWords("a finished corpus"), "an empty folder, or an unfinished corpus")
        plan = begin(store, made.facts(), made.sources, made.options, parts)
    size = sum(source.size or 0 for source in made.sources)
    return Planned(store.place, len(plan.tasks), plan.parts, len(made.sources), size, tuple(made.left_out))


@dataclass(frozen=True)
class Ran:
    """The result of `run_corpus`: tasks of this process that are done now, those of them that were done before it, and
    those that failed, with the reason."""

    out: str
    done: int
    before: int
    documents: int
    tokens: int
    text_bytes: int
    seconds: float
    failed: dict[int, str]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def run_corpus(
    out: Place,
    tok: Tokenizer | None = None,
    *,
    part: str | None = None,
    claim: bool = False,
    threads: int | None = None,
    progress: Show = "auto",
    stop: Cancellation | None = None,
) -> Ran:
    """Do tasks of a corpus that was planned: those of a part, or with `claim` whichever are free; else all.

    `part`: "i/n" for part i, from 0, of n; "i" of as many as the plan was made for; "auto" for the part that a Slurm
    array, a Kubernetes indexed job, AWS Batch or Cloud Run gives this process.

    What is done is not done again, so any call may be repeated. A task that fails is recorded, and the others go on.
    `tok`: the vocabulary, by default that of the plan. Stopped when `stop` is set meanwhile. Raises CorpusError where
    nothing was planned, or for another vocabulary, version of a writer, or state of an input than was planned.
    """
    start, store = time.perf_counter(), open_store(out)
    check_work(store)
    if _manifests(store):
        return Ran(store.place, 0, 0, 0, 0, 0, time.perf_counter() - start, {})
    plan = planned(store)
    work = _work_of(store, plan, tok)
    with ExitStack() as opened, naming(store.grows):
        share = None if part is None else part_of(part, plan.parts)
        numbers = set(range(len(plan.tasks))) if share is None else set(share.tasks(plan))
        said = numbers & listed(store).done if claim else set()
        run = _Run(work, start, opened.enter_context(shown(progress)), numbers)
        before = numbers & run.done.keys()
        for number in sorted(said - before):  # their files are gone: who claims tasks believes the records
            store.delete(name_of(number, "done"))
        stop = stop or Cancellation()
        claims = opened.enter_context(Claims(work, stop)) if claim else None
        tasks: Iterator[int | None] = iter(claims) if claims else iter(sorted(numbers - before))
        done: list[Done] = []
        crew = Crew(
            work, tasks, thread_count(threads), keep_going=True, finished=done.append,
            ended=claims.release if claims else None, stop=stop, report=run._tell,
        )  # fmt: skip
        crew.run()
        given_up = claims.given_up if claims else set[int]()
        failed: dict[int, str] = {
            number: read_failed(store, number) for number in sorted(crew.errors.keys() | given_up)
        }
    return Ran(
        store.place, len(done), len(before), sum(record.documents for record in done),
        sum(record.tokens for record in done), sum(record.text_bytes for record in done),
        time.perf_counter() - start, failed,
    )  # fmt: skip


def planned(store: Store) -> Plan:
    """The plan of an unfinished corpus. CorpusError if there is none."""
    plan = read_plan(store)
    if plan is None:
        raise CorpusError(store.place, InWords("no plan"), "a corpus that jittok corpus plan has begun")
    return plan


def _work_of(store: Store, plan: Plan, tok: Tokenizer | None) -> Work:
    """What the tasks of a plan share, on this machine. CorpusError where it is not what was planned with."""
    facts, options = plan.facts, plan.options
    tok = with_recorded_release(tok or tokenizer_of(facts["vocab"], store), store)
    here = {
        "vocab": {
            **{name: getattr(tok, name) for name in ("fingerprint", "llama_cpp", "name", "eos_id")},
            **chat_facts(tok, options),
        },
        "options": facts["options"], "writers": writers_of(options), "rules": rules_of(options),
        "inputs": facts["inputs"], "jittok": facts["jittok"],
    }  # fmt: skip
    found = differences(facts, here)
    if found:
        raise different(store.place, found)
    sources = [_source(row, facts, store) for row in facts["inputs"]]
    formats, encoder = formats_of(tok, sources, options), RangeEncoder(tok, sources, options)
    return Work(store, plan, sources, options, formats, encoder, elsewhere=True)


def _source(row: dict[str, Any], facts: dict[str, Any], store: Store) -> Source:
    """An input as it was planned. Whether it is still so is asked when it is opened."""
    path = input_path(row["path"], facts, store.local)
    return Source(path, row["bytes"], row["stamp"], row["kind"], row["packing"])


def corpus_status(out: Place) -> Status | None:
    """How far a planned corpus is, None if it is finished. CorpusError where nothing was planned."""
    store = open_store(out)
    check_work(store)
    if _manifests(store):
        return None
    return status_of(store, planned(store))


def abandon_corpus(
    out: Place, *, dry_run: bool = False, tell: Callable[[Abandoned], object] = lambda _: None
) -> Abandoned:
    """Remove an unfinished corpus: its plan, records and shards, and no other file. What goes; `tell` is called with it
    before. `dry_run`: nothing goes.

    CorpusError for a finished corpus, where nothing was planned, and while processes hold leases on its tasks.
    """
    store = open_store(out)
    check_work(store)
    if store.local is not None and not store.local.is_dir():
        planned(store)  # which raises the error: no folder is made
    with locked(store), naming(store.grows):
        return abandon(store, dry_run, tell)


def finish_corpus(out: Place) -> Summary:
    """Write the manifest of a corpus all of whose tasks are done; on a finished corpus it does nothing.

    No shard is read or moved. Raises Unfinished, a CorpusError, which names the tasks that are missing or failed.
    """
    store, start = open_store(out), time.perf_counter()
    check_work(store)
    manifests = _manifests(store)
    if manifests:
        store.clear(WORK)
    else:
        with locked(store), naming(store.grows):
            manifests = finish(store)
    return summary_of(store, manifests, start)

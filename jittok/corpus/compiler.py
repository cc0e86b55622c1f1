"""Documents in, shards out: `compile_corpus` finds inputs, has their ranges encoded, and writes shards in one order.

With either engine, ranges return in order to a single writer; so the output bytes depend on inputs, vocabulary and
options alone. A call on a directory that an earlier call has left finds what is done, and does the rest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jittok.common.writers.atomic_files import naming
from jittok.corpus.formats import make_formats
from jittok.corpus.formats.base import Errors, Facts, Format, Rows
from jittok.corpus.inputs.finding import check_looks, check_options, find_sources
from jittok.corpus.inputs.sources import STDIN, InputHasher, Source, changed, is_damage
from jittok.corpus.options import Options
from jittok.corpus.progress import Progress
from jittok.corpus.ranges.documents import Bad
from jittok.corpus.ranges.encoder import Encoded, RangeEncoder
from jittok.corpus.ranges.engines import ENGINES, Done, Engine, engine_of
from jittok.corpus.shards import writer
from jittok.corpus.shards.ledger import LEDGER, Ledger, State, check_inputs, replay
from jittok.corpus.shards.manifest import (
    MANIFEST,
    WORK,
    cuts_of,
    files_of,
    make_manifest,
    read_manifest,
    with_recorded_release,
    write_manifest,
)
from jittok.corpus.shards.plan import differences, different, make_plan
from jittok.corpus.store import disk
from jittok.corpus.store.disk import Folder
from jittok.errors import CorpusError, InWords, check_local, missing

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

LOCK = ".jittok.lock"
REMEDY = "bring back a copy, or remove the folder and run the same command again, which writes the same bytes"
"""What to do about a finished corpus whose files are damaged."""
FEW_BAD = 1000
"""This many documents without any text at the start mean that the run reads the wrong field."""


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

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def compile_corpus(
    inputs: Sequence[str | os.PathLike[str]],
    tok: Tokenizer,
    out: str | os.PathLike[str],
    options: Options | None = None,
    *,
    threads: int | None = None,
    engine: str = "threads",
    check_space: bool = True,
    report: Callable[[Progress], None] | None = None,
    max_document_bytes: int | None = None,
) -> Summary:
    """Write the corpus directory `out`, or resume where an earlier run of the same call was interrupted.

    An interrupted run continues with the release of llama.cpp that it was begun with, unless `tok` was loaded for
    another one. What has been written stays, and the next call continues from there. `report` is called after each
    range. `max_document_bytes` overrides that of the options. Raises CorpusError for unreadable input (with file and
    line), for a directory that was begun with other inputs or options, and while another process is writing to it.
    Raises OSError when the disk is full.
    """
    if isinstance(inputs, str | os.PathLike):
        raise TypeError(f"inputs: found one name, expected a list: [{os.fspath(inputs)!r}]")
    start = time.perf_counter()
    options, given, out = options or Options(), out, Path(out)
    if max_document_bytes is not None:
        options = replace(options, max_document_bytes=max_document_bytes)
    tok, options = with_recorded_release(tok, out), replace(options, cuts=cuts_of(out))
    if engine not in ENGINES:
        raise CorpusError("--engine", engine, f"one of {', '.join(ENGINES)}")
    check_local(given, "--out")
    sources, left_out = inputs_of(inputs, options, out)
    formats = formats_of(tok, sources, options)
    encoder = RangeEncoder(tok, sources, options)
    with _locked(out), naming(out):
        plan = make_plan(tok, sources, options, out)
        with closing(CorpusRun(out, plan, sources, formats, encoder)) as run:
            resumed = run.begin()
            if not run.complete:
                if check_space:
                    run.check_space()
                run.go(engine_of(engine, threads), report, start)
            return run.summary(time.perf_counter() - start, resumed, left_out)


def inputs_of(inputs: Sequence[str | os.PathLike[str]], options: Options, out: Path) -> tuple[list[Source], list[str]]:
    """The inputs of a corpus, and what was left out. CorpusError for any that are not what the options expect, and for
    an output that cannot be one: checked before anything is written."""
    check_out(out)
    sources, left_out = find_sources(inputs, options, without=out)
    check_looks(sources, options)
    check_options(sources, options)
    return sources, left_out


def check_out(out: Path) -> None:
    """CorpusError for an output that is not a directory, or that holds files of no run."""
    if out.exists() and not out.is_dir():
        raise CorpusError(str(out), InWords("a file"), "a folder, or a path that does not exist yet")
    if out.is_dir() and not any(os.path.lexists(out / name) for name in (MANIFEST, WORK)):
        refuse_strange(out)


def refuse_strange(out: Path) -> None:
    """CorpusError for a directory that holds files of no run."""
    strange = sorted(path.name for path in out.iterdir() if path.name not in (WORK, LOCK))
    if strange:
        raise CorpusError(
            str(out), ", ".join(strange)[:80], "an empty directory, or one that jittok corpus began to write"
        )


def formats_of(tok: Tokenizer, sources: Sequence[Source], options: Options) -> list[Format]:
    """The formats of a run, the report of bad documents last. CorpusError for a format that cannot hold the ids."""
    facts = Facts(tok.vocab_size, tok.name or "", tok.fingerprint, options.dtype, [source.path for source in sources])
    return [*make_formats(options.formats, facts), Errors(replace(facts, dtype="auto"))]


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Makes a directory, and keeps other processes from writing to it. CorpusError while one does."""
    try:
        from filelock import FileLock, Timeout
    except ImportError:
        raise missing("compiling a corpus", "filelock", "cli,corpus") from None
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


class CorpusRun:
    """One call of `compile_corpus` on a directory it has locked."""

    def __init__(
        self,
        out: Path,
        plan: dict[str, Any],
        sources: Sequence[Source],
        formats: Sequence[Format],
        encoder: RangeEncoder,
    ) -> None:
        self.out, self.plan, self.sources, self.formats, self.encoder = out, plan, sources, formats, encoder
        self.complete = False
        self.state: State
        self._first_bad: Bad | None = None
        self.hasher = InputHasher(sources)
        self._files = ExitStack()
        self.folder = self._files.enter_context(Folder(out))
        self._files.callback(self.hasher.close)

    # ---- what is there already

    def begin(self) -> int:
        """Examine and repair what an earlier run has left; returns the number of documents that it had done."""
        if os.path.lexists(self.out / MANIFEST):
            self._check_finished()
            return int(self.manifest["documents"])
        there = self.folder.inner(WORK, make=False)
        if there is not None:
            self._files.callback(there.close)
            there.check_own(self.folder)
        ledger_there = there is not None and os.path.lexists(there.path / LEDGER)
        if not ledger_there:
            refuse_strange(self.out)
        work: Any = there or self._files.enter_context(self.folder.inner(WORK, mode=0o700))  # type: ignore[arg-type]
        self.work: Path = work.path
        self.ledger = Ledger(self.work / LEDGER)
        self._files.callback(self.ledger.close)
        self._files.callback(lambda: self.writer.close())  # noqa: PLW0108  the writer of that moment
        self.writer = writer.ShardWriter(self.work, self.formats, 0)
        try:
            if self._nothing_read():  # nothing has been read yet: any plan may take its place
                self.ledger.cut(0)
            if self.ledger.facts:
                self._take_up()
                return self.state.documents
        except CorpusError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError, MemoryError) as error:
            where, found = str(self.out / WORK / LEDGER), f"{type(error).__name__}: {error}"
            raise CorpusError(
                where, InWords(found), f"a ledger that jittok wrote: remove {WORK} to start again"
            ) from error
        writer.sweep(self.work, {LEDGER})
        disk.sync(self.out)
        disk.sync(self.work)
        self.ledger.add({"plan": self.plan}, sync=True)
        self.state = State(self.plan)
        return 0

    def _nothing_read(self) -> bool:
        """Whether the ledger records no text at all: only a plan, or documents that all had none (a wrong --field)."""
        facts = self.ledger.facts
        if len(facts) < 2:
            return bool(facts)
        state = replay(facts)
        return state.bad > 0 and not state.has_read and not state.shards

    def _take_up(self) -> None:
        state = replay(self.ledger.facts)
        old, new = state.plan, self.plan
        forgiving = old["options"]["on_error"] == "fail" or state.bad == 0
        found = differences(old, new, on_error_may_change=forgiving)
        if found:
            raise different(self.out, found)
        for fact in state.shards:
            writer.publish(self.work, self.folder, fact["files"])
        self.writer = writer.ShardWriter(self.work, self.formats, len(state.shards))
        begun = [(f["streams"], f["documents"], f["tokens"], f["bytes"]) for _, f in state.open_ranges]
        whole = self.writer.resume(begun)
        if whole < len(begun):
            self.ledger.cut(state.open_ranges[whole][0])
            state = replay(self.ledger.facts)
        self.ledger.facts = []
        state.open_ranges = []
        kept = {opened.path.name for opened in self.writer.streams.values()}
        writer.sweep(self.work, {LEDGER} | kept)
        check_inputs(state, self.sources, self.hasher)
        if old["options"]["on_error"] != new["options"]["on_error"]:
            state.plan["options"]["on_error"] = new["options"]["on_error"]
            self.ledger.add({"on_error": new["options"]["on_error"]}, sync=True)
        self.state = state

    def _check_finished(self) -> None:
        """The directory is finished: is it what this call would write?"""
        self.complete = True
        self.manifest = read_manifest(self.out)
        found = differences(self.manifest, self.plan, on_error_may_change=self.manifest["bad_documents"] == 0)
        if found:
            raise different(self.out, found)
        for i, row in enumerate(self.manifest["inputs"]):
            if row["sha256"] is not None and self.hasher.whole(i) != (row["bytes"], row["sha256"]):
                raise changed(self.sources[i])
        self._check_files()
        self._clean_up()

    def _check_files(self) -> None:
        """CorpusError where files of the finished directory are not what was written."""
        files = files_of(self.manifest)
        wrong = [(file["name"], fault) for file in files if (fault := writer.fault_of(self.out, file)) is not None]
        if wrong:
            name, fault = wrong[0]
            more = f" (and {len(wrong) - 1} more files, which jittok verify names)" if len(wrong) > 1 else ""
            raise CorpusError(str(self.out / name), f"{fault}{more}", f"what was written: {REMEDY}")

    # ---- what is still to do

    def check_space(self) -> None:
        """CorpusError when what is still to be written will not fit on the disk, by an estimate from a sample."""
        from jittok.corpus.prediction import check_space

        check_space(self.out, self.encoder, self.formats, self.state.read)

    def go(
        self,
        engine: Engine,
        report: Callable[[Progress], None] | None,
        start: float,
    ) -> None:
        """Write what is missing, then the manifest."""
        state = self.state
        sizes = [source.size for source in self.sources]
        total = None if None in sizes else sum(size or 0 for size in sizes)
        before = (state.read, state.text_bytes, state.tokens)
        try:
            self._close_full_shard()
            for encoded in engine(self.encoder, Done(state.done, state.prefix)):
                self._take(encoded)
                if report is not None:
                    report(Progress.of(state, total, before, time.perf_counter() - start))
            self._pass_inputs(len(self.sources))
            self._refuse_nothing(1)
            if self.writer.ranges or not state.shards:
                self._finish_shard()
            self.manifest = make_manifest(state)
            with naming(self.out):
                write_manifest(self.out, self.manifest)
        finally:
            self.close()
        self._clean_up()

    def close(self) -> None:
        """Close all files."""
        self._files.close()

    def _take(self, encoded: Encoded) -> None:
        """One range: to the streams, then to the ledger."""
        self._pass_inputs(encoded.key.source)
        base = self.state.lines_before(encoded.key.source)
        bad = [found._replace(line=found.line + base) for found in encoded.bad]
        bad = [found for found in bad if not found.input or not self.state.knows_lost(found.source, found.found)]
        if bad and self.encoder.options.on_error == "fail":
            raise CorpusError(
                f"{self.sources[bad[0].source].path}, line {bad[0].line}",
                InWords(bad[0].found),
                f"{bad[0].expected} (to continue: --on-error skip or --on-error replace)",
            )
        rows = Rows(encoded.ids, encoded.lengths, encoded.sources, encoded.lines + np.int64(base), bad)
        with naming(self.out):
            positions = self.writer.append(rows, encoded.text_bytes)
        prefix = encoded.prefix
        if prefix is None and encoded.last == encoded.key.source:
            prefix = self._prefix(encoded.last, encoded.read)
        fact = {
            "range": list(encoded.key), "documents": int(encoded.lengths.size), "tokens": int(encoded.ids.size),
            "bytes": encoded.text_bytes, "lines": encoded.seen, "blank": encoded.blank, "bad": len(bad),
            "lost": encoded.lost,
            "read": encoded.new, "streams": positions, "prefix": prefix, "last": encoded.last,
        }  # fmt: skip
        gone = [[found.source, found.line, found.found] for found in bad if found.input]
        if gone:
            fact["lost_inputs"] = gone
        with naming(self.out):
            self.ledger.add(fact)
        self.state.add_range(fact)
        if bad and self._first_bad is None:
            self._first_bad = bad[0]
        self._refuse_nothing(FEW_BAD)
        self._close_full_shard()

    def _prefix(self, source: int, size: int) -> list[Any] | None:
        """The digest of what was read of an input, None where it has vanished and is to be left out."""
        try:
            return self.hasher.prefix(source, size)
        except OSError as error:
            if self.encoder.options.on_error == "fail" or not is_damage(error):
                raise
            return None

    def _refuse_nothing(self, least: int) -> None:
        """CorpusError when no document so far could be read, of `least` or more: not the documents are wrong then."""
        if not self.state.has_read and self.state.bad >= least:
            bad = self._first_bad
            where = f"{self.sources[bad.source].path}, line {bad.line}" if bad else str(self.out)
            found = f"no text in any of {self.state.bad:,} documents; here {bad.found if bad else 'nothing'}"
            raise CorpusError(where, InWords(found), bad.expected if bad else "texts (--field, --column)")

    def _pass_inputs(self, upto: int) -> None:
        """Finish the sources before `upto`: hash the rest of each, and check that no one has written to it
        meanwhile."""
        for i in range(len(self.state.inputs), upto):
            source = self.sources[i]
            fact: dict[str, Any] = {"input": i}
            if source.path == STDIN:
                prefix = self.state.prefix if self.state.prefix and self.state.prefix[0] == i else None
                size, digest = prefix[1:] if prefix else self.hasher.whole(i)
            elif self.encoder.options.on_error == "fail":
                size, digest = self.hasher.whole(i)
                source.check_unchanged()
            else:
                size, digest = self._whole_or_lost(i, fact)
            self.ledger.add({**fact, "bytes": size, "sha256": digest})
            self.state.add_input({**fact, "bytes": size, "sha256": digest})

    def _whole_or_lost(self, i: int, fact: dict[str, Any]) -> tuple[int, str | None]:
        """Size and digest of an input; without a digest where it cannot be read any more, which `fact` records then."""
        try:
            size, digest = self.hasher.whole(i)
            if i not in self.state.lost_inputs:
                self.sources[i].check_unchanged()
        except OSError as error:
            if not is_damage(error):
                raise
            if i not in self.state.lost_inputs:
                fact["gone"] = f"{error.strerror or error}, after its documents were read"
            return self.sources[i].size or 0, None
        return size, digest

    def _close_full_shard(self) -> None:
        limit = self.encoder.options.shard_bytes
        if limit and self.writer.text_bytes >= limit:
            self._finish_shard()

    def _finish_shard(self) -> None:
        with naming(self.out):
            fact = self.writer.finish()
            self.ledger.add(fact, sync=True)
        writer.publish(self.work, self.folder, fact["files"])
        self.state.add_shard(fact)
        writer.sweep(self.work, {LEDGER})
        self.writer = writer.ShardWriter(self.work, self.formats, len(self.state.shards))

    def _clean_up(self) -> None:
        """The manifest is written: remove the work folder."""
        with Folder(self.out) as folder:
            work = folder.inner(WORK, make=False)
            if work is not None:
                with work:
                    writer.sweep(work.path, set())
                folder.remove(WORK)

    def summary(self, seconds: float, resumed: int, left_out: Sequence[str]) -> Summary:
        """Of the finished directory."""
        found = self.manifest
        size = sum(file["bytes"] for file in files_of(found))
        numbers = {key: found[key] for key in ("documents", "tokens", "text_bytes", "blank_lines", "bad_documents")}
        return Summary(
            out=str(self.out), shards=len(found["shards"]), bytes=size, seconds=seconds, resumed=resumed,
            left_out=tuple(left_out), lost_inputs=sum("lost" in row for row in found["inputs"]), **numbers,
        )  # fmt: skip

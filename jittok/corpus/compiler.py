"""Documents in, shards out: `compile_corpus` reads inputs, encodes them on threads or on Ray, and writes shards in
one fixed order.

With either engine, ranges return in order to a single writer; so the output bytes depend on inputs, vocabulary and
options alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jittok.common.writers.atomic_files import naming
from jittok.corpus.engines import ENGINES, engine_of
from jittok.corpus.formats import make_formats
from jittok.corpus.formats.base import Facts, Format
from jittok.corpus.formats.errors import Errors
from jittok.corpus.manifest import NAME as MANIFEST
from jittok.corpus.manifest import WORK
from jittok.corpus.options import Options
from jittok.corpus.progress import Progress
from jittok.corpus.range_encoder import RangeEncoder
from jittok.corpus.resume import cuts_of, with_recorded_release
from jittok.corpus.run import LOCK, CorpusRun, Summary, refuse_strange
from jittok.corpus.sources import Source, check_looks, check_options, find_sources
from jittok.corpus.state import make_plan
from jittok.errors import CorpusError, InWords, check_local, missing

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer


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
    try:
        from filelock import FileLock, Timeout
    except ImportError:
        raise missing("compiling a corpus", "filelock", "cli,corpus") from None
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
    check_out(out)
    sources, left_out = find_sources(inputs, options, without=out)
    check_looks(sources, options)
    check_options(sources, options)
    formats = formats_of(tok, sources, options)
    encoder = RangeEncoder(tok, sources, options)
    out.mkdir(parents=True, exist_ok=True)
    if (out / LOCK).is_symlink() or ((out / LOCK).exists() and not (out / LOCK).is_file()):
        raise CorpusError(
            str(out / LOCK), InWords("something other than a file"), "a file that jittok made: remove what is there"
        )
    lock = FileLock(out / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise CorpusError(
            str(out), InWords("another process that is writing it"), "one writer at a time: wait until it has finished"
        ) from None
    try:
        with (
            naming(out),
            closing(CorpusRun(out, make_plan(tok, sources, options, out), sources, formats, encoder)) as run,
        ):
            resumed = run.begin()
            if not run.complete:
                if check_space:
                    run.check_space()
                run.go(engine_of(engine, threads), report, start)
            return run.summary(time.perf_counter() - start, resumed, left_out)
    finally:
        lock.release()


def check_out(out: Path) -> None:
    """CorpusError for an output that is not a directory, or that holds files of no run: checked before anything is
    written."""
    if out.exists() and not out.is_dir():
        raise CorpusError(str(out), InWords("a file"), "a folder, or a path that does not exist yet")
    if out.is_dir() and not any(os.path.lexists(out / name) for name in (MANIFEST, WORK)):
        refuse_strange(out)


def formats_of(tok: Tokenizer, sources: Sequence[Source], options: Options) -> list[Format]:
    """The formats of a run, the report of bad documents last. CorpusError for a format that cannot hold the ids."""
    facts = Facts(tok.vocab_size, tok.name or "", tok.fingerprint, options.dtype, [source.path for source in sources])
    return [*make_formats(options.formats, facts), Errors(replace(facts, dtype="auto"))]

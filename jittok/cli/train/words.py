"""The counted words that `jittok train` learns from: counted from documents, or read from files."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jittok.cli.common import kind_of, left_out_text, note
from jittok.cli.train.options import check_words, not_cut_out

if TYPE_CHECKING:
    from jittok.corpus.inputs.sources import Source
    from jittok.corpus.options import Options as Reading
    from jittok.train.counting.count import How
    from jittok.train.counting.counts import Counts


def counted_words(options: argparse.Namespace, stretches: str | None = None) -> Counts:
    """The counted words, or counted matches of the pattern `stretches`."""
    how = _how(options, stretches)
    if options.words:
        from jittok.train.counting.counts import Counts, summed

        if options.superbpe:
            raise ValueError(
                "found --words and --superbpe, expected INPUT: --superbpe counts sequences of words in the documents"
            )
        if options.inputs:
            raise ValueError("found INPUT and --words, expected only one of them")
        words = summed(Counts.load(path) for path in options.words)
    else:
        work = f"{options.work}/stretches" if stretches and options.work else options.work
        words = _counted(options, how, work, again=stretches is not None)
    check_words(words, options, how)
    said = not_cut_out(words, options)
    if said:
        note(f"jittok train: {said}")
    return words


def _counted(options: argparse.Namespace, how: How, work: str | None, again: bool) -> Counts:
    """Count the words of the inputs. `again`: a second pass, which does not report skipped files again."""
    from jittok.train.counting.files import count_files, sources_of

    left_out: list[str] = []
    beside = sources_of([options.held_out], _reading(options)) if options.held_out else ()
    words = count_files(options.inputs, how, _reading(options), dict(options.weight), work, "auto", left_out, beside)
    if left_out and not again:
        note(left_out_text(left_out))
    return words


def inputs_of(options: argparse.Namespace) -> list[Source]:
    """The inputs as they are now."""
    from jittok.train.counting.files import sources_of

    return sources_of(options.inputs, _reading(options))


def check_held_out(options: argparse.Namespace) -> None:
    """Raise CorpusError for a missing --held-out before hours of work."""
    from jittok.train.counting.files import sources_of

    left_out: list[str] = []
    if options.held_out:
        sources_of([options.held_out], _reading(options), left_out)
    if left_out:
        note(left_out_text(left_out))


def held_out(options: argparse.Namespace) -> list[bytes]:
    """The documents of --held-out, read in the same way as the inputs."""
    from jittok.corpus.ranges.documents import read_documents
    from jittok.train.counting.files import sources_of

    reading = _reading(options)
    return [
        read.docs.between(start, stop)
        for read in read_documents(sources_of([options.held_out], reading), reading)
        for start, stop in zip(read.docs.starts.tolist(), read.docs.stops.tolist(), strict=True)
    ]


def _reading(options: argparse.Namespace) -> Reading:
    """How documents are read."""
    from jittok.corpus.options import Options, parse_bytes
    from jittok.train.counting.files import RANGE_BYTES

    return Options(
        kind=kind_of(options), field=options.field, column=options.column, join=options.join,
        lines=options.lines,
        on_error=options.on_error, max_document_bytes=parse_bytes(options.max_document_bytes, "--max-document-bytes"),
        range_bytes=RANGE_BYTES,
    )  # fmt: skip


def _how(options: argparse.Namespace, stretches: str | None = None) -> How:
    """How words are counted."""
    from jittok.corpus.options import parse_bytes
    from jittok.train.counting.count import How
    from jittok.train.counting.splitters import DEFAULT_PRE, named_pre

    runs, lines = stretches, None
    if options.model == "spm":
        from jittok.train.spm import RUNS, SpmOptions

        runs, lines = RUNS, SpmOptions(0).max_sentence_length
    elif options.model == "unigram":
        from jittok.train.spm import SpmOptions
        from jittok.train.unigram.sentences import FOLLOWED

        runs, lines = FOLLOWED, SpmOptions(0).max_sentence_length
    elif options.model == "wordpiece":
        from jittok.train.wordpiece import RUNS

        runs = RUNS
    return How(
        pre=named_pre(options.pre or DEFAULT_PRE), pre_regex=options.pre_regex, runs=runs, lines=lines,
        normalization=options.normalization if lines is not None else "identity",
        special=() if options.like == "hf" else tuple(options.special), by=options.by, sample=options.sample,
        seed=options.seed, threads=options.threads, like=options.like,
        memory=None if options.memory is None else parse_bytes(options.memory, "--memory"),
    )  # fmt: skip

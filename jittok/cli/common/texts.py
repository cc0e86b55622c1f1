"""The input texts of a command, read by the corpus compiler's reader and encoded as they are read."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from jittok.cli.common import (
    STDIN,
    add_errors,
    add_reading,
    add_special,
    add_threads,
    encoding_options,
    group,
    kind_of,
    left_out_text,
    note,
)

if TYPE_CHECKING:
    from jittok.common.rows import TokenArray
    from jittok.corpus.inputs.sources import Source
    from jittok.corpus.options import Options
    from jittok.corpus.ranges.documents import Read
    from jittok.tokenizer import Tokenizer


def add_texts(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for input texts and the options for encoding them."""
    parser.add_argument(
        "files",
        nargs="*",
        default=[],
        metavar="FILE",
        help="files, globs, directories or URLs: .txt .jsonl .parquet .arrow, the first two also .gz .zst .bz2 .xz .lz4"
        " (other extensions: plain text); - or nothing: standard input; or a quoted text",
    )
    group(parser, "reading").add_argument("-p", "--prompt", metavar="TEXT", help="use this text instead of files")
    add_reading(parser)
    add_special(parser)
    add_errors(parser)
    add_threads(parser)


def refuse_kinds(options: argparse.Namespace, given: str) -> None:
    """Raise ValueError for options about files if the text itself is given."""
    kinds = {"input_format": None, "jsonl": False, "lines": False, "field": "text", "column": "text", "join": None}
    for name, default in kinds.items():
        if getattr(options, name) != default:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"found {given} and {option}, expected {option} only with a file or standard input")


def find(names: list[str], options: argparse.Namespace) -> tuple[list[Source], Options]:
    """The inputs of a command and how to read them. CorpusError if the content of one does not match its kind."""
    from jittok.corpus.inputs.finding import check_looks, check_options, find_sources
    from jittok.corpus.options import Options, parse_bytes

    how = Options(
        kind=kind_of(options), field=options.field, column=options.column, join=options.join,
        lines=options.lines, on_error="replace" if options.errors == "replace" else "fail",
        max_document_bytes=parse_bytes(options.max_document_bytes, "--max-document-bytes"),
    )  # fmt: skip
    if STDIN in names and sys.stdin is not None and sys.stdin.isatty():
        note("reading from the terminal; finish with Ctrl-D on a new line")
    sources, left_out = find_sources(names, how, any_name=True)
    if left_out:
        note(left_out_text(left_out))
    check_looks(sources, how, files=True)
    check_options(sources, how)
    return sources, how


SHOWN = 100
"""Maximum length of a text that a hint repeats."""


def _text_of(names: list[str]) -> str | None:
    """The text that was given instead of files; None if these are files. CorpusError for names that are neither: a
    misspelt file name must not be encoded as a text."""
    from jittok.corpus.inputs.finding import is_pattern
    from jittok.errors import CorpusError, InWords

    lost = [name for name in names if name != STDIN and "://" not in name and not os.path.lexists(name)]
    if len(lost) == len(names) == 1 and re.search(r"\s", lost[0]) and not re.search(r"[/\\]|\.\w{1,10}$", lost[0]):
        return lost[0]
    lost = [name for name in lost if not is_pattern(name)]
    if not lost:
        return None
    whole = " ".join(names)
    whole = shlex.quote(whole) if len(lost) == len(names) and len(whole) < SHOWN else "TEXT"
    said = f"a file, a directory, a glob or a URL (for a text: -p {whole})"
    raise CorpusError(lost[0], InWords("no such file or directory"), said)


class InputTexts:
    """The input texts of a command, as its options specify them."""

    def __init__(self, options: argparse.Namespace) -> None:
        if options.prompt is not None and options.files:
            raise ValueError("found FILE and --prompt, expected only one of them")
        if options.prompt is not None:
            refuse_kinds(options, "--prompt")
        text = _text_of(options.files) if options.prompt is None else options.prompt
        if text is not None and options.prompt is None:
            refuse_kinds(options, "TEXT")
            note(f"{options.command}: no such file: encoding the argument as text (use -p TEXT to say so)")
        self.encoding = encoding_options(options)
        self.prompt = None if text is None else os.fsencode(text)
        self.sources: list[Source] = []
        if self.prompt is None:
            self.sources, self._how = find(options.files or [STDIN], options)

    @property
    def names(self) -> list[str]:
        """Names of the inputs."""
        return [source.path for source in self.sources] if self.prompt is None else [""]

    @property
    def size(self) -> int | None:
        """Bytes of all inputs on disk, None if unknown."""
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def read(self) -> Iterator[Read]:
        """Read the documents, one range at a time."""
        from jittok.corpus.ranges.documents import Read, read_documents

        if self.prompt is None:
            yield from read_documents(self.sources, self._how)
            return
        import numpy as np

        from jittok.kernels.inputs import documents

        (docs,) = documents([self.prompt])
        yield Read(docs, np.zeros(1, np.int64), np.ones(1, np.int64), len(self.prompt))

    def encode(self, tok: Tokenizer, read: Read) -> Iterator[TokenArray]:
        """Encode one range, some rows at a time. CorpusError with file and line for unencodable documents."""
        return self.placed(read, lambda: tok.encode_stream(read.docs, **self.encoding))

    def placed(self, read: Read, encoded: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        """The results of `encoded` for a range, with EncodingFailed turned into a CorpusError with file and line."""
        from jittok.chunks.texts.chunker import TooManyIds
        from jittok.corpus.ranges.documents import place
        from jittok.errors import CorpusError, EncodingFailed

        try:
            yield from encoded()
        except TooManyIds as error:
            if self.prompt is not None:
                raise
            k = error.document
            where = place(self.sources, int(read.sources[k]), int(read.lines[k]))
            raise ValueError(f"{where}: --size: {error.said}") from None
        except EncodingFailed as error:
            if self.prompt is not None:
                raise
            k = error.document
            where = f"{place(self.sources, int(read.sources[k]), int(read.lines[k]))}, offset {error.offset}"
            expected = error.expected.replace("errors='replace'", "--on-error replace")
            raise CorpusError(where, error.found, expected) from None


class ProgressOf:
    """The progress of a command on standard error, from the first second on; in a log, a line a minute.

    `answers`: the command prints results meanwhile; no progress is shown if these go to a terminal too.
    """

    def __init__(self, size: int | None, answers: bool = False) -> None:
        from jittok.common.display.progress import shown

        self._line = shown(False if answers and sys.stdout is not None and sys.stdout.isatty() else "auto")
        self._size, self._start = size, time.monotonic()
        self._documents = self._tokens = self._bytes = 0

    def add(self, documents: int, tokens: int, size: int = 0) -> None:
        """Add to the progress."""
        from jittok.common.display.progress import Progress

        self._documents += documents
        self._tokens += tokens
        self._bytes += size
        self._line(Progress(
            "reading", self._bytes, self._size, "bytes", time.monotonic() - self._start,
            self._documents, self._tokens, self._bytes,
        ))  # fmt: skip

    def __enter__(self) -> ProgressOf:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()

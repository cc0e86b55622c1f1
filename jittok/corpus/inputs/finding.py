"""Names, globs, directories and URLs become a list of sources in a fixed order.

What a glob or directory contains beside readable files is reported, never silently skipped.
"""

from __future__ import annotations

import errno
import glob
import os
import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

from jittok.corpus.inputs.decompression import open_unpacked
from jittok.corpus.inputs.kinds import (
    JSON,
    KIND_OF,
    PROSE,
    SNIFFED_BYTES,
    TABLES,
    TEXTS,
    check_json,
    documents_in,
    json_shape,
    refuse_other_kinds,
    start_of,
    suffixes_of,
)
from jittok.corpus.inputs.remote import (
    files_below,
    is_url,
    local_name,
    matches,
    naming_input,
    open_far,
    same_place,
)
from jittok.corpus.inputs.sources import STDIN, Source, look_at, standard_input
from jittok.corpus.options import Options
from jittok.corpus.store.opening import refuse_secrets
from jittok.errors import CorpusError, InWords

MAGIC = "*?["
COPY = re.compile(r"cache-.*\.arrow")
"""Cache files that the datasets library leaves beside a saved dataset: results of calls, made of the same documents."""
SAVED = ("state.json", "dataset_info.json")
"""Files of a saved dataset that are not data."""


def find_sources(
    inputs: Iterable[str | os.PathLike[str]],
    options: Options,
    *,
    any_name: bool = False,
    without: str | os.PathLike[str] | None = None,
) -> tuple[list[Source], list[str]]:
    """The sources of all inputs, in the order given and sorted inside a glob or directory; and what was left out.

    Left out are files of directories without a known extension, hidden files and folders, linked
    folders, what a glob matches beside files, and with `on_error` "skip" folders that may not be read. `any_name`: a
    file that was named is plain text if its extension is unknown, and may be a pipe; PROSE is read in folders, too.
    `without`: a folder that is left out where it lies in another: what is written there is no input of the next call,
    which continues with it. Raises CorpusError for a name that matches nothing, has no known kind, or comes twice,
    and for a URL with a secret.
    """
    sources: list[Source] = []
    left_out: list[str] = []
    lost: list[tuple[str, str]] = []  # files left out that look like documents
    seen = Seen()
    given = [local_name(os.fspath(entry)) for entry in inputs]
    refuse_secrets(given)
    if not given:
        raise CorpusError("INPUT", InWords("none"), "files, directories, globs, URLs or - for standard input")
    for name in given:
        for path, named in _expand(name, left_out, options.on_error == "skip", without):
            kind = _kind(path, options, named, any_name)
            if kind is None:
                if named:
                    raise CorpusError(
                        path,
                        InWords("a file name without a known extension"),
                        f"{', '.join(KIND_OF)}, or --input-format",
                    )
                left_out.append(path)
                if options.on_error != "skip" and (said := documents_in(path, partial(_open, path), options)):
                    lost.append((path, said))
                continue
            seen.add(path)
            sources.append(_source(path, *kind, any_name, named or options.on_error == "fail"))
    _refuse_lost(lost)
    if not sources:
        found = f"no file that can be read among {len(left_out):,}" if left_out else "no file that can be read"
        raise CorpusError(", ".join(given), InWords(found), f"one or more of {', '.join(KIND_OF)}")
    return sources, sorted(left_out)


def check_looks(sources: Iterable[Source], options: Options, files: bool = False) -> None:
    """CorpusError when standard input (`files`: any plain file) is taken for text and looks like another kind. For a
    corpus (not `files`) also when standard input is empty: a command before it that failed leaves nothing else.

    A kind that was given (--input-format) is not questioned. A file that is named .txt may look like anything that
    is text, and with "replace" like anything.
    """
    sources = list(sources)
    if not files and any(source.path == STDIN for source in sources) and not standard_input().start():
        raise CorpusError(STDIN, InWords("nothing at all"), "documents (did the command before the pipe fail?)")
    if options.kind is not None:
        return
    for source in sources:
        if source.kind in TEXTS and (source.path == STDIN or files):
            named = KIND_OF.get(suffixes_of(source.path)[0]) == "txt"
            if source.path == STDIN:
                start = standard_input().start()
            elif source.size is None or is_url(source.path) or (named and options.on_error == "replace"):
                continue  # a stream is read once
            else:
                with naming_input(source.path), source.open() as file:
                    start = open_unpacked(file, source.packing, source.path)(SNIFFED_BYTES)
            lines, nameless = source.kind == "lines", source.path == STDIN
            refuse_other_kinds(source.path, start, lines, any_text=named, nameless=nameless)


def check_options(sources: Iterable[Source], options: Options) -> None:
    """CorpusError for an option about a kind that no input is of: with the column of a table for JSON Lines,
    another text than was meant would be read."""
    kinds = {source.kind for source in sources}
    if options.field != "text" and "jsonl" not in kinds:
        raise CorpusError("--field", options.field, "JSON Lines among the inputs (tables: --column), or no --field")
    if options.column != "text" and kinds.isdisjoint(TABLES):
        raise CorpusError("--column", options.column, "a table among the inputs (JSON Lines: --field), or no --column")
    if options.keep and kinds.isdisjoint((*TABLES, "jsonl")):
        raise CorpusError("--keep", ",".join(options.keep), "JSON Lines or a table among the inputs, or no --keep")
    if options.messages is not None and not kinds <= {*TABLES, "jsonl"}:
        raise CorpusError(
            "--messages", InWords("plain text among the inputs"), "JSON Lines or tables: a chat a line or row"
        )
    if options.join is not None and kinds.isdisjoint((*TABLES, "jsonl")):
        raise CorpusError("--join", options.join, "JSON Lines or a table among the inputs, or no --join")
    if options.separator is not None and "separated" not in kinds:
        raise CorpusError("--separator", options.separator, "plain text among the inputs, or no --separator")


def _refuse_lost(lost: list[tuple[str, str]]) -> None:
    """CorpusError for files of folders that would be left out although they look like documents."""
    if lost:
        path, said = lost[0]
        more = f" (and {len(lost) - 1:,} more such files)" if len(lost) > 1 else ""
        raise CorpusError(
            path, InWords(f"what looks like {said}, under a name without a matching extension{more}"),
            f"one of {', '.join(KIND_OF)} (or name the files to read; --on-error skip leaves others out)",
        )  # fmt: skip


class Seen:
    """The inputs so far: none may come again, under whatever name of its folder. A link to a file is another file."""

    def __init__(self) -> None:
        self._places: set[str] = set()
        self._folders: dict[str, str] = {}  # name -> the folder it leads to

    def add(self, path: str) -> None:
        """One more. CorpusError if it was there before."""
        position = same_place(path) if is_url(path) else path
        if path != STDIN and not is_url(path):
            folder, name = os.path.split(path)
            if folder not in self._folders:
                self._folders[folder] = os.path.realpath(folder)
            position = os.path.join(self._folders[folder], name)  # noqa: PTH118  of a million files
        if position in self._places:
            raise CorpusError(path, InWords("the same input twice"), "each once")
        self._places.add(position)


def _source(path: str, kind: str, packing: str, streams: bool, there: bool) -> Source:
    """An input. `there`: it must exist; else it may have vanished since its folder was read, an error later."""
    if path == STDIN:
        return Source(path, None, "", kind, packing)
    if not is_url(path) and not Path(path).is_file():
        if not there and not os.path.lexists(path):
            return Source(path, 0, "", kind, packing)
        if streams and kind not in TABLES:
            return Source(path, None, "", kind, packing)
        raise CorpusError(
            path, InWords("something other than a regular file"), "a file, a directory or a glob (- for a stream)"
        )
    try:
        size, stamp, inode = look_at(path, listed=True)
        return Source(path, size, stamp, kind, packing, inode)
    except FileNotFoundError:
        if not there:
            return Source(path, 0, "", kind, packing)
        raise CorpusError(path, InWords("no such file or directory"), "a file") from None


def _expand(
    name: str, left_out: list[str], skip: bool, without: str | os.PathLike[str] | None
) -> Iterator[tuple[str, bool]]:
    """(path, whether it was named by the user rather than found in a directory)."""
    if name == STDIN:
        yield name, True
    elif is_url(name):
        if is_pattern(name):
            found = matches(name)
            if not found:
                raise CorpusError(name, InWords("no match"), "one or more files")
            yield from ((path, True) for path in found)
        elif below := files_below(name):
            yield from ((path, False) for path in _shown_files(below, name, left_out))
        else:
            yield name, True
    elif Path(name).is_dir():
        yield from ((path, False) for path in sorted(_files_in(name, left_out, skip, without)))
    elif is_pattern(name) and not Path(name).exists():
        found = without_copies(files_of(name, left_out, skip), left_out)
        if not found:
            raise CorpusError(name, InWords("no match"), "one or more files")
        yield from ((path, True) for path in _outside(found, without, left_out))
    elif not Path(name).exists():
        raise CorpusError(name, InWords("no such file or directory"), "a file, a directory, a glob or a URL")
    else:
        yield name, True


def _shown_files(paths: list[str], folder: str, left_out: list[str]) -> Iterator[str]:
    """The files of a bucket's folder; hidden ones, and those of hidden folders, go to `left_out`."""
    for path in paths:
        if any(part.startswith(".") for part in path[len(folder) :].split("/")) or path.endswith("/"):
            left_out.append(path)
        else:
            yield path


def _outside(paths: list[str], folder: str | os.PathLike[str] | None, left_out: list[str]) -> Iterator[str]:
    """The files outside a folder, which goes to `left_out` if one is inside. A link to a file is another file."""
    position = None if folder is None else os.path.realpath(folder)
    inside: dict[str, bool] = {}  # name of a folder -> whether it is that one, or below it
    for path in paths:
        above = os.path.dirname(path)  # noqa: PTH120  of a million files
        if position is not None and above not in inside:
            inside[above] = Path(os.path.realpath(above)).is_relative_to(position)
        if position is None or not inside[above]:
            yield path
        elif (shown := Path(folder or "").as_posix()) not in left_out:
            left_out.append(shown)


def _files_in(name: str, left_out: list[str], skip: bool, without: str | os.PathLike[str] | None) -> Iterator[str]:
    """All files below a folder. Hidden ones, linked folders and `without` go to `left_out`, with `skip` also folders
    that may not be read; else these are an OSError."""

    def refused(error: OSError) -> None:
        if not skip or error.filename is None or Path(error.filename) == Path(name):
            raise error
        left_out.append(Path(error.filename).as_posix())

    other = None if without is None or not Path(without).is_dir() else Path(without).stat()
    for folder, below, files in os.walk(name, onerror=refused):
        paths = [Path(each) for each in without_copies([os.path.join(folder, name) for name in files], left_out)]  # noqa: PTH118
        passed = [each for each in below if each.startswith(".") or Path(folder, each).is_symlink()]
        if other is not None:
            passed += [
                each for each in below if each not in passed and os.path.samestat(Path(folder, each).stat(), other)
            ]
        below[:] = [each for each in below if each not in passed]
        left_out += [Path(folder, each).as_posix() for each in passed]
        for path in paths:
            if path.name.startswith(".") or not path.is_file():
                left_out.append(path.as_posix())
            else:
                yield path.as_posix()


def _open(path: str) -> IO[bytes]:
    return open_far(path) if is_url(path) else Path(path).open("rb")


def _kind(path: str, options: Options, named: bool, any_name: bool) -> tuple[str, str] | None:
    """(kind, packing) of an input, None if neither its name nor, of .json, its first line has one. `named`: by the
    user, not found in a folder; `any_name`: a named file of no known kind is plain text, and PROSE in folders."""
    suffix, packing = suffixes_of(path)
    kind = options.kind or KIND_OF.get(suffix)
    if options.kind is None and suffix == JSON and (is_url(path) or Path(path).is_file()):
        try:
            with naming_input(path):
                start = start_of(partial(_open, path), packing, path)
        except OSError:
            if options.on_error == "fail":
                raise
            return "jsonl", packing  # reading it raises the error
        shape, documents = json_shape(start, options.of_lines)
        if not documents and (any_name or not named):
            kind = None
        elif shape != "lines":
            kind = None
            if named and not any_name:
                check_json(path, start, options)
    if kind is None and (path == STDIN or (any_name and (named or suffix in PROSE))):
        kind = "txt"
    if kind is None:
        return None
    if kind in TABLES and (packing or path == STDIN):
        raise CorpusError(
            path,
            InWords(f"{kind} {'in ' + packing if packing else 'from standard input'}"),
            "a file that can be read anywhere: unpack it first",
        )
    if kind == "txt":
        kind = "lines" if options.lines else "separated" if options.separator is not None else "txt"
    return kind, packing


def is_pattern(name: str) -> bool:
    """Whether a name contains a wildcard."""
    return any(mark in name for mark in MAGIC)


def files_of(pattern: str, left_out: list[str], skip: bool) -> list[str]:
    """The files that are matched, sorted. What else is matched goes to `left_out`: folders with nothing in them that
    is matched, links that lead nowhere, pipes. So do folders below which may not be read, with `skip`; else they are a
    PermissionError, as Python's glob passes over them."""
    for folder in _closed(pattern):
        if not skip:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)
        left_out.append(Path(folder).as_posix())
    matched = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207  ** and absolute names
    files = [path for path in matched if Path(path).is_file()]
    if len(files) < len(matched):
        known = set(files)
        above = {folder for path in matched for folder in _above(path)}
        others = [path for path in matched if path not in known and os.path.normpath(path) not in above]
        left_out += [each for path in others if (each := Path(path).as_posix()) not in left_out]
    return files


def _above(path: str) -> Iterator[str]:
    """All parent directories of a file, as they are named."""
    path = os.path.dirname(os.path.normpath(path))  # noqa: PTH120  of a million files
    while path:
        yield path
        path, before = os.path.dirname(path), path  # noqa: PTH120
        if path == before:
            return


def _closed(pattern: str) -> Iterator[str]:
    """The unreadable directories on the way of a pattern."""
    head = os.path.dirname(pattern)  # noqa: PTH120  as it is named
    while head and is_pattern(head):
        for folder in sorted(glob.glob(os.path.join(head, ""), recursive=True)):  # noqa: PTH118, PTH207
            if not os.access(folder, os.R_OK | os.X_OK):
                yield folder
        head = os.path.dirname(head)  # noqa: PTH120


def without_copies(paths: list[str], left_out: list[str]) -> list[str]:
    """The same files without the cached results that lie beside a saved dataset, which go to `left_out`."""
    kept, saved = [], dict[str, bool]()
    for path in paths:
        folder, name = os.path.split(path)
        if COPY.fullmatch(name):
            if folder not in saved:
                saved[folder] = any(os.path.exists(os.path.join(folder, each)) for each in SAVED)  # noqa: PTH110, PTH118
            if saved[folder]:
                left_out.append(Path(path).as_posix())
                continue
        kept.append(path)
    return kept

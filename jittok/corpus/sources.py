"""Inputs: names, globs, directories and URLs become a list of sources in a fixed order."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from jittok.corpus.options import Options
from jittok.errors import CorpusError

STDIN = "-"
PACKINGS = {".gz": "gz", ".zst": "zst", ".bz2": "bz2", ".xz": "xz"}
KIND_OF = {
    ".txt": "txt",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
TABLES = ("parquet", "arrow")
MAGIC = "*?["


@dataclass(frozen=True)
class Source:
    """One input. `size` is None for standard input; `stamp` changes when somebody writes to the file."""

    path: str
    size: int | None
    stamp: str
    kind: str  # "txt" (the file is a document), "lines", "separated", "jsonl", "parquet", "arrow"
    packing: str  # "", "gz", "zst", "bz2", "xz"

    def open(self) -> IO[bytes]:
        """The bytes as they lie on disk. Raises OSError."""
        if self.path == STDIN:
            return sys.stdin.buffer
        if is_url(self.path):
            fs, path = _filesystem(self.path)
            opened: IO[bytes] = fs.open(path, "rb")
            return opened
        return Path(self.path).open("rb")

    def check_unchanged(self) -> None:
        """CorpusError when the file is not what it was when the run began."""
        if self.path == STDIN:
            return
        size, stamp = size_and_stamp(self.path)
        if (size, stamp) != (self.size, self.stamp):
            raise CorpusError(self.path, f"{size} bytes, changed {stamp}", f"{self.size} bytes as when reading began")


def is_url(path: str) -> bool:
    """Whether fsspec has to open it."""
    return "://" in path


def _filesystem(url: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise ImportError(f"{url}: reading URLs needs fsspec: pip install 'jittok[corpus]'") from None
    fs, path = fsspec.core.url_to_fs(url)
    return fs, path


def size_and_stamp(path: str) -> tuple[int, str]:
    """Size in bytes, and a text that changes when the file does (no promise that it only then does)."""
    if is_url(path):
        fs, inner = _filesystem(path)
        facts = fs.info(inner)
        marks = [facts.get(key) for key in ("ETag", "etag", "md5Hash", "mtime", "LastModified", "created")]
        return int(facts["size"]), " ".join(str(mark) for mark in marks if mark is not None)
    found = Path(path).stat()
    return found.st_size, f"{found.st_mtime_ns} {found.st_ctime_ns}"


def find_sources(inputs: Iterable[str | os.PathLike[str]], options: Options) -> tuple[list[Source], list[str]]:
    """The sources of all inputs, in the order given and sorted inside a glob or directory; and what was left out.

    Left out are files of directories whose names tell no kind that can be read. Raises CorpusError for a name that
    matches nothing, tells no kind, or comes twice.
    """
    sources: list[Source] = []
    left_out: list[str] = []
    seen: set[str] = set()
    given = [os.fspath(entry) for entry in inputs]
    if not given:
        raise CorpusError("INPUT", "none", "files, directories, globs, URLs or - for standard input")
    for name in given:
        for path, named in _expand(name):
            kind = _kind(path, options)
            if kind is None:
                if named:
                    raise CorpusError(path, "a name that tells no kind", f"{', '.join(KIND_OF)} or --input-format")
                left_out.append(path)
                continue
            if path in seen:
                raise CorpusError(path, "the same input twice", "each once")
            seen.add(path)
            sources.append(_source(path, *kind))
    if not sources:
        raise CorpusError(", ".join(given), "no file that can be read", "one or more")
    return sources, left_out


def _source(path: str, kind: str, packing: str) -> Source:
    if path == STDIN:
        return Source(path, None, "", kind, packing)
    if not is_url(path) and not Path(path).is_file():
        what = "nothing of this name" if not Path(path).exists() else "something that is no regular file"
        raise CorpusError(path, what, "a file, a directory or a glob")
    try:
        return Source(path, *size_and_stamp(path), kind, packing)
    except FileNotFoundError:
        raise CorpusError(path, "nothing of this name", "a file") from None


def _expand(name: str) -> Iterator[tuple[str, bool]]:
    """(path, whether it was named by the user rather than found in a directory)."""
    if name == STDIN:
        yield name, True
    elif is_url(name):
        if any(mark in name for mark in MAGIC):
            fs, path = _filesystem(name)
            found = sorted(fs.glob(path))
            if not found:
                raise CorpusError(name, "no match", "one or more files")
            yield from ((fs.unstrip_protocol(path), True) for path in found)
        else:
            yield name, True
    elif Path(name).is_dir():
        files = (path for path in Path(name).rglob("*") if path.is_file())
        visible = [path for path in files if not any(part.startswith(".") for part in path.relative_to(name).parts)]
        yield from ((path, False) for path in sorted(path.as_posix() for path in visible))
    elif any(mark in name for mark in MAGIC) and not Path(name).exists():
        found = sorted(path for path in glob.glob(name, recursive=True) if Path(path).is_file())  # noqa: PTH207  ** and absolute names
        if not found:
            raise CorpusError(name, "no match", "one or more files")
        yield from ((path, True) for path in found)
    else:
        yield name, True


def _kind(path: str, options: Options) -> tuple[str, str] | None:
    """(kind, packing) of a name, None where it tells none."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    packing = PACKINGS[suffixes.pop()] if suffixes and suffixes[-1] in PACKINGS else ""
    kind = options.kind or KIND_OF.get(suffixes[-1] if suffixes else "")
    if kind is None and path == STDIN:
        kind = "txt"
    if kind is None:
        return None
    if kind in TABLES and (packing or path == STDIN):
        raise CorpusError(
            path,
            f"{kind} {'in ' + packing if packing else 'from standard input'}",
            "a file that can be read anywhere: unpack it first",
        )
    if kind == "txt":
        kind = "lines" if options.lines else "separated" if options.separator is not None else "txt"
    return kind, packing

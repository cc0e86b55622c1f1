"""The input of readers: the bytes of a file, up to a size limit, or bytes that were read before.

A reader may want several files. Where its answer is kept, all of them are read and hashed first, each once (`Held`).
Whatever happens on the disk meanwhile, the reader sees these bytes.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import orjson

from jittok.errors import InWords, MalformedVocab, UnsupportedVocab
from jittok.files.json_nodes import Node

MOST_BYTES = 512 << 20
"""The largest real file has 33 MB."""


class Held:
    """Files of one folder, read before. `names`: patterns of all names that were searched for; those are
    there or not. `complete` turns False when something else is wanted, which is then searched for on the disk."""

    def __init__(self, folder: Path, names: Sequence[str], files: Mapping[str, bytes]) -> None:
        self.complete = True
        self._folder, self._names, self._files = folder, names, files

    def read(self, path: Path) -> bytes | None:
        """The bytes of a file, None if it is not held."""
        if path.parent == self._folder and path.name in self._files:
            return self._files[path.name]
        self.complete = False
        return None

    def matching(self, folder: Path, pattern: str) -> list[Path] | None:
        """Files that match a name or pattern, sorted; None if it was not searched for."""
        if folder == self._folder and (pattern in self._names or any(fnmatch(pattern, name) for name in self._names)):
            return [folder / name for name in sorted(self._files) if name == pattern or fnmatch(name, pattern)]
        self.complete = False
        return None


_now = threading.local()


@contextlib.contextmanager
def reading(held: Held) -> Iterator[None]:
    """While this thread reads, from these files alone."""
    _now.held = held
    try:
        yield
    finally:
        del _now.held


def matching(folder: Path, pattern: str) -> list[Path]:
    """The files of a folder that match a pattern, sorted."""
    held = getattr(_now, "held", None)
    found = None if held is None else held.matching(folder, pattern)
    return found if found is not None else sorted(path for path in folder.glob(pattern) if path.is_file())


def read_file(path: Path) -> bytes:
    """The bytes of a regular file. MalformedVocab, UnsupportedVocab, OSError."""
    held = getattr(_now, "held", None)
    content = None if held is None else held.read(path)
    if content is not None:
        return bytes(content)
    facts = path.stat()
    if not stat.S_ISREG(facts.st_mode):
        raise MalformedVocab(str(path), "file", InWords("a device or pipe"), "a regular file")
    if facts.st_size > MOST_BYTES:
        raise UnsupportedVocab(
            str(path), "file", InWords(f"{facts.st_size} bytes"), f"a tokenizer file, of up to {MOST_BYTES}"
        )
    with path.open("rb") as file:
        return file.read(MOST_BYTES + 1)


def decoded(file: str, content: bytes) -> str:
    """The text of a file. MalformedVocab: invalid UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise MalformedVocab(file, f"byte {error.start}", content[error.start : error.start + 8], "UTF-8") from None


def lines_of(file: str, content: bytes) -> list[str]:
    """The lines of a file, without the line feeds that end them. MalformedVocab: invalid UTF-8."""
    lines = decoded(file, content).split("\n")
    return lines if lines[-1] else lines[:-1]


def parse_json(file: str, content: bytes) -> Node:
    """The JSON value of a file. MalformedVocab where it is none."""
    try:
        return Node(file, "", orjson.loads(content))
    except orjson.JSONDecodeError as error:
        raise not_json(file, content, error) from None


def not_json(file: str, content: bytes, error: Any) -> MalformedVocab:
    """The error of a file that is not JSON. `error`: a json.JSONDecodeError."""
    line = getattr(error, "lineno", 0)
    column = getattr(error, "colno", 0)
    near: Any = content[max(0, getattr(error, "pos", 0)) :][:40] or InWords("the end of the file")
    return MalformedVocab(file, f"line {line}, column {column}", near, f"JSON ({getattr(error, 'msg', error)})")


def exists(folder: Path, name: str) -> Path | None:
    """A file of a folder, None where there is none."""
    held = getattr(_now, "held", None)
    found = None if held is None else held.matching(folder, name)
    if found is not None:
        return found[0] if found else None
    path = folder / name
    return path if os.path.isfile(path) else None  # noqa: PTH113  a name may be too long for Path

"""Globs: the files that a pattern matches, and everything else that it matches, which is reported, never silently
skipped."""

from __future__ import annotations

import errno
import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path

MAGIC = "*?["


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


COPY = re.compile(r"cache-.*\.arrow")
"""Cache files that the datasets library leaves beside a saved dataset: results of calls, made of the same documents."""
SAVED = ("state.json", "dataset_info.json")
"""Files of a saved dataset that are not data."""


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

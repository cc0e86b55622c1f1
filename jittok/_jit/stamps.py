"""What machine code and compiled vocabularies depend on, as digests: this package's sources, the processor, versions.

Sources are read and hashed once. After that a memo in the cache stands for them, as long as each has the size, times
and inode that it had: a start costs a look at every file, and reads one. The memo is written only when no source is so
young that a further change might leave its times as they are.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from jittok._jit.store import cache_dir, log, write_whole

MEMO = b"jittok sources 1\n"
MEMO_ENDING = ".sources"
SETTLED = 2.0
"""Seconds after which the times of a file tell a later change from this one."""
_SETTINGS = ("CPU_NAME", "CPU_FEATURES", "OPT", "ENABLE_AVX", "SLP_VECTORIZE", "LOOP_VECTORIZE", "DEBUGINFO", "DEBUG")
"""Settings of Numba (NUMBA_...) that change machine code."""
_ROOT = Path(__file__).parent.parent
# two patterns that begin with plain text: one that begins with a line's start or a choice takes ten times as long
_FROM = re.compile(rb"from jittok([\w.]*) import (\([^)]*\)|[^\n]*)")
_IMPORT = re.compile(rb"import jittok([\w.]*)")
_WORD = re.compile(rb"\w+")

Sources = dict[str, tuple[str, list[str]]]
"""Module, named from the package's root, which is "" -> SHA-256 of its source, the modules that it imports."""


def _facts() -> dict[str, tuple[str, tuple[int, ...]]]:
    """Module -> its file, and what changes with the file: device, inode, size, times."""
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    todo = [("", str(_ROOT))]
    while todo:
        above, folder = todo.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                name, dot, ending = entry.name.partition(".")
                if ending == "py":
                    module = (above + name).removesuffix("__init__").rstrip(".")
                    s = entry.stat()
                    found[module] = entry.path, (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
                elif not dot and name != "__pycache__" and entry.is_dir():
                    todo.append((f"{above}{name}.", entry.path))
    return found


def _read_sources(files: dict[str, str]) -> Sources:
    """The same for what is there now."""
    read = {}
    for module, file in files.items():
        with open(file, "rb") as source:  # noqa: PTH123  Path takes ten times as long
            text = source.read()
        names = set(_IMPORT.findall(text))
        for base, listed in _FROM.findall(text):
            names |= {base, *(base + b"." + word for word in _WORD.findall(listed))}
        found = {name.decode().lstrip(".") for name in names}
        read[module] = hashlib.sha256(text).hexdigest(), sorted(found & files.keys())
    return read


@functools.cache
def _sources() -> Sources:
    """From the memo, if the files are those that it was written for, or else from the files."""
    facts = _facts()
    state = hashlib.sha256(repr(sorted(facts.items())).encode()).hexdigest()
    folder = cache_dir()
    place = folder and folder / "kernels" / (hashlib.sha256(os.fsencode(_ROOT)).hexdigest()[:40] + MEMO_ENDING)
    known = _recall(place, state) if place else None
    if known is not None:
        return known
    read = _read_sources({module: file for module, (file, _) in facts.items()})
    youngest = max(max(mtime, ctime) for _, (_, _, _, mtime, ctime) in facts.values())
    if place and time.time() - youngest / 1e9 > SETTLED:
        _keep(place, state, read)
    return read


def _keep(place: Path, state: str, sources: Sources) -> None:
    body = json.dumps({"state": state, "sources": sources}).encode()
    try:
        write_whole(place, MEMO, hashlib.sha256(body).digest(), body)
    except OSError as error:
        log.info("what the sources are is not kept: %s: %s", place, error)


def _recall(place: Path, state: str) -> Sources | None:
    """None for a memo of other files, a damaged one and none."""
    try:
        with open(place, "rb") as file:  # noqa: PTH123  as above
            content = file.read()
    except OSError:
        return None
    body = content[len(MEMO) + 32 :]
    if content[: len(MEMO) + 32] != MEMO + hashlib.sha256(body).digest():
        log.info("memo of the sources ignored: %s is damaged", place)
        return None
    facts: dict[str, Any] = json.loads(body)
    return facts["sources"] if facts["state"] == state else None


@functools.cache
def source_stamp(*modules: str) -> bytes:
    """SHA-256 over the sources that can reach a kernel of `modules`: what they import of this package, and so on.

    Imports are found by their text, wherever they stand in a file, so the stamp needs none of them to be imported.
    """
    sources = _sources()
    seen: set[str] = set()
    todo = [module.removeprefix("jittok").lstrip(".") for module in modules]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += sources[name][1]
    return hashlib.sha256("".join(f"{name}\0{sources[name][0]}\n" for name in sorted(seen)).encode()).digest()


@functools.cache
def numba_version() -> str:
    """Numba's version, without importing it."""
    found = importlib.util.find_spec("numba")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("no module named 'numba'")
    file = Path(found.origin).with_name("_version.py")
    return hashlib.sha256(file.read_bytes()).hexdigest()


def stamp(module: str, mode: str, host: str) -> bytes:
    """What the machine code of a kernel of `module` depends on, as 32 bytes."""
    settings = [f"{name}={os.environ.get(f'NUMBA_{name}', '')}" for name in _SETTINGS]
    facts = [mode, host, numba_version(), sys.version, sys.platform, *settings]
    return hashlib.sha256(source_stamp(module) + "\0".join(facts).encode()).digest()

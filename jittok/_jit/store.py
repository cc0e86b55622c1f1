"""Machine code on disk: one file a kernel, under a stamp of everything that decides what it is.

The stamp covers every source file that the kernel's module imports, directly or not, the processor, the versions of
Numba and Python, and the settings that change code. A file that is damaged or of another stamp is a miss and is
written anew; a folder that cannot be written costs time, never a failure.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import logging
import os
import re
import sys
from pathlib import Path

log = logging.getLogger("jittok")

MAGIC = b"jittok machine code 1\n"
DIGEST = 32
_SETTINGS = ("CPU_NAME", "CPU_FEATURES", "OPT", "ENABLE_AVX", "SLP_VECTORIZE", "LOOP_VECTORIZE", "DEBUGINFO", "DEBUG")
"""Settings of Numba (NUMBA_...) that change machine code."""
_ROOT = Path(__file__).parent.parent
# two patterns that begin with plain text: one that begins with a line's start or a choice takes ten times as long
_FROM = re.compile(rb"from jittok([\w.]*) import (\([^)]*\)|[^\n]*)")
_IMPORT = re.compile(rb"import jittok([\w.]*)")
_WORD = re.compile(rb"\w+")


@functools.cache
def cache_dir() -> Path | None:
    """Where machine code and compiled vocabularies are kept: $JITTOK_CACHE_DIR, $NUMBA_CACHE_DIR/jittok or the user's
    cache.

    None if it can neither be made nor read. Never a shared temporary folder: what lies there is run.
    """
    try:
        folder = _chosen_folder()
        folder.mkdir(parents=True, exist_ok=True)
        return folder if os.access(folder, os.R_OK | os.X_OK) else None
    except (OSError, RuntimeError) as error:  # RuntimeError: no home directory
        log.warning("nothing is kept for the next process: no cache folder (%s)", error)
        return None


def _chosen_folder() -> Path:
    if chosen := os.environ.get("JITTOK_CACHE_DIR"):
        return Path(chosen)
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(chosen, "jittok")
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local", "jittok", "Cache")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "jittok"
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(chosen) if Path(chosen).is_absolute() else Path.home() / ".cache") / "jittok"


@functools.cache
def _sources() -> dict[str, str]:
    """The files of this package's modules, named from its root, "" being the root itself."""
    found = {}
    for folder, _, files in os.walk(_ROOT):
        above = os.path.relpath(folder, _ROOT).replace(os.sep, ".") + "."
        for file in files:
            name, ending = os.path.splitext(file)  # noqa: PTH122  this runs at each start: Path takes ten times as long
            if ending == ".py":
                found[(above + name).lstrip(".").removesuffix("__init__").rstrip(".")] = f"{folder}/{file}"
    return found


@functools.cache
def _read_source(module: str) -> tuple[bytes, tuple[str, ...]]:
    """The SHA-256 of a module's source and the modules of this package that it imports."""
    with open(_sources()[module], "rb") as file:  # noqa: PTH123
        text = file.read()
    names = set(_IMPORT.findall(text))
    for base, listed in _FROM.findall(text):
        names |= {base, *(base + b"." + word for word in _WORD.findall(listed))}
    found = {name.decode().lstrip(".") for name in names}
    return hashlib.sha256(text).digest(), tuple(found & _sources().keys())


@functools.cache
def source_stamp(*modules: str) -> bytes:
    """SHA-256 over the sources that can reach a kernel of `modules`: what they import of this package, and so on.

    Imports are found by their text, wherever they stand in a file, so the stamp needs none of them to be imported.
    """
    seen: dict[str, bytes] = {}
    todo = [module.removeprefix("jittok").lstrip(".") for module in modules]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen[name], names = _read_source(name)
            todo += names
    digest = hashlib.sha256()
    for name in sorted(seen):
        digest.update(name.encode() + b"\0" + seen[name])
    return digest.digest()


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


def place(module: str, name: str, mode: str) -> Path | None:
    """The file of a kernel's machine code; None without a cache."""
    folder = cache_dir()
    if folder is None:
        return None
    return folder / "kernels" / f"{module}.{name}-{mode}-py{sys.version_info[0]}{sys.version_info[1]}.o"


def read(place: Path, stamp: bytes) -> bytes | None:
    """The machine code of a file if it has this stamp and is whole."""
    try:
        content = place.read_bytes()
    except OSError:
        return None
    head, code = content[: len(MAGIC) + 2 * DIGEST], content[len(MAGIC) + 2 * DIGEST :]
    if head == MAGIC + stamp + hashlib.sha256(code).digest():
        return code
    if head[: len(MAGIC) + DIGEST] == MAGIC + stamp:
        log.warning("cached kernel ignored: %s is damaged", place)
    return None


def write(place: Path, stamp: bytes, code: bytes) -> None:
    """Keep machine code; a failure is logged."""
    try:
        write_whole(place, MAGIC, stamp, hashlib.sha256(code).digest(), code)
    except OSError as error:
        log.warning("kernel not cached: %s: %s", place, error)


def write_whole(place: Path, *parts: bytes | memoryview) -> None:
    """A file that others see whole or not at all: written beside its place, then renamed. OSError."""
    import tempfile  # most processes write nothing

    place.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".new-", dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
        Path(name).chmod(0o644)
        Path(name).replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise

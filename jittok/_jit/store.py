"""Machine code on disk: one file a kernel, under a stamp of everything that decides what it is.

The stamp (`stamps`) covers every source file that the kernel's module imports, directly or not, the processor, the
versions of Numba and Python, and the settings that change code. A file that is damaged or of another stamp is a miss
and is written anew; a folder that cannot be written costs time, never a failure.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import sys
from pathlib import Path

log = logging.getLogger("jittok")

MAGIC = b"jittok machine code 1\n"
DIGEST = 32


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

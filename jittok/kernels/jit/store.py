"""Machine code on disk: one file a kernel, under a stamp of everything that decides what it is.

The stamp (`stamps`) covers every source file that the kernel's module imports, directly or not, the processor, the
versions of Numba and Python, and the settings that change code. It is part of the file's name. So two versions, two
Pythons and two kinds of processor that share a home keep one file each. What no one has used for long is deleted. A
file that is damaged or of another stamp is a miss and is written again. A folder that cannot be written costs time,
never a failure.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import sys
import time

from jittok.common.digest import blake2b
from jittok.errors import see
from jittok.kernels.jit import trust
from jittok.kernels.jit.trust import log

__all__ = ["cache_dir", "log", "not_kept", "place", "read", "read_kept", "sweep", "write"]
MAGIC = b"jittok machine code 2\n"
DIGEST = 32
ENDING = ".o"
DAY = 86400.0
UNUSED_DAYS = 90
"""Machine code that no one has loaded for so long is deleted,"""
MOST_BYTES = 256 << 20
"""and what was loaded the longest ago, while there is more than this."""


@functools.cache
def cache_dir() -> str | None:
    """Where machine code and compiled vocabularies are kept: $JITTOK_CACHE_DIR, $NUMBA_CACHE_DIR/jittok or the user's
    cache.

    None if it can neither be made nor read, or if another user could write to it: what lies there is run.
    """
    try:
        folder = os.path.abspath(_chosen_folder())  # a process may go to another folder; no link is one
        trust.make_folder(folder)
        reason = _why_not(folder)
        if reason is not None:
            log.warning("nothing is kept for the next process: %s %s%s", folder, reason, see("cache"))
            return None
        return folder
    except (OSError, RuntimeError) as error:  # RuntimeError: no home directory
        log.warning("nothing is kept for the next process: no cache folder (%s)%s", error, see("cache"))
        return None


def _why_not(folder: str) -> str | None:
    """Why nothing is kept in a folder, and what would help; None if something is."""
    found, another = os.stat(folder), "JITTOK_CACHE_DIR names another folder"
    if not stat.S_ISDIR(found.st_mode):
        return f"is no folder; {another}"
    reason = trust.doubt(found)
    if reason is not None:
        return f"{reason}; " + ("chmod go-w makes it safe" if "others" in reason else another)
    reason = trust.doubt_of_way(folder)
    if reason is not None:
        return f"{reason}; {another}"
    return None if os.access(folder, os.R_OK | os.X_OK) else f"cannot be read; {another}"


def _chosen_folder() -> str:
    if chosen := os.environ.get("JITTOK_CACHE_DIR"):
        return chosen
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return os.path.join(chosen, "jittok")
    if sys.platform == "win32":
        return os.path.join(os.environ.get("LOCALAPPDATA") or _at_home("AppData", "Local"), "jittok", "Cache")
    if sys.platform == "darwin":
        return _at_home("Library", "Caches", "jittok")
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(chosen if os.path.isabs(chosen) else _at_home(".cache"), "jittok")


def _at_home(*names: str) -> str:
    home = os.path.expanduser("~")
    if home == "~" or os.environ.get("HOME") == "":  # an empty one would be the root of the system
        raise RuntimeError("no home directory")
    return os.path.join(home, *names)


def place(module: str, name: str, mode: str, stamp: bytes) -> str | None:
    """The file of a kernel's machine code; None without a cache."""
    folder = cache_dir()
    if folder is None:
        return None
    python = f"py{sys.version_info[0]}{sys.version_info[1]}"
    return os.path.join(folder, "kernels", f"{module}.{name}-{mode}-{python}-{stamp.hex()[:16]}{ENDING}")


def read_kept(path: str) -> bytes | None:
    """The content of a file of the cache; None if there is none, or if another user could have written it."""
    try:
        return trust.read_file(path)
    except trust.Distrusted as error:
        trust.tell_once(_root_of(path), "what is kept is not used: %s", error)
    except OSError:
        pass
    return None


def _root_of(path: str) -> str:
    return os.path.dirname(os.path.dirname(path))


def read(path: str, stamp: bytes) -> bytes | None:
    """The machine code of a file if it has this stamp and is whole."""
    content = read_kept(path)
    if content is None:
        return None
    head, code = content[: len(MAGIC) + 2 * DIGEST], content[len(MAGIC) + 2 * DIGEST :]
    if head == MAGIC + stamp + blake2b(code, digest_size=DIGEST).digest():
        _mark_used(path)
        return code
    if head[: len(MAGIC) + DIGEST] == MAGIC + stamp:
        log.warning("cached kernel ignored: %s is damaged", path)
    return None


def write(path: str, stamp: bytes, code: bytes) -> None:
    """Keep machine code; a failure is logged. Once a process, what is too much is deleted."""
    try:
        trust.write_file(path, MAGIC, stamp, blake2b(code, digest_size=DIGEST).digest(), code)
    except OSError as error:
        not_kept(path, error)
        return
    _sweep_once(os.path.dirname(path))


def _mark_used(path: str) -> None:
    """Once a day the file's time is that of its use."""
    with contextlib.suppress(OSError):
        if time.time() - os.lstat(path).st_mtime > DAY:
            os.utime(path)


@functools.cache
def _sweep_once(folder: str) -> None:
    sweep(folder)


def sweep(folder: str) -> list[str]:
    """Delete machine code that no one has used for long, or that is too much; the names. What another process has
    loaded stays in its memory."""
    gone, size, now = [], 0, time.time()
    with contextlib.suppress(OSError):
        found = [(facts, name) for name, facts in trust.names_in(folder)]
        for facts, name in sorted(found, key=lambda each: -each[0].st_mtime):  # the youngest first
            kept = name.endswith(ENDING)
            size += facts.st_size if kept else 0
            old = now - facts.st_mtime > (UNUSED_DAYS if kept else 1) * DAY
            left = name.startswith(".new-") or name.endswith(".lock")  # by a process that was killed
            if (old and (kept or left)) or (kept and size > MOST_BYTES):
                trust.remove(os.path.join(folder, name))
                gone.append(name)
    return gone


def not_kept(path: str, error: OSError) -> None:
    """Log that nothing is kept in a cache, once a process: a process keeps dozens of files."""
    root = _root_of(path)
    trust.tell_once(root, "nothing is kept for the next process, which compiles again: not kept in %s: %s", root, error)

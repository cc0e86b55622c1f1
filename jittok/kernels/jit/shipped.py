"""Kernels from the shared libraries that lie in a wheel: one library a processor level, and a manifest.

Standard library alone: neither Numba nor llvmlite is imported for them. A kernel is taken only if its sources are those
that the library was made of (`stamps.source_stamp`), so an edited file compiles what it can reach and nothing else. The
Python, the Numba and the host's name do not matter: finished code asks for none of them.

Libraries are read from this package's own folder, by absolute path, and no setting names another folder. They are
installed files like the .py files beside them: a user who can replace one can replace the other, so neither owner nor
mode is checked. Digests find damage, as half-written images have it.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import platform
import sys
from typing import Any

from jittok.kernels.jit.frame import PROTOTYPE
from jittok.kernels.jit.stamps import changed_settings, source_stamp
from jittok.kernels.jit.trust import log

FOLDER = os.path.join(os.path.dirname(__file__), "libs")
"""In a checkout there is none, unless `make ship` made it."""
MANIFEST = "manifest.json"
LAYOUT = 1
"""The layout of frames and of the manifest that this package knows."""
SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}
MACHINES = {"x86_64": "x86_64", "AMD64": "x86_64", "aarch64": "aarch64", "arm64": "arm64"}


def symbol(module: str, name: str) -> str:
    """What a kernel is called in a library."""
    return f"{module}.{name}".replace(".", "__")


@functools.cache
def manifest() -> dict[str, Any]:
    """`kernels`: symbol -> module, name, stamp; `libraries`: level -> file, sha256, bytes. Both empty without any."""
    nothing: dict[str, Any] = {"kernels": {}, "libraries": {}}
    try:
        with open(os.path.join(FOLDER, MANIFEST), "rb") as file:
            facts = json.load(file)
        return facts if facts["layout"] == LAYOUT and facts["kernels"] and facts["libraries"] else nothing
    except FileNotFoundError:
        return nothing
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("shipped machine code ignored: %s is damaged (%s)", os.path.join(FOLDER, MANIFEST), error)
        return nothing


@functools.cache
def left_out() -> str:
    """Why shipped code is not asked for, "" if it is."""
    if os.environ.get("JITTOK_SHIPPED", "") == "0":
        return "JITTOK_SHIPPED=0 leaves it out"
    changed = changed_settings()
    if changed:
        return f"NUMBA_{changed[0]} asks for other code"
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return "this Python is no 64-bit one"
    return ""


def _opened(name: str) -> ctypes.CDLL | None:
    """A library of the manifest, whole; None for one that is not there, damaged or cannot be loaded."""
    facts = manifest()["libraries"].get(name)
    if facts is None:
        return None
    import hashlib

    path = os.path.join(FOLDER, os.path.basename(facts["file"]))
    try:
        with open(path, "rb") as file:
            content = file.read()
        if hashlib.sha256(content).hexdigest() == facts["sha256"]:
            return ctypes.CDLL(path)
        log.warning("shipped machine code ignored: %s is damaged", path)
    except OSError as error:
        log.warning("shipped machine code ignored: %s: %s", path, error)
    return None


@functools.cache
def system() -> str:
    """What the names of libraries for this process begin with: "linux-x86_64"."""
    # the process decides, not the machine: an x86-64 Python under Rosetta is x86-64
    return f"{SYSTEMS.get(sys.platform, sys.platform)}-{MACHINES.get(platform.machine(), platform.machine())}"


@functools.cache
def levels() -> list[str]:
    """The libraries that this processor runs, the best first."""
    if not system().endswith("x86_64"):
        return [system()] if system() in manifest()["libraries"] else []
    asked = _opened(f"{system()}-cpu")
    highest = asked.jittok_cpu_level() if asked else 1
    if os.environ.get("JITTOK_PLAIN", "0") not in ("", "0"):
        highest = min(highest, 3)  # level 4 has what only some processors have
    names = (f"{system()}-v{level}" for level in range(highest, 1, -1))
    return [name for name in names if name in manifest()["libraries"]]


@functools.cache
def library() -> tuple[str, ctypes.CDLL] | None:
    """(level, library): the best that is whole; None without."""
    for name in levels():
        found = _opened(name)
        if found is not None:
            return name, found
    return None


def find(module: str, name: str) -> tuple[Any, Any] | None:
    """(function of a frame's address, what keeps it alive) of a kernel; None where `why_not` says why."""
    if why_not(module, name):
        return None
    found = library()
    assert found is not None
    try:
        return PROTOTYPE((symbol(module, name), found[1])), found[1]
    except AttributeError:
        log.warning("shipped machine code ignored: library %s has no %s", found[0], symbol(module, name))
        return None


def function(name: str, text: str) -> tuple[int, Any]:
    """(address, what keeps it alive) of a function that was made of this text of LLVM's language; 0 without."""
    if left_out() or not manifest().get("functions") or library() is None:
        return 0, None
    import hashlib

    if manifest()["functions"].get(name) != hashlib.sha256(text.encode()).hexdigest():
        return 0, None
    opened = library()
    assert opened is not None
    try:
        return ctypes.cast(getattr(opened[1], name), ctypes.c_void_p).value or 0, opened[1]
    except AttributeError:
        return 0, None


def why_not(module: str, name: str) -> str:
    """Why there is no shipped code for a kernel, "" if there is."""
    kernel = manifest()["kernels"].get(symbol(module, name))
    if kernel is None:
        return "none is shipped for it" if manifest()["kernels"] else "this installation ships none"
    if left_out():
        return left_out()
    if kernel["stamp"] != source_stamp(module).hex():
        return "its sources are not those of the shipped code"
    if library() is None:
        shipped = ", ".join(sorted(each for each in manifest()["libraries"] if not each.endswith("-cpu")))
        return f"none that is shipped runs on this {system()} (shipped: {shipped})"
    return ""


def status() -> str:
    """Which library is used and for how many kernels, or why none is: for one who builds an image."""
    kernels = manifest()["kernels"].values()
    reasons = [why_not(each["module"], each["name"]) for each in kernels] or [why_not("jittok", "any kernel")]
    others = "; ".join(sorted({*reasons} - {""}))
    if "" not in reasons:
        return f"shipped code is not used: {others}"
    opened = library()
    assert opened is not None
    used = f"shipped code is in use: {reasons.count('')} of {len(reasons)} kernels, {opened[0]}"
    return f"{used}; for the others: {others}" if others else used

"""What machine code and compiled vocabularies depend on, as digests: this package's sources, the processor, versions.

Sources are read and hashed once, and a memo of them is kept in the cache. A source whose size, times and inode are
those of the memo is not read again. So a start reads one file, a memo, and looks at the times of the sources that are
asked for and of their folders. The memo is written only when no source is so young that a further change might leave
its times as they are.

Levels of processors. Code that is compiled for a level runs on every machine of this level.

Usually machine code is kept for the processor that it was made on. Code for an image is compiled for a level instead:
`jittok cache warm --level v3` starts a process with `settings`. A process first searches for code for its own
processor. If there is none, it searches for code for the levels that it can run, the best first.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from jittok.common.digest import blake2b
from jittok.common.record import Record
from jittok.kernels.jit import trust
from jittok.kernels.jit.store import cache_dir, log, not_kept, read_kept

ASKED = os.environ.get("JITTOK_LEVEL", "")
"""The level that this process compiles for; the settings of Numba that belong to it are set beside it."""
CPU_SETTINGS = ("CPU_NAME", "CPU_FEATURES")


class Level(Record):
    """A level, as LLVM names processors and what they have."""

    cpu: str
    more: str  # what the level has beside the processor of that name
    plain: bool  # without the operations that only the highest level has
    needs: str  # LLVM's names of what a machine of the level has


_V2 = "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3"
_V3 = f"{_V2} avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
_V4 = f"{_V3} avx512bitalg avx512bw avx512cd avx512dq avx512f avx512vbmi avx512vbmi2 avx512vl avx512vpopcntdq gfni"
_X86 = {  # from the best
    "v4": Level("x86-64-v4", "+avx512vbmi,+avx512vbmi2,+avx512bitalg,+avx512vpopcntdq,+gfni", False, _V4),
    "v3": Level("x86-64-v3", "", True, _V3),
    "v2": Level("x86-64-v2", "", True, _V2),
}
_ARM = {"v8": Level("generic", "", True, "neon")}
LEVELS = {"x86_64": _X86, "AMD64": _X86, "aarch64": _ARM, "arm64": _ARM}.get(platform.machine(), {})
"""The levels of this machine's architecture."""


def chosen(features: dict[str, bool]) -> list[str]:
    """The levels that a processor with these features runs, the best first."""
    return [name for name, level in LEVELS.items() if all(features.get(need) for need in level.needs.split())]


@functools.cache
def runs() -> list[str]:
    """The levels that this processor runs, the best first."""
    import llvmlite.binding as llvm

    try:
        return chosen(dict(llvm.get_host_cpu_features()))
    except RuntimeError:
        return []


def settings(name: str) -> dict[str, str]:
    """The variables of a process that compiles for a level. ValueError for one that this processor does not run:
    what is needed is found out by running it."""
    if name not in runs():
        raise ValueError(f"level: found {name!r}, expected one that this processor runs: {', '.join(runs()) or 'none'}")
    level = LEVELS[name]
    made = {"JITTOK_LEVEL": name, "NUMBA_CPU_NAME": level.cpu, "NUMBA_CPU_FEATURES": level.more}
    return made | {"JITTOK_PLAIN": "1" if level.plain else "0"}


def modes() -> list[tuple[str, str]]:
    """(mode, level) of code that this process can take beside its own processor's."""
    if ASKED or any(os.environ.get(f"NUMBA_{name}") for name in CPU_SETTINGS):
        return []
    plain_only = os.environ.get("JITTOK_PLAIN", "0") not in ("", "0")
    return [("plain" if LEVELS[n].plain else "fast", n) for n in runs() if LEVELS[n].plain or not plain_only]


MEMO = b"jittok sources 6\n"
"""Begins a memo; another number when what follows changes."""
DIGEST = 64
MEMO_ENDING = ".sources"
SETTLED = 2.0
"""Seconds after which the times of a file distinguish a later change from this one."""
_SETTINGS = ("CPU_NAME", "CPU_FEATURES", "OPT", "ENABLE_AVX", "SLP_VECTORIZE", "LOOP_VECTORIZE", "DEBUGINFO", "DEBUG")
"""Settings of Numba (NUMBA_...) that change machine code."""
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
# two patterns that begin with plain text: one that begins with a line's start or a choice takes ten times as long
_FROM = rb"from jittok([\w.]*) import (\([^)]*\)|[^\n]*)"
_IMPORT = rb"import jittok([\w.]*)"
_WORD = rb"\w+"


class SourceFacts(NamedTuple):
    """A module's file, or a folder: what it holds."""

    path: str  # from the package's root
    facts: str  # what changes with it: see `_facts`
    digest: str  # BLAKE2b of a file; "" of a folder
    reaches: str  # its folder and the modules of this package that it imports, with spaces between


Sources = dict[str, SourceFacts]
"""By module, named from the package's root, which is "", and by folder, whose names end in a slash."""


def _facts(found: os.stat_result) -> str:
    return f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


def _walk() -> tuple[Sources, set[str]]:
    """All files and folders with their facts, not yet read; the names of the files."""
    found: Sources = {}
    modules, todo = set(), ["/"]
    while todo:
        folder = todo.pop()
        found[folder] = SourceFacts(folder, _facts(os.stat(_ROOT + folder)), "", "")
        with os.scandir(_ROOT + folder) as entries:
            for entry in entries:
                name, dot, ending = entry.name.partition(".")
                if not name.isidentifier():  # no module, and the memo is lines of columns
                    continue
                if ending == "py":
                    module = (folder[1:].replace("/", ".") + name).removesuffix("__init__").rstrip(".")
                    facts = os.stat(entry.path) if os.name == "nt" else entry.stat()  # no inode there
                    found[module] = SourceFacts(folder + entry.name, _facts(facts), "", folder)
                    modules.add(module)
                elif not dot and name != "__pycache__" and entry.is_dir():
                    todo.append(f"{folder}{name}/")
    return found, modules


def _imports(text: bytes, modules: set[str]) -> set[str]:
    """The modules of this package that a source imports. `from jittok import special` says nothing of the root."""
    found = {name.decode().lstrip(".") for name in re.findall(_IMPORT, text)}
    for base, listed in re.findall(_FROM, text):
        inner = {f"{base.decode()}.{word.decode()}".lstrip(".") for word in re.findall(_WORD, listed)}
        found |= inner if not base and inner <= modules else {base.decode().lstrip("."), *inner}
    return found & modules


@functools.cache
def _read() -> Sources:
    """Everything as it is now; it is kept for the next process."""
    sources, modules = _walk()
    for module in modules:
        with open(_ROOT + sources[module].path, "rb") as file:
            text = file.read()
        reaches = " ".join([sources[module].reaches, *sorted(_imports(text, modules))])
        sources[module] = sources[module]._replace(digest=blake2b(text, digest_size=32).hexdigest(), reaches=reaches)
    youngest = max(int(time) for source in sources.values() for time in source.facts.split()[-2:])
    if time.time() - youngest / 1e9 > SETTLED:
        _keep([(name, *source) for name, source in sources.items()])
    return sources


def _memo(asked: tuple[str, ...]) -> str | None:
    """The file of the memo of all sources, or of the stamp of some modules."""
    folder = cache_dir()
    name = blake2b("\0".join([_ROOT, *asked]).encode("utf-8", "surrogateescape"), digest_size=20).hexdigest()
    return folder and os.path.join(folder, "kernels", name + MEMO_ENDING)


def _keep(rows: Iterable[tuple[str, ...]], *asked: str) -> None:
    path = _memo(asked)
    if path is None:
        return
    body = "\n".join(map("\t".join, rows)).encode()
    try:
        trust.write_file(path, MEMO, blake2b(body).digest(), body)
    except OSError as error:
        not_kept(path, error)


def _rows(*asked: str) -> list[list[str]]:
    """The rows of a memo; none if it is missing or damaged."""
    path = _memo(asked)
    content = (read_kept(path) if path else None) or b""
    body = content[len(MEMO) + DIGEST :]
    if content[: len(MEMO) + DIGEST] != MEMO + blake2b(body).digest():
        if content[: len(MEMO)] == MEMO:
            log.info("memo of the sources ignored: %s is damaged", path)
        return []
    return [row.split("\t") for row in body.decode().split("\n")]


@functools.cache
def _kept() -> Sources:
    return {name: SourceFacts(*source) for name, *source in _rows()}


@functools.cache
def _unchanged(name: str) -> bool:
    """Whether a file or folder is the one that the memo speaks of."""
    return name in _kept() and _is(_kept()[name].path, _kept()[name].facts)


def _is(path: str, facts: str) -> bool:
    try:
        return _facts(os.stat(_ROOT + path)) == facts
    except OSError:
        return False


def _reached(sources: Sources, names: list[str], valid: Callable[[str], bool] | None = None) -> Sources:
    """What decides what `names` are: they and all they reach. Nothing if one of these is not `valid`."""
    found: set[str] = set()
    todo = {*names}
    while todo:
        if valid is not None and not all(map(valid, todo)):
            return {}
        found |= todo
        todo = {other for name in todo for other in sources[name].reaches.split()} - found
    return {name: sources[name] for name in found}


@functools.cache
def source_stamp(*modules: str) -> bytes:
    """BLAKE2b over the sources that can reach a kernel of `modules`: what they import of this package, and so on.

    Imports are found by their text, wherever they are in a file, so the stamp needs none of them to be imported.
    """
    return _stamp_of(_reached(_kept(), _names(modules), _unchanged) or _reached(_read(), _names(modules)))


@functools.cache
def kept_stamp(*modules: str) -> bytes:
    """The same for what every start asks for: it has a memo of its own, a sixth of that of all sources."""
    rows = _rows(*modules)
    if rows and all(_is(path, facts) for path, facts in rows[1:]):
        return bytes.fromhex(rows[0][0])
    found = _reached(_kept(), _names(modules), _unchanged)
    if found:  # else sources may be so young that their times tell nothing
        _keep([(_stamp_of(found).hex(),), *((source.path, source.facts) for source in found.values())], *modules)
    return source_stamp(*modules)


def _names(modules: tuple[str, ...]) -> list[str]:
    return [module.removeprefix("jittok").lstrip(".") for module in modules]


def _stamp_of(found: Sources) -> bytes:
    digest = blake2b(digest_size=32)
    for name in sorted(found):
        digest.update(f"{name}\0{found[name].digest}\n".encode())
    return digest.digest()


@functools.cache
def numba_version() -> str:
    """Numba's version, without importing it."""
    found = importlib.util.find_spec("numba")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("no module named 'numba'")
    with open(os.path.join(os.path.dirname(found.origin), "_version.py"), "rb") as file:
        return blake2b(file.read(), digest_size=32).hexdigest()


def changed_settings() -> list[str]:
    """Which settings of Numba that change machine code are set."""
    return [name for name in _settings(ASKED) if os.environ.get(f"NUMBA_{name}")]


def _settings(level: str) -> list[str]:
    """Those that count: a level says itself which processor it is."""
    return [name for name in _SETTINGS if not level or name not in CPU_SETTINGS]


def stamp(module: str, mode: str, host: str, level: str = "") -> bytes:
    """What the machine code of a kernel of `module` depends on, as 32 bytes. The system is part of `host`; of Python
    only the minor version matters, for its bytecode is what Numba compiles."""
    settings = [f"{name}={os.environ.get(f'NUMBA_{name}', '')}" for name in _settings(level)]
    facts = [mode, host, numba_version(), "{}.{}".format(*sys.version_info), *settings]
    return blake2b(source_stamp(module) + "\0".join(facts).encode(), digest_size=32).digest()

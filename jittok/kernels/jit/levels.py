"""Levels of processors. Code that is compiled for a level runs on every machine of this level.

Usually machine code is kept for the processor that it was made on. Code for an image is compiled for a level instead:
`jittok cache warm --level v3` starts a process with `settings`. A process first searches for code for its own
processor. If there is none, it searches for code for the levels that it can run, the best first.
"""

from __future__ import annotations

import functools
import os
import platform

from jittok.common.record import Record

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

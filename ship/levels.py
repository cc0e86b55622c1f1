"""The processor levels that libraries are made for, and what a wheel of each system holds."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from typing import NamedTuple


class Level(NamedTuple):
    """A processor level of one system."""

    flavour: str  # of `emit`
    triple: str
    cpu: str
    features: str = ""


# x86-64-v4 alone keeps to vectors of 256 bits
WIDE = "+avx512vbmi,+avx512vbmi2,+avx512bitalg,+avx512vpopcntdq,+gfni,-prefer-256-bit"
_X86 = {"v2": ("plain", "x86-64-v2", ""), "v3": ("plain", "x86-64-v3", ""), "v4": ("wide", "x86-64-v4", WIDE)}
_TRIPLES = {"linux": "x86_64-unknown-linux-gnu", "windows": "x86_64-pc-windows-msvc"}
LEVELS = {
    f"{system}-x86_64-{name}": Level(flavour, triple, cpu, features)
    for system, triple in _TRIPLES.items()
    for name, (flavour, cpu, features) in _X86.items()
} | {
    "linux-aarch64": Level("plain", "aarch64-unknown-linux-gnu", "generic"),
    "macos-arm64": Level("plain", "arm64-apple-macosx11.0.0", "apple-m1"),
    # no v4: macOS keeps the registers of AVX-512 only for threads that have used them, so asking says no
    "macos-x86_64-v2": Level("plain", "x86_64-apple-macosx11.0.0", "x86-64-v2"),
    "macos-x86_64-v3": Level("plain", "x86_64-apple-macosx11.0.0", "x86-64-v3"),
}
TAGS = {
    "linux-x86_64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux-aarch64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "macos-arm64": "macosx_11_0_arm64",
    "macos-x86_64": "macosx_11_0_x86_64",
    "windows-x86_64": "win_amd64",
}
"""What pip calls the systems. The libraries ask for exp, log and memset alone, so any C library will do."""
ENDINGS = {"linux": ".so", "macos": ".dylib", "windows": ".dll"}


def levels_of(target: str) -> list[str]:
    """The levels of a wheel for "linux-x86_64"."""
    return [name for name in LEVELS if name == target or name.startswith(f"{target}-v")]


def this_system() -> str:
    """What TAGS calls the system that this process runs on; "" for one that nothing is made for."""
    system = {"linux": "linux", "darwin": "macos", "win32": "windows"}.get(sys.platform, sys.platform)
    machine = {"AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    return name if (name := f"{system}-{machine}") in TAGS else ""


def target(settings: Mapping[str, str], folder: str) -> str:
    """The system whose machine code a wheel gets that is put into this folder; "" for none.

    Installers make a wheel in a folder of their own and want it soon; PIP_BUILD_TRACKER says that pip is at work. It is
    not known yet where a wheel goes when tools are fetched.
    """
    asked = settings.get("JITTOK_SHIP_FOR", "")
    if asked in TAGS or asked == "none":
        return asked.removesuffix("none")
    if asked:
        raise ValueError(f"JITTOK_SHIP_FOR: found {asked!r}, expected none or one of {', '.join(TAGS)}")
    return this_system() if folder == "dist" and "PIP_BUILD_TRACKER" not in settings else ""


if __name__ == "__main__":  # which wheel is this machine's
    print(f"py3-none-{TAGS[this_system()]}")

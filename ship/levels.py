"""The processor levels that libraries are made for, and what a wheel of each system holds."""

from __future__ import annotations

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
}
TAGS = {
    "linux-x86_64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux-aarch64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "macos-arm64": "macosx_11_0_arm64",
    "windows-x86_64": "win_amd64",
}
"""What pip calls the systems. The libraries need no other one, so any C library will do."""
ENDINGS = {"linux": ".so", "macos": ".dylib", "windows": ".dll"}


def levels_of(target: str) -> list[str]:
    """The levels of a wheel for "linux-x86_64"."""
    return [name for name in LEVELS if name == target or name.startswith(f"{target}-v")]

"""What can be known of libraries without the machines they are for: python ship/check.py WHEEL|FOLDER ...

Each library that a manifest names is checked: its digest; the format and processor of its system; that every kernel is
there under its name, and nothing else; what it asks the system for; that a Mach-O one is signed. `lief` reads all
formats.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import lief

FORMATS = {"linux": "ELF", "macos": "MACHO", "windows": "PE"}
MACHINES = {
    ("linux", "x86_64"): "X86_64",
    ("linux", "aarch64"): "AARCH64",
    ("macos", "x86_64"): "X86_64",
    ("macos", "arm64"): "ARM64",
    ("windows", "x86_64"): "AMD64",
}
LIBRARIES = {
    "linux": {"libm.so.6"},
    "macos": {"/usr/lib/libSystem.B.dylib"},
    "windows": {"api-ms-win-crt-math-l1-1-0.dll"},
}
ASKED = {"exp", "log", "memset", "dyld_stub_binder", "bzero", "__bzero"}
"""What libraries may ask for; macOS has the last three,"""
GIVEN = {"macos": {"__dso_handle", "_mh_dylib_header"}}
"""and gives these names to places of its own."""


def facts_of(place: Path) -> tuple[str, str, set[str], set[str], set[str], bool]:
    """(format, processor, names it gives, names it asks for, libraries it asks, whether it is signed)."""
    found: Any = lief.parse(str(place))
    kind = found.format.__name__
    if kind == "PE":
        given = {each.name for each in found.exported_functions}
        asked = {entry.name for each in found.imports for entry in each.entries}
        return kind, found.header.machine.__name__, given, asked, {each.name for each in found.imports}, False
    if kind == "ELF":
        given = {each.name for each in found.exported_symbols}
        asked = {each.name for each in found.dynamic_symbols if each.shndx == 0 and each.name}
        return kind, found.header.machine_type.__name__, given, asked, set(found.libraries), False
    given = {each.name.removeprefix("_") for each in found.exported_symbols}
    asked = {each.name.removeprefix("_") for each in found.imported_symbols}
    libraries = {each.name for each in found.libraries} - {found[lief.MachO.LoadCommand.TYPE.ID_DYLIB].name}
    return kind, found.header.cpu_type.__name__, given, asked, libraries, found.has_code_signature


def complaints(folder: Path) -> list[str]:
    """What is wrong with the libraries of a folder with a manifest."""
    manifest = json.loads((folder / "manifest.json").read_text())
    wrong = []
    for level, facts in manifest["libraries"].items():
        system, machine = level.split("-")[:2]
        place = folder / facts["file"]
        kind, processor, given, asked, libraries, signed = facts_of(place)
        given -= GIVEN.get(system, set())
        expected = {"jittok_cpu_level"} if level.endswith("-cpu") else {*manifest["kernels"], *manifest["functions"]}
        tests = {
            "its digest is another": hashlib.sha256(place.read_bytes()).hexdigest() == facts["sha256"],
            f"format {kind}, expected {FORMATS[system]}": kind == FORMATS[system],
            f"processor {processor}, expected {MACHINES[system, machine]}": processor == MACHINES[system, machine],
            f"lacks {sorted(expected - given)}": expected <= given,
            f"gives {sorted(given - expected)} too": given <= expected,
            f"asks for {sorted(asked - ASKED)}": asked <= ASKED,
            f"asks {sorted(libraries - LIBRARIES[system])}": libraries <= LIBRARIES[system],
            "is not signed, which macOS asks for": signed or system != "macos" or machine != "arm64",
        }
        wrong += [f"{facts['file']}: {said}" for said, right in tests.items() if not right]
        print(f"{facts['file']:36} {kind:6} {processor:8} {len(given):3} names, asks for {sorted(asked)}")
    return wrong


def main(places: list[str]) -> int:
    """1 if anything is wrong."""
    lief.logging.disable()
    wrong = []
    for name in places:
        if not zipfile.is_zipfile(name):
            wrong += complaints(Path(name))
            continue
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(name) as wheel:
            inner = [each for each in wheel.namelist() if each.startswith("jittok/kernels/jit/libs/")]
            if not inner:
                print(f"{Path(name).name}: no machine code")
                continue
            wheel.extractall(folder, inner)
            wrong += complaints(Path(folder, "jittok/kernels/jit/libs"))
    print("\n".join(wrong) or "as they should be")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

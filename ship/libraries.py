"""One shared library a processor level, and the manifest: python ship/libraries.py BITCODE OUT [LEVEL ...]

BITCODE is what `emit` wrote. llvmlite carries LLVM's back ends for every level, so all are made on any machine. The linker
is `ziglang`, from the package index, for every system; where it is not installed, `cc` links for the machine it is on.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # the checkout, if no other jittok is asked for

import llvmlite.binding as llvm
import processor
from levels import ENDINGS, LEVELS, Level

ADDRESS = re.compile(r"inttoptr \(i64 -?\d{6,}")
"""An address of the process that made the code; there must be none."""
MAY_ASK_FOR = {"memset", "exp", "log"}
"""What every process has, of its C library and of the mathematical part of it."""
MATH = {"linux": "libm.so.6", "windows": "api-ms-win-crt-math-l1-1-0.dll"}
"""Where exp and log are; musl, too, takes the first of these names for its own."""
X86 = "x86_64"


def machine_of(level: Level) -> Any:
    """LLVM's target machine."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()  # `processor` has assembler in it
    target = llvm.Target.from_triple(level.triple)
    return target.create_target_machine(cpu=level.cpu, features=level.features, opt=3, reloc="pic", codemodel="default")


def optimize(module: Any, machine: Any, entry: str) -> None:
    """As the compiler does it: a cheap pass over the whole module, then all of it."""
    from jittok.kernels.jit.compiler import hide_all_but

    for cheap in (True, False):
        tuning = llvm.create_pipeline_tuning_options(0 if cheap else 3)
        tuning.loop_vectorization, tuning.slp_vectorization = not cheap, False
        builder = llvm.create_pass_builder(machine, tuning)
        passes = builder.getModulePassManager()
        if cheap:
            passes.add_loop_rotate_pass()
            passes.add_instruction_combine_pass()
            passes.add_jump_threading_pass()
        passes.run(module, builder)
        hide_all_but(entry, module)


def object_code(level: Level, source: Path, place: Path) -> None:
    """The object file of one kernel; its entry has the kernel's own name."""
    from jittok.kernels.jit.object_code import ENTRY

    machine, module = machine_of(level), llvm.parse_bitcode(source.read_bytes())
    module.triple, module.data_layout = level.triple, str(machine.target_data)
    module.get_function(ENTRY).name = source.stem
    if "windows" in level.triple:
        module.get_function(source.stem).storage_class = "dllexport"
    optimize(module, machine, source.stem)
    if ADDRESS.search(str(module)):
        raise SystemExit(f"{source.stem}: an address of this process is in its code")
    place.write_bytes(machine.emit_object(module))


def object_of_text(level: Level, text: str, place: Path) -> Path:
    """The object file of code of `processor`."""
    machine, module = machine_of(level), llvm.parse_assembly(text)
    module.triple, module.data_layout = level.triple, str(machine.target_data)
    module.verify()
    place.write_bytes(machine.emit_object(module))
    return place


def math_library(level: Level, folder: Path) -> Path:
    """What tells the linker in which library of the system exp and log are."""
    if "windows" in level.triple:
        place, listed = folder / "math.lib", folder / "math.def"
        listed.write_text(f"LIBRARY {MATH['windows']}\nEXPORTS\n exp\n log\n")
        options = ["/lib", f"/def:{listed}", "/machine:x64", f"/out:{place}"]
        subprocess.run([*_zig(), "lld-link", *options], check=True)
        return place
    place = folder / MATH["linux"]
    link(level, [object_of_text(level, processor.MATH, folder / "math.o")], place)
    return place


def _zig() -> list[str]:
    return [sys.executable, "-m", "ziglang"] if importlib.util.find_spec("ziglang") else []


def link(level: Level, objects: list[Path], place: Path) -> None:
    """Objects, and libraries that others need, into a library; the same bytes each time."""
    names, zig = [*map(str, sorted(objects))], _zig()
    shared = ["-shared", "-s", "-soname", place.name, "--build-id=none", "--hash-style=gnu", "--gc-sections"]
    shared += ["-z", "noexecstack", "-z", "now", "-z", "relro", "--as-needed"]
    if not zig:
        command = ["cc", "-nostdlib", *(f"-Wl,{','.join(pair)}" for pair in _pairs(shared[1:])), "-shared"]
        command += ["-o", str(place), *names]
    elif "windows" in level.triple:
        command = [*zig, "lld-link", "/dll", "/noentry", "/nodefaultlib", "/Brepro", "/opt:ref,icf", f"/out:{place}"]
        command += names
    elif "macos" in level.triple:  # it signs, which arm64 asks for
        architecture = "x86_64" if X86 in level.triple else "aarch64"
        command = [*zig, "cc", "-target", f"{architecture}-macos.11.0", "-shared", "-s", "-Wl,-dead_strip"]
        command += [f"-Wl,-install_name,@rpath/{place.name}", "-o", str(place), *names]
    else:
        command = [*zig, "ld.lld", *shared, "--icf=all", "-o", str(place), *names]
    subprocess.run(command, check=True)
    place.chmod(0o644)
    place.with_suffix(".lib").unlink(missing_ok=True)


def _pairs(options: list[str]) -> list[list[str]]:
    """Options with what belongs to them."""
    found: list[list[str]] = []
    for option in options:
        if option.startswith("-"):
            found.append([option])
        else:
            found[-1].append(option)
    return found


def asked_for(place: Path) -> set[str]:
    """The names that an ELF library expects of the process that loads it."""
    sections = {each.name(): each.data() for each in llvm.ObjectFileRef.from_path(str(place)).sections()}
    symbols, names = sections[b".dynsym"], sections[b".dynstr"]
    found = set()
    for at in range(24, len(symbols), 24):  # the first one is nothing
        name, section = int.from_bytes(symbols[at : at + 4], "little"), symbols[at + 6 : at + 8]
        if section == b"\0\0":
            found.add(names[name : names.index(b"\0", name)].decode())
    return found


def facts_of(place: Path, level: Level) -> dict[str, Any]:
    """What the manifest says of a library."""
    more = asked_for(place) - MAY_ASK_FOR if place.suffix == ".so" else set()
    if more:
        raise SystemExit(f"{place}: asks for {sorted(more)}, expected no more than {sorted(MAY_ASK_FOR)}")
    content = place.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return {"file": place.name, "sha256": digest, "bytes": len(content), "cpu": level.cpu, "features": level.features}


def functions() -> dict[str, str]:
    """name -> code of what is in a library beside the kernels: the builtin that encodes one text."""
    try:
        from jittok.kernels.memory.python_objects.encode_builtin import CODE, NAME
    except ModuleNotFoundError:  # a package of few rooms
        return {}
    return {NAME: CODE}


def build(name: str, bitcode: Path, out: Path) -> dict[str, Any]:
    """One level's library; what the manifest says of it."""
    level, system = LEVELS[name], name.partition("-")[0]
    place = out / f"jittok-{name}{ENDINGS[system]}"
    with tempfile.TemporaryDirectory() as folder:
        objects = []
        for source in sorted((bitcode / level.flavour).glob("*.bc")):
            objects.append(Path(folder, f"{source.stem}.o"))
            object_code(level, source, objects[-1])
        for symbol, code in functions().items():
            text = code.replace("define ", "define dllexport ") if system == "windows" else code
            objects.append(object_of_text(level, text, Path(folder, f"{symbol}.o")))
        if system == "windows":
            objects.append(object_of_text(level, processor.WINDOWS, Path(folder, "c.o")))
        if system in MATH:
            objects.append(math_library(level, Path(folder)))
        link(level, objects, place)
    return facts_of(place, level)


def build_processor(system: str, out: Path) -> dict[str, Any]:
    """The library that says which level this processor has: for the least x86-64."""
    level = LEVELS[f"{system}-{X86}-v2"]._replace(cpu="x86-64")
    place = out / f"jittok-{system}-{X86}-cpu{ENDINGS[system]}"
    with tempfile.TemporaryDirectory() as folder:
        link(level, [object_of_text(level, processor.LEVEL[system], Path(folder, "cpu.o"))], place)
    return facts_of(place, level)


def build_all(bitcode: Path, out: Path, names: list[str]) -> None:
    """Libraries of these levels, and the manifest."""
    from jittok.kernels.jit.shipped import LAYOUT, MANIFEST
    from jittok.kernels.jit.stamps import source_stamp

    facts = json.loads((bitcode / "kernels.json").read_text())
    for each in facts["kernels"].values():
        if each["stamp"] != source_stamp(each["module"]).hex():
            raise SystemExit(f"{bitcode}: {each['module']} was edited since: run ship/emit.py again")
    out.mkdir(parents=True, exist_ok=True)
    made = {name: build(name, bitcode, out) for name in names}
    for system in sorted({name.partition("-")[0] for name in names if X86 in name}):
        made[f"{system}-{X86}-cpu"] = build_processor(system, out)
    written = {symbol: hashlib.sha256(code.encode()).hexdigest() for symbol, code in functions().items()}
    facts |= {"layout": LAYOUT, "libraries": made, "functions": written}
    (out / MANIFEST).write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    build_all(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] or list(LEVELS))

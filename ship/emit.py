"""The bitcode of every kernel, before it is optimized: python ship/emit.py OUT [FLAVOUR ...] [--only NAME ...]

--only: these kernels, or those of these modules, alone, for trials. OUT/plain/*.bc: for any processor. OUT/wide/*.bc: with the operations of AVX-512 VBMI and VBMI2. OUT/kernels.json: of each
kernel its module, name and the stamp of its sources. Which operations are used is decided when `jittok.kernels.memory` is imported,
so each flavour is a process of its own; this machine need not have the processor that the code is for.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FLAVOURS = {
    "plain": {"JITTOK_PLAIN": "1", "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
    "wide": {"NUMBA_CPU_NAME": "x86-64-v4", "NUMBA_CPU_FEATURES": "+avx512vbmi,+avx512vbmi2"},
}


def kernels(only: Sequence[str] = ()) -> list[Any]:
    """All kernels, or those that are named or whose modules are. Modules that define one are found by their text: what needs an extra is not imported."""
    import jittok
    from jittok.kernels.jit import kernel

    root = Path(jittok.__file__).parent
    for path in sorted(root.rglob("*.py")):
        if "\n@kernel\n" in path.read_text(encoding="utf-8"):
            importlib.import_module(".".join(("jittok", *path.relative_to(root).with_suffix("").parts)))
    names = {each: (each.python.__module__, each.python.__qualname__) for each in kernel.registry}
    wanted = [each for each, name in names.items() if not only or name[0] in only or ".".join(name) in only]
    return sorted(wanted, key=names.__getitem__)


def emit(out: Path, only: Sequence[str] = ()) -> dict[str, dict[str, str]]:
    """The bitcode of all kernels, as this process has been told to make it; what the manifest says of them."""
    from jittok.kernels.jit import compiler
    from jittok.kernels.jit.shipped import symbol
    from jittok.kernels.jit.stamps import source_stamp

    out.mkdir(parents=True, exist_ok=True)
    facts = {}
    for each in kernels(only):
        module, name = each.python.__module__, each.python.__qualname__
        (out / f"{symbol(module, name)}.bc").write_bytes(compiler.linked(each.python))
        facts[symbol(module, name)] = {"module": module, "name": name, "stamp": source_stamp(module).hex()}
    return facts


def emit_all(out: Path, flavours: list[str], only: list[str]) -> None:
    """These flavours, one process each, and `kernels.json`."""
    import llvmlite
    import numba

    import jittok

    # a folder of its own, so that nothing kept elsewhere has a say; none is read, as nothing is run
    settings = {
        "PYTHONPATH": str(Path(jittok.__file__).parents[1]),
        "JITTOK_CACHE_DIR": str(out / "cache"),
        "PYTHONHASHSEED": "0",
    }
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "JITTOK_"))}
    listed = {}
    for flavour in flavours:
        command = [sys.executable, __file__, str(out / flavour), "--one", "--only", *only]
        env = clean | settings | FLAVOURS[flavour]
        listed[flavour] = json.loads(subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE).stdout)
    if any(facts != listed[flavours[0]] for facts in listed.values()):
        raise SystemExit("the flavours have other kernels or stamps: were sources changed meanwhile?")
    python = "{}.{}".format(*sys.version_info)
    made_by = f"numba {numba.__version__}, llvmlite {llvmlite.__version__}, Python {python}"
    facts = {"jittok": jittok.__version__, "made_by": made_by, "kernels": listed[flavours[0]]}
    (out / "kernels.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[1]))  # the checkout, if no other jittok is asked for
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("flavours", nargs="*", default=list(FLAVOURS))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--one", action="store_true")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(emit(options.out, options.only)))
    else:
        emit_all(options.out, options.flavours, options.only)

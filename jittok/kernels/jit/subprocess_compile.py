"""A kernel compiled by another process: for the child of a fork that cannot trust the Numba it has in memory."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from jittok.kernels.jit import subprocess_compile; subprocess_compile.main()"
)


def compile_outside(module: str, name: str) -> bytes:
    """The object code of the kernel `name` of a module that can be imported. OSError, RuntimeError if it fails."""
    command = [sys.executable, "-c", _PROGRAM, json.dumps(sys.path), module, name]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603
    if ended.returncode or not ended.stdout:
        said = ended.stderr.decode("utf-8", "replace").strip()[-1000:]
        raise RuntimeError(f"compiling kernel {module}.{name} in another process ended with {ended.returncode}: {said}")
    return ended.stdout


def main() -> None:
    """What that process does: the code to standard output."""
    from jittok.kernels.jit.compiler import compile_kernel

    module, name = sys.argv[2:4]
    found = getattr(importlib.import_module(module), name)
    sys.stdout.buffer.write(compile_kernel(found.python))

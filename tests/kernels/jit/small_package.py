"""A small package to show the traps of cached machine code on: jittok's `jit`, a kernel, a helper in another file.

What holds for them holds for all kernels, and compiling them takes no time. `python` starts a process with this
package, or with jittok as it is.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import jittok
from jittok.kernels.jit.store import cache_dir

PACKAGE = Path(jittok.__file__).parent

HELPER = """
from jittok.kernels.jit import helper

@helper
def step(value):
    return value + 1
"""
KERNEL = """
from jittok.kernels.jit import OutI64, kernel
from jittok.step import step

@kernel
def climb(out: OutI64) -> int:
    for i in range(out.size):
        out[i] = step(i)
    return out.size
"""

SHOW = """
import numpy as np
from jittok.climb import climb
out = np.zeros(3, np.int64)
climb(out)
print(out.tolist(), climb.cache_hit)
"""
"""Calls the kernel, and tells where its machine code was from."""


def write_package(home: Path) -> None:
    """The small package into a folder, under jittok's own name."""
    package = home / "jittok"
    for folder in (package, package / "common", package / "kernels"):
        folder.mkdir()
        (folder / "__init__.py").write_text('__version__ = "0"\n')
    shutil.copytree(
        PACKAGE / "kernels" / "jit", package / "kernels" / "jit", ignore=shutil.ignore_patterns("__pycache__", "libs")
    )
    for name in ("common/digest.py", "errors.py", "common/locks.py", "common/record.py"):  # what `jit` uses
        shutil.copy(PACKAGE / name, package / name)
    (package / "step.py").write_text(HELPER)
    (package / "climb.py").write_text(KERNEL)


def environment(home: Path, **settings: str) -> dict[str, str]:
    """Variables for a process of its own: a cache in `home`, the package that lies there (or else the tested one)."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "JITTOK_", "PYTHON"))}
    path = os.pathsep.join([str(home), str(PACKAGE.parent)])  # the small package first, if there is one
    if (home / "jittok").exists():
        # Python takes its bytecode for that of an edit in the same second, of the same length
        clean["PYTHONDONTWRITEBYTECODE"] = "1"
    else:
        clean["JITTOK_SHIPPED"] = "0"  # a checkout may have libraries, and most of these tests are of the compiler
    clean["JITTOK_COMPILE_FIRST"] = "1"  # as in the process of the tests
    return clean | {"PYTHONPATH": path, "JITTOK_CACHE_DIR": str(home / "cache")} | settings


def with_kernels(home: Path, without: str = "nothing") -> Path:
    """The folder with a cache that has the machine code of these tests, but for the modules that are named so."""
    kernels = home / "cache" / "kernels"
    kernels.mkdir(parents=True)
    for path in Path(cache_dir() or home, "kernels").glob("jittok.*.o"):
        if not path.name.startswith(without):
            shutil.copy(path, kernels)
    return home


def python(home: Path, code: str, **settings: str) -> str:
    """What the code prints, with the package that lies in `home` (or else the one that is tested)."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(
        command, env=environment(home, **settings), cwd=home, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()

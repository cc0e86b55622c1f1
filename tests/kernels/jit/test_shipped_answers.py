"""Recorded answers by shipped machine code, where Numba cannot be imported.

The kernels that a small set needs are made for the least level of this architecture. So code is seen to run that has no
more than all its processors have. `make ship-test` makes all kernels, in a wheel, and runs those of the best level. It
asks all sets. Here is one whose kernels are compiled in seconds.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_package import PACKAGE, environment
from test_shipped import NO_COMPILER, here, ship

from jittok.kernels.jit import stamps

TESTS = Path(__file__).parents[2]
SETS = ["syn-rwkv"]
NEEDED = [
    "kernels.memory.python_objects.texts",
    "kernels.memory.python_objects.wide_texts",
    "decode.pieces",
    "decode.rows",
    "kernels.merging.left_to_right_build",
    "kernels.models.rwkv",
    "kernels.special.partition",
    "kernels.structures.bytes_table",
    "kernels.structures.char_table",
    "kernels.structures.double_array",
    "kernels.structures.pair_table",
]
"""The kernels that it needs, or their modules: without one more, CompilerMissing says which."""
ASK = f"""{NO_COMPILER}
import pytest, jittok
from jittok.kernels.jit import kernel
code = pytest.main([*sys.argv[1:], "-q", "-c", "../pyproject.toml", "--rootdir", "..", "-p", "no:cacheprovider"])
print(jittok.__file__, {{each.origin for each in kernel.registry if each.origin}})
raise SystemExit(code)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A copy of the package with a library of these kernels."""
    home = tmp_path_factory.mktemp("shipped")
    shutil.copytree(PACKAGE, home / "jittok", ignore=shutil.ignore_patterns("__pycache__", "libs"))
    least = stamps.runs()[-1]
    name = "linux-aarch64" if least == "v8" else f"linux-x86_64-{least}"
    ship("emit.py", home, home / "bitcode", "plain", "--only", *(f"jittok.{each}" for each in NEEDED))
    ship("libraries.py", home, home / "bitcode", home / "jittok" / "kernels" / "jit" / "libs", name)
    return home


@here
@pytest.mark.process
def test_shipped_code_gives_the_recorded_answers_without_the_compiler(home):
    wanted = f"({' or '.join(f'[{name}]' for name in SETS)}) and not large"  # those lie beside a checkout, or not
    settings = {"PYTHONPATH": f"{home}:{TESTS / 'data'}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ASK, "test_golden.py", "-k", wanted],
        env=environment(home) | settings, cwd=TESTS, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{5 * len(SETS)} passed" in done.stdout  # five questions a set
    assert done.stdout.splitlines()[-1] == f"{home / 'jittok' / '__init__.py'} {{'shipped'}}"

"""The cache of machine code: used where it is right, never where it is stale, damaged or of another kind."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from small_package import HELPER, KERNEL, environment, python

pytestmark = pytest.mark.process

SHOW = """
import numpy as np
from jittok.climb import climb
out = np.zeros(3, np.int64)
climb(out)
print(out.tolist(), climb.cache_hit)
"""


def entries(home: Path) -> list[Path]:
    return sorted(path for path in (home / "cache").rglob("*") if path.suffix == ".o")


def test_a_kernel_is_taken_from_the_cache(home):
    assert python(home, SHOW) == "[1, 2, 3] False"
    assert python(home, SHOW) == "[1, 2, 3] True"


def test_a_helper_is_compiled_once_whatever_constants_it_is_given(home):
    kernel = """
from jittok._jit import OutI64, helper, kernel
@helper
def scaled(value, by):
    return value * by
@kernel
def climb(out: OutI64) -> int:
    at = 0
    while at < out.size:
        out[at] = scaled(at, 3) + scaled(5, 7) + scaled(at, out.size)
        at += 1
    return at
"""
    (home / "jittok" / "climb.py").write_text(kernel)
    show = SHOW + "from jittok.climb import scaled; print([str(kinds) for kinds in scaled.made.overloads])"
    assert python(home, show) == "[35, 41, 47] False\n['(int64, int64)']"


def test_a_helper_inside_a_kernel_can_also_be_compiled_alone_with_what_it_calls(home):
    helpers = (
        HELPER
        + """
@helper
def twice(value):
    return step(step(value))
"""
    )
    (home / "jittok" / "step.py").write_text(helpers)
    (home / "jittok" / "climb.py").write_text(
        KERNEL.replace("import step", "import twice").replace("step(i)", "twice(i)")
    )
    alone = (
        SHOW
        + """
from jittok._jit import standalone
from jittok.step import twice
print(standalone(twice)(40))
"""
    )
    for hit in ("False", "True"):
        assert python(home, alone) == f"[2, 3, 4] {hit}\n42"


def test_a_kernel_is_at_hand_once_its_code_is_kept(home):
    ask = "from jittok.climb import climb; print(climb.at_hand(), climb.cache_hit)\n"
    assert python(home, ask + SHOW + ask) == "False None\n[1, 2, 3] False\nTrue False"
    assert python(home, ask) == "True True"


def test_an_edited_helper_in_another_file_is_not_stale(home):
    python(home, SHOW)
    (home / "jittok" / "step.py").write_text(HELPER.replace("value + 1", "value + 5"))
    assert python(home, SHOW) == "[5, 6, 7] False"


def test_an_edited_file_that_no_kernel_reaches_changes_nothing(home):
    (home / "jittok" / "other.py").write_text("x = 1\n")
    python(home, SHOW)
    (home / "jittok" / "other.py").write_text("x = 2\n")
    assert python(home, SHOW).endswith("True")


def test_a_checked_run_does_not_load_unchecked_code(home):
    python(home, SHOW)
    assert python(home, SHOW, NUMBA_BOUNDSCHECK="1").endswith("False")
    assert python(home, SHOW, NUMBA_BOUNDSCHECK="1").endswith("True")
    assert python(home, SHOW).endswith("True")  # and does not replace it


def test_damaged_entries_are_recompiled(home):
    python(home, SHOW)
    assert entries(home)
    for path in entries(home):
        path.write_bytes(path.read_bytes()[:50])
    assert python(home, SHOW) == "[1, 2, 3] False"
    assert python(home, SHOW) == "[1, 2, 3] True"


def test_no_home_directory_is_no_failure(home):
    nowhere = {"HOME": "/proc/nowhere", "JITTOK_CACHE_DIR": "", "XDG_CACHE_HOME": "", "LOCALAPPDATA": "/proc/nowhere"}
    assert python(home, SHOW, **nowhere) == "[1, 2, 3] False"


def test_code_without_what_only_some_processors_have_is_kept_apart(home):
    python(home, SHOW)
    assert python(home, SHOW, JITTOK_PLAIN="1") == "[1, 2, 3] False"
    assert python(home, SHOW, JITTOK_PLAIN="1") == "[1, 2, 3] True"


def test_kept_machine_code_runs_without_numba(home):
    python(home, SHOW)
    assert python(home, SHOW + "import sys; print('numba' in sys.modules)") == "[1, 2, 3] True\nFalse"


def test_a_flipped_bit_in_an_entry_is_noticed(home):
    python(home, SHOW)
    (path,) = entries(home)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert python(home, SHOW) == "[1, 2, 3] False"
    assert python(home, SHOW) == "[1, 2, 3] True"


@pytest.mark.parametrize("cache", ["/proc/nowhere", "/dev/null/x"])
def test_no_cache_folder_is_no_failure(home, cache):
    assert python(home, SHOW, JITTOK_CACHE_DIR=cache) == "[1, 2, 3] False"


def test_a_warm_cache_may_be_read_only(home):
    python(home, SHOW)
    # root writes through permission bits: there this shows the hit, not the refusal
    for path in [*(home / "cache").rglob("*"), home / "cache"]:
        path.chmod(stat.S_IRUSR | (stat.S_IXUSR if path.is_dir() else 0))
    try:
        assert python(home, SHOW).endswith("True")
    finally:
        for path in [home / "cache", *(home / "cache").rglob("*")]:
            path.chmod(stat.S_IRWXU)


def test_processes_may_start_together(home):
    command = [sys.executable, "-c", SHOW]
    started = [
        subprocess.Popen(command, env=environment(home), cwd=home, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    assert {process.communicate()[0].split("]")[0] for process in started} == {"[1, 2, 3"}
    assert python(home, SHOW).endswith("True")


def test_two_threads_may_call_a_new_kernel_together(home):
    threads = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from jittok.climb import climb
with ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(lambda n: climb(np.zeros(n, np.int64)), range(8))))
"""
    assert python(home, threads) == "28"


def test_a_wrong_dtype_is_refused_and_not_compiled(home):
    wrong = """
import numpy as np
from jittok.climb import climb
climb(np.zeros(3, np.int64))
try:
    print("taken", climb(np.zeros(3, np.float32)))
except TypeError:
    print("refused")
"""
    assert python(home, wrong) == "refused"
    assert python(home, wrong, NUMBA_BOUNDSCHECK="1") == "refused"

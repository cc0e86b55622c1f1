"""The cache of machine code: used where it is right, never where it is stale, damaged or of another kind."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_package import HELPER, KERNEL, SHOW, environment, python

from jittok.kernels.jit import compiling, store

pytestmark = pytest.mark.process


def entries(home: Path) -> list[Path]:
    return sorted(path for path in (home / "cache").rglob("*") if path.suffix == ".o")


def test_a_kernel_is_taken_from_the_cache(home):
    assert python(home, SHOW) == "[1, 2, 3] False"
    assert python(home, SHOW) == "[1, 2, 3] True"


def test_a_helper_is_compiled_once_whatever_constants_it_is_given(home):
    kernel = """
from jittok.kernels.jit import OutI64, helper, kernel
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
from jittok.kernels.jit import standalone
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


def test_an_edited_helper_in_another_file_is_not_stale(kept):
    (kept / "jittok" / "step.py").write_text(HELPER.replace("value + 1", "value + 5"))
    assert python(kept, SHOW) == "[5, 6, 7] False"


def test_an_edited_file_that_no_kernel_reaches_changes_nothing(kept):
    (kept / "jittok" / "other.py").write_text("x = 1\n")
    assert python(kept, SHOW).endswith("True")
    (kept / "jittok" / "other.py").write_text("x = 2\n")
    assert python(kept, SHOW).endswith("True")


def test_a_checked_run_does_not_load_unchecked_code(kept):
    assert python(kept, SHOW, NUMBA_BOUNDSCHECK="1").endswith("False")
    assert python(kept, SHOW, NUMBA_BOUNDSCHECK="1").endswith("True")
    assert python(kept, SHOW).endswith("True")  # and does not replace it


def test_damaged_entries_are_recompiled(kept):
    assert entries(kept)
    for path in entries(kept):
        path.write_bytes(path.read_bytes()[:50])
    assert python(kept, SHOW) == "[1, 2, 3] False"
    assert python(kept, SHOW) == "[1, 2, 3] True"


@pytest.mark.parametrize("none", ["/proc/nowhere", ""])
def test_no_home_directory_is_no_failure(home, none):
    nowhere = {"HOME": none, "JITTOK_CACHE_DIR": "", "XDG_CACHE_HOME": "", "LOCALAPPDATA": "/proc/nowhere"}
    assert python(home, SHOW, **nowhere) == python(home, SHOW, **nowhere) == "[1, 2, 3] False"


def test_code_without_what_only_some_processors_have_is_kept_apart(kept):
    assert python(kept, SHOW, JITTOK_PLAIN="1") == "[1, 2, 3] False"
    assert python(kept, SHOW, JITTOK_PLAIN="1") == "[1, 2, 3] True"


def test_kept_machine_code_runs_without_numba(kept):
    assert python(kept, SHOW + "import sys; print('numba' in sys.modules)") == "[1, 2, 3] True\nFalse"


def test_a_flipped_bit_in_an_entry_is_noticed(kept):
    (path,) = entries(kept)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert python(kept, SHOW) == "[1, 2, 3] False"
    assert python(kept, SHOW) == "[1, 2, 3] True"


@pytest.mark.parametrize("cache", ["/proc/nowhere", "/dev/null/x"])
def test_no_cache_folder_is_no_failure(home, cache):
    assert python(home, SHOW, JITTOK_CACHE_DIR=cache) == "[1, 2, 3] False"


def test_a_warm_cache_may_be_read_only(kept):
    # root writes through permission bits: there this shows the hit, not the refusal
    for path in [*(kept / "cache").rglob("*"), kept / "cache"]:
        path.chmod(stat.S_IRUSR | (stat.S_IXUSR if path.is_dir() else 0))
    try:
        assert python(kept, SHOW).endswith("True")
    finally:
        for path in [kept / "cache", *(kept / "cache").rglob("*")]:
            path.chmod(stat.S_IRWXU)


def test_versions_keep_a_file_each(kept):
    (kept / "jittok" / "step.py").write_text(HELPER.replace("value + 1", "value + 5"))
    assert python(kept, SHOW).endswith("False")
    assert len(entries(kept)) == 2
    assert python(kept, SHOW).endswith("True")
    (kept / "jittok" / "step.py").write_text(HELPER)
    assert python(kept, SHOW) == "[1, 2, 3] True"


def test_what_nobody_has_used_for_long_is_swept(tmp_path, monkeypatch):
    folder, day = tmp_path / "kernels", store.DAY
    folder.mkdir()
    ages = {"new.o": 1, "old.o": 89, "gone.o": 91, ".new-ab": 2, "a.o.lock": 2, "b.o.lock": 0, "x.sources": 400}
    for name, days in ages.items():
        (folder / name).write_bytes(bytes(100))
        os.utime(folder / name, (time.time() - days * day,) * 2)
    (folder / "link.o").symlink_to(tmp_path / "mine")
    assert sorted(store.sweep(folder)) == [".new-ab", "a.o.lock", "gone.o"]
    monkeypatch.setattr(store, "MOST_BYTES", 150)
    assert store.sweep(folder) == ["old.o"]
    assert {path.name for path in folder.iterdir()} == {"new.o", "b.o.lock", "x.sources", "link.o"}


def test_code_that_is_used_is_not_swept(kept):
    (path,) = entries(kept)
    os.utime(path, (0, 0))
    assert python(kept, SHOW).endswith("True")
    assert time.time() - path.stat().st_mtime < store.DAY


def test_of_processes_that_begin_together_one_compiles(home):
    code = SHOW.replace("from jittok.climb", "input(); from jittok.climb")
    command = [sys.executable, "-c", code]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(command, env=environment(home), cwd=home, **pipes) for _ in range(4)]
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    told = sorted(process.communicate()[0].strip() for process in started)
    assert told == ["[1, 2, 3] False", *["[1, 2, 3] True"] * 3]
    assert not list((home / "cache").rglob("*.lock"))


@pytest.mark.skipif(sys.platform == "win32", reason="the lock of the test is one of fcntl")
def test_who_has_waited_too_long_for_another_process_goes_on(tmp_path, monkeypatch):
    (tmp_path / "kernels").mkdir()
    place = tmp_path / "kernels" / "a.o"
    hold = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
input()
"""
    command = [sys.executable, "-c", hold, str(place) + compiling.ENDING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        monkeypatch.setattr(compiling, "MOST_SECONDS", 0.1)
        with compiling.compile_turn(str(place), lambda: "nothing yet") as found:
            assert found == "nothing yet"
        assert place.with_name("a.o.lock").exists()  # it is the other one's
        monkeypatch.setattr(compiling, "MOST_SECONDS", 60.0)
        other.kill()
    with compiling.compile_turn(str(place), lambda: "done") as found:  # a killed process holds nothing
        assert found == "done"
    assert not place.with_name("a.o.lock").exists()


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

"""Machine code that lies in the package: taken where it fits, never where it does not, and without the compiler."""

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_package import HELPER, environment, python, write_package

import jittok
from jittok.kernels.jit import shipped

SHIP = Path(jittok.__file__).parents[1] / "ship"
LEVELS = {"x86_64": ["linux-x86_64-v2", "linux-x86_64-v3"], "aarch64": ["linux-aarch64"]}.get(platform.machine(), [])
LINKS = bool(sys.platform == "linux" and LEVELS and shutil.which("cc") and SHIP.exists())
here = pytest.mark.skipif(not LINKS, reason="libraries are linked with cc, on Linux")
NO_COMPILER = "import sys; sys.modules['numba'] = sys.modules['llvmlite'] = None\n"
SHOW = """
import numpy as np
from jittok.climb import climb
out = np.zeros(3, np.int64)
climb(out)
print(out.tolist(), climb.origin)
"""
ASK = """
import logging
logging.basicConfig(format="%(message)s", stream=__import__("sys").stdout)
from jittok.kernels.jit import shipped
from jittok.climb import climb
climb.at_hand()
print(climb.origin, (shipped.library() or [""])[0], shipped.why_not("jittok.climb", "climb"))
"""


def ship(script: str, home: Path, *arguments: object) -> None:
    command = [sys.executable, str(SHIP / script), *map(str, arguments)]
    done = subprocess.run(command, env=environment(home), cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The small package with libraries, made once."""
    home = tmp_path_factory.mktemp("made")
    write_package(home)
    ship("emit.py", home, home / "bitcode", "plain")
    ship("libraries.py", home, home / "bitcode", home / "jittok" / "kernels" / "jit" / "libs", *LEVELS)
    return home


@pytest.fixture
def home(made, tmp_path):
    shutil.copytree(made / "jittok", tmp_path / "jittok")
    return tmp_path


def libs(home: Path) -> Path:
    return home / "jittok" / "kernels" / "jit" / "libs"


@here
@pytest.mark.process
def test_shipped_code_runs_without_the_compiler_and_nothing_is_kept(home):
    code = NO_COMPILER + SHOW + "print({'numba', 'llvmlite', 'numba.core'} & {k for k, v in sys.modules.items() if v})"
    assert python(home, code) == "[1, 2, 3] shipped\nset()"
    assert not list((home / "cache").rglob("*.o"))


STATUS = "from jittok.kernels.jit import shipped; print(shipped.status())"


@here
@pytest.mark.process
def test_the_status_of_shipped_code_is_what_kernels_are_run_from(home):
    (level, *_) = python(home, ASK).split()[1:]
    assert python(home, STATUS) == f"shipped code is in use: 1 of 1 kernels, {level}"
    asked = "shipped code is not used: JITTOK_SHIPPED=0 leaves it out"
    assert python(home, STATUS, JITTOK_SHIPPED="0") == asked
    (home / "jittok" / "step.py").write_text(HELPER.replace("value + 1", "value + 5"))
    assert python(home, STATUS) == "shipped code is not used: its sources are not those of the shipped code"
    shutil.rmtree(libs(home))
    assert python(home, STATUS) == "shipped code is not used: this installation ships none"


@here
@pytest.mark.process
def test_an_edited_source_is_compiled_and_a_fitting_one_is_not(home):
    (home / "jittok" / "other.py").write_text("x = 1\n")
    assert python(home, ASK).startswith("shipped ")
    (home / "jittok" / "step.py").write_text(HELPER.replace("value + 1", "value + 5"))
    assert python(home, ASK).endswith("its sources are not those of the shipped code")
    assert python(home, SHOW) == "[5, 6, 7] compiled"
    assert python(home, SHOW) == "[5, 6, 7] cache"


@here
@pytest.mark.process
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"JITTOK_SHIPPED": "0"}, "JITTOK_SHIPPED=0 leaves it out"),
        ({"NUMBA_CPU_NAME": "generic"}, "NUMBA_CPU_NAME asks for other code"),
        ({"NUMBA_OPT": "2"}, "NUMBA_OPT asks for other code"),
        ({"NUMBA_BOUNDSCHECK": "1"}, ""),
        ({"JITTOK_CHECKED": "1"}, ""),
        ({"NUMBA_DISABLE_JIT": "1"}, ""),
    ],
)
def test_who_asks_for_other_code_does_not_get_the_shipped_one(home, settings, reason):
    told = python(home, ASK, **settings)
    assert told.startswith("None ")
    assert told.endswith(reason)


@here
@pytest.mark.process
def test_a_damaged_library_gives_way_to_the_next_lower_one_and_the_last_to_the_compiler(home):
    told = python(home, ASK).split()
    names = [name for name in reversed(LEVELS) if name <= told[1]]
    for name in names:
        assert python(home, ASK).splitlines()[-1].split() == ["shipped", name]
        place = libs(home) / f"jittok-{name}.so"
        content = bytearray(place.read_bytes())
        content[len(content) // 2] ^= 1
        place.write_bytes(content)
        assert f"{place} is damaged" in python(home, ASK)
    assert "none that is shipped runs on this linux-" in python(home, ASK)
    (libs(home) / "jittok-linux-x86_64-cpu.so").unlink(missing_ok=True)
    assert python(home, ASK).splitlines()[-1].startswith("None")


@here
@pytest.mark.process
@pytest.mark.parametrize("content", ["", "{", "[]", '{"layout": 0, "kernels": {"a": 1}, "libraries": {"a": 1}}', None])
def test_a_damaged_manifest_and_none_are_no_failure(home, content):
    place = libs(home) / "manifest.json"
    place.unlink() if content is None else place.write_text(content)
    assert python(home, ASK).endswith("this installation ships none")


@here
@pytest.mark.process
def test_without_code_and_without_the_compiler_an_error_says_what_to_do(home):
    (libs(home) / "manifest.json").unlink()
    code = (
        NO_COMPILER
        + """
import numpy as np
from jittok.climb import climb
print(climb.at_hand())
try:
    climb(np.zeros(3, np.int64))
except ImportError as error:
    print(type(error).__name__, error)
"""
    )
    told = python(home, code)
    missing = "found neither precompiled machine code (this installation ships none) nor Numba"
    assert told.startswith(f"False\nCompilerMissing jittok.climb.climb: {missing}")
    assert "expected one of them: pip install numba (see docs/install.md#" in told


@pytest.mark.process
@pytest.mark.parametrize("setting", ["JITTOK_CHECKED", "NUMBA_DISABLE_JIT"])
def test_modes_that_need_the_compiler_say_so(tmp_path, setting):
    code = (
        NO_COMPILER
        + """
import jittok
try:
    jittok.bundled("bert").encode("a")
except jittok.CompilerMissing as error:
    print(error)
"""
    )
    assert "only shipped machine code runs without the compiler" in python(tmp_path, code, **{setting: "1"})


CALL = """
#include <dlfcn.h>
#include <stdio.h>
#include "jittok.h"
int main(int count, char **arguments) {
    void *library = count == 2 ? dlopen(arguments[1], RTLD_NOW) : 0;
    jittok_entry *climb = library ? (jittok_entry *)dlsym(library, "jittok__climb__climb") : 0;
    int64_t out[4] = {0}, frame[3] = {0};
    if (!climb || jittok_array(frame, JITTOK_ARGUMENTS, out, 4) != 3) return 1;
    int size = (int)climb(frame);
    printf("%d: %d %d %d %d\\n", size, (int)out[0], (int)out[1], (int)out[2], (int)out[3]);
    return (int)frame[JITTOK_STATUS];
}
"""


@here
@pytest.mark.process
def test_an_entry_is_called_from_c(made, tmp_path):
    (tmp_path / "call.c").write_text(CALL)
    program = tmp_path / "call"
    header = SHIP.parent / "docs" / "c"
    subprocess.run(["cc", "-Wall", "-Werror", f"-I{header}", "-o", program, tmp_path / "call.c", "-ldl"], check=True)
    library = libs(made) / f"jittok-{LEVELS[0]}.so"
    assert subprocess.run([program, library], capture_output=True, check=True).stdout == b"4: 1 2 3 4\n"


@here
@pytest.mark.process
def test_the_same_sources_make_the_same_bytes(made, tmp_path):
    ship("emit.py", made, tmp_path / "again", "plain")
    ship("libraries.py", made, tmp_path / "again", tmp_path / "libs", *LEVELS)
    for place in libs(made).iterdir():
        assert place.read_bytes() == (tmp_path / "libs" / place.name).read_bytes(), place.name


@here
@pytest.mark.process
def test_libraries_are_not_made_of_old_bitcode(home, made):
    (home / "jittok" / "step.py").write_text(HELPER.replace("value + 1", "value + 5"))
    command = [sys.executable, str(SHIP / "libraries.py"), str(made / "bitcode"), str(home / "libs"), *LEVELS]
    done = subprocess.run(command, env=environment(home), cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "jittok.climb was edited since" in done.stderr


def whole(monkeypatch, level: int, shipped_levels: list[str]) -> list[str]:
    """`levels` on a processor of that level, where these are shipped."""

    class Processor:
        @staticmethod
        def jittok_cpu_level() -> int:
            return level

    shipped.levels.cache_clear()
    monkeypatch.setattr(shipped, "system", lambda: "linux-x86_64")
    monkeypatch.setattr(shipped, "_opened", lambda name: Processor if name.endswith("-cpu") else None)
    monkeypatch.setattr(shipped, "manifest", lambda: {"libraries": dict.fromkeys(shipped_levels)})
    try:
        return [name.removeprefix("linux-x86_64-") for name in shipped.levels()]
    finally:
        shipped.levels.cache_clear()


def test_a_processor_runs_its_level_and_lower_ones(monkeypatch):
    every = [f"linux-x86_64-v{level}" for level in (2, 3, 4)]
    monkeypatch.delenv("JITTOK_PLAIN", raising=False)
    assert whole(monkeypatch, 4, every) == ["v4", "v3", "v2"]
    assert whole(monkeypatch, 3, every) == ["v3", "v2"]
    assert whole(monkeypatch, 1, every) == []
    assert whole(monkeypatch, 4, every[:1]) == ["v2"]
    monkeypatch.setenv("JITTOK_PLAIN", "1")
    assert whole(monkeypatch, 4, every) == ["v3", "v2"]


@here
@pytest.mark.process
@pytest.mark.skipif(platform.machine() != "x86_64", reason="levels of x86-64")
def test_the_processor_s_level_is_what_the_system_says(home):
    flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")).split()
    has = set(flags)
    v3 = {"avx2", "bmi1", "bmi2", "fma", "f16c", "movbe", "abm"} <= has
    v4 = {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"} <= has
    wide = {"avx512vbmi", "avx512_vbmi2", "gfni", "avx512_bitalg", "avx512_vpopcntdq"} <= has
    expected = 4 if v3 and v4 and wide else 3 if v3 else 2 if "popcnt" in has and "sse4_2" in has else 1
    ask = "from jittok.kernels.jit import shipped; print(shipped._opened('linux-x86_64-cpu').jittok_cpu_level())"
    assert python(home, ask) == str(expected)


def test_what_is_shipped_with_this_package_is_whole():
    """Nothing in a checkout; in an installed wheel, every kernel and every file."""
    facts = shipped.manifest()
    assert json.dumps(facts)
    for each in facts["libraries"].values():
        assert Path(shipped.FOLDER, each["file"]).stat().st_size == each["bytes"]

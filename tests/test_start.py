"""Start-up and the cache of machine code, each in processes of their own.

The traps of cached machine code are shown on a small package: jittok's `_jit`, a kernel, and a helper in
another file. What holds for them holds for all kernels, and compiling them takes no time.
"""

import lzma
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import jittok
from jittok._jit import stamps

pytestmark = pytest.mark.process
PACKAGE = Path(jittok.__file__).parent
VOCAB = Path(__file__).parent / "data" / "vocabs" / "syn-wpm-cased.gguf.xz"
HEAVY = {"llvmlite", "numba", "pandas", "polars", "pyarrow", "ray", "regex", "rich"}

HELPER = """
from jittok._jit import helper

@helper
def step(value):
    return value + 1
"""
KERNEL = """
from jittok._jit import OutI64, kernel
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
ENCODE = f"""
import lzma, jittok, jittok._jit as jit
tok = jittok.load(lzma.decompress(open({str(VOCAB)!r}, "rb").read()), cache=False)
ids = tok.encode("the tokenizer, the abc").tolist()
print(tok.decode(ids), ids, *sorted({{k.cache_hit for k in jit.kernel.registry if k.cache_hit is not None}}))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with the small package."""
    package = tmp_path / "jittok"
    package.mkdir()
    (package / "__init__.py").write_text("")
    shutil.copytree(PACKAGE / "_jit", package / "_jit", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "step.py").write_text(HELPER)
    (package / "climb.py").write_text(KERNEL)
    return tmp_path


def environment(home: Path, **settings: str) -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "JITTOK_", "PYTHON"))}
    path = os.pathsep.join([str(home), str(PACKAGE.parent)])  # the small package first, if there is one
    if (
        home / "jittok"
    ).exists():  # Python takes its bytecode for that of an edit in the same second, of the same length
        clean["PYTHONDONTWRITEBYTECODE"] = "1"
    return clean | {"PYTHONPATH": path, "JITTOK_CACHE_DIR": str(home / "cache")} | settings


def python(home: Path, code: str, **settings: str) -> str:
    """What the code prints, with the package that lies in `home` (or else the one that is tested)."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(
        command, env=environment(home, **settings), cwd=home, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def entries(home: Path) -> list[Path]:
    return sorted(path for path in (home / "cache").rglob("*") if path.suffix == ".o")


# ---- import


@pytest.mark.parametrize("module", ["jittok", "jittok.cli", "jittok.vocab", "jittok.ragged", "jittok.errors"])
def test_light_modules_stay_light(tmp_path, module):
    code = f"import sys, {module}; print(sorted({HEAVY} & set(sys.modules)))"
    assert python(tmp_path, code) == "[]"


def test_import_jittok_takes_under_50_ms_of_cpu_beside_numpy(tmp_path):
    code = "import numpy, time; t = time.thread_time(); import jittok; print(time.thread_time() - t)"
    assert min(float(python(tmp_path, code)) for _ in range(5)) < 0.050


def test_loading_a_kept_vocabulary_imports_nothing_and_its_first_text_neither_compilers_nor_batches(tmp_path):
    path = tmp_path / "a.gguf"
    path.write_bytes(lzma.decompress(VOCAB.with_name("syn-bpe-rstrip.gguf.xz").read_bytes()))
    code = f"""
import sys, jittok
before = set(sys.modules)
tok = jittok.load({str(path)!r})
loaded = {{name for name in sys.modules if name.startswith("jittok.")}} - before
ids = tok.encode("abc").tolist()
needless = {{"jittok.batch", "jittok.models.bpe.compile", "jittok.vocab.load", "numba"}}
print(ids, loaded, sorted(needless & set(sys.modules)))
"""
    first = python(tmp_path, code)
    ids = first[: first.index("]") + 1]
    assert "jittok.models.bpe.compile" in first
    assert python(tmp_path, code) == f"{ids} set() []"


def test_every_public_name_can_be_had(tmp_path):
    assert python(tmp_path, "import jittok; print([n for n in jittok.__all__ if not hasattr(jittok, n)])") == "[]"


# ---- the stamp of the sources

STAMP = """
import builtins
opened, real = [], open
def noted(file, *args, **kwargs):
    opened.append(str(file))
    return real(file, *args, **kwargs)
builtins.open = noted
from jittok._jit import stamps
stamps.SETTLED = float({settled})
print(stamps.source_stamp("jittok.climb").hex(), sum(file.endswith(".py") for file in opened))
"""
READS = STAMP.format(settled=-1)


def stamp_of(home: Path, code: str = READS) -> tuple[str, bool]:
    """The stamp, and whether sources were read for it."""
    stamp, read = python(home, code).split()
    return stamp, read != "0"


def memo(home: Path) -> Path:
    (found,) = (home / "cache" / "kernels").glob("*.sources")
    return found


def test_sources_are_read_once(home):
    stamp, read = stamp_of(home)
    assert read
    assert stamp_of(home) == (stamp, False)


def test_an_edit_that_leaves_the_size_is_noticed(home):
    stamp, _ = stamp_of(home)
    (home / "jittok" / "step.py").write_text(HELPER.replace("value + 1", "value + 2"))
    other, read = stamp_of(home)
    assert read
    assert other != stamp
    (home / "jittok" / "step.py").write_text(HELPER)
    assert stamp_of(home) == (stamp, True)


def test_an_edit_that_is_made_to_look_old_is_noticed(home):
    step = home / "jittok" / "step.py"
    stamp, _ = stamp_of(home)
    facts = step.stat()
    step.write_text(HELPER.replace("value + 1", "value + 2"))
    os.utime(step, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert stamp_of(home)[0] != stamp


def test_imports_are_found_by_their_text_and_the_root_counts_only_for_what_it_defines():
    modules = {"", "a", "a.b", "c"}
    for text, found in [
        ("from jittok.a import b, other", {"a", "a.b"}),
        ("    from jittok.a import (\n    b,\n)", {"a", "a.b"}),
        ("import jittok.c", {"c"}),
        ("from jittok import a, c", {"a", "c"}),
        ("from jittok import a, __version__", {"", "a"}),
        ("import os\nfrom jittokens import a", set()),
    ]:
        assert stamps._imports(text.encode(), modules) == found, text


def test_a_new_source_and_one_that_went_are_noticed(home):
    stamp, _ = stamp_of(home)
    (home / "jittok" / "other.py").write_text("")
    assert stamp_of(home) == (stamp, True)  # nothing imports it
    (home / "jittok" / "other.py").unlink()
    assert stamp_of(home) == (stamp, True)


@pytest.mark.parametrize("damage", [b"", b"jittok", b"\0" * 500, b"{}"])
def test_a_damaged_memo_is_a_miss_and_mended(home, damage):
    stamp, _ = stamp_of(home)
    whole = memo(home).read_bytes()
    for content in (damage, whole[:-3], whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]):
        memo(home).write_bytes(content)
        assert stamp_of(home) == (stamp, True)
        assert memo(home).read_bytes() == whole
    assert stamp_of(home) == (stamp, False)


def test_no_memo_is_written_of_sources_that_are_younger_than_their_times_can_tell(home):
    stamp = stamp_of(home, STAMP.format(settled=1e9))
    assert not (home / "cache" / "kernels").exists()
    assert stamp_of(home, STAMP.format(settled=1e9)) == stamp == (stamp[0], True)


def test_a_memo_that_cannot_be_written_is_no_failure(home):
    (home / "cache").write_text("no folder")
    stamp, read = stamp_of(home)
    assert read
    (home / "cache").unlink()
    (home / "cache").mkdir()
    (home / "cache" / "kernels").write_text("no folder")
    assert stamp_of(home) == (stamp, True)


def test_processes_that_start_together_give_one_stamp_and_leave_one_whole_memo(home):
    command = [sys.executable, "-W", "error", "-c", READS]
    started = [
        subprocess.Popen(command, env=environment(home), cwd=home, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    stamps = {process.communicate()[0].split()[0] for process in started}
    assert all(process.returncode == 0 for process in started)
    assert stamps == {stamp_of(home)[0]}
    assert stamp_of(home)[1] is False
    assert [path.suffix for path in (home / "cache" / "kernels").iterdir()] == [".sources"]


# ---- the cache of machine code


def test_the_second_process_compiles_nothing_and_code_for_any_processor_gives_the_same_ids(tmp_path):
    first = python(tmp_path, ENCODE)
    assert first.endswith("] False")
    assert python(tmp_path, ENCODE) == first.removesuffix("False") + "True"
    assert python(tmp_path, ENCODE, JITTOK_PLAIN="1") == first


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


def test_processes_may_start_together_on_a_vocabulary_that_nobody_has_compiled(tmp_path):
    path = tmp_path / "syn.gguf"
    path.write_bytes(lzma.decompress(VOCAB.with_name("syn-rwkv.gguf.xz").read_bytes()))
    code = f"""
import sys, jittok, jittok._jit as jit
tok = jittok.load({str(path)!r})
rows = tok.encode_batch(["the abc", "x y \u00e9"]).to_list()
hits = {{k.cache_hit for k in jit.kernel.registry if k.cache_hit is not None}}
print(rows, tok.encode("the abc").tolist() == rows[0], tok.decode(rows[1]), *hits, "jittok.vocab.load" in sys.modules)
"""
    command = [sys.executable, "-W", "error", "-c", code]
    started = [
        subprocess.Popen(
            command, env=environment(tmp_path), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    told = [process.communicate() for process in started]
    assert [(process.returncode, error) for process, (_, error) in zip(started, told, strict=True)] == [(0, "")] * 4
    rows = {out.split(" True ")[0] for out, _ in told}
    assert len(rows) == 1
    # the next one compiles neither kernels nor the vocabulary, and half-written files are not left behind
    assert python(tmp_path, code) == f"{rows.pop()} True x y \u00e9 True False"
    kept = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert {path.suffix for path in kept} - {".sources"} == {".o", ".vocab", ".path"}
    assert not [path for path in kept if path.name.startswith(".")]


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

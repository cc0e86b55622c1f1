"""The stamp of the sources: read once, and an edit is never missed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_package import HELPER, environment, python

from jittok.kernels.jit import stamps

pytestmark = pytest.mark.process

STAMP = """
import builtins
opened, real = [], open
def noted(file, *args, **kwargs):
    opened.append(str(file))
    return real(file, *args, **kwargs)
builtins.open = noted
from jittok.kernels.jit import stamps
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


KEPT = """
from jittok.kernels.jit import stamps
stamps.SETTLED = -1.0
found, whole = stamps.kept_stamp("jittok.climb").hex(), stamps._kept.cache_info().currsize
print(found, bool(whole), stamps.source_stamp("jittok.climb").hex() == found)
"""


def test_the_stamp_of_what_every_start_asks_for_is_that_of_the_sources_and_needs_no_memo_of_all(home):
    stamp, _ = stamp_of(home)
    assert python(home, KEPT) == f"{stamp} True True"
    assert python(home, KEPT) == f"{stamp} False True"
    step = home / "jittok" / "step.py"
    step.write_text(HELPER.replace("value + 1", "value + 2"))
    other = python(home, KEPT)
    assert other.endswith(" True True")
    assert not other.startswith(stamp)
    step.unlink()
    assert python(home, KEPT).split()[0] not in (stamp, other.split()[0])
    step.write_text(HELPER)
    assert [python(home, KEPT) for _ in range(3)][-1] == f"{stamp} False True"


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

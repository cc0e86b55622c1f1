"""`make test` and `make test-all`: which tests they run, and what they say of them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import parts
import pytest
from parts import PARTS, WHOLE, Part

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
TRIAL = """
import os, pytest
@pytest.mark.parametrize("number", range(9))
def test_numbers(number):
    assert number < 9
@pytest.mark.parametrize("number", range(9))
@pytest.mark.every_set
def test_sets(number):
    assert number < 9
def test_dear():
    pass
@pytest.mark.parametrize("text", ["it's", "plain"])
def test_texts(text):
    if text == "plain":
        pytest.skip("not here")
    assert not os.environ.get("FAILING")
"""


def runs(part: str, path: str) -> bool:
    """Whether a part runs a file."""
    arguments = [each for each in PARTS[part].tests if each.startswith("tests")]
    ignored = [each.removeprefix("--ignore=") for each in PARTS[part].tests if each.startswith("--ignore=")]

    def inside(folders: list[str]) -> bool:
        return any(path == folder or path.startswith(f"{folder}/") for folder in folders)

    return inside(arguments) if arguments else not inside(ignored)


@pytest.mark.parametrize("whole", WHOLE)
def test_every_test_file_is_in_one_compiled_part(whole: str) -> None:
    others = {"checked", "interpreted", "settings"}
    for path in FILES:
        parts = [name for name in WHOLE[whole] if name not in others and runs(name, path)]
        expected = 0 if whole == "test" and (path.startswith("tests/notebooks/") or path == "tests/test_docs.py") else 1
        assert len(parts) == expected, (path, parts)


def trial(folder: Path, **settings: str) -> tuple[subprocess.CompletedProcess[str], list[dict[str, object]]]:
    """A run of TRIAL beside this project's conftest.py; what its tests reported."""
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text("utf-8"))
    (folder / "test_trial.py").write_text(TRIAL)
    report = folder / "report"
    report.unlink(missing_ok=True)
    configuration = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "--randomly-seed=7"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *configuration, "-p", "no:cacheprovider", str(folder)],
        env=os.environ | {"JITTOK_TESTS_REPORT": str(report)} | settings,
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done, [json.loads(line) for line in report.read_text("utf-8").splitlines()]


@pytest.mark.process
def test_a_sample_has_some_parameters_of_each_test_and_every_recorded_set(tmp_path: Path) -> None:
    done, rows = trial(tmp_path, JITTOK_TESTS="sample")
    assert done.returncode == 0, done.stdout
    names = sorted(str(row["name"]).rpartition("::")[2] for row in rows if "name" in row)
    sets = [f"test_sets[{k}]" for k in range(9)]
    assert names == ["test_dear", "test_numbers[0]", "test_numbers[8]", *sets, "test_texts[it's]", "test_texts[plain]"]
    assert rows[0] == {"total": 14, "left": 7}
    assert [row["reason"] for row in rows if row.get("outcome") == "skipped"] == ["Skipped: not here"]
    done, rows = trial(tmp_path, JITTOK_TESTS="")
    assert rows[0] == {"total": 21, "left": 0}


class Item:
    """What `sample` looks at."""

    def __init__(self, nodeid: str, marker: str = "") -> None:
        self.nodeid, self.marker = nodeid, marker

    def get_closest_marker(self, name: str) -> object:
        return self.marker == name or None


def test_a_sample_leaves_out_what_takes_long_but_no_file(pytestconfig: pytest.Config) -> None:
    conftest = next(
        each for each in pytestconfig.pluginmanager.get_plugins() if hasattr(each, "every_test_of_a_sample")
    )
    names = [
        "a.py::quick",
        "a.py::slow[0]",
        "a.py::slow[1]",
        "a.py::dear",
        "b.py::dear[x]",
        "b.py::dearer",
        "c.py::sets[0]",
    ]
    items = [Item(name, "every_set" if "sets" in name else "") for name in names]
    costs = {
        "a.py::slow": 2.0,
        "a.py::dear": 9.0,
        "b.py::dear": 8.0,
        "b.py::dearer": 9.0,
        "c.py::sets": 99.0,
        "gone": 9.0,
    }
    found = [item.nodeid for item in conftest.every_test_of_a_sample(items, costs)]
    assert found == ["a.py::quick", "a.py::slow[0]", "b.py::dear[x]", "c.py::sets[0]"]


@pytest.mark.process
def test_a_failing_test_names_the_command_that_runs_it_alone(tmp_path: Path) -> None:
    done, rows = trial(tmp_path, FAILING="1", HYPOTHESIS_PROFILE="sample")
    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if "-m pytest" in line]
    *settings, python, minus_m, _, order, name = shlex.split(line)
    assert (python, minus_m, order) == (sys.executable, "-m", "--randomly-seed=7")
    assert "HYPOTHESIS_PROFILE=sample" in settings
    assert name.endswith("test_trial.py::test_texts[it's]")
    assert [row["outcome"] for row in rows if row.get("name") == name] == ["failed"]


@pytest.mark.process
def test_a_run_tells_when_parts_begin_and_end_why_tests_are_skipped_and_what_was_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test_trial.py").write_text(TRIAL)
    given = ["-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider", str(tmp_path)]
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text("utf-8"))
    monkeypatch.setattr(parts, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(parts, "EVERY", 0.01)
    monkeypatch.setitem(PARTS, "good", Part("those that pass", given, {"JITTOK_TESTS": ""}))
    monkeypatch.setitem(PARTS, "bad", Part("those that fail", given, {"JITTOK_TESTS": "", "FAILING": "1"}))
    monkeypatch.setitem(WHOLE, "test", ["good", "bad"])
    monkeypatch.setattr(sys, "argv", ["parts.py", "test", "--jobs", "1"])
    assert parts.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "good begins: those that pass"
    assert "bad begins: those that fail" in lines
    assert [line.split(":")[0] for line in lines if " passed" in line and " s, " in line] == ["good", "bad"]
    assert "  ... good collects" in lines
    assert sum("-m pytest" in line for line in lines) == 1  # how to run the failing one alone
    assert "     2  not here" in lines
    assert len([line for line in lines if "test_trial.py::test_" in line and line.startswith("   ")]) == parts.SLOWEST
    assert lines[-3].endswith("failed: bad")
    assert lines[-2].startswith("kernels: 0 of ")
    assert "jittok.kernels.models.rwkv" in lines[-2]  # of those that were not run
    assert lines[-1].startswith("asked: 42 tests; left out: 0. `make test-all` asks the rest")

"""The lists of `make mutants` fit the sources: a change of a line that is no longer there asks nothing."""

import contextlib
import importlib.util
import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "mutants"
spec = importlib.util.spec_from_file_location("run_mutants", HERE / "run.py")
run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)
EVERY = [mutant for path in sorted(HERE.glob("*.txt")) for mutant in run.read(path)]


def test_there_are_enough_changes_of_enough_rooms():
    assert len(EVERY) >= 150
    assert len({Path(mutant.source).parts[1] for mutant in EVERY}) >= 8


def test_each_line_and_each_test_of_the_lists_is_there():
    assert [(mutant.source, mutant.old, mutant.tests) for mutant in EVERY if not run.fits(mutant)] == []


@pytest.mark.parametrize("lost", [{"source": "jittok/none.py"}, {"old": "no line"}, {"which": 99}, {"tests": ("no",)}])
def test_a_change_that_does_not_fit_is_known(lost):
    assert run.fits(EVERY[0])
    assert not run.fits(EVERY[0]._replace(**lost))


def test_no_change_leaves_its_line_as_it_is():
    assert [mutant.old for mutant in EVERY if mutant.old == mutant.new] == []


def test_a_test_that_waits_is_stopped(tmp_path, monkeypatch):
    pytest.importorskip("resource")
    (tmp_path / "test_it.py").write_text("import time\ndef test_it():\n    time.sleep(600)\n")
    monkeypatch.setattr(run, "WAITING", 0.05)
    assert run.Copies.tested(None, tmp_path, ["test_it.py"], 60)[0] == run.ENDLESS


class Copies:
    """Every change fails one test, which may fail without a change too."""

    def __init__(self, *, fails):
        self.fails, self.asked = fails, []

    def change(self, _mutant, _seconds):
        return "FAILED tests/test_a.py::test_b[c] - no"

    def unchanged(self, tests):
        self.asked.append([*tests])
        if self.fails:
            raise SystemExit


def test_an_answer_counts_once_its_test_has_passed_without_the_change(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "KEPT", tmp_path / "kept.json")
    kept = {}
    for fails in (True, True, False, False):
        copies = Copies(fails=fails)
        with pytest.raises(SystemExit) if fails else contextlib.nullcontext():
            assert run._answers(copies, EVERY[:2], kept, 2) == [copies.change(None, 0)] * 2
        kept = json.loads(run.KEPT.read_text())
    assert copies.asked == []  # proved the time before

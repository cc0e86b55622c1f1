"""The lists of `make mutants` fit the sources: a change of a line that is no longer there asks nothing."""

import importlib.util
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

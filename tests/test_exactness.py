"""The bench that asks whose ids are those of a file's own library counts what it says."""

import importlib
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"


@pytest.fixture
def exactness(monkeypatch):
    for name in ("compare", "conftest", "peers", "exactness"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(BENCH))
    yield importlib.import_module("exactness")
    for name in ("compare", "conftest", "peers", "exactness"):
        sys.modules.pop(name, None)  # not by monkeypatch, which would put them back


def test_the_table_counts_exact_sets_of_loaded_ones_by_kind(exactness):
    def row(kind, **said):
        answers = {name: {"loaded": n is not None, "differ": n} for name, n in said.items()}
        return {"set": "x", "kind": kind, "documents": 1, "programs": answers}

    rows = [row("ranks", jittok=0, tokie=None), row("ranks", jittok=0, tokie=3), row(".model", jittok=1)]
    lines = exactness.table({"results": rows, "versions": {"jittok": "1", "tokie": "2"}}).splitlines()
    assert lines[0] == "| | .model: 1 | ranks: 2 | all: 3 |"
    assert lines[2:4] == ["| jittok | 0 / 1 | 2 / 2 | 2 / 3 |", "| tokie |  | 0 / 1 | 0 / 1 |"]


@pytest.mark.process
def test_a_set_is_asked_in_a_process_of_its_own(exactness, monkeypatch, capsys):
    pytest.importorskip("tokenizers")
    right = exactness.own_library

    def wrong(each):
        plain, special = right(each)
        return (lambda text: [*plain(text), 0] if "def" in text else plain(text)), special

    (row,) = exactness.measure(None, 1, ["jittok"], ["syn-wordlevel"])["results"]
    assert row["programs"] == {"jittok": {"loaded": True, "differ": 0}}
    assert row["documents"] == 3
    monkeypatch.setattr(exactness, "own_library", lambda each: (wrong(each)[0],) * 2)
    (row,) = exactness.measure(None, 1, ["jittok"], ["syn-wordlevel"])["results"]
    assert row["programs"]["jittok"]["differ"] > 0
    assert capsys.readouterr().out.count("syn-wordlevel") == 2

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


@pytest.mark.process
def test_a_newer_release_is_asked_in_a_python_of_its_own(exactness, tmp_path):
    """Here a program that stands for it: it knows the calls of tokenizers 1.0."""
    folder = tmp_path / "tokenizers"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "__version__ = '1.0.0'\n"
        "class Tokenizer:\n"
        "    def from_file(path): return Tokenizer()\n"
        "    def encode(self, text, *, add_special_tokens, encode_special_tokens):\n"
        "        if 'bad' in text: raise ValueError(text)\n"
        "        self.ids = [len(text)]\n"
        "        return self\n"
    )
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    each = exactness.Set("x", "tokenizer.json", tmp_path / "tokenizer.json")
    said = exactness.ask(exactness.NEWER, each, ["a", "bb", "bad"], [[1], [3], [3]], str(python))
    assert said == {"loaded": True, "differ": 2}
    assert exactness.version_of(str(python)) == "1.0.0"
    with pytest.raises(ImportError, match="--newer PYTHON"):
        exactness.PROGRAMS[exactness.NEWER][0](each)

"""Names of files as a shell gives them: empty, those of options, with line ends, of a place among what is read."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jittok.cli import build_parser, main, one_line

pytest.importorskip("pyarrow")

COMMANDS = [
    "encode a.txt --vocab", "encode a.txt --vocab gpt-2 -o", "encode --vocab gpt-2", "count --vocab gpt-2",
    "decode --vocab gpt-2", "info", "compare gpt-2", "compare gpt-2 mistral --html", "compare gpt-2 mistral --corpus",
    "convert --to gguf", "convert gpt-2 --to gguf --out", "trace --vocab gpt-2 -f", "corpus --vocab gpt-2 --out x",
    "corpus a.txt --vocab gpt-2 --out", "verify --vocab gpt-2", "train --size 260 --out x.gguf",
    "train a.txt --size 260 --out", "train a.txt --size 260 --out x.gguf --work", "train --size 260 --words",
    "train a.txt --save-words", "train a.txt --size 260 --trace", "train a.txt --size 260 --held-out",
    "train a.txt --size 9 --out x.gguf --extend", "train a.txt --out x.gguf --prune", "cache warm --vocab",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_an_empty_name_is_told_and_nothing_is_read_or_written(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("some words")
    with pytest.raises(SystemExit, match="2"):
        main([*command.split(), ""])
    said = capsys.readouterr()
    assert "found an empty name" in said.err
    assert said.err.count("\n") == 1
    assert not said.out
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    "command",
    [
        "encode a.txt --vocab gpt-2 -o",
        "compare gpt-2 mistral --html",
        "convert gpt-2 --to gguf --out",
        "corpus a.txt --vocab gpt-2 --out",
        "train a.txt --size 260 --work",
        "train a.txt --save-words",
    ],
)
def test_an_output_is_not_written_to_a_file_that_is_called_minus(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main([*command.split(), "-"])
    assert "/dev/stdout for standard output" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_every_option_that_names_a_file_refuses_an_empty_one() -> None:
    choices: Any = build_parser()._subparsers._group_actions[0].choices  # type: ignore[union-attr]
    names = ("file", "files", "vocab", "out", "inputs", "corpus", "html", "folder", "words", "save_words",
             "held_out", "work", "extend", "prune", "a", "b", "source")  # fmt: skip
    seen = set()
    for name, command in choices.items():
        for action in command._actions:
            if action.dest in names:
                seen.add(action.dest)
                with pytest.raises(argparse.ArgumentTypeError, match="empty name"):
                    action.type("")
                assert action.type("x") == "x", name
    assert seen == set(names)


def test_a_file_with_the_name_of_an_option_is_not_told_as_that(run: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ids").mkdir()
    status, _, said = run("encode", "-p", "a", "-o", "ids")
    assert status == 2
    assert said.startswith("jittok encode: ids: found an existing file or folder")


def test_a_name_with_a_line_end_is_told_in_one_line() -> None:
    assert one_line(FileNotFoundError(2, "No such file", "a\nb")) == "a b: No such file"


def test_shards_among_their_own_texts_are_no_input_of_the_call_that_goes_on(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("filelock")
    (tmp_path / "a.txt").write_text("some words")
    for out in (tmp_path / "out", tmp_path / "b" / "c"):
        for _ in range(3):
            status, told, _ = run("corpus", tmp_path, "--out", out, "--json")
            assert status == 0
            assert json.loads(told)["documents"] == 1
        assert run("corpus", tmp_path, "--out", out, "--dry-run")[0] == 0
        shutil.rmtree(out)


def test_texts_to_measure_with_are_looked_for_before_any_work(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "a.txt").write_text("a b a b")
    out = tmp_path / "a.gguf"
    status = main(["train", str(tmp_path / "a.txt"), "--size", "258", "--out", str(out), "--held-out", "nowhere"])
    assert status == 2
    assert "nowhere: found no such file or directory" in capsys.readouterr().err
    assert not out.exists()

"""Options of reading that are about another kind than all inputs, and what commands tell of files that are not read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jittok
from jittok.cli import main
from jittok.corpus import Options, compile_corpus
from jittok.errors import CorpusError

pa = pytest.importorskip("pyarrow")
pytest.importorskip("filelock")
import pyarrow.parquet as pq  # noqa: E402

COMMANDS = [
    ["count", "--vocab", "gpt-2"],
    ["encode", "--vocab", "gpt-2", "--ids"],
    ["corpus", "--vocab", "gpt-2"],
    ["corpus", "--dry-run", "--vocab", "gpt-2"],
    ["train", "--size", "258"],
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    row = {"text": "a short one", "body": "another text that is longer"}
    (folder / "a.jsonl").write_text(json.dumps(row) + "\n")
    pq.write_table(pa.table({name: [text] for name, text in row.items()}), folder / "a.parquet")
    (folder / "a.txt").write_text("plain")
    return folder


def asked(command: list[str], folder: Path, *more: str) -> int:
    out = {"corpus": ["--out", str(folder.parent / "out")], "train": ["--out", str(folder.parent / "out.json")]}
    return main([*command, *more, *out.get(command[0], [])])


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(("option", "name"), [("--column", "a.jsonl"), ("--field", "a.parquet"), ("--field", "a.txt")])
def test_an_option_of_another_kind_is_refused(data, capfd, command, option, name):
    assert asked(command, data, str(data / name), option, "body") == 2
    assert f"{option}: found 'body', expected" in capfd.readouterr().err


@pytest.mark.parametrize("option", ["--column", "--field"])
def test_one_input_of_the_kind_is_enough(data, capfd, option):
    (data / "a.txt").unlink()
    assert asked(COMMANDS[0], data, str(data), option, "body") == 0
    assert capfd.readouterr().out.strip().endswith("total")


def test_a_separator_without_text_is_refused(data):
    with pytest.raises(CorpusError, match=r"separator: found '\|', expected plain text among the inputs"):
        compile_corpus([data / "a.jsonl"], jittok.bundled("gpt-2"), data.parent / "out", Options(separator="|"))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_is_left_out_of_a_folder_is_told(data, capfd, command):
    (data / "picture.png").write_bytes(b"\x89PNG")
    assert asked(command, data, str(data)) == 0
    said = capfd.readouterr()
    assert (said.out + said.err).count(f"{data / 'picture.png'}") == 1

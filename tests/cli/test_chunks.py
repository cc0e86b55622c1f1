"""`jittok chunks`: pieces of texts as a table, whole or not at all."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

import jittok
from jittok.cli import main

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "document_store.py"
TEXTS = ["One two three. Four five six seven.\nA line.", "Héllo wörld", ""]


@pytest.fixture
def folder(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.txt").write_text(TEXTS[0], "utf-8")
    (data / "b.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[1:]), "utf-8")
    return tmp_path


def rows_of(folder, **options):
    tok = jittok.bundled("gpt-2")
    names = [("a.txt", 0), ("b.jsonl", 0), ("b.jsonl", 1)]
    for (name, document), text in zip(names, TEXTS, strict=True):
        for number, piece in enumerate(tok.chunks(text, 4, **options)):
            yield {"source": str(folder / "data" / name), "document": document, "piece": number, **piece._asdict()}


def status(arguments):
    try:
        return main(arguments)
    except SystemExit as leave:  # what the parser refuses
        return leave.code


def ordered(row):
    return {name: row[name] for name in sorted(row)}


@pytest.mark.parametrize("given", [{}, {"overlap": 2}, {"by": "sentence"}])
@pytest.mark.parametrize("kind", ["parquet", "jsonl", None])
def test_tables_have_the_pieces_of_all_documents(folder, capsys, given, kind):
    options = [part for name, value in given.items() for part in (f"--{name}", str(value))]
    out = [] if kind is None else ["--out", str(folder / f"out.{kind}")]
    assert main(["chunks", str(folder / "data"), "--vocab", "gpt-2", "--size", "4", *options, *out]) == 0
    if kind == "parquet":
        found = pyarrow.parquet.read_table(folder / "out.parquet").to_pylist()
    else:
        shown = capsys.readouterr().out if kind is None else (folder / "out.jsonl").read_text("utf-8")
        found = [json.loads(line) for line in shown.splitlines()]
    assert [ordered(row) for row in found] == [ordered(row) for row in rows_of(folder, **given)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--size", "2", "--overlap", "2"], "--overlap: found 2, expected fewer than --size 2"),
        (["--size", "2", "--out", "a.csv"], "--out a.csv: found another extension, expected .parquet or .jsonl"),
        (["--size", "2", "--parse-special"], "--parse-special: "),
        (["--size", "0"], "found '0', expected an integer, 1 or more"),
        ([], "found no --size"),
    ],
)
def test_wrong_usage_is_told(capsys, options, said):
    assert status(["chunks", "--vocab", "gpt-2", "-p", "a", *options]) == 2
    assert said in capsys.readouterr().err


def test_a_document_that_cannot_be_cut_is_named_and_nothing_is_written(folder, capsys):
    (folder / "data" / "b.jsonl").write_text('{"text": "a"}\n{"text": "b안"}\n', "utf-8")
    out = folder / "out.jsonl"
    assert main(["chunks", str(folder / "data"), "--vocab", "gpt-2", "--size", "2", "--out", str(out)]) == 2
    assert "b.jsonl, line 2: --size: found 2, but the character '안' at 1 alone has 3 ids" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["data"]


def test_invalid_text_is_named_or_replaced(folder, capsys):
    (folder / "data" / "a.txt").write_bytes(b"a\xffb")
    asked = ["chunks", str(folder / "data" / "a.txt"), "--vocab", "gpt-2", "--size", "4"]
    assert main(asked) == 2
    assert "a.txt, offset 1: " in capsys.readouterr().err
    assert main([*asked, "--on-error", "replace"]) == 0
    assert [json.loads(line)["text"] for line in capsys.readouterr().out.splitlines()] == ["a\ufffdb"]


@pytest.mark.process
def test_the_example_of_a_document_store_runs():
    assert len([line for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if line.strip()]) < 20
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=True)
    first, found, last = done.stdout.splitlines()
    assert first.startswith("PieceRows(2 texts, ")
    assert found.startswith("library ")
    assert int(last.split()[-1]) <= 64

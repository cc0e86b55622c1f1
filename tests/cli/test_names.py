"""Names of files and folders that are invalid UTF-8: every command reads and writes them, and says them with
escapes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import jittok
from jittok.cli import main

BAD = os.fsdecode(b"\xff\xe9")
SHOWN = "\\udcff\\udce9"


@pytest.fixture
def here(folder_named: Any) -> Path:
    """A folder with such a name, that holds a text, a tokenizer and a folder of one."""
    folder: Path = folder_named(BAD, "the cat the dog\n" * 5, "cat")
    (folder / f"vocab{BAD}").mkdir()
    (folder / f"vocab{BAD}" / "tokenizer.json").write_bytes((folder / f"{BAD}.json").read_bytes())
    return folder


@pytest.fixture
def told(capfdbinary: Any) -> Any:
    """told(status, argument, ...): what a command that ends with this status prints."""

    def go(status: int, *arguments: str) -> str:
        assert main(arguments) == status
        out: bytes = capfdbinary.readouterr().out
        return out.decode()

    return go


def test_files_and_folders_are_loaded_and_kept_under_their_own_names(here: Path, told: Any) -> None:
    for vocab in (f"{BAD}.json", f"vocab{BAD}", str(here / f"{BAD}.json")):
        for _ in range(2):  # read, then taken from the cache
            assert jittok.load(vocab).encode("the cat").tolist() == [1, 2]
        assert json.loads(told(0, "info", "--vocab", vocab, "--json"))["source"] == vocab
        assert SHOWN in told(0, "info", "--vocab", vocab)


def test_texts_of_such_files_and_folders_are_counted(here: Path, told: Any) -> None:
    other = here.parent / f"{BAD}.txt"
    other.write_bytes((here / f"{BAD}.txt").read_bytes())
    counted = told(0, "count", "--vocab", f"{BAD}.json", f"{BAD}.txt", str(other))
    assert f"20 {SHOWN}.txt\n" in counted
    assert f"20 {here.parent}/{SHOWN}.txt\n" in counted
    assert told(0, "count", "--vocab", f"{BAD}.json", str(here)).startswith("20\n")
    (row,) = json.loads(told(0, "count", "--vocab", f"{BAD}.json", f"{BAD}.txt", "--json"))["sources"]
    assert row["source"] == f"{BAD}.txt"


def test_a_comparison_names_them_on_its_page(here: Path, told: Any) -> None:
    command = ["compare", f"{BAD}.json", "gpt-2", "--corpus", f"{BAD}.txt"]
    assert f"{SHOWN}.txt" in told(1, *command, "--html", f"{BAD}.html")
    assert f"{SHOWN}.txt" in (here / f"{BAD}.html").read_text("utf-8")
    assert BAD in json.dumps(json.loads(told(1, *command, "--json")), ensure_ascii=False)


@pytest.mark.usefixtures("here")
def test_what_is_converted_and_trained_is_told_with_its_name(told: Any) -> None:
    train = ["train", "--size", "262", "--out"]
    words = ["--save-words", f"words{BAD}", "--memory", "1M", "--work", f"work{BAD}"]
    assert f"{SHOWN}.gguf" in told(0, *train, f"{BAD}.gguf", f"{BAD}.txt", *words)
    assert f"{SHOWN}-3.json" in told(0, *train, f"{BAD}-3.json", "--words", f"words{BAD}", "--work", f"work{BAD}")
    assert f"{SHOWN}-2.json: " in told(
        0, "convert", f"{BAD}.gguf", "--to", "tokenizer.json", "--out", f"{BAD}-2.json", "--corpus", f"{BAD}.txt"
    )
    assert jittok.load(f"{BAD}-2.json").encode("the").size == jittok.load(f"{BAD}.gguf").encode("the").size < 3


@pytest.mark.usefixtures("here")
def test_a_corpus_is_written_continued_and_verified_in_such_a_folder(told: Any) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"text": ["the cat"] * 3})
    pq.write_table(table, pa.OSFile(os.fsencode(f"{BAD}.parquet"), "wb"))
    with pa.OSFile(os.fsencode(f"{BAD}.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    inputs = [f"{BAD}.txt", f"{BAD}.parquet", f"{BAD}.arrow"]
    command = ["corpus", "--vocab", f"{BAD}.json", *inputs, "--out", f"out{BAD}", "--format", "parquet,arrow,npy"]
    assert f"out{SHOWN}: 7 documents, 32 tokens" in told(0, *command)
    assert "from an earlier run" in told(0, *command)
    assert told(0, "verify", "--vocab", f"{BAD}.json", f"out{BAD}", "--all").startswith("no differences")

"""Each error is one line that says what was found and what would be right."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import jittok
from jittok.cli import main

pytest.importorskip("pyarrow")
pytest.importorskip("orjson")


def test_a_url_is_refused_as_output_where_no_store_is_behind_it(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"hi")
    for out in ("ftp://bucket/x", "https://server/x", "s3:/bucket"):
        status, _, err = run("corpus", "a.txt", "--out", out)
        assert status == 2
        assert f"found '{out}', expected a folder, or a URL of s3://" in err
    assert "expected a local path" in run("encode", "-o", "s3://bucket/x", "a.txt")[2]
    with pytest.raises(jittok.CorpusError, match="expected a folder, or a URL"):
        jittok.corpus.compile_corpus(["a.txt"], jittok.bundled("gpt-2"), "ftp://bucket/x")
    with pytest.raises(ValueError, match="a local path"):
        jittok.bundled("gpt-2").encode_batch(["a"]).save("s3://bucket/x")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


OUTPUTS = {
    "train": ("train", "a.txt", "--size", "300", "--out"),
    "words": ("train", "a.txt", "--save-words"),
    "trace": ("train", "a.txt", "--size", "300", "--trace"),
    "page": ("compare", "gpt-2", "gpt-2", "--corpus", "a.txt", "--html"),
    "convert": ("convert", "gpt-2", "--to", "gguf", "--out"),
}


@pytest.mark.parametrize("command", OUTPUTS.values(), ids=OUTPUTS)
@pytest.mark.parametrize(
    ("out", "expected"),
    [
        ("s3://bucket/x.gguf", "expected a local path"),
        ("none/x.gguf", "none/x.gguf: found no folder none, expected an existing one"),
        ("folder", "folder: found a folder, expected a file name"),
    ],
)
def test_a_file_that_cannot_be_written_is_told_before_any_work(command, out, expected, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"\xff")  # which no command could read
    (tmp_path / "folder").mkdir()
    assert main([*command, out, "--overwrite"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert expected in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "folder"]


@pytest.mark.parametrize("command", [("train", "x.gguf", "--size", "300"), ("convert", "x.gguf", "--to", "gguf")])
def test_what_is_read_is_not_written_over(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.gguf").write_bytes(b"words")
    assert main([*command, "--out", str(tmp_path / "x.gguf"), "--overwrite"]) == 2
    assert "found an input file, expected another name" in capsys.readouterr().err
    assert (tmp_path / "x.gguf").read_bytes() == b"words"


def test_every_command_that_reads_texts_has_the_limit_on_a_document(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with gzip.open(tmp_path / "bomb.jsonl.gz", "wb") as file:
        file.write(b'{"text":"' + b"a" * (3 << 20))
    limit = ["--max-document-bytes", "1M"]
    for command in (
        ["count", "bomb.jsonl.gz", "--vocab", "gpt-2"],
        ["encode", "bomb.jsonl.gz", "--vocab", "gpt-2"],
        ["corpus", "bomb.jsonl.gz", "--vocab", "gpt-2", "--out", "out"],
        ["trace", "--file", "bomb.jsonl.gz", "--vocab", "gpt-2"],
        ["train", "bomb.jsonl.gz", "--size", "300", "--out", "x.gguf"],
        ["convert", "gpt-2", "--to", "tiktoken", "--corpus", "bomb.jsonl.gz"],
        ["compare", "gpt-2", "gpt-2", "--corpus", "bomb.jsonl.gz"],
    ):
        status, said = main([*command, *limit]), capsys.readouterr().err
        assert (status, "bomb.jsonl.gz" in said, "up to 1048576 bytes (--max-document-bytes)" in said) == (
            2,
            True,
            True,
        ), (command, said)


def test_a_text_in_place_of_a_name_is_not_printed_as_a_whole(run: Any) -> None:
    for arguments in (
        ["encode", "a/b " * 9000],
        ["encode", "-p", "a", "--pre", "a b " * 9000],
        ["encode", "-" + "a" * 9000],
    ):
        status, _, said = run(*arguments)
        assert status == 2
        assert len(said) < 4000
        assert "characters" in said
        assert said.startswith("jittok")
    assert "found no such file or directory" in run("encode", "a/b c")[2]


def test_a_folder_that_may_not_be_read_is_an_error(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data" / "closed").mkdir(parents=True)
    (tmp_path / "data" / "a.txt").write_bytes(b"hi")
    scandir = os.scandir

    def refusing(path: Any) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    for command in (["count"], ["corpus", "--out", tmp_path / "out"]):
        status, _, err = run(*command, tmp_path / "data")
        assert status == 2
        assert err.endswith("closed: Permission denied\n")


MESSAGES = [
    (["corpus", "typo/", "--out", "out"], "typo/: found no such file or directory, expected a file, a directory"),
    (["count", "typo.txt"], "typo.txt: found no such file or directory"),
    (
        ["count", "--vocab", "tokenizer.json"],
        "file: found JSON with 'version', expected a GGUF file, tokenizer.json",
    ),
    (["count", "--vocab", "."], "tokenizer.json: file: found"),
    (["count", "--vocab", "empty"], "empty: file: found an empty file, expected a GGUF file or another"),
    (
        ["count", "--vocab", "gpt2"],
        "a folder with one, or a bundled name: bert, gpt-2, mistral, t5; did you mean gpt-2?",
    ),
    (
        ["count", "--vocab", "meta-llama/Llama-3.1-8B"],
        "for that repository of Hugging Face: hf:meta-llama/Llama-3.1-8B",
    ),
    (["count", "--vocab", "half.gguf"], "half.gguf: header (byte 4): found"),
    (["encode", "-o", "a.txt/ids", "-p", "x"], "a.txt"),
    (["corpus", "a.txt", "--out", "a.txt"], "a.txt: found a file, expected a folder"),
    (
        ["corpus", "a.txt", "--out", "ftp://bucket"],
        "jittok corpus: --out: found 'ftp://bucket', expected a folder, or a URL of s3://",
    ),
    (["encode", "--llama-cpp", "b1", "a.txt"], "jittok encode: --llama-cpp: found 'b1', expected one of"),
    (["encode", "--pre", "nope", "a.txt"], "jittok encode: --pre: found 'nope', expected a name that llama.cpp"),
    (["cache", "warm", "--level", "v99"], "jittok cache: --level: found 'v99', expected one that this processor runs"),
]


@pytest.mark.parametrize(("arguments", "says"), MESSAGES, ids=[" ".join(arguments) for arguments, _ in MESSAGES])
def test_a_message_says_what_was_found_and_what_would_be_right(
    capfd: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in {
        "tokenizer.json": '{"version": "1.0"}',
        "empty": "",
        "half.gguf": "GGUF",
        "a.txt": "x",
    }.items():
        (tmp_path / name).write_text(content)
    vocab = [] if "--vocab" in arguments else ["--vocab", "gpt-2"]
    assert main([*arguments, *vocab]) == 2
    err = capfd.readouterr().err
    assert says in err
    assert err.count("\n") == 1


def test_a_place_that_cannot_be_written_is_named_itself(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = Path.mkdir

    def refusing(path: Path, *given: Any, **options: Any) -> None:
        if path.name.startswith("."):
            raise PermissionError(13, "Permission denied", str(path))
        mkdir(path, *given, **options)

    monkeypatch.setattr(Path, "mkdir", refusing)
    assert (
        run("encode", "-o", tmp_path / "out", "-p", "hi")[2]
        == f"jittok encode: {tmp_path / 'out'}: Permission denied\n"
    )
    with pytest.raises(PermissionError, match=r"Permission denied: '[^.]*/out'"):
        jittok.bundled("gpt-2").encode_batch(["a"]).save(tmp_path / "out")


@pytest.mark.parametrize(
    ("module", "arguments"),
    [("filelock", []), ("pyarrow", []), ("obstore", ["s3://bucket/*.txt"]), ("ray", ["--engine", "ray"])],
)
def test_a_missing_extra_is_named(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, arguments: list[str]
) -> None:
    (tmp_path / "a.txt").write_bytes(b"hi")
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    status, _, err = run("corpus", tmp_path / "a.txt", *arguments, "--out", tmp_path / "out")
    assert status == 2
    assert "needs" in err
    assert "pip install '.[" in err
    assert "in a checkout of jittok" in err


def test_closed_standard_input_is_told(run: Any) -> None:
    for command in ("count", "encode", "trace", "decode"):
        status, _, err = run(command, stdin=None)
        assert status == 2
        assert "closed standard input" in err

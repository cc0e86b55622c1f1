"""`jittok corpus` and `jittok verify` as one meets them on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import make_texts, write_jsonl

import jittok.corpus
from jittok.cli import main

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("filelock")
pytest.importorskip("orjson")

BAD = {
    "no json": b"not json",
    "no object": b"[1]",
    "no field": b'{"other": "x"}',
    "another type": b'{"text": 5}',
    "null": b'{"text": null}',
    "bytes": b'{"text": "caf\xe9"}',
}


def compile_(*arguments):
    return main(["corpus", *map(str, arguments), "--vocab", "gpt-2"])


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_named_and_left_or_mended_when_asked(tmp_path, capfd, name, tok):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "one"}\n' + BAD[name] + b'\n{"text": "three"}\n')
    source = tmp_path / "a.jsonl"
    assert compile_(source, "--out", tmp_path / "fail") == 2
    said = capfd.readouterr().err
    assert said.startswith(f"jittok corpus: {source}, line 2: found ")
    assert said.count("\n") == 1
    for on_error, texts in (("skip", 2), ("replace", 3)):
        assert compile_(source, "--out", tmp_path / on_error, "--on-error", on_error, "--json") == 0
        told = json.loads(capfd.readouterr().out)
        assert (told["documents"], told["bad_documents"]) == (texts, 1)
        corpus = jittok.corpus.open(tmp_path / on_error, tok)
        assert [corpus.decode(0), corpus.decode(texts - 1)] == ["one", "three"]
        listed = (tmp_path / on_error / "errors" / "00000.jsonl").read_text("utf-8")
        (account,) = [json.loads(line) for line in listed.splitlines()]
        assert (account["file"], account["line"]) == (str(source), 2)


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_texts_that_are_all_null_are_a_wrong_field_and_some_are_not(tmp_path, capfd, tok, kind):
    path = tmp_path / f"a.{kind}"
    for name, texts, status in (("none", [None] * 3, 2), ("half", [None, "one", None, "two"], 0)):
        if kind == "jsonl":
            path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8")
        else:
            pq.write_table(pa.table({"text": pa.array(texts, pa.string())}), path)
        assert compile_(path, "--out", tmp_path / name, "--on-error", "replace") == status
        assert ("no text in any of 3 documents" in capfd.readouterr().err) == bool(status)
    corpus = jittok.corpus.open(tmp_path / "half", tok)
    assert [corpus.decode(k) for k in range(4)] == ["", "one", "", "two"]


def test_the_summary_in_words(tmp_path, capfd):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.jsonl").write_text('{"text": "one"}\n\n', "utf-8")
    (tmp_path / "data" / "b.exe").write_text("x", "utf-8")
    assert compile_(tmp_path / "data", "--out", tmp_path / "out") == 0
    said = capfd.readouterr()
    assert "1 document, 1 token, " in said.out
    assert "1 shard\n" in said.out
    assert "skipped: 1 blank line" in said.out
    assert f"unreadable): {tmp_path / 'data' / 'b.exe'}\n" in said.out
    assert said.err == ""


def test_refusals_come_before_any_work(tmp_path, jsonl, capfd):
    refused = [
        (["--format", "bogus"], "--format: found 'bogus'"),
        (["--format", "npy,npy"], "each format once"),
        (["--range-bytes", "some"], "--range-bytes: found 'some', expected a number of bytes"),
        (["--separator", ""], "--separator: found ''"),
        (["--format", "npy", "--dtype", "uint32"], "--dtype"),
    ]
    for arguments, said in refused:
        assert compile_(jsonl[0], "--out", tmp_path / "out", *arguments) == 2
        assert said in capfd.readouterr().err
        assert not (tmp_path / "out").exists()


def test_a_flipped_byte_is_named_by_verify(tmp_path, jsonl, capfd):
    assert compile_(jsonl[0], "--out", tmp_path / "out", "--format", "npy") == 0
    assert main(["verify", str(tmp_path / "out"), "--vocab", "gpt-2"]) == 0
    capfd.readouterr()
    ids = np.load(tmp_path / "out" / "npy" / "00000.ids.npy", mmap_mode="r+")
    offsets = np.load(tmp_path / "out" / "npy" / "00000.offsets.npy")
    ids[offsets[200]] ^= 1
    ids.flush()
    assert main(["verify", str(tmp_path / "out"), "--vocab", "gpt-2"]) == 1
    said = capfd.readouterr().out
    assert "shard 0, file npy/00000.ids.npy: other content than was written (SHA-256)" in said
    assert "shard 0, format npy, document 200, " in said


def test_nine_thousand_tiny_files(tmp_path, capfd, tok):
    (tmp_path / "data").mkdir()
    for i in range(9_000):
        (tmp_path / "data" / f"{i:05}.txt").write_text(f"document {i}", "utf-8")
    assert compile_(tmp_path / "data", "--out", tmp_path / "out", "--json") == 0
    assert json.loads(capfd.readouterr().out)["documents"] == 9_000
    corpus = jittok.corpus.open(tmp_path / "out", tok)
    assert [corpus.decode(i) for i in (0, 4095, 4096, 8_999)] == [f"document {i}" for i in (0, 4095, 4096, 8_999)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["txt", "jsonl"])
def test_a_document_of_100_megabytes(tmp_path, kind, tok):
    text = "\n".join(make_texts(2000, seed=9))
    text *= 100_000_000 // len(text.encode()) + 1
    path = tmp_path / f"a.{kind}"
    if kind == "jsonl":
        write_jsonl(path, ["first", text, "last"])
    else:
        path.write_text(text, "utf-8")
    assert compile_(path, "--out", tmp_path / "out") == 0
    corpus = jittok.corpus.open(tmp_path / "out", tok)
    assert len(corpus) == (3 if kind == "jsonl" else 1)
    assert np.array_equal(corpus[len(corpus) // 2], tok.encode(text))


def test_help_shows_the_commands(capsys):
    with pytest.raises(SystemExit):
        main(["corpus", "--help"])
    said = capsys.readouterr().out
    for part in ("--dry-run", "jittok verify shards", "after a crash"):
        assert part in said.split("examples:")[1]

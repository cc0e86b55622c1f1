"""`jittok verify` works from any folder, without --vocab, and claims no more than it looked at."""

from __future__ import annotations

import shutil

import pytest
from conftest import make_texts, write_jsonl

import jittok
from jittok.cli import main

pytest.importorskip("filelock")
pytest.importorskip("orjson")


def test_a_corpus_is_verified_from_any_folder_and_after_it_was_moved_with_its_inputs(tmp_path, monkeypatch, capsys):
    home = tmp_path / "one" / "home"
    (home / "data").mkdir(parents=True)
    write_jsonl(home / "data" / "a.jsonl", make_texts(20))
    monkeypatch.chdir(home)
    assert main(["corpus", "data", "--vocab", "gpt-2", "--out", "made/out", "--format", "npy"]) == 0
    for where in (tmp_path, home / "data", home):
        monkeypatch.chdir(where)
        assert main(["verify", str(home / "made" / "out"), "--all"]) == 0
        assert "no differences" in capsys.readouterr().out
    shutil.move(home, tmp_path / "moved")
    monkeypatch.chdir(tmp_path)
    assert main(["verify", "moved/made/out", "--all"]) == 0
    (tmp_path / "moved" / "data" / "a.jsonl").unlink()
    assert main(["verify", "moved/made/out"]) == 2
    assert "data/a.jsonl: found no such file" in capsys.readouterr().err


def test_the_manifest_names_the_vocabulary(tmp_path, monkeypatch, capsys):
    write_jsonl(tmp_path / "a.jsonl", make_texts(20))
    jittok.convert(jittok.bundled("gpt-2"), tmp_path / "own.gguf")
    monkeypatch.chdir(tmp_path)
    assert main(["corpus", "a.jsonl", "--vocab", "own.gguf", "--out", "out", "--format", "npy"]) == 0
    monkeypatch.chdir(tmp_path.parent)
    assert main(["verify", str(tmp_path / "out")]) == 0
    (tmp_path / "own.gguf").rename(tmp_path / "gone.gguf")
    assert main(["verify", str(tmp_path / "out")]) == 2
    assert "--vocab: found none, and the vocabulary" in capsys.readouterr().err
    assert main(["verify", str(tmp_path / "out"), "--vocab", str(tmp_path / "gone.gguf")]) == 0


def test_all_is_well_is_said_only_where_the_reference_has_read_of_each_shard(tmp_path, capsys):
    path = write_jsonl(tmp_path / "a.jsonl", ["word " * 100_000])
    assert main(["corpus", str(path), "--vocab", "gpt-2", "--out", str(tmp_path / "out"), "--format", "npy"]) == 0
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert said.startswith("no differences, but the reference implementation has not checked every shard")
    assert "from 0 of 1 shards" in said
    assert main(["verify", str(tmp_path / "out"), "--hashes-only"]) == 0
    assert capsys.readouterr().out.startswith("the files are unchanged")

"""What decides whether a corpus is gone on with: answers, layouts and how inputs are cut, not the version."""

from __future__ import annotations

import hashlib

import pytest
from conftest import dies_after, make_texts, write_jsonl

import jittok
from jittok.corpus import Options, compile_corpus, verify
from jittok.corpus import open as open_corpus
from jittok.corpus.formats.bare_ids import Npy
from jittok.corpus.shards import plan
from jittok.corpus.shards.manifest import read_manifest, write_manifest
from jittok.errors import CorpusError

pytest.importorskip("filelock")
pytest.importorskip("orjson")
OPTIONS = Options(formats=("npy",), range_bytes=500, shard_bytes=1000)


def begun(tok, data, out, monkeypatch, version, ranges=9, options=OPTIONS):
    """A corpus that was interrupted, by a version."""
    with monkeypatch.context() as patch:
        dies_after(patch, ranges)
        patch.setattr(plan, "__version__", version)
        with pytest.raises(KeyboardInterrupt):
            compile_corpus([data], tok, out, options, check_space=False, threads=1)


def content(out):
    return {path.name: path.read_bytes() for path in out.rglob("*") if path.suffix in (".npy", ".jsonl")}


def test_another_version_goes_on_where_no_answer_changed(tmp_path, tok, monkeypatch):
    data, out = write_jsonl(tmp_path / "a.jsonl", make_texts(60)), tmp_path / "out"
    begun(tok, data, out, monkeypatch, "0.0.1")
    found = compile_corpus([data], tok, out, OPTIONS)
    assert 0 < found.resumed < found.documents == 60
    assert read_manifest(out)["jittok"] == "0.0.1"
    compile_corpus([data], tok, tmp_path / "new", OPTIONS)
    assert content(out) == content(tmp_path / "new")
    monkeypatch.setattr(plan, "__version__", "9.9")
    assert compile_corpus([data], tok, out, OPTIONS).resumed == 60
    assert verify(out, tok, all=True).ok


def test_other_answers_or_layouts_do_not_go_on(tmp_path, tok, monkeypatch):
    data = write_jsonl(tmp_path / "a.jsonl", make_texts(60))
    for name, where in (("ANSWERS", plan), ("layout", Npy)):
        out = tmp_path / name
        begun(tok, data, out, monkeypatch, "0.0.1")
        with monkeypatch.context() as patch:
            patch.setattr(where, name, getattr(where, name) + 1)
            with pytest.raises(CorpusError, match=r"begun with 0\.0\.1, whose (answers|layout of npy) differ"):
                compile_corpus([data], tok, out, OPTIONS)
        assert compile_corpus([data], tok, out, OPTIONS).documents == 60


def test_a_corpus_that_tells_no_rules_goes_on_as_it_was_begun(tmp_path, tok, monkeypatch):
    """Before rules were written down, only .txt files shared ranges."""
    data = tmp_path / "data"
    data.mkdir()
    for k in range(8):
        write_jsonl(data / f"{k}.jsonl", make_texts(20, seed=k))
    out, old = tmp_path / "out", Options(formats=("npy",), range_bytes=100_000, shard_bytes=1000, cuts=1)
    identity = Options.identity
    with monkeypatch.context() as patch:
        patch.setattr(plan, "rules_of", lambda _: {})
        patch.setattr("jittok.corpus.compiler.cuts_of", lambda _: 1)
        patch.setattr(Options, "identity", lambda options: {k: v for k, v in identity(options).items() if k != "cuts"})
        begun(tok, data, out, monkeypatch, "0.2.0", ranges=4, options=old)
    found = compile_corpus([data], tok, out, Options(formats=("npy",), range_bytes=100_000, shard_bytes=1000))
    assert found.resumed == 80
    assert found.documents == 160
    assert sum(len(shard["ranges"]) for shard in read_manifest(out)["shards"]) == 8
    assert verify(out, tok, all=True).ok
    compile_corpus([data], tok, tmp_path / "new", Options(formats=("npy",), range_bytes=100_000, shard_bytes=1000))
    assert sum(len(shard["ranges"]) for shard in read_manifest(tmp_path / "new")["shards"]) < 8
    assert [row.tolist() for row in open_corpus(out)] == [row.tolist() for row in open_corpus(tmp_path / "new")]
    told = read_manifest(out)
    assert "cuts" not in told["options"] or told["options"]["cuts"] == 1
    told["options"]["cuts"] = 3
    write_manifest(out, told)
    with pytest.raises(CorpusError, match="a later version of jittok cut these inputs"):
        compile_corpus([data], tok, out, OPTIONS)


def test_files_of_every_layout_are_those_that_their_number_stands_for(tmp_path):
    """Whoever changes these bytes counts up `layout` of the format, or `plan.ANSWERS` for the ids, and this table."""
    data = write_jsonl(tmp_path / "a.jsonl", make_texts(200))
    names = ("npy", "nanogpt", "llmc", "megatron", "datatrove")
    options = Options(formats=names, append_eos=True, range_bytes=5000)
    compile_corpus([data], jittok.bundled("gpt-2"), tmp_path / "out", options)
    found = {}
    for name in names:
        digest = hashlib.sha256()
        for path in sorted((tmp_path / "out" / name).iterdir()):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        found[name] = digest.hexdigest()[:16]
    assert plan.rules_of(options) == {"answers": 1, **{f"layout of {name}": 1 for name in names}}
    assert found == LAYOUTS


LAYOUTS = {
    "npy": "fc26fe3125f41171", "nanogpt": "4977a0576d6d5274", "llmc": "c90b49192abede91",
    "megatron": "ccc3b16d90efccae", "datatrove": "7b64580ff373578c",
}  # fmt: skip

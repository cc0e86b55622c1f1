"""A directory that is damaged, unfinished or of another call: what is said, and what to do. And slow vocabularies."""

from __future__ import annotations

import json
import time

import pytest
from conftest import write_jsonl

import jittok
from jittok.cli import main
from jittok.corpus import Options, compile_corpus, prediction, verify
from jittok.corpus.compiler import formats_of
from jittok.corpus.inputs.finding import find_sources
from jittok.corpus.ranges.encoder import RangeEncoder
from jittok.errors import CorpusError

pytest.importorskip("pyarrow")
pytest.importorskip("filelock")
pytest.importorskip("orjson")

SLOW = {
    "version": "1.0",
    "added_tokens": [{"id": 3, "content": "a", "single_word": True, "normalized": True, "special": False,
                      "lstrip": False, "rstrip": False}],
    "normalizer": {"type": "Replace", "pattern": {"Regex": "a{1,3}b"}, "content": "c"},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Metaspace", "replacement": " ", "prepend_scheme": "first", "split": False}, {"type": "Whitespace"}]},
    "model": {"type": "WordLevel", "vocab": {"<unk>": 0, "the": 1, "c": 2}, "unk_token": "<unk>"},
}  # fmt: skip
"""A tokenizer.json that has no kernels: it asks whether normalized text after a token is where the text begins."""


@pytest.fixture
def slow(tmp_path):
    path = tmp_path / "slow.json"
    path.write_text(json.dumps(SLOW), "utf-8")
    assert jittok.load(path).runs != "kernels"
    return path


def damaged(how, path):
    if how == "missing":
        path.unlink()
    elif how == "shorter":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        path.write_bytes(path.read_bytes()[:-1] + b"\7")


@pytest.mark.parametrize(
    ("how", "found"), [("missing", "the file is not there"), ("shorter", "bytes, expected"), ("other", "SHA-256")]
)
def test_a_finished_corpus_with_a_damaged_shard_is_not_taken_for_whole(jsonl, tmp_path, tok, how, found, capfd):
    options = Options(formats=("npy",), range_bytes=10_000, shard_bytes=60_000)
    compile_corpus([jsonl[0]], tok, tmp_path / "out", options)
    assert compile_corpus([jsonl[0]], tok, tmp_path / "out", options).resumed == 300
    damaged(how, tmp_path / "out" / "npy" / "00001.ids.npy")
    with pytest.raises(CorpusError, match=found) as caught:
        compile_corpus([jsonl[0]], tok, tmp_path / "out", options)
    assert "00001.ids.npy" in str(caught.value)
    assert "remove the folder and run the same command again" in str(caught.value)
    assert main(["verify", str(tmp_path / "out"), "--hashes-only", "--vocab", "gpt-2"]) == 1
    assert "remove the folder and run the same command again" in capfd.readouterr().out


def test_an_unfinished_corpus_is_told_from_none(jsonl, tmp_path, tok):
    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compile_corpus([jsonl[0]], tok, tmp_path / "out", Options(range_bytes=10_000), progress=stop)
    with pytest.raises(CorpusError, match=r"unfinished.* run the same jittok corpus command again"):
        verify(tmp_path / "out", tok)
    with pytest.raises(CorpusError, match="no such file"):
        verify(tmp_path, tok)


def test_another_vocabulary_is_told_by_its_name(jsonl, tmp_path, tok):
    compile_corpus([jsonl[0]], tok, tmp_path / "out")
    other = jittok.bundled("mistral")
    with pytest.raises(CorpusError) as caught:
        verify(tmp_path / "out", other)
    assert all(name in str(caught.value) for name in (tok.name, other.name))


def test_many_other_inputs_are_told_in_few_words(tmp_path, tok):
    paths = [write_jsonl(tmp_path / f"{i}.jsonl", ["x"]) for i in range(50)]
    compile_corpus(paths, tok, tmp_path / "out")
    for inputs, said in ((paths[:1], r"no input .*1.jsonl and 48 more"), (paths[:-1], r"no input [^ ]*/49.jsonl'?$")):
        with pytest.raises(CorpusError, match=said) as caught:
            compile_corpus(inputs, tok, tmp_path / "out")
        assert "another out" in str(caught.value)
        assert len(str(caught.value)) < 600
    for path in paths:
        write_jsonl(path, ["xyz"])
    with pytest.raises(CorpusError, match="49 more such changes"):
        compile_corpus(paths, tok, tmp_path / "out")


def test_a_slow_vocabulary_is_told_once_and_is_no_second_witness(slow, jsonl, tmp_path, capfd):
    out = tmp_path / "out"
    for arguments in (["corpus", str(jsonl[0]), "--out", str(out)], ["count", str(jsonl[0])]):
        assert main([*arguments, "--vocab", str(slow)]) == 0
        err = capfd.readouterr().err
        assert "plain Python" in err
        assert err.count("\n") == 1
    assert main(["encode", "-p", "the", "--ids", "--vocab", str(slow)]) == 0
    assert capfd.readouterr().err == ""
    found = verify(out, jittok.load(slow))
    assert found.ok
    assert (found.witnessed, found.of_shards) == (0, 0)
    assert found.documents == 300
    assert main(["verify", str(out), "--vocab", str(slow)]) == 0
    said = capfd.readouterr().out
    assert "kernels" not in said
    assert "reference implementation" in said


def test_a_dry_run_of_a_slow_vocabulary_ends_in_time(slow, tmp_path, capfd, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("the aab dog\n" * 100_000, "utf-8")
    monkeypatch.setattr(prediction, "MOST_SECONDS", 0.0)
    begun = time.process_time()
    dry = ["corpus", str(path), "--lines", "--out", str(tmp_path / "out"), "--dry-run", "--json"]
    assert main([*dry, "--vocab", str(slow)]) == 0
    assert time.process_time() - begun < 20
    found = json.loads(capfd.readouterr().out)
    assert found["sampled"] == prediction.PROBE_BYTES
    assert found["documents"] == pytest.approx(100_000, rel=0.01)
    assert found["seconds"] > 0


def test_the_first_probes_are_spread_over_the_input(tmp_path, tok):
    assert prediction._spread(8) == [0, 4, 2, 6, 1, 5, 3, 7]
    assert sorted(prediction._spread(32)) == list(range(32))
    path = write_jsonl(tmp_path / "a.jsonl", ["the tokens of a text"] * 200_000)
    sources, _ = find_sources([path], Options())
    encoder = RangeEncoder(tok, sources, Options())
    found = prediction.predict(encoder, formats_of(tok, sources, Options()))
    assert found.documents == pytest.approx(200_000, rel=0.05)

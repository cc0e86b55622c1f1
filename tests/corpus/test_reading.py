"""What is done with a finished directory: verifying, packing, predicting."""

from __future__ import annotations

import gzip
import json
import time

import numpy as np
import pytest
from conftest import make_texts, write_jsonl

import jittok.corpus
from jittok.cli import main
from jittok.common.display.progress import Line, Progress, clock
from jittok.corpus import Options, batches, compile_corpus, verifier, verify
from jittok.corpus.compiler import formats_of
from jittok.corpus.inputs.finding import find_sources
from jittok.corpus.prediction import predict
from jittok.corpus.ranges.encoder import RangeEncoder
from jittok.corpus.shards.manifest import DIGEST, write_manifest
from jittok.corpus.store.local import LocalStore
from jittok.corpus.verifier import STRANGER, Report, _check_strangers
from jittok.errors import CorpusError

pa = pytest.importorskip("pyarrow")
pytest.importorskip("filelock")
pytest.importorskip("orjson")


ALL = ("npy", "megatron", "parquet")


@pytest.fixture
def made(jsonl, tmp_path, tok):
    path, texts = jsonl
    options = Options(formats=ALL, range_bytes=10_000, shard_bytes=60_000)
    compile_corpus([path], tok, tmp_path / "out", options)
    return tmp_path / "out", path, texts


@pytest.mark.parametrize("everything", [False, True])
def test_a_good_directory_verifies(made, tok, everything):
    found = verify(made[0], tok, all=everything, threads=2)
    assert found.ok
    assert found.of_documents == 300
    assert found.documents == 300 if everything else 0 < found.documents < 300
    assert found.bytes == sum(file.stat().st_size for file in made[0].rglob("*/*"))


def test_a_flipped_bit_is_found_with_its_shard_and_document(made, tok):
    out, _, _ = made
    path = out / "npy" / "00001.ids.npy"
    data = bytearray(path.read_bytes())
    data[128 + 2 * 700] ^= 1
    path.write_bytes(data)
    found = verify(out, tok, all=True)
    assert not found.ok
    by_hash, by_ids = found.differences
    assert (by_hash["shard"], by_hash["file"]) == (1, "npy/00001.ids.npy")
    offsets = np.load(out / "npy" / "00001.offsets.npy")
    assert by_ids["document_of_shard"] == int(np.searchsorted(offsets, 700, "right")) - 1
    assert (by_ids["shard"], by_ids["format"]) == (1, "npy")
    assert "token" in by_ids["what"]


def test_a_missing_or_shortened_file_is_found(made, tok):
    out, _, _ = made
    (out / "megatron" / "00000_text_document.idx").unlink()
    short = out / "parquet" / "00000.parquet"
    short.write_bytes(short.read_bytes()[:-7])
    found = verify(out, tok)
    files = [row.get("file") for row in found.differences]
    assert files[:2] == ["megatron/00000_text_document.idx", "parquet/00000.parquet"]


def test_a_shard_of_another_corpus_among_these_is_found(made, tok):
    out, _, _ = made
    for name in ("npy/00099.ids.npy", "npy/index.npy", "parquet/._00000.parquet", "notes.txt"):
        (out / name).write_bytes(b"")
    found = verify(out, tok, hashes_only=True)
    assert found.differences == [{"file": "npy/00099.ids.npy", "what": STRANGER}]


def test_a_stranger_has_the_name_of_a_shard_and_lies_beside_some(tmp_path):
    own = ["arrow/00000.arrow", "gone/00000.bin", "npy/00000.ids.npy", "npy/00001.ids.npy"]
    strange = ["arrow/00001.arrow", "npy/00099.ids.npy", "npy/100000.ids.npy"]
    for name in (*own[:1], *own[2:], *strange, "npy/index.npy", "npy/0001.ids.npy", "npy/00000.ids.txt", "00001.arrow"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = Report()
    _check_strangers(LocalStore(tmp_path), {"shards": [{"files": [{"name": name}]} for name in own]}, found)
    assert found.differences == [{"file": name, "what": STRANGER} for name in strange]


def test_ids_that_the_tokenizer_does_not_give_are_found_though_the_hashes_agree(made, tok):
    import victim

    out, _, _ = made
    path = out / "npy" / "00000.ids.npy"
    data = bytearray(path.read_bytes())
    data[128:130] = b"\x07\x00"
    path.write_bytes(data)
    manifest = json.loads((out / "manifest.json").read_text())
    for file in manifest["shards"][0]["files"]:
        if file["name"] == "npy/00000.ids.npy":
            file["sha256"] = victim.snapshot(out)[file["name"]]
    del manifest[DIGEST]
    write_manifest(out, manifest)
    (difference,) = verify(out, tok).differences
    assert (difference["shard"], difference["document"], difference["format"]) == (0, 0, "npy")
    assert difference["what"].startswith("token 0: found 7 in the shard")
    assert verify(out, tok, hashes_only=True).ok


def test_some_documents_of_each_shard_are_read_by_the_reference_too(made, tok):
    found = verify(made[0], tok)
    assert found.ok
    assert found.witnessed_shards == found.of_shards > 1
    assert found.of_shards <= found.witnessed <= verifier.DOCUMENTS * found.of_shards
    assert 0 < found.witnessed_bytes <= verifier.BYTES * found.of_shards
    hashed = verify(made[0], tok, hashes_only=True)
    assert (hashed.witnessed, hashed.of_shards) == (0, 0)


def with_wrong_kernels():
    """GPT-2 with every digit a word of its own, as the reference does not have it."""
    wrong = jittok.bundled("gpt-2")
    wrong._encoder.arrays = wrong._encoder.arrays._replace(digits_alone=1)
    return wrong


@pytest.mark.parametrize("options", [{}, {"append_eos": True}, {"add_special": True, "parse_special": True}])
def test_kernels_that_were_always_wrong_are_found_by_the_reference(jsonl, tmp_path, capfd, monkeypatch, tok, options):
    path, texts = jsonl
    out, wrong = tmp_path / "out", with_wrong_kernels()
    options = Options(formats=("npy",), range_bytes=10_000, shard_bytes=60_000, **options)
    compile_corpus([path], wrong, out, options)
    assert not verify(out, tok).ok
    for everything in (False, True):
        found = verify(out, wrong, all=everything, threads=2)
        assert found.differences
        for difference in found.differences:
            text = texts[difference["document"]]
            assert "1234" in text
            assert wrong.encode(text).tolist() != tok.encode(text).tolist()
            assert "by the kernels" in difference["what"]
            assert "by the plain reference" in difference["what"]
    monkeypatch.setattr("jittok.cli.data.verify.open_vocab", lambda _options: wrong)
    assert main(["verify", str(out), "--vocab", "gpt-2", "--all"]) == 1
    said = capfd.readouterr().out
    assert f"{len(found.differences)} differences" in said
    assert f"also by the reference implementation ({found.witnessed_bytes / 1e3:,.1f} KB, from" in said
    compile_corpus([path], tok, tmp_path / "right", options)
    assert verify(tmp_path / "right", tok).ok


def test_the_reference_reads_few_bytes_and_whole_documents():
    at_most, few = verifier.LONGEST_DOCUMENT, np.array([0, 5, 0, 7])
    assert verifier.chosen(few) == [1, 3]
    many = verifier.chosen(np.full(10_000, 100))
    assert (len(many), many[0], many[-1]) == (verifier.DOCUMENTS, 0, 9_999)
    assert verifier.chosen(np.array([at_most + 1, at_most, at_most])) == [1]
    assert verifier.chosen(np.array([at_most + 1, 0])) == []
    assert verifier.chosen(np.zeros(3, np.int64)) == verifier.chosen(np.zeros(0, np.int64)) == []
    sizes = np.full(40, verifier.BYTES // 3)
    assert len(verifier.chosen(sizes)) == 3


def test_changed_inputs_are_found_by_verify(made, tok):
    out, path, _ = made
    path.write_bytes(path.read_bytes().replace(b"tokens", b"nekots"))
    found = verify(out, tok, all=True)
    assert found.differences[0]["input"] == str(path)
    path.unlink()
    with pytest.raises(CorpusError, match="hashes_only=True"):
        verify(out, tok)
    assert verify(out, tok, hashes_only=True).ok


def test_another_vocabulary_is_refused(made):
    with pytest.raises(CorpusError, match="as it was made with"):
        jittok.corpus.open(made[0], jittok.bundled("mistral"))
    with pytest.raises(CorpusError, match="one of these"):
        jittok.corpus.open(made[0], format="olmo")
    with pytest.raises(CorpusError, match="manifest of a finished corpus"):
        jittok.corpus.open(made[0] / "npy")
    with pytest.raises(TypeError, match="without a tokenizer"):
        jittok.corpus.open(made[0]).decode(0)


# ---- packing


def sequences(found):
    found = list(found)
    return np.concatenate([batch.ids for batch in found]), np.concatenate([batch.segments for batch in found])


@pytest.mark.parametrize("overlap", [0, 1, 5])
@pytest.mark.parametrize("size", [1, 7])
def test_split_packing_is_the_stream_of_tokens(made, tok, overlap, size):
    out, _, texts = made
    stream, step = tok.encode_batch(texts).ids, 64 - overlap
    ids, segments = sequences(batches(out, 64, size, overlap=overlap))
    count = (stream.size - 64) // step + 1
    assert ids.tolist() == [stream[k * step : k * step + 64].tolist() for k in range(count)]
    owners = np.repeat(np.arange(len(texts)), tok.encode_batch(texts).lengths)
    for k in (0, 5, count - 1):
        ranks = np.unique(owners[k * step : k * step + 64], return_inverse=True)[1] + 1
        assert segments[k].tolist() == ranks.tolist()


def test_the_end_is_padded_when_asked(made, tok):
    out, _, texts = made
    stream = tok.encode_batch(texts).ids
    ids, segments = sequences(batches(out, 1000, pad_id=9))
    assert ids.size == -(-stream.size // 1000) * 1000
    assert ids.ravel()[: stream.size].tolist() == stream.tolist()
    assert set(ids.ravel()[stream.size :].tolist()) == {9}
    assert (segments == 0).sum() == ids.size - stream.size


def test_whole_packing_cuts_no_document_that_fits(made, tok):
    out, _, texts = made
    ids, segments = sequences(batches(out, 256, 4, documents="whole", pad_id=0))
    found = [
        row[marks == mark].tolist()
        for row, marks in zip(ids, segments, strict=True)
        for mark in range(1, marks.max() + 1)
    ]
    expected = [
        part
        for text in tok.encode_batch(texts).to_list()
        for part in (text[i : i + 256] for i in range(0, len(text), 256))
    ]
    assert found == expected
    filled = (segments > 0).sum(axis=1)
    assert all(a + b > 256 for a, b in zip(filled, (segments == 1).sum(axis=1)[1:], strict=False)), "next fit"


@pytest.mark.parametrize("documents", ["split", "whole"])
def test_packing_goes_on_where_it_was(made, documents):
    whole = sequences(batches(made[0], 50, documents=documents, pad_id=1))[0]
    assert sequences(batches(made[0], 50, documents=documents, pad_id=1, start=13))[0].tolist() == whole[13:].tolist()


@pytest.mark.parametrize(
    "wrong", [{"length": 0}, {"size": 0}, {"overlap": 8}, {"documents": "x"}, {"documents": "whole"}]
)
def test_impossible_packing_is_refused(made, wrong):
    with pytest.raises(CorpusError):
        batches(made[0], **{"length": 8, **wrong})


# ---- prediction


def sources_of(tmp_path, kind, texts):
    path = write_jsonl(tmp_path / "big.jsonl", texts)
    if kind == "gz":
        path = tmp_path / "big.jsonl.gz"
        path.write_bytes(gzip.compress((tmp_path / "big.jsonl").read_bytes()))
    elif kind == "parquet":
        import pyarrow.parquet as pq

        path = tmp_path / "big.parquet"
        pq.write_table(pa.table({"text": texts}), path, row_group_size=5000)
    return path


@pytest.mark.parametrize("kind", ["jsonl", "gz", "parquet"])
def test_a_sample_predicts_within_its_error(tmp_path, tok, kind, monkeypatch):
    texts = make_texts(20_000, seed=4, longest=100)
    monkeypatch.setattr("jittok.corpus.prediction.EXACT_BYTES", 100_000)
    options = Options(formats=("npy", "megatron"))
    sources, _ = find_sources([sources_of(tmp_path, kind, texts)], options)
    found = predict(RangeEncoder(tok, sources, options), formats_of(tok, sources, options))
    true = {"documents": len(texts), "tokens": tok.encode_batch(texts).ids.size}
    for name, number in true.items():
        error = found.error[name]
        allowed = 0.25 if error is None else 2 * error + 0.02
        assert abs(getattr(found, name) - number) <= allowed * number
    assert found.sampled < found.total
    assert found.bytes["megatron"] == pytest.approx(2 * found.tokens + 20 * found.documents)


@pytest.mark.parametrize("kind", ["txt", "jsonl", "lines"])
def test_a_document_longer_than_any_sample_is_predicted(tmp_path, tok, kind, monkeypatch):
    monkeypatch.setattr("jittok.corpus.prediction.EXACT_BYTES", 100_000)
    monkeypatch.setattr("jittok.corpus.prediction.PROBE_BYTES", 4096)
    text = "\n".join(make_texts(20_000, seed=5, longest=30))
    text = text.replace("\n", " ") if kind == "lines" else text
    path = tmp_path / ("long.jsonl" if kind == "jsonl" else "long.txt")
    path.write_text(json.dumps({"text": text}) + "\n" if kind == "jsonl" else text, "utf-8")
    options = Options(lines=kind == "lines")
    sources, _ = find_sources([path], options)
    found = predict(RangeEncoder(tok, sources, options), formats_of(tok, sources, options))
    true = tok.encode_batch([text]).ids.size
    assert found.error["tokens"] is not None
    assert abs(found.tokens - true) <= (2 * found.error["tokens"] + 0.02) * true
    assert found.documents == 1
    assert found.sampled < found.total / 5


@pytest.mark.parametrize("row_group_size", [100_000, 700])
def test_rows_of_unequal_length_are_predicted(tmp_path, tok, row_group_size, monkeypatch):
    import pyarrow.parquet as pq

    monkeypatch.setattr("jittok.corpus.prediction.EXACT_BYTES", 10_000)
    monkeypatch.setattr("jittok.corpus.prediction.PROBE_BYTES", 8192)
    texts = [*make_texts(4000, seed=6, longest=10), *make_texts(4000, seed=7, longest=400)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "rows.parquet", row_group_size=row_group_size)
    sources, _ = find_sources([tmp_path / "rows.parquet"], Options())
    found = predict(RangeEncoder(tok, sources, Options()), formats_of(tok, sources, Options()))
    true = tok.encode_batch(texts).ids.size
    assert abs(found.tokens - true) <= (2 * found.error["tokens"] + 0.02) * true
    assert found.error["tokens"] < 0.5
    assert found.documents == pytest.approx(len(texts), rel=0.1)


def test_the_time_of_a_run_is_measured_with_the_whole_compiler(tmp_path, capfd):
    path = write_jsonl(tmp_path / "a.jsonl", make_texts(20_000, seed=8))
    options = ["corpus", str(path), "--vocab", "gpt-2", "--out", str(tmp_path / "out"), "--json"]
    assert main([*options, "--dry-run"]) == 0
    expected = json.loads(capfd.readouterr().out)
    assert not (tmp_path / "out").exists()
    took = []
    for number in range(4):  # the first may compile; other work on the machine comes and goes
        assert main([*options[:-2], str(tmp_path / f"out{number}"), "--json"]) == 0
        took.append(json.loads(capfd.readouterr().out)["seconds"])
        assert main([*options, "--dry-run"]) == 0
        expected = json.loads(capfd.readouterr().out)
        if 0.2 < expected["seconds"] / took[-1] < 5:
            break
    else:
        pytest.fail(f"took {took}, expected {expected['seconds']} s")
    assert 0 <= expected["error"]["seconds"] < 5


def test_a_dry_run_of_little_text_takes_no_longer_than_a_run(tmp_path):
    (tmp_path / "a.txt").write_text("some words")
    for _ in range(2):  # the first may compile
        start = time.process_time()
        assert main(["corpus", str(tmp_path / "a.txt"), "--vocab", "gpt-2", "--out", "out", "--dry-run"]) == 0
    assert time.process_time() - start < 2


def test_a_small_input_is_predicted_exactly(tok, jsonl):
    sources, _ = find_sources([jsonl[0]], Options())
    found = predict(RangeEncoder(tok, sources, Options()), formats_of(tok, sources, Options()))
    assert (found.documents, found.tokens) == (300, tok.encode_batch(jsonl[1]).ids.size)
    assert set(found.error.values()) == {0.0}


# ---- progress


class Terminal:
    def __init__(self, tty):
        self.tty, self.answered = tty, ""

    def isatty(self):
        return self.tty

    def write(self, text):
        self.answered += text

    def flush(self):
        pass


def test_progress_is_one_line_on_a_terminal_and_silent_elsewhere(jsonl, tmp_path, tok, monkeypatch):
    monkeypatch.setattr("sys.stderr", screen := Terminal(True))
    monkeypatch.setattr(Line.__init__, "__defaults__", (0.0,))  # what is done in a second has none
    for tty in (True, False):
        screen.tty, screen.answered = tty, ""
        compile_corpus([jsonl[0]], tok, tmp_path / str(tty), Options(range_bytes=5000))
        assert bool(screen.answered) == tty
        assert "\n" not in screen.answered
        if tty:
            for word in ("%", "documents", "MB/s", "tokens/s", "left"):
                assert word in screen.answered


def test_clock():
    assert [clock(seconds) for seconds in (0, 59.4, 60, 187, 7387)] == ["0 s", "59 s", "1:00", "3:07", "2:03:07"]
    assert "left" not in Progress("corpus", 4, None, "bytes", 1.0, 1, 2, 3).line()

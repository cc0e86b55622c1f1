"""Each layout read by its own package, or by a reader written here from the documented layout."""

from __future__ import annotations

import csv
import gzip
import hashlib
import importlib.util
import json
import os
import shutil
import struct
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import make_texts, write_jsonl

import jittok.corpus
from jittok.cli import main
from jittok.corpus import Options, compile_corpus
from jittok.corpus.formats import FORMATS, make_formats, tables
from jittok.corpus.formats.bare_ids import readable
from jittok.corpus.formats.base import LENGTHS, Block, Facts, Format, Lazy, Output, Rows, Stream
from jittok.errors import CorpusError

pa = pytest.importorskip("pyarrow")
pytest.importorskip("filelock")
pytest.importorskip("orjson")


EOS = 50256


@pytest.fixture(scope="module")
def made(tmp_path_factory, tok):
    """(directory with every format in three shards, inputs, the expected documents, how many in each shard)."""
    folder = tmp_path_factory.mktemp("formats")
    texts = [make_texts(200, seed) for seed in (0, 1)]
    inputs = [write_jsonl(folder / f"{name}.jsonl", some) for name, some in zip("ab", texts, strict=True)]
    options = Options(formats=tuple(FORMATS), append_eos=True, range_bytes=30_000, shard_bytes=90_000)
    compile_corpus(inputs, tok, folder / "out", options)
    expected = [[*tok.encode(text).tolist(), EOS] for some in texts for text in some]
    shards = json.loads((folder / "out" / "manifest.json").read_text())["shards"]
    counts = [shard["documents"] for shard in shards]
    assert len(counts) > 2
    assert sum(counts) == len(expected)
    return folder / "out", inputs, expected, counts


def by_shard(expected, counts):
    places = np.cumsum([0, *counts]).tolist()
    return [expected[i:j] for i, j in pairwise(places)]


def flat(documents):
    return [token for document in documents for token in document]


def test_arrow(made):
    out, _, expected, counts = made
    for path, documents in zip(sorted((out / "arrow").iterdir()), by_shard(expected, counts), strict=True):
        with pa.memory_map(str(path)) as file:
            table = pa.ipc.open_file(file).read_all()
            assert table.schema.field("input_ids").type == pa.list_(pa.int32())
            assert table.column("input_ids").to_pylist() == documents
            assert table.schema.metadata[b"jittok.vocab.fingerprint"]


def test_parquet(made):
    import pyarrow.parquet as pq

    out, _, expected, counts = made
    for path, documents in zip(sorted((out / "parquet").iterdir()), by_shard(expected, counts), strict=True):
        file = pq.ParquetFile(path)
        assert file.read().column("input_ids").to_pylist() == documents
        column = file.metadata.row_group(0).column(0)
        assert (column.compression, column.has_dictionary_page) == ("ZSTD", False)


@pytest.mark.parametrize("most", [1, 700, 1 << 20])
def test_row_groups_of_parquet_have_their_tokens_or_one_document(tmp_path, tok, monkeypatch, most):
    import pyarrow.parquet as pq

    monkeypatch.setattr(tables.Parquet, "batch_tokens", most)
    monkeypatch.setattr(tables.Parquet, "most_tokens", most)
    texts = ["", *make_texts(60, 3), "", "long " * 800]
    path = write_jsonl(tmp_path / "in.jsonl", texts)
    compile_corpus([path], tok, tmp_path / "out", Options(formats=("parquet",), range_bytes=9_000))
    (path,) = (tmp_path / "out" / "parquet").iterdir()
    file = pq.ParquetFile(path)
    groups = [file.read_row_group(i).column(0).to_pylist() for i in range(file.num_row_groups)]
    assert flat(groups) == tok.encode_batch(texts).to_list()
    assert all(len(flat(group)) <= most or len(group) == 1 for group in groups)
    assert (len(groups) == 1) == (most == 1 << 20)
    assert jittok.corpus.open(tmp_path / "out").to_token_array().to_list() == flat(groups)


def test_npy(made):
    out, _, expected, counts = made
    for number, documents in enumerate(by_shard(expected, counts)):
        ids = np.load(out / "npy" / f"{number:05d}.ids.npy", mmap_mode="r", allow_pickle=False)
        offsets = np.load(out / "npy" / f"{number:05d}.offsets.npy", allow_pickle=False)
        assert (ids.dtype, offsets.dtype) == (np.uint16, np.int64)
        assert [ids[i:j].tolist() for i, j in pairwise(offsets)] == documents


def test_nanogpt(made):
    out, _, expected, counts = made
    for number, documents in enumerate(by_shard(expected, counts)):
        data = np.memmap(out / "nanogpt" / f"{number:05d}.bin", dtype=np.uint16, mode="r")
        assert data.tolist() == flat(documents)


def test_llmc(made):
    out, _, expected, counts = made
    for number, documents in enumerate(by_shard(expected, counts)):
        raw = (out / "llmc" / f"corpus_train_{number:06d}.bin").read_bytes()
        header = np.frombuffer(raw[:1024], "<i4")
        ids = flat(documents)
        assert header[:3].tolist() == [20240520, 1, len(ids)]
        assert not header[3:].any()
        assert len(raw) == 1024 + 2 * len(ids)
        assert np.frombuffer(raw[1024:], "<u2").tolist() == ids


def read_megatron(prefix):
    """Source: the table of the layout in docs/corpus.md."""
    index, ids = Path(f"{prefix}.idx").read_bytes(), Path(f"{prefix}.bin").read_bytes()
    assert index[:9] == b"MMIDIDX\x00\x00"
    version, code, sequences, ends = struct.unpack_from("<QBQQ", index, 9)
    assert version == 1
    dtype = {8: np.dtype("<u2"), 4: np.dtype("<i4")}[code]
    lengths = np.frombuffer(index, "<i4", sequences, 34)
    starts = np.frombuffer(index, "<i8", sequences, 34 + 4 * sequences)
    documents = np.frombuffer(index, "<i8", ends, 34 + 12 * sequences)
    assert len(index) == 34 + 12 * sequences + 8 * ends
    found = [np.frombuffer(ids, dtype, n, start).tolist() for n, start in zip(lengths, starts, strict=True)]
    return [flat(found[i:j]) for i, j in pairwise(documents)], lengths


def test_megatron(made):
    out, _, expected, counts = made
    for number, documents in enumerate(by_shard(expected, counts)):
        assert read_megatron(out / "megatron" / f"{number:05d}_text_document")[0] == documents


def test_an_empty_document_has_no_sequence_in_megatron(tmp_path, tok):
    source = write_jsonl(tmp_path / "a.jsonl", ["", "a b", "", "", "c", ""])
    compile_corpus([source], tok, tmp_path / "out", Options(formats=tuple(FORMATS)))
    documents, lengths = read_megatron(tmp_path / "out" / "megatron" / "00000_text_document")
    assert documents == [[], [64, 275], [], [], [66], []]
    assert lengths.tolist() == [2, 1]
    for name in FORMATS:
        found = jittok.corpus.open(tmp_path / "out", format=name)
        assert [row.tolist() for row in found] == documents


def test_datatrove(made):
    out, _, expected, counts = made
    for number, documents in enumerate(by_shard(expected, counts)):
        stem = out / "datatrove" / f"{number:05d}_unshuffled.ds"
        assert np.fromfile(stem, "<u2").tolist() == flat(documents)
        assert np.fromfile(f"{stem}.index", "<u8").tolist() == np.cumsum([len(row) for row in documents]).tolist()
        name, total, shown = Path(f"{stem}.metadata").read_text().split("\n")
        assert (name, total) == ("gpt-2|2", str(len(flat(documents))))
        assert shown == readable(int(total))


def test_datatrove_reads_its_files(made):
    if importlib.util.find_spec("datatrove") is None or importlib.util.find_spec("torch") is None:
        pytest.skip("datatrove's reader needs datatrove and torch")
    from datatrove.utils.dataset import DatatroveFileDataset

    out, _, expected, counts = made
    for number, documents in enumerate(by_shard(expected, counts)):
        path = str(out / "datatrove" / f"{number:05d}_unshuffled.ds")
        found = DatatroveFileDataset(path, seq_len=31, token_size=2, return_positions=False)
        ids = flat(documents)
        assert [found[i]["input_ids"].tolist() for i in range(len(found))] == [
            ids[at : at + 32] for at in range(0, len(ids) // 32 * 32, 32)
        ]


@pytest.mark.parametrize(
    ("tokens", "shown"), [(0, "0.00 T"), (999, "999 T"), (4419, "4.42 kT"), (12_345_678, "12.3 MT"), (10**9, "1.00 GT")]
)
def test_token_counts_are_written_as_datatrove_does(tokens, shown):
    assert readable(tokens) == shown


def test_olmo(made):
    out, inputs, expected, counts = made
    at = 0
    for number, documents in enumerate(by_shard(expected, counts)):
        ids = np.memmap(out / "olmo" / f"part-{number:05d}.npy", dtype=np.uint16, mode="r")
        packed = (out / "olmo" / f"part-{number:05d}.csv.gz").read_bytes()
        assert packed[4:8] == bytes(4), "no time in the header"
        text = gzip.decompress(packed).decode()
        assert text.endswith("\r\n")
        rows = list(csv.reader(text.splitlines()))
        assert [ids[int(row[0]) : int(row[1])].tolist() for row in rows] == documents
        for row in rows:
            path = inputs[at // 200]
            place = sum(map(len, path.read_bytes().split(b"\n")[: at % 200])) + at % 200
            name = hashlib.sha256(str(path).encode()).hexdigest()
            assert row[2:] == [f"{name}-{place}", str(path), str(place)]
            at += 1
        assert int(rows[-1][1]) == ids.size


@pytest.mark.parametrize("name", FORMATS)
def test_reading_back(made, name, tok):
    out, _, expected, _ = made
    corpus = jittok.corpus.open(out, tok, format=name)
    assert len(corpus) == len(expected)
    assert [row.tolist() for row in corpus] == expected
    assert corpus[7].tolist() == corpus[7 - len(corpus)].tolist() == expected[7]
    assert [row.tolist() for row in corpus[150:260]] == expected[150:260]
    assert [row.tolist() for row in corpus[260:150:-7]] == expected[260:150:-7]
    assert corpus[3:9][2].tolist() == expected[5]
    assert corpus[150:260].to_token_array().to_list() == expected[150:260]
    assert corpus.lengths().tolist() == [len(row) for row in expected]
    assert not corpus[7].flags.writeable
    assert corpus.decode(7) == tok.decode(expected[7], unparse_special=True)
    with pytest.raises(IndexError, match="document 400"):
        corpus[400]
    if name != "parquet":  # no more is read than is asked for, and nothing is mapped that somebody might cut
        base = corpus[7]
        while isinstance(base, np.ndarray):
            base = base.base
        assert isinstance(base, bytes)
        assert len(base) == corpus[7].nbytes


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_is_cut_while_it_is_read_back_is_an_error(made, name, tok, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(made[0], out)
    corpus = jittok.corpus.open(out, tok, format=name)
    first = corpus[0].tolist()
    for path in sorted((out / name).iterdir()):
        os.truncate(path, min(path.stat().st_size, 130))
    with pytest.raises((CorpusError, ValueError, OSError, EOFError)):
        [row.sum() for row in corpus]
    assert first == made[2][0]
    with pytest.raises((CorpusError, ValueError, OSError, EOFError)):
        [row.sum() for row in jittok.corpus.open(out, tok, format=name)]


PACKED = gzip.compress(b"0,3,a,b,1\r\n" * 99, mtime=0)
ROWS_OF_OLMO = {
    "nothing": b"", "no gzip": b"plain", "cut": PACKED[:-9], "another block": PACKED[:10] + b"\x07" + PACKED[11:],
    "one column": gzip.compress(b"0\r\n"), "no number": gzip.compress(b"0,x\r\n"),
    "huge": gzip.compress(b"0,9" + b"9" * 30),
    "a long field": gzip.compress(b"0,1," + b"x" * (1 << 18)),
}  # fmt: skip


@pytest.mark.parametrize("kind", ROWS_OF_OLMO)
def test_rows_of_olmo_that_are_not_what_was_written_are_an_error_that_names_their_file(made, kind, tok, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(made[0], out)
    (out / "olmo" / "part-00000.csv.gz").write_bytes(ROWS_OF_OLMO[kind])
    with pytest.raises(CorpusError, match="block 0" if kind == "nothing" else r"part-00000\.csv\.gz"):
        jittok.corpus.open(out, tok, format="olmo")[0]


def test_llmc_refuses_more_tokens_than_its_header_can_tell():
    (form,) = make_formats(["llmc"], Facts(9, "v", "f", "auto", []))
    rows = Rows(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))
    form.check(rows, 2**31 - 1)
    with pytest.raises(CorpusError, match="smaller shard_bytes"):
        form.check(rows, 2**31)


def test_megatron_and_arrow_refuse_a_document_of_2_to_31_tokens():
    for name in ("megatron", "arrow", "parquet"):
        (form,) = make_formats([name], Facts(9, "v", "f", "auto", ["a.jsonl"]))
        rows = Rows(np.zeros(0, np.int32), np.array([5, 2**31]), np.zeros(2, np.int64), np.array([1, 7]))
        with pytest.raises(CorpusError, match=r"a\.jsonl, format"):
            form.check(rows, 0)


def test_unknown_formats_are_refused():
    with pytest.raises(CorpusError, match="arrow, parquet, npy"):
        make_formats(["csv"], Facts(9, "v", "f", "auto", []))


@pytest.fixture
def shard(tmp_path):
    """An Arrow shard with batches smaller and larger than what is read of a head; the ids of each."""
    path, schema = tmp_path / "arrow" / "00000.arrow", pa.schema([pa.field(tables.COLUMN, pa.list_(pa.int32()))])
    batches = [np.arange(size, dtype=np.int32) for size in (0, 1, 1000, tables.LARGEST_HEAD, tables.LARGEST_HEAD + 7)]
    path.parent.mkdir()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for ids in batches:
            offsets = pa.array(np.array([0, ids.size // 3, ids.size], np.int32))
            writer.write_batch(pa.record_batch([pa.ListArray.from_arrays(offsets, pa.array(ids))], schema=schema))
    return path, batches


def test_batches_of_an_arrow_shard_are_found_without_their_ids(shard):
    path, batches = shard
    found = tables.batches_of(path)
    assert [each.documents for each in found] == [2] * len(batches)
    for each, ids in zip(found, batches, strict=True):
        block = tables._read_batch(path, each)
        assert block.ids[:].tolist() == ids.tolist()
        assert block.offsets.tolist() == [0, ids.size // 3, ids.size]


@pytest.mark.parametrize("batch", [0, 3, 4])
def test_an_arrow_shard_that_is_cut_while_its_heads_are_read_is_an_error(shard, monkeypatch, batch):
    """A process that had mapped it would be killed here."""
    path, real, seen = shard[0], pa.ipc.open_file, []

    class Cutting:
        def __init__(self, file):
            self.reader = real(file)
            self.num_record_batches = self.reader.num_record_batches

        def get_batch(self, number):
            if number == batch:
                seen.append(number)
                os.truncate(path, 100)
            return self.reader.get_batch(number)

    monkeypatch.setattr(pa.ipc, "open_file", Cutting)
    with pytest.raises(CorpusError, match=r"00000\.arrow"):
        tables.Arrow.blocks(None, path.parent.parent, "00000", 0)
    assert seen == [batch]


class Toy(Format):
    """Ids and lengths as they grow, in two files."""

    name = "toy"
    slowness = -1

    def streams(self):
        return [Stream("toy.lengths", 0, LENGTHS.data, final=True), self.ids_stream("toy.ids")]

    def finish(self, shard):
        return [Output(shard.path(f"toy.{part}"), f"toy/{{}}.{part}") for part in ("lengths", "ids")]

    def blocks(self, folder, label, documents):
        stem = folder / "toy" / label
        lengths = np.fromfile(stem.with_suffix(".lengths"), np.int64)
        ids = self.ids_of(stem.with_suffix(".ids"))
        return [Lazy(documents, lambda: Block(ids, np.concatenate([[0], np.cumsum(lengths)])))]


def test_a_format_is_one_class_and_its_line(monkeypatch, jsonl, tok, tmp_path, capsys):
    path, texts = jsonl
    monkeypatch.setitem(sys.modules, "toy_layout", SimpleNamespace(Toy=Toy))
    monkeypatch.setitem(FORMATS, "toy", "toy_layout:Toy")
    out = tmp_path / "out"
    compile_corpus([path], tok, out, Options(formats=("npy", "toy"), range_bytes=10_000, shard_bytes=20_000))
    assert len(list((out / "toy").glob("*.ids"))) > 1
    corpus = jittok.corpus.open(out)
    assert type(corpus.blocks[0].load().ids).__name__ == "DiskIds"
    assert [row.tolist() for row in corpus] == [tok.encode(text).tolist() for text in texts]
    shutil.rmtree(out / "npy")  # the fastest is read: nothing else is needed
    assert jittok.corpus.open(out)[3].tolist() == tok.encode(texts[3]).tolist()
    with pytest.raises(SystemExit):
        main(["corpus", "--help"])
    assert "olmo, toy (default: arrow)" in " ".join(capsys.readouterr().out.split())


def test_a_corpus_of_unknown_formats_says_so(jsonl, tok, tmp_path, monkeypatch):
    compile_corpus([jsonl[0]], tok, tmp_path / "out", Options(formats=("npy",)))
    monkeypatch.setattr("jittok.corpus.shards.readback.FORMATS", {"arrow": FORMATS["arrow"]})
    with pytest.raises(CorpusError, match="formats npy"):
        jittok.corpus.open(tmp_path / "out")

"""--shuffle-documents: the same documents in an order that a seed draws, the same bytes whoever does which task."""

from __future__ import annotations

import gzip
import io
import json
import random
import shutil

import numpy as np
import pytest
import victim
from conftest import dies_after, make_texts

import jittok
from jittok.cli import main
from jittok.corpus import Options, compile_corpus, fields, finish_corpus, plan_corpus, prediction, run_corpus, verify
from jittok.corpus import open as open_corpus
from jittok.corpus.formats import fields as kept
from jittok.corpus.formats import tables
from jittok.corpus.formats.base import Rows
from jittok.corpus.shards import shuffling
from jittok.corpus.shards.manifest import read_manifest
from jittok.corpus.shards.shuffling import ShuffledWriter, drawn, keys_of, sorted_rows, spool_bytes
from jittok.errors import CorpusError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("orjson")
FORMATS = ("npy", "arrow", "megatron", "olmo", "parquet")
OPTIONS = Options(
    formats=FORMATS, keep=("id",), shuffle_documents=7, range_bytes=6000, shard_bytes=40_000, on_error="skip"
)


def write(path, texts, first=0):
    rows = [json.dumps({"id": None if k % 50 == 9 else first + k, "text": text}) for k, text in enumerate(texts)]
    path.write_text("".join(row + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def work(tmp_path_factory, tok):
    """Inputs of all kinds with bad lines, and the bytes of one process's corpus."""
    folder = tmp_path_factory.mktemp("shuffled")
    texts = make_texts(900, 5)
    inputs = [write(folder / "a.jsonl", texts[:500])]
    lines = inputs[0].read_bytes().splitlines(keepends=True)
    lines[7], lines[460] = b"{\n", b'{"text": 1}\n'
    inputs[0].write_bytes(b"".join(lines))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(write(folder / "b.jsonl", texts[500:700], 500).read_bytes()))
    table = pa.table({"id": range(700, 800), "text": texts[700:800]})
    pq.write_table(table, folder / "c.parquet", row_group_size=20)
    inputs += [folder / "b.jsonl.gz", folder / "c.parquet"]
    for k in range(10):
        inputs.append(write(folder / f"small{k}.jsonl", texts[800 + 10 * k : 810 + 10 * k], 800 + 10 * k))
    compile_corpus(inputs, tok, folder / "whole", OPTIONS, threads=1)
    return folder, inputs, victim.snapshot(folder / "whole")


def test_all_documents_are_there_once_in_another_order_each_with_its_fields(work, tok):
    folder, inputs, _ = work
    plain = Options(**{**vars(OPTIONS), "shuffle_documents": None})
    compile_corpus(inputs, tok, folder / "plain", plain)
    ordered, found = ([row.tolist() for row in open_corpus(folder / name)] for name in ("plain", "whole"))
    assert ordered != found
    assert sorted(ordered) == sorted(found)
    names = fields(folder / "whole")["id"].to_pylist()
    of = dict(zip(fields(folder / "plain")["id"].to_pylist(), ordered, strict=True))
    assert [of[name] for name in names if name is not None] == [
        row for row, name in zip(found, names, strict=True) if name is not None
    ]
    for form in FORMATS:
        assert [row.tolist() for row in open_corpus(folder / "whole", format=form)] == found
    manifest = read_manifest(folder / "whole")
    assert len(manifest["shards"]) > 5
    several = sum(len({row[0] for row in shard["ranges"]}) > 1 for shard in manifest["shards"])
    assert several > len(manifest["shards"]) // 2, "shards have ranges of several inputs"
    told = [
        json.loads(line)
        for path in (folder / "whole" / "errors").iterdir()
        for line in path.read_text().split("\n")[:-1]
    ]
    assert sorted(row["line"] for row in told) == [8, 461]


def test_the_order_is_that_of_the_keys(tmp_path, tok):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"line {k}\n" for k in range(40)))
    options = Options(formats=("npy",), lines=True, shuffle_documents=3)
    compile_corpus([path], tok, tmp_path / "out", options)
    opened = open_corpus(tmp_path / "out", tok)
    order = [int(opened.decode(k).split()[1]) for k in range(40)]
    assert order == np.argsort(keys_of("3/0/0/0", 40)).tolist() == drawn("3/0/0/0", 40).tolist()


@pytest.mark.parametrize("threads", [1, 3])
def test_parts_in_any_order_and_a_resume_write_the_same_bytes(work, tmp_path, tok, monkeypatch, threads):
    _, inputs, whole = work
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        dies_after(patch, 9)
        with pytest.raises(KeyboardInterrupt):
            compile_corpus(inputs, tok, out, OPTIONS, threads=threads)
    compile_corpus(inputs, tok, out, OPTIONS, threads=threads)
    assert victim.snapshot(out) == whole
    out = tmp_path / "parts"
    plan_corpus(inputs, tok, out, OPTIONS, parts=4)
    for part in random.Random(threads).sample(range(4), 4):
        assert run_corpus(out, tok, part=str(part), threads=threads).failed == {}
    finish_corpus(out)
    assert victim.snapshot(out) == whole


@pytest.mark.process
def test_ray_writes_the_same_bytes(work, tmp_path, tok):
    ray = pytest.importorskip("ray")
    try:
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=40)
    except Exception as error:  # noqa: BLE001
        pytest.skip(f"Ray does not start here: {error}")
    try:
        _, inputs, whole = work
        compile_corpus(inputs, tok, tmp_path / "out", OPTIONS, engine="ray", threads=2)
        assert victim.snapshot(tmp_path / "out") == whole
    finally:
        ray.shutdown()


def test_memory_is_that_of_an_interval_of_keys(work, tmp_path, tok, monkeypatch):
    """Laid out in many intervals: npy, which is made of streams, has the same bytes; no call has many documents."""
    _, inputs, whole = work
    seen, real = [], shuffling.laid_out
    monkeypatch.setattr(shuffling, "AT_ONCE", 3000)
    monkeypatch.setattr(shuffling, "laid_out", lambda rows, streams: seen.append(rows.ids.size) or real(rows, streams))
    compile_corpus(inputs, tok, tmp_path / "out", OPTIONS)
    found = victim.snapshot(tmp_path / "out")
    assert {n: d for n, d in found.items() if n.startswith(("npy", "megatron", "olmo"))} == {
        n: d for n, d in whole.items() if n.startswith(("npy", "megatron", "olmo"))
    }
    assert [row.tolist() for row in open_corpus(tmp_path / "out", format="arrow")] == [
        row.tolist() for row in open_corpus(work[0] / "whole", format="arrow")
    ]
    assert max(seen) < 1500 < sum(seen) / 10


def test_memory_is_bounded_by_fields_that_are_kept_too(tmp_path, tok, monkeypatch):
    """Ids of texts of one token are nothing beside the pages that are kept of them."""
    path, page = tmp_path / "a.jsonl", "p" * 2000
    path.write_text("".join(json.dumps({"text": "a", "page": page + str(k)}) + "\n" for k in range(300)))
    seen, real = [], shuffling.laid_out
    monkeypatch.setattr(shuffling, "AT_ONCE", 30_000)
    monkeypatch.setattr(tables, "KEPT_BYTES", 40_000)
    monkeypatch.setattr(kept, "KEPT_BYTES", 40_000)
    monkeypatch.setattr(
        shuffling, "laid_out", lambda rows, streams: seen.append(rows.kept_bytes()) or real(rows, streams)
    )
    options = Options(formats=("npy", "arrow", "parquet"), keep=("page",), shuffle_documents=1)
    compile_corpus([path], tok, tmp_path / "out", options, threads=1)
    assert max(seen) < 50_000 < sum(seen) / 10
    assert sorted(fields(tmp_path / "out")["page"].to_pylist()) == sorted(page + str(k) for k in range(300))
    out = tmp_path / "out"
    for name in ("kept", "arrow"):
        (path,) = (out / name).iterdir()
        opened = pa.ipc.open_file(path)
        sizes = [opened.get_batch(k).column("page").nbytes for k in range(opened.num_record_batches)]
        assert max(sizes) < 90_000 < sum(sizes) / 5
    (path,) = (out / "parquet").iterdir()
    assert pq.ParquetFile(path).metadata.num_row_groups > 5


def test_what_waits_to_be_sorted_is_counted_when_disk_is_short(tmp_path, tok, monkeypatch):
    path = write(tmp_path / "a.jsonl", make_texts(800, 3))
    usage = shutil.disk_usage(tmp_path)
    plain, shuffled = (Options(formats=("npy",), shuffle_documents=seed) for seed in (None, 1))
    compile_corpus([path], tok, tmp_path / "one", shuffled)
    size = sum(file.stat().st_size for file in (tmp_path / "one" / "npy").iterdir())
    monkeypatch.setattr(prediction.shutil, "disk_usage", lambda _: usage._replace(free=int(size * 1.2)))
    compile_corpus([path], tok, tmp_path / "two", plain)
    with pytest.raises(CorpusError, match="check_space=False"):
        compile_corpus([path], tok, tmp_path / "three", shuffled)
    small = Options(formats=("npy",), shuffle_documents=1, shard_bytes=4000)
    compile_corpus([path], tok, tmp_path / "four", small, threads=1)


def test_files_of_unsorted_documents_are_as_large_as_is_said(tmp_path, tok, monkeypatch):
    path, seen, real = write(tmp_path / "a.jsonl", make_texts(500, 4)), [], ShuffledWriter._groups

    def groups(self):
        files = sum(self.shard.path(f"unsorted.{name}").stat().st_size for name in self._files)
        documents, tokens = (sum(cuts[-1] - cuts[0] for cuts in self._cuts[n][-1:]) for n in ("keys", "ids"))
        seen.append((files, spool_bytes(documents, tokens, tok.vocab_size, options)))
        return real(self)

    monkeypatch.setattr(ShuffledWriter, "_groups", groups)
    options = Options(formats=("npy",), shuffle_documents=1)
    compile_corpus([path], tok, tmp_path / "out", options, threads=1)
    assert [files for files, _ in seen] == [said for _, said in seen]


def test_verify_finds_each_document_where_it_was_put(work, tmp_path, tok):
    folder, inputs, _ = work
    found = verify(folder / "whole", tok, all=True)
    assert found.ok, found.differences
    assert found.ranges == sum(len(shard["ranges"]) for shard in read_manifest(folder / "whole")["shards"])
    assert found.witnessed_shards == found.of_shards
    assert verify(folder / "whole", tok).ok
    out = tmp_path / "out"
    compile_corpus(inputs, tok, out, OPTIONS)
    offsets = np.load(out / "npy" / "00000.offsets.npy")
    row = int(np.flatnonzero(np.diff(offsets))[5])
    with open(out / "npy" / "00000.ids.npy", "r+b") as file:  # noqa: PTH123
        file.seek(128 + 2 * int(offsets[row]))
        file.write(b"\1\2")
    differences = [each for each in verify(out, tok, all=True).differences if each.get("format") == "npy"]
    assert [each["document_of_shard"] for each in differences] == [row]


def test_a_seed_draws_its_order_and_train_val_takes_each_side_of_it(work, tmp_path, tok):
    folder, inputs, _ = work
    compile_corpus(inputs, tok, tmp_path / "8", Options(**{**vars(OPTIONS), "shuffle_documents": 8}))
    rows = [[row.tolist() for row in open_corpus(place)] for place in (folder / "whole", tmp_path / "8")]
    assert sorted(rows[0]) == sorted(rows[1])
    assert rows[0] != rows[1]
    out = tmp_path / "sides"
    compile_corpus(inputs, tok, out, Options(**{**vars(OPTIONS), "train_val": 0.7}))
    both = [row.tolist() for side in ("train", "val") for row in open_corpus(out / side)]
    assert sorted(both) == sorted(rows[0])
    for side in ("train", "val"):
        assert verify(out / side, tok, all=True).ok


def test_where_documents_go_is_even():
    """Chi-square of (place of the unit, place it goes to), and of documents in a shard, over many seeds."""
    for count, name in ((8, "units"), (8, "0/0/0")):
        table = np.zeros((count, count))
        for seed in range(4000):
            table[np.arange(count), drawn(f"{seed}/{name}", count)] += 1
        expected = 4000 / count
        assert ((table - expected) ** 2 / expected).sum() < 100  # of 49 degrees: beyond 1 in 10,000


def test_rows_of_any_form_are_sorted_with_all_that_is_theirs():
    draw = np.random.default_rng(1)
    lengths = draw.integers(0, 5, 200)
    ids = np.arange(lengths.sum(), dtype=np.int32)
    texts = [None if k % 7 == 0 else "x" * (k % 5) for k in range(200)]
    column = pa.array(["cut", *texts], pa.large_string())[1:]
    rows = Rows(ids, lengths, np.arange(200) % 3, np.arange(200), (column,), (ids % 2).astype(np.uint8))
    order = draw.permutation(200)
    found = sorted_rows(rows, order)
    parts = np.split(ids, np.cumsum(lengths)[:-1])
    assert found.ids.tolist() == np.concatenate([parts[k] for k in order]).tolist()
    assert found.mask.tolist() == (found.ids % 2).tolist()
    assert found.kept[0].to_pylist() == [texts[k] for k in order]
    assert found.places.tolist() == order.tolist()
    sizes, data = shuffling._buffers(column)
    assert shuffling._column(sizes, data).to_pylist() == texts
    empty = shuffling._buffers(pa.array([], pa.large_string()))
    assert shuffling._column(*empty).to_pylist() == []


def test_what_cannot_be_shuffled_is_refused(tmp_path, tok, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\n")))
    with pytest.raises(CorpusError, match="found standard input, expected files, of which parts can be drawn"):
        compile_corpus(["-"], tok, tmp_path / "out", Options(kind="txt", lines=True, shuffle_documents=1))
    for seed in (-1, True, 1.5, "7"):
        with pytest.raises(CorpusError, match=r"shuffle_documents: found .*, expected a seed: a whole number from 0"):
            Options(shuffle_documents=seed)
    (tmp_path / "a.txt").write_text("a\nb\n")
    how = [
        "corpus",
        str(tmp_path / "a.txt"),
        "--lines",
        "--vocab",
        "gpt-2",
        "--out",
        str(tmp_path / "o"),
        "--format",
        "npy",
    ]
    assert main([*how, "--shuffle-documents", "0"]) == 0
    assert main([*how, "--shuffle-documents", "1"]) != 0
    assert "shuffle_documents 1 (begun with 0)" in capsys.readouterr().err


def test_nothing_is_a_corpus_too(tmp_path):
    (tmp_path / "a.jsonl").write_text("\n")
    options = Options(formats=FORMATS, keep=("id",), shuffle_documents=1)
    compile_corpus([tmp_path / "a.jsonl"], jittok.bundled("gpt-2"), tmp_path / "out", options)
    assert len(open_corpus(tmp_path / "out")) == 0

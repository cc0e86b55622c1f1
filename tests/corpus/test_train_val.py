"""Documents are divided by a hash of their own bytes: two corpora that have nothing in common and are the whole, made
in one pass over the inputs."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import shutil

import pytest
import victim

from jittok.cli import main
from jittok.corpus import (
    Options,
    compile_corpus,
    corpus_status,
    fields,
    finish_corpus,
    plan_corpus,
    run_corpus,
    verify,
)
from jittok.corpus import open as open_corpus
from jittok.corpus.options import SIDES
from jittok.corpus.ranges import units
from jittok.corpus.ranges.split import is_training
from jittok.corpus.shards.manifest import read_manifest
from jittok.corpus.tasks import finish
from jittok.errors import CorpusError

pa = pytest.importorskip("pyarrow")
pytest.importorskip("orjson")
COUNT, SHARE = 3000, 0.9


@pytest.fixture
def rows():
    draw = random.Random(2)
    return [{"id": k, "text": f"document {draw.randrange(COUNT)}"} for k in range(COUNT)]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def chosen(**options):
    return Options(**{"formats": ("npy",), "keep": ("id",), "train_val": SHARE, **options})


def ids_in(folder):
    return [int(k) for k in fields(folder)["id"].to_pylist()]


def compiled(inputs, tok, out, **options):
    compile_corpus(inputs, tok, out, chosen(**options), check_space=False)
    return ids_in(out / "train"), ids_in(out / "val")


def test_both_parts_are_the_whole_and_equal_texts_are_in_one(tmp_path, tok, rows):
    path, out = write(tmp_path / "a.jsonl", rows), tmp_path / "out"
    train, val = compiled([path], tok, out)
    assert (sorted(train), sorted(val)) == (train, val)
    assert sorted(train + val) == list(range(COUNT))
    assert {rows[k]["text"] for k in train}.isdisjoint(rows[k]["text"] for k in val)
    limit = int(SHARE * 2**64)
    digests = [hashlib.blake2b(row["text"].encode(), digest_size=8).digest() for row in rows]
    assert train == [k for k, digest in enumerate(digests) if int.from_bytes(digest, "big") < limit]
    assert abs(len(train) / COUNT - SHARE) < 0.03
    for side, ids in zip(SIDES, (train, val), strict=True):
        assert verify(out / side, tok, all=True).ok
        opened = open_corpus(out / side, tok)
        assert [opened.decode(k) for k in range(len(opened))] == [rows[k]["text"] for k in ids]
        assert read_manifest(out / side)["text_bytes"] == sum(len(rows[k]["text"]) for k in ids)
    found = compile_corpus([path], tok, out, chosen())
    assert found.documents == found.resumed == COUNT
    assert [found.sides[side].documents for side in SIDES] == [len(train), len(val)]
    assert sum(found.sides[side].bytes for side in SIDES) == found.bytes


def test_no_order_of_documents_or_cut_of_ranges_changes_a_side(tmp_path, tok, rows):
    train, val = compiled([write(tmp_path / "a.jsonl", rows)], tok, tmp_path / "out")
    random.Random(3).shuffle(rows)
    some = [write(tmp_path / "b.jsonl", rows[:1000]), write(tmp_path / "c.jsonl", rows[1000:])]
    again = compiled(some, tok, tmp_path / "again", range_bytes=999, shard_bytes=5000)
    assert (sorted(again[0]), sorted(again[1])) == (train, val)


def inputs_of_all_kinds(folder, rows):
    import pyarrow.parquet as pq

    inputs = [write(folder / "a.jsonl", rows[:1500])]
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(write(folder / "b.jsonl", rows[1500:2500]).read_bytes()))
    pq.write_table(pa.Table.from_pylist(rows[2500:]), folder / "c.parquet", row_group_size=50)
    lines = inputs[0].read_bytes().splitlines(keepends=True)
    lines[7], lines[1400] = b"{\n", b'{"text": 1}\n'
    inputs[0].write_bytes(b"".join(lines))
    return [*inputs, folder / "b.jsonl.gz", folder / "c.parquet"]


def test_parts_in_any_order_and_other_threads_write_the_same_bytes_and_read_once(tmp_path, tok, rows, monkeypatch):
    inputs = inputs_of_all_kinds(tmp_path, rows)
    options = chosen(formats=("npy", "arrow", "megatron", "olmo"), on_error="skip", range_bytes=4000, shard_bytes=9000)
    read, real = [], units._read_unit
    monkeypatch.setattr(units, "_read_unit", lambda unit, *rest: read.append(unit) or real(unit, *rest))
    compile_corpus(inputs, tok, tmp_path / "whole", options, threads=1, check_space=False)
    assert len(read) == len(set(read))
    whole = victim.snapshot(tmp_path / "whole")
    for side in SIDES:
        assert sum(name.startswith(f"{side}/npy/") and "-000" in name for name in whole), "a packed input has several"
        assert json.loads((tmp_path / "whole" / side / "manifest.json").read_text())["bad_documents"] == 2
        told = [json.loads(line) for path in sorted((tmp_path / "whole" / side / "errors").iterdir())
                for line in path.read_text().splitlines()]  # fmt: skip
        assert [row["line"] for row in told] == [8, 1401]
    out = tmp_path / "out"
    plan_corpus(inputs, tok, out, options, parts=5)
    order = list(range(5))
    random.Random(1).shuffle(order)
    for part in order:
        assert run_corpus(out, tok, part=str(part), threads=2).failed == {}
        run_corpus(out, tok, part=str(part))
    found = finish_corpus(out)
    assert set(found.sides) == set(SIDES)
    assert victim.snapshot(out) == whole
    assert corpus_status(out) is None
    assert run_corpus(out).done == 0
    for side in SIDES:
        assert verify(out / side, tok, all=True).ok


def test_what_dies_between_two_manifests_is_finished_by_the_next_call(tmp_path, tok, rows, monkeypatch):
    path, out = write(tmp_path / "a.jsonl", rows[:200]), tmp_path / "out"
    compile_corpus([path], tok, tmp_path / "whole", chosen())
    real = finish.manifest_text

    def dies(manifest):
        if manifest["side"] == "train":
            raise KeyboardInterrupt
        return real(manifest)

    with monkeypatch.context() as patch:
        patch.setattr(finish, "manifest_text", dies)
        with pytest.raises(KeyboardInterrupt):
            compile_corpus([path], tok, out, chosen())
    assert (out / "val" / "manifest.json").exists()
    assert corpus_status(out).missing == ()
    compile_corpus([path], tok, out, chosen())
    assert victim.snapshot(out) == victim.snapshot(tmp_path / "whole")


def test_a_corpus_and_its_inputs_may_be_moved_together(tmp_path, rows, monkeypatch, capsys):
    (tmp_path / "here").mkdir()
    write(tmp_path / "here" / "a.jsonl", rows[:200])
    monkeypatch.chdir(tmp_path / "here")
    how = ["--vocab", "gpt-2", "--train-val", "0.9", "--format", "npy", "--no-space-check"]
    assert main(["corpus", "a.jsonl", "--out", "out/deep", *how]) == 0
    monkeypatch.chdir(tmp_path)
    shutil.move(tmp_path / "here", tmp_path / "there")
    for side in SIDES:
        assert main(["verify", f"there/out/deep/{side}", "--all"]) == 0, capsys.readouterr().out
    with pytest.raises(CorpusError, match=r"found 2 corpora, of --train-val, expected one of them: .*train or .*val"):
        open_corpus(tmp_path / "there" / "out" / "deep")


def test_a_bad_document_is_told_on_both_sides_and_a_side_may_be_empty(tmp_path, tok):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "document 1", "id": 0}\n{"text": 1}\n')
    sides = compiled([path], tok, tmp_path / "out", on_error="skip")
    side = is_training(b"document 1", SHARE)
    assert sides == (([0], []) if side else ([], [0]))
    for part in SIDES:
        assert json.loads((tmp_path / "out" / part / "manifest.json").read_text())["bad_documents"] == 1
    path.write_text('{"texts": "document 1"}\n')
    with pytest.raises(CorpusError, match="no text in any of 1 documents"):
        compiled([path], tok, tmp_path / "none", on_error="skip")


def test_the_command_writes_both(tmp_path, rows, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.jsonl", rows)
    how = ["--vocab", "gpt-2", "--out", "out", "--train-val", "0.9", "--format", "npy"]
    for _ in range(2):  # the second call finds both as they are, and takes neither for an input
        assert main(["corpus", ".", *how, "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said["sides"]["train"]["documents"] + said["sides"]["val"]["documents"] == COUNT == said["documents"]
        assert said["sides"]["val"]["documents"] == len(open_corpus("out/val"))
    assert main(["corpus", ".", *how]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines[:2]] == ["out/train", "out/val"]


def test_standard_input_is_divided_too(tmp_path, tok, rows, monkeypatch):
    expected = compiled([write(tmp_path / "a.jsonl", rows)], tok, tmp_path / "out")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "a.jsonl").read_bytes())))
    assert compiled(["-"], tok, tmp_path / "piped", kind="jsonl") == expected


def test_a_corpus_in_a_bucket_has_the_bytes_of_a_folder(tmp_path, tok, rows):
    pytest.importorskip("obstore")
    from jittok.corpus.store import open_store

    path = write(tmp_path / "a.jsonl", rows[:500])
    compile_corpus([path], tok, tmp_path / "out", chosen())
    far = f"memory://{tmp_path.name}/out"
    compile_corpus([path], tok, far, chosen())
    store, local = open_store(far), open_store(tmp_path / "out")
    names = [entry.name for entry in store.objects() if "manifest" not in entry.name]
    assert names == [n for entry in local.objects() if "manifest" not in (n := entry.name) and ".lock" not in n]
    assert {store.read(name) == local.read(name) for name in names} == {True}
    assert verify(f"{far}/val", tok, all=True).ok
    assert compile_corpus([path], tok, far, chosen()).resumed == 500


def test_a_share_that_cannot_be_is_refused():
    for share in (0, 1, -0.5, 1.5):
        with pytest.raises(CorpusError, match=r"train_val: found .*, expected more than 0 and less than 1"):
            Options(train_val=share)

"""Documents are divided by a hash of their own bytes: two corpora that have nothing in common and are the whole."""

from __future__ import annotations

import hashlib
import json
import random

import pytest

from jittok.cli import main
from jittok.corpus import Options, compile_corpus, fields, verify
from jittok.corpus import open as open_corpus
from jittok.corpus.ranges.split import is_training
from jittok.errors import CorpusError

pytest.importorskip("pyarrow")
pytest.importorskip("orjson")
COUNT, SHARE = 3000, 0.9


@pytest.fixture
def rows():
    draw = random.Random(2)
    return [{"id": k, "text": f"document {draw.randrange(COUNT)}"} for k in range(COUNT)]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def ids_in(folder):
    return [int(k) for k in fields(folder)["id"].to_pylist()]


def compiled(inputs, tok, out, **options):
    for part in ("train", "val"):
        chosen = Options(formats=("npy",), keep=("id",), part=part, train_val=SHARE, **options)
        compile_corpus(inputs, tok, out / part, chosen, check_space=False)
    return ids_in(out / "train"), ids_in(out / "val")


def test_both_parts_are_the_whole_and_equal_texts_are_in_one(tmp_path, tok, rows):
    train, val = compiled([write(tmp_path / "a.jsonl", rows)], tok, tmp_path / "out")
    assert (sorted(train), sorted(val)) == (train, val)
    assert sorted(train + val) == list(range(COUNT))
    assert {rows[k]["text"] for k in train}.isdisjoint(rows[k]["text"] for k in val)
    limit = int(SHARE * 2**64)
    digests = [hashlib.blake2b(row["text"].encode(), digest_size=8).digest() for row in rows]
    assert train == [k for k, digest in enumerate(digests) if int.from_bytes(digest, "big") < limit]
    assert abs(len(train) / COUNT - SHARE) < 0.03
    for part in ("train", "val"):
        assert verify(tmp_path / "out" / part, tok, all=True).ok
        assert len(open_corpus(tmp_path / "out" / part, tok)) == len(train if part == "train" else val)


def test_no_order_of_documents_or_cut_of_ranges_changes_a_side(tmp_path, tok, rows):
    train, val = compiled([write(tmp_path / "a.jsonl", rows)], tok, tmp_path / "out")
    random.Random(3).shuffle(rows)
    some = [write(tmp_path / "b.jsonl", rows[:1000]), write(tmp_path / "c.jsonl", rows[1000:])]
    again = compiled(some, tok, tmp_path / "again", range_bytes=999, shard_bytes=5000)
    assert (sorted(again[0]), sorted(again[1])) == (train, val)


def test_a_bad_document_is_told_in_both_parts_and_a_part_may_be_empty(tmp_path, tok):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "document 1", "id": 0}\n{"text": 1}\n')
    sides = compiled([path], tok, tmp_path / "out", on_error="skip")
    side = is_training(b"document 1", SHARE)
    assert sides == (([0], []) if side else ([], [0]))
    for part in ("train", "val"):
        assert json.loads((tmp_path / "out" / part / "manifest.json").read_text())["bad_documents"] == 1


def test_the_command_writes_both(tmp_path, rows, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.jsonl", rows)
    command = ["corpus", ".", "--vocab", "gpt-2", "--out", "out", "--train-val", "0.9", "--format", "npy", "--json"]
    for _ in range(2):  # the second call finds both as they are, and takes neither for an input
        assert main(command) == 0
        said = json.loads(capsys.readouterr().out)
        assert said["train"]["documents"] + said["val"]["documents"] == COUNT
        assert said["val"]["documents"] == len(open_corpus("out/val"))


def test_a_share_and_a_part_that_cannot_be_are_refused(tmp_path, tok):
    for share in (0, 1, -0.5, 1.5):
        with pytest.raises(CorpusError, match=r"train_val: found .*, expected more than 0 and less than 1"):
            Options(part="train", train_val=share)
    with pytest.raises(CorpusError, match="found a part without a share"):
        Options(part="train")
    with pytest.raises(CorpusError, match="found a share without a part"):
        Options(train_val=0.5)
    with pytest.raises(CorpusError, match="part: found 'test', expected one of train, val"):
        Options(part="test", train_val=0.5)
    with pytest.raises(CorpusError, match="train_val: found an input that can be read once, expected files"):
        compile_corpus(["-"], tok, tmp_path / "out", Options(kind="jsonl", part="val", train_val=0.5))

"""The law: a corpus in a bucket has the bytes of one on this disk, whoever writes its parts, in whatever order, however
often they are killed, and whatever the network does."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import far
import pytest
from conftest import make_texts, write_jsonl

import jittok.corpus
from jittok.corpus import Options, compile_corpus, sequences, verify
from jittok.corpus.compiler import finish_corpus, plan_corpus, run_corpus
from jittok.corpus.store import client, disk, open_store
from jittok.corpus.store.base import Store
from jittok.corpus.store.bucket import Bucket
from jittok.corpus.tasks.finish import Unfinished
from jittok.errors import CorpusError

pytest.importorskip("obstore")
pytest.importorskip("pyarrow")
OPTIONS = Options(formats=("npy", "megatron", "parquet"), range_bytes=20_000, shard_bytes=60_000)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "a.jsonl", make_texts(700, 5))


@pytest.fixture
def out(tmp_path: Path) -> Store:
    return open_store(f"s3://{far.BUCKET}/{tmp_path.name}-{time.time_ns()}/out")


def files_of(store: Store) -> dict[str, bytes]:
    """All objects; none of the work is left."""
    found = {each.name: store.read(each.name) for each in store.objects() if each.name != ".jittok.lock"}
    assert not [name for name in found if name.startswith(".")]
    return found


def same(found: dict[str, bytes], near: dict[str, bytes]) -> bool:
    """Whether two corpora have the same files with the same bytes, and say the same of them: manifests also name where
    a corpus is."""
    name = "manifest.json"
    files = found.keys() == near.keys() and all(found[each] == near[each] for each in near if each != name)
    said, right = json.loads(found[name]), json.loads(near[name])
    return files and all(said[key] == right[key] for key in ("shards", "documents", "tokens", "text_bytes", "options"))


@pytest.fixture
def near(source: Path, tmp_path: Path, tok: Any) -> dict[str, bytes]:
    compile_corpus([source], tok, tmp_path / "near", OPTIONS)
    return files_of(open_store(tmp_path / "near"))


def test_a_corpus_in_a_bucket_has_the_same_bytes_and_is_read_and_verified_there(
    s3: far.Proxy, source: Path, near: dict[str, bytes], out: Store, tok: Any, tmp_path: Path
) -> None:
    summary = compile_corpus([source], tok, out.place, OPTIONS)
    assert summary.out == out.place
    assert same(files_of(out), near)
    assert compile_corpus([source], tok, out.place, OPTIONS).resumed == summary.documents  # nothing is written again
    with pytest.raises(CorpusError, match=r"append"):
        compile_corpus([source], tok, out.place, Options(formats=("npy",), append_eos=True))
    assert verify(out.place, tok, all=True).ok
    local = jittok.corpus.open(tmp_path / "near", tok)
    for name in OPTIONS.formats:
        corpus = jittok.corpus.open(out.place, tok, format=name)
        assert len(corpus) == len(local)
        assert [row.tolist() for row in corpus] == [row.tolist() for row in local]
        assert corpus.decode(3) == local.decode(3)
    name = sorted(name for name in near if name.startswith("npy/"))[0]
    out.put(name, near[name][:-1] + bytes([near[name][-1] ^ 1]))
    assert not verify(out.place, tok, hashes_only=True).ok
    assert s3.counts["requests"] > 0
    with pytest.raises(CorpusError, match="SHA-256"):
        jittok.corpus.open(out.place, tok, format="npy")[0]


def test_inputs_and_output_may_lie_in_one_bucket(s3: far.Proxy, source: Path, out: Store, tok: Any) -> None:
    inputs = open_store(f"{out.place}-in")
    inputs.put("a.jsonl", source.read_bytes())
    compile_corpus([inputs.place], tok, out.place, OPTIONS)
    assert verify(out.place, tok, all=True).ok
    assert s3.counts["requests"] > 0


@pytest.mark.parametrize("mode", [*(pytest.param(mode, marks=pytest.mark.slow) for mode in far.MODES), "all"])
def test_a_network_that_fails_at_every_kth_request_changes_no_byte(
    s3: far.Proxy, source: Path, near: dict[str, bytes], out: Store, tok: Any, mode: str, monkeypatch: Any
) -> None:
    monkeypatch.setenv("JITTOK_CLOUD_TIMEOUT", "1")
    monkeypatch.setattr(client, "FIRST_WAIT", 0.01)
    client._clients.clear()
    s3.spoil(mode, 7 if mode in ("all", "stall") else 3)
    compile_corpus([source], tok, out.place, OPTIONS)
    assert s3.counts["faults"] > 0
    s3.spoil("", 0)
    assert same(files_of(out), near)
    assert out.discard_unfinished() == 0


PART = """
import sys
import jittok
from jittok.corpus.compiler import run_corpus
from jittok.corpus.store import client
client.FIRST_WAIT = 0.01
run_corpus(sys.argv[1], jittok.bundled("gpt-2"), claim=True, threads=1)
"""


@pytest.mark.process
@pytest.mark.parametrize("seed", [1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 40))])
def test_processes_that_are_killed_over_a_failing_network_leave_the_same_bytes(
    s3: far.Proxy, source: Path, near: dict[str, bytes], out: Store, tok: Any, seed: int
) -> None:
    rng = random.Random(seed)
    plan_corpus([source], tok, out.place, OPTIONS)
    s3.spoil("all", rng.choice([5, 7, 11]))
    environment = {**os.environ, "JITTOK_CLOUD_TIMEOUT": "1"}
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", PART, out.place], env=environment, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.8, 2.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
    run_corpus(out.place, tok)
    finish_corpus(out.place)
    s3.spoil("", 0)
    assert same(files_of(out), near)
    assert out.discard_unfinished() == 0


def test_a_bucket_with_files_of_others_is_refused(s3: far.Proxy, source: Path, out: Store, tok: Any) -> None:
    out.put("letter.txt", b"mine")
    with pytest.raises(CorpusError, match=r"letter\.txt"):
        compile_corpus([source], tok, out.place, OPTIONS)
    assert files_of(out) == {"letter.txt": b"mine"}
    assert s3.counts["requests"] > 0


def test_the_command_line_writes_verifies_and_names_what_is_wrong(
    s3: far.Proxy, source: Path, near: dict[str, bytes], out: Store, capsys: Any
) -> None:
    from jittok.cli import main

    formats = ",".join(OPTIONS.formats)
    options = ["--format", formats, "--range-bytes", "20000", "--shard-bytes", "60000"]
    assert main(["corpus", str(source), "--vocab", "gpt-2", "--out", out.place, *options]) == 0
    assert same(files_of(out), near)
    assert main(["verify", out.place, "--vocab", "gpt-2"]) == 0
    text = capsys.readouterr()
    assert far.SECRET not in text.out + text.err
    assert not any(far.SECRET.encode() in content for content in files_of(out).values())
    assert s3.counts["requests"] > 0


def test_memory_is_a_bucket_too(source: Path, near: dict[str, bytes], tok: Any, tmp_path: Path) -> None:
    out = open_store(f"memory://{tmp_path.name}/out")
    compile_corpus([source], tok, out.place, OPTIONS)
    assert same(files_of(out), near)
    assert verify(out.place, tok).ok
    shutil.rmtree(tmp_path / "near")


def test_uploads_of_others_in_a_bucket_go_on(
    s3: far.Proxy, source: Path, tok: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jittok.corpus.store import uploads

    whole = open_store(f"s3://{far.BUCKET}")
    with pytest.raises(CorpusError, match="uploads of a whole bucket"):
        whole.discard_unfinished()
    asked: list[str] = []
    monkeypatch.setattr(uploads, "abort", lambda _, prefix: asked.append(prefix) or 0)
    out = open_store(f"s3://{far.BUCKET}/up-{time.time_ns()}")
    compile_corpus([source], tok, out.place, OPTIONS)
    base = out.place.removeprefix(f"s3://{far.BUCKET}/")
    assert asked == [f"{base}/{name}/" for name in ("npy", "megatron", "parquet", "kept", "loss_mask", "errors")]
    assert s3.counts["requests"] > 0


def test_a_bucket_whose_listing_is_late_costs_another_try(
    source: Path, near: dict[str, bytes], tok: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, rng = open_store(f"memory://{tmp_path.name}/late"), random.Random(3)
    plan_corpus([source], tok, out.place, OPTIONS, parts=3)
    objects = Bucket.objects
    with monkeypatch.context() as patch:
        patch.setattr(
            Bucket, "objects", lambda self, under="": (
                each for each in objects(self, under) if time.time() - each.changed > rng.uniform(0, 0.5)
            ),
        )  # fmt: skip
        for part in "210":
            assert run_corpus(out.place, tok, part=part).failed == {}
        until = time.monotonic() + 30
        while True:
            try:
                finish_corpus(out.place)
                break
            except Unfinished:
                assert time.monotonic() < until
                time.sleep(0.1)
    out.clear(".jittok")  # what the last listing has missed
    assert same(files_of(out), near)


def test_a_full_disk_of_temporary_files_is_told_with_its_name(
    source: Path, tok: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(disk, "append", full)
    with pytest.raises(OSError, match=r"No space left.*TMPDIR: shards for memory://"):
        compile_corpus([source], tok, f"memory://{tmp_path.name}/full", OPTIONS)


def test_training_reads_every_format_where_it_lies(
    source: Path, out: Store, s3: far.Proxy, tmp_path: Path, tok: Any
) -> None:
    """Arrow, Parquet and OLMo's rows in pieces, each fetched once, by a loader with another thread that is ahead."""
    names = ("npy", "arrow", "parquet", "olmo")
    options = Options(formats=names, range_bytes=20_000, shard_bytes=60_000, append_eos=True)
    compile_corpus([source], tok, out.place, options, check_space=False)
    compile_corpus([source], tok, tmp_path / "near", options, check_space=False)
    right = [batch.ids.tolist() for batch in sequences(tmp_path / "near", 64).loader(4, epochs=1)]
    assert len(right) > 10
    for name in names:
        sizes = {each.name: each.size for each in out.objects(name)}
        before = s3.counts["sent"]
        found = sequences(out.place, 64, format=name, cache=tmp_path / name)
        assert [batch.ids.tolist() for batch in found.loader(4, epochs=1)] == right
        manifest = out.head("manifest.json")
        assert manifest is not None
        assert s3.counts["sent"] - before <= sum(sizes.values()) + manifest.size + 20_000

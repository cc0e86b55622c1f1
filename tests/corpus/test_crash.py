"""Whatever instant a run is stopped at, the same call ends with the bytes of one undisturbed run."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys

import pytest
import victim
from conftest import make_texts, write_jsonl
from server import Server

from jittok.corpus import Options, compile_corpus
from jittok.corpus.store import disk

pytest.importorskip("pyarrow")
pytest.importorskip("filelock")
if sys.platform == "win32":
    pytest.skip("fork servers", allow_module_level=True)


FORMATS = ("arrow", "npy", "megatron", "olmo")
pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server():
    made = Server()
    yield made
    made.close()


@pytest.fixture(scope="module")
def work(tmp_path_factory, tok, server):
    """Inputs, options, the bytes of an undisturbed run and how long one takes."""
    folder = tmp_path_factory.mktemp("crash")
    inputs = [write_jsonl(folder / f"{name}.jsonl", make_texts(220, seed)) for seed, name in enumerate("ab")]
    options = Options(formats=FORMATS, range_bytes=40_000, shard_bytes=120_000, append_eos=True)
    compile_corpus(inputs, tok, folder / "whole", options, threads=1)
    server.finish(inputs, folder / "first", options)
    return inputs, options, victim.snapshot(folder / "whole"), server.finish(inputs, folder / "second", options)


def killed_at(server, work, out, number, keep):
    """Whether the run was killed before its end; then it is continued. The bytes are right in any case."""
    inputs, options, whole, _ = work
    shutil.rmtree(out, ignore_errors=True)
    status, _ = server.run(inputs, out, options, die_at=number, keep=keep)
    if status == 0:
        return False
    assert status == -9
    server.finish(inputs, out, options)
    assert victim.snapshot(out) == whole, f"killed at change {number}"
    return True


def test_a_kill_at_a_change_of_the_directory_loses_nothing(server, work, tmp_path):
    number = 1
    while killed_at(server, work, tmp_path / "out", number, keep=0.5):
        number += 29
    assert number > 60


@pytest.mark.slow
@pytest.mark.parametrize("keep", [0.0, 0.5, 1.0])
def test_a_kill_at_every_change_of_the_directory_loses_nothing(server, work, tmp_path, keep):
    number = 1
    while killed_at(server, work, tmp_path / "out", number, keep):
        number += 1
    assert number > 60


def kill_at_random_instants(server, work, out, kills, threads, seed):
    """Kill, continue, kill again ... until done; begin again until there were so many kills."""
    inputs, options, whole, seconds = work
    rng, done = random.Random(seed), 0
    while done < kills:
        shutil.rmtree(out, ignore_errors=True)
        while True:
            status, _ = server.run(inputs, out, options, threads=threads, kill_after=rng.uniform(0, seconds))
            if status == 0:
                break
            assert status == -9
            done += 1
        assert victim.snapshot(out) == whole


@pytest.mark.parametrize("threads", [1, 2])
def test_kills_at_five_random_instants(server, work, tmp_path, threads):
    kill_at_random_instants(server, work, tmp_path / "out", 5, threads, seed=threads)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_kills_at_fifty_random_instants(server, work, tmp_path, threads):
    kill_at_random_instants(server, work, tmp_path / "out", 50, threads, seed=threads)


def test_tasks_that_are_done_are_not_done_again(server, work, tmp_path, monkeypatch, tok):
    inputs, options, whole, _ = work
    out = tmp_path / "out"
    server.run(inputs, out, options, die_at=100)
    records = [json.loads(path.read_bytes()) for path in (out / ".jittok" / "t").glob("*.done")]
    done = sum(len(shard["ranges"]) for record in records for shard in record["shards"])
    from jittok.corpus.ranges.encoder import RangeEncoder

    seen, encode = [], RangeEncoder.__call__
    monkeypatch.setattr(
        RangeEncoder, "__call__", lambda self, raw, *stop: (seen.append(raw.key), encode(self, raw, *stop))[1]
    )
    everything = len({tuple(row[:3]) for shard in _manifest(work) for row in shard["ranges"]})
    monkeypatch.setattr("jittok.corpus.prediction.check_space", lambda *_: None)
    compile_corpus(inputs, tok, out, options, threads=1)
    assert 0 < done < everything
    assert len(seen) == everything - done
    assert victim.snapshot(out) == whole


def test_files_of_a_writer_that_died_go_and_those_of_the_user_stay(server, work, tmp_path):
    """A kill before the manifest is renamed leaves its temporary file at the top, where nothing else is removed."""
    inputs, options, whole, _ = work
    out = tmp_path / "out"
    server.run(inputs, out, options, die_at=130)
    left = [out / name for name in (".manifest.json.0123456789abcdef.part", "npy/.00000.ids.npy.0123456789abcdef.part")]
    kept = [out / name for name in (".notes.part", ".manifest.json.part", "x.0123456789abcdef.part")]
    for path in (*left, *kept):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"half")
    server.finish(inputs, out, options)
    for path in kept:
        assert path.read_bytes() == b"half"
        path.unlink()
    assert victim.snapshot(out) == whole


def _manifest(work):
    from jittok.corpus.shards.manifest import read_manifest

    return read_manifest(work[0][0].parent / "whole")["shards"]


def test_files_that_are_cut_are_written_again(server, work, tmp_path):
    """A record of a task that is done is written after its files have been synced; if they are not there, it is not
    believed."""
    inputs, options, whole, _ = work
    rng = random.Random(5)
    for number in (100, 130):
        out = tmp_path / str(number)
        server.run(inputs, out, options, die_at=number)
        parts = sorted(path for path in out.rglob("0*") if path.is_file() and path.stat().st_size)
        for path in rng.sample(parts, 2):
            data = path.read_bytes()
            path.write_bytes(data[: rng.randrange(len(data))])
        server.finish(inputs, out, options)
        assert victim.snapshot(out) == whole


def test_a_record_that_ends_anywhere_is_not_believed(server, work, tmp_path):
    inputs, options, whole, _ = work
    begun = tmp_path / "begun"
    server.run(inputs, begun, options, die_at=130)
    for name in ("plan.json", "t/00000.done"):
        content = (begun / ".jittok" / name).read_bytes()
        for length in random.Random(3).sample(range(len(content) - 1), 3):
            out = tmp_path / "out"
            shutil.rmtree(out, ignore_errors=True)
            shutil.copytree(begun, out)
            (out / ".jittok" / name).write_bytes(content[:length])
            if name == "plan.json":
                status, _ = server.run(inputs, out, options)
                assert status == 1, "what it was begun with cannot be known"
                continue
            server.finish(inputs, out, options)
            assert victim.snapshot(out) == whole


@pytest.mark.parametrize("room", [0, 700, 5_000, 60_000, 200_000, 400_000])
def test_a_full_disk_leaves_a_directory_that_continues(work, tmp_path, monkeypatch, tok, room):
    inputs, options, whole, _ = work
    left, append = room, disk.append

    def until_full(descriptor, data):
        nonlocal left
        whole_data = memoryview(data).cast("B")
        if len(whole_data) > left:
            append(descriptor, whole_data[:left])
            left = 0
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left -= len(whole_data)
        append(descriptor, data)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "append", until_full)
        with pytest.raises(OSError, match="No space left"):
            compile_corpus(inputs, tok, tmp_path / "out", options, threads=2)
    compile_corpus(inputs, tok, tmp_path / "out", options, threads=2)
    assert victim.snapshot(tmp_path / "out") == whole


def test_a_disk_that_is_really_full(work, tmp_path, tok):
    inputs, options, whole, _ = work
    disk_of_its_own = tmp_path / "disk"
    disk_of_its_own.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk_of_its_own)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a small disk here")
    try:
        out = disk_of_its_own / "out"
        with pytest.raises(OSError, match="No space left"):
            compile_corpus(inputs, tok, out, options, threads=2, check_space=False)
        more = ["mount", "-o", "remount,size=20m", str(disk_of_its_own)]
        subprocess.run(more, check=True)
        compile_corpus(inputs, tok, out, options, threads=2)
        assert victim.snapshot(out) == whole
    finally:
        subprocess.run(["umount", str(disk_of_its_own)], check=False)

"""Ray: the bytes of any other run, with workers and drivers that are killed. Where Ray is installed."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from jittok.corpus import Options, compile_corpus
from jittok.corpus.tasks import on_ray
from jittok.errors import CorpusError

ray = pytest.importorskip("ray")
pa = pytest.importorskip("pyarrow")

import victim  # noqa: E402
from conftest import make_texts, write_jsonl  # noqa: E402

pytestmark = [
    pytest.mark.process,
    pytest.mark.usefixtures("cluster"),
    pytest.mark.filterwarnings("ignore"),
]  # Ray's own warnings are not ours
OPTIONS = Options(formats=("arrow", "npy", "olmo"), range_bytes=40_000, shard_bytes=120_000, append_eos=True)


@pytest.fixture(scope="module")
def cluster():
    """A local Ray of two CPUs, whose workers do not give way to the other parts of the tests, as they do by default."""
    os.environ.setdefault("RAY_worker_niceness", "0")
    try:
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=40)
    except Exception as error:  # noqa: BLE001  its own, and whatever a sandbox without sockets or shared memory gives
        pytest.skip(f"Ray does not start here: {error}")
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


@pytest.fixture(scope="module")
def work(tmp_path_factory, tok):
    folder = tmp_path_factory.mktemp("ray")
    inputs = [write_jsonl(folder / f"{name}.jsonl", make_texts(220, seed)) for seed, name in enumerate("ab")]
    import gzip

    (folder / "c.jsonl.gz").write_bytes(gzip.compress(inputs[0].read_bytes()))
    inputs.append(folder / "c.jsonl.gz")
    compile_corpus(inputs, tok, folder / "whole", OPTIONS, threads=1)
    return inputs, victim.snapshot(folder / "whole")


def test_ray_writes_the_same_bytes(work, tmp_path, tok):
    inputs, whole = work
    compile_corpus(inputs, tok, tmp_path / "out", OPTIONS, engine="ray", threads=2)
    assert victim.snapshot(tmp_path / "out") == whole


def test_ray_and_threads_continue_each_other(work, tmp_path, tok):
    inputs, whole = work
    for number, (first, second) in enumerate([("ray", "threads"), ("threads", "ray")]):
        out, left = tmp_path / str(number), 2 if first == "ray" else 6

        def report(_):
            nonlocal left
            left -= 1
            if not left:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            compile_corpus(inputs, tok, out, OPTIONS, engine=first, threads=1, progress=report)
        found = compile_corpus(inputs, tok, out, OPTIONS, engine=second, threads=2)
        assert 0 < found.resumed < found.documents
        assert victim.snapshot(out) == whole


def workers():
    """Process ids of the workers that do tasks."""
    import psutil

    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if "run_task" in " ".join(process.info["cmdline"] or [])
    ]


def test_a_killed_worker_costs_nothing(work, tmp_path, tok):
    pytest.importorskip("psutil")
    inputs, whole = work
    killed, done = [], threading.Event()

    def kill():
        while not done.is_set() and len(killed) < 2:
            for pid in workers()[:1]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
            done.wait(0.02)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        compile_corpus(inputs, tok, tmp_path / "out", OPTIONS, engine="ray", threads=2)
    finally:
        done.set()
        thread.join()
    assert killed
    assert victim.snapshot(tmp_path / "out") == whole


def test_a_task_whose_workers_all_die_is_named(work, tmp_path, tok, monkeypatch):
    pytest.importorskip("psutil")
    monkeypatch.setattr(on_ray, "RETRIES", 0)
    done = threading.Event()

    def kill():
        while not done.is_set():
            for pid in workers():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            done.wait(0.005)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        expected = r"out, task \d+ on Ray: found 1 workers that died \(.*Error\), expected workers that live: .*memory"
        with pytest.raises(CorpusError, match=expected):
            compile_corpus(work[0], tok, tmp_path / "out", OPTIONS, engine="ray", threads=1)
    finally:
        done.set()
        thread.join()
    compile_corpus(work[0], tok, tmp_path / "out", OPTIONS)
    assert victim.snapshot(tmp_path / "out") == work[1]


def test_a_bad_line_is_told_by_the_driver(tmp_path, tok, monkeypatch):
    path = write_jsonl(tmp_path / "a.jsonl", make_texts(50))
    path.write_bytes(path.read_bytes() + b"{\n")
    with pytest.raises(CorpusError, match=r"a\.jsonl, line 51"):
        compile_corpus([path], tok, tmp_path / "out", Options(range_bytes=2000), engine="ray")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a text\n")))
    with pytest.raises(CorpusError, match="standard input"):
        compile_corpus(["-"], tok, tmp_path / "other", engine="ray")


def kill_drivers(cluster, work, out, kills, seed):
    inputs, whole = work
    rng, done, slowest = random.Random(seed), 0, 15.0
    while done < kills:
        shutil.rmtree(out, ignore_errors=True)
        while True:
            task = {"address": cluster, "out": str(out), "inputs": [str(path) for path in inputs]}
            limit = rng.uniform(0, slowest) if done < kills else None
            begin = time.perf_counter()
            process = subprocess.Popen([sys.executable, "-W", "ignore", victim.__file__, "ray", json.dumps(task)])
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                process.kill()
                status = process.wait()
            if status == 0:
                slowest = min(slowest, time.perf_counter() - begin)
                break
            assert status == -signal.SIGKILL
            done += 1
        assert victim.snapshot(out) == whole


@pytest.mark.slow
def test_killed_drivers_cost_nothing(cluster, work, tmp_path):
    kill_drivers(cluster, work, tmp_path / "out", 2, seed=1)


@pytest.mark.slow
def test_fifty_killed_drivers_cost_nothing(cluster, work, tmp_path):
    kill_drivers(cluster, work, tmp_path / "out", 50, seed=2)


def test_a_dataset_gets_a_column_of_ids(tok):
    import jittok.ray

    texts = [*make_texts(500), None]
    table = pa.table({"text": texts, "n": range(501)})
    dataset = ray.data.from_arrow([table.slice(start, 130) for start in range(0, 501, 130)])
    for vocab in (tok, "gpt-2"):
        rows = jittok.ray.encode(dataset, vocab=vocab, workers=2, batch_size=100).take_all()
        rows.sort(key=lambda row: row["n"])
        expected = [None if text is None else tok.encode(text).tolist() for text in texts]
        assert [None if row["input_ids"] is None else list(row["input_ids"]) for row in rows] == expected
    with pytest.raises(TypeError, match="add_special"):
        jittok.ray.encode(dataset, vocab=tok, special=True)
    assert jittok.ray.encode(dataset, vocab=jittok.bundled("bert"), add_special=True).take(1)


def test_words_of_a_column_are_counted_as_in_one_process():
    import ray.data

    import jittok
    import jittok.ray
    import jittok.train

    texts = [*make_texts(150, 3), "", "abc abc"]
    dataset = ray.data.from_arrow(pa.table({"text": pa.array([*texts, None])}))
    how = {"pre": "gpt-2", "special": ("abc",), "by": "documents"}
    found = jittok.ray.count(dataset, workers=2, batch_size=40, **how)
    whole = jittok.train.count([*texts, ""], **how)
    assert found.to_dict() == whole.to_dict()
    assert (found.documents, found.text_bytes) == (whole.documents, whole.text_bytes)
    assert jittok.train(words=found, size=300).merges == jittok.train(words=whole, size=300).merges
    with pytest.raises(CorpusError, match="words of a pre type"):
        jittok.ray.count(dataset, lines=100)

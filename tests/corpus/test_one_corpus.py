"""One corpus, made as one process, as seven parts in drawn order in a bucket before which a proxy fails, and by Ray,
each killed at random and begun again: every byte is the same, and nothing else is left."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import far
import pytest
import trial
from server import Server

from jittok.corpus import compile_corpus
from jittok.corpus.store import client, open_store

pytest.importorskip("obstore")
pytest.importorskip("filelock")
pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture(scope="module")
def expected(weed: int, tmp_path_factory: Any, tok: Any) -> trial.Right:
    with pytest.MonkeyPatch.context() as patch:
        for name, text in far.environment(weed).items():
            patch.setenv(name, text)
        client._clients.clear()
        return trial.right(tmp_path_factory.mktemp("right"), tok)


@pytest.mark.parametrize("seed", [1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 12))])
def test_one_process_that_is_killed_and_begun_again(
    expected: trial.Right, server: Server, tmp_path: Path, seed: int
) -> None:
    rng, out, kills = random.Random(seed), tmp_path / "out", 0
    for _ in range(4):
        how = rng.choice([{"kill_after": rng.uniform(0.0, 0.3)}, {"die_at": rng.randrange(5, 60), "keep": 0.5}])
        status, _ = server.run([expected.near], out, expected.options, threads=rng.choice([1, 2]), **how)
        assert status in (0, -9)
        kills += status == -9
    server.finish([expected.near], out, expected.options)
    assert kills
    assert trial.wrong_with(open_store(out), expected) == ""


@pytest.mark.parametrize(
    ("mode", "every", "way"),
    [
        ("all", 5, "parts"),
        *(
            pytest.param(mode, every, way, marks=pytest.mark.slow)
            for mode in (*far.MODES, "all")
            for every in (2, 7)
            for way in trial.WAYS
        ),
    ],
)
def test_seven_parts_in_drawn_order_in_a_bucket_whose_network_fails(
    s3: far.Proxy, expected: trial.Right, server: Server, mode: str, every: int, way: str
) -> None:
    tried = trial.Trial(server, s3, expected, seed=every)
    assert tried.run(mode, every, way) == ""
    assert tried.faults
    assert tried.kills or way != "parts"


@pytest.mark.slow
def test_ray_in_a_bucket_whose_network_fails_and_whose_workers_are_killed(
    s3: far.Proxy, expected: trial.Right, tok: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray, psutil = pytest.importorskip("ray"), pytest.importorskip("psutil")
    for name, text in trial.PATIENCE.items():
        monkeypatch.setenv(name, text)
    client._clients.clear()
    if ray.is_initialized():
        ray.shutdown()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=40)  # workers see these variables
    out = open_store(f"s3://{far.BUCKET}/ray-{os.getpid()}/out")
    killed, done = [], threading.Event()

    def kill() -> None:
        while not done.wait(0.3) and len(killed) < 3:
            for process in psutil.process_iter(["cmdline"]):
                if "run_task" in " ".join(process.info["cmdline"] or []):
                    with suppress(ProcessLookupError):
                        os.kill(process.pid, signal.SIGKILL)
                        killed.append(process.pid)
                    break

    thread = threading.Thread(target=kill)
    s3.spoil("all", 7)
    thread.start()
    try:
        compile_corpus([expected.near], tok, out.place, expected.options, engine="ray", threads=2)
    finally:
        done.set()
        thread.join()
        ray.shutdown()
        s3.spoil("", 0)
    assert killed
    assert trial.wrong_with(out, expected) == ""
    assert trial.stale(out) == []

"""One corpus in a bucket before which a proxy fails, made by processes that are killed: its bytes are those of one
undisturbed process on a disk, and nothing else is left. `python trial.py --runs 1000` tries it many times."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import far
from conftest import make_texts, write_jsonl
from server import Server

import jittok
from jittok.corpus import Options, compile_corpus
from jittok.corpus.store import Store, open_store, uploads

OPTIONS = Options(formats=("npy", "megatron"), range_bytes=3_000, shard_bytes=8_000, append_eos=True, on_error="skip")
PIECE = 3_000
"""Bytes of a piece of an upload, which moto takes, so that small shards have several."""
PARTS = 7
PATIENCE = {"JITTOK_CLOUD_TIMEOUT": "0.4"}
TRIES = 25
"""Of one step, until it is done. Only kills make it longer."""
WAYS = ("parts", "one", "claims")
SPOILT = [(mode, every) for every in (2, 3, 4, 5, 7, 11, 13) for mode in (*far.MODES, "all")]


class Right(NamedTuple):
    """Inputs, in a bucket and on a disk, and what a corpus of them must have."""

    near: Path
    distant: str
    files: dict[str, bytes]
    options: Options = OPTIONS


def right(folder: Path, tok: Any) -> Right:
    """Made by one process on a disk; some documents cannot be read."""
    texts = make_texts(110, 7, 60)
    path = write_jsonl(folder / "a.jsonl", texts)
    path.write_bytes(path.read_bytes().replace(b'{"id": 50,', b'{"id" 50,').replace(b'{"id": 9,', b"{,"))
    compile_corpus([path], tok, folder / "right", OPTIONS, threads=1)
    distant = open_store(f"s3://{far.BUCKET}/{folder.name}-{time.time_ns()}-in")
    distant.put("a.jsonl", path.read_bytes())
    return Right(path, f"{distant.place}/a.jsonl", files_of(open_store(folder / "right")))


def files_of(store: Store) -> dict[str, bytes]:
    """All objects with their bytes."""
    return {each.name: store.read(each.name) for each in store.objects() if each.name != ".jittok.lock"}


def wrong_with(out: Store, expected: Right) -> str:
    """What differs from what must be there, "" if nothing does. Manifests also name where inputs are."""
    found, name = files_of(out), "manifest.json"
    if found.keys() != expected.files.keys():
        return f"names: {sorted(found.keys() ^ expected.files.keys())}"
    for each in found:
        if each == name or each.startswith("errors/"):
            continue
        if found[each] != expected.files[each]:
            return f"bytes of {each}"
    said, meant = json.loads(found[name]), json.loads(expected.files[name])
    for key in ("documents", "tokens", "text_bytes", "blank_lines", "bad_documents", "options"):
        if said[key] != meant[key]:
            return f"{key} of the manifest"
    if [without_errors(shard) for shard in said["shards"]] != [without_errors(shard) for shard in meant["shards"]]:
        return "shards of the manifest"
    rows = [[(row["line"], row["found"]) for row in map(json.loads, files[each].splitlines())]
            for files in (found, expected.files) for each in sorted(files) if each.startswith("errors/")]  # fmt: skip
    if rows[: len(rows) // 2] != rows[len(rows) // 2 :]:
        return "documents that cannot be read"
    return ""


def without_errors(shard: dict[str, Any]) -> dict[str, Any]:
    """Its lists of bad documents name the inputs."""
    return {**shard, "files": [file for file in shard["files"] if not file["name"].startswith("errors/")]}


def stale(out: Store) -> list[Any]:
    """Uploads below it that were begun and neither completed nor ended."""
    keys = uploads._keys()
    assert keys is not None
    prefix = out.place.removeprefix(f"s3://{far.BUCKET}/")
    return list(uploads._listed(far.BUCKET, f"{prefix}/", keys))


class Trial:
    """One corpus, made in one of several ways."""

    def __init__(self, server: Server, proxy: far.Proxy, expected: Right, seed: int, pieces: bool = False) -> None:
        self.server, self.proxy, self.expected, self.rng = server, proxy, expected, random.Random(seed)
        self.out = open_store(f"s3://{far.BUCKET}/trial-{seed}-{time.time_ns()}/out")
        self.piece = PIECE if pieces else 8 << 20
        self.kills = self.failures = 0
        self.requests = self.faults = 0

    def step(self, **what: Any) -> None:
        """A step, again and again until it ends well; killed now and then, at a request or at an instant."""
        for left in reversed(range(TRIES)):
            how: dict[str, Any] = {}
            if left > TRIES - 6 and self.rng.random() < 0.5:
                if self.rng.random() < 0.5:
                    how = {"die_at_request": self.rng.randrange(1, 30), "keep": self.rng.choice([0.0, 1.0])}
                else:
                    how = {"kill_after": self.rng.uniform(0.05, 0.6)}
            status, _ = self.server.run(
                self.inputs, self.out.place, self.expected.options, **what, **how, piece=self.piece,
                environ={**far.environment(self.proxy.port), **PATIENCE},
            )  # fmt: skip
            if status == 0:
                return
            self.kills += status == -9
            self.failures += status != -9
            if status != -9:
                raise AssertionError(f"{what}: status {status}")
        raise AssertionError(f"{what}: not done after {TRIES} tries")

    def run(self, mode: str, every: int, way: str) -> str:
        """Make it; what is wrong with it, or ""."""
        self.inputs = [self.rng.choice([str(self.expected.near), self.expected.distant])]
        self.proxy.spoil(mode, every)
        try:
            for what in self.steps(way):
                self.step(**what)
        finally:
            self.requests, self.faults = self.proxy.counts["requests"], self.proxy.counts["faults"]
            self.proxy.spoil("", 0)
        found = wrong_with(self.out, self.expected)
        left = stale(self.out)
        return found or (f"uploads that are left: {left}" if left else "")

    def steps(self, way: str) -> list[dict[str, Any]]:
        """Of a way: "one" process, "parts" in drawn order, or "claims"."""
        if way == "one":
            return [{"threads": self.rng.choice([1, 2])}]
        plan, finish = {"step": "plan", "parts": PARTS}, {"step": "finish"}
        if way == "claims":
            return [plan, {"step": "run", "claim": True, "threads": 2}, finish]
        parts = [{"step": "run", "part": str(k), "threads": self.rng.choice([1, 2])} for k in range(PARTS)]
        self.rng.shuffle(parts)
        return [plan, *parts, finish]


@contextlib.contextmanager
def place(kind: str) -> Iterator[int]:
    """A server of S3; its port, which this process asks without a proxy."""
    start = {"weed": far.seaweed, "moto": far.moto}[kind]
    with tempfile.TemporaryDirectory() as folder, start(Path(folder)) as port:
        far.wait_for(port)
        os.environ.update(far.environment(port))
        yield port


@contextlib.contextmanager
def compilers(port: int) -> Iterator[tuple[Server, far.Proxy]]:
    """A process that forks compilers, and their proxy."""
    proxy, server = far.Proxy(port), Server()
    try:
        yield server, proxy
    finally:
        server.close()
        proxy.close()


def main() -> int:
    """Many trials, a line each. Status 1 if anything was wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--server", choices=["weed", "moto"], default="moto")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--at-once", type=int, default=1, help="most of a trial's time is waiting")
    options = parser.parse_args()
    start, numbers, lock = time.monotonic(), iter(range(options.first, options.first + options.runs)), threading.Lock()
    total: Counter[str] = Counter()

    def work(server: Server, proxy: far.Proxy, expected: Right) -> None:
        while time.monotonic() - start < 60 * options.minutes:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            mode, every = SPOILT[number % len(SPOILT)]
            way = WAYS[number // len(SPOILT) % len(WAYS)]
            trial, begun = Trial(server, proxy, expected, number, options.server == "moto"), time.monotonic()
            try:
                found = trial.run(mode, every, way)
            except Exception as error:  # noqa: BLE001  it is told
                found = f"{type(error).__name__}: {error}"
            if not found:
                trial.out.clear("")
            total.update(runs=1, wrong=bool(found), kills=trial.kills, requests=trial.requests, faults=trial.faults)
            said = f"{number} {mode} {every} {way}: {trial.kills} kills, {trial.faults}/{trial.requests} requests, "
            print(f"{said}{time.monotonic() - begun:.1f} s {found or 'right'}", flush=True)  # noqa: T201

    with place(options.server) as port, tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        expected = right(Path(folder), jittok.bundled("gpt-2"))
        places = [opened.enter_context(compilers(port)) for _ in range(options.at_once)]
        threads = [threading.Thread(target=work, args=(*each, expected)) for each in places]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(dict(total))  # noqa: T201
    return int(total["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())

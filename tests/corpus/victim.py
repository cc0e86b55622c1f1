"""A compiler to be killed: run by a fork server that has the tokenizer ready, so that a kill costs milliseconds."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

import jittok
from jittok.corpus import Options
from jittok.corpus.compiler import compile_corpus, finish_corpus, plan_corpus, run_corpus
from jittok.corpus.shards import writer
from jittok.corpus.store import bucket, client, disk
from jittok.corpus.tasks import shares

TOK = None


def tokenizer():
    """With its kernels loaded before anybody forks."""
    global TOK  # noqa: PLW0603  kept for all that are forked
    if TOK is None:
        TOK = jittok.bundled("gpt-2")
        TOK.encode_batch(["a", "é"], threads=1)
    return TOK


def run(inputs, out, options, step="compile", threads=1, parts=None, **how):
    """Compile, or plan, run a part or finish. With `die_at`, die of SIGKILL at that change of the directory, an append
    having written its share `keep`; with `die_at_request`, at that request to a bucket, before or after it (`keep`)."""
    _prepare(how)
    if step == "plan":
        plan_corpus(inputs, tokenizer(), out, options, parts=parts)
    elif step == "finish":
        finish_corpus(out)
    elif step == "run" or "part" in how:
        run_corpus(out, tokenizer(), threads=threads, **how)
    else:
        compile_corpus(inputs, tokenizer(), out, options, threads=threads)


def _prepare(how):
    """Take out of a task what is not for the call: where it dies, its environment, and how patient it is."""
    keep = how.pop("keep", 1.0)
    if (number := how.pop("die_at", None)) is not None:
        _die_at(number, keep)
    if (number := how.pop("die_at_request", None)) is not None:
        _die_at_request(number, keep)
    os.environ.update(how.pop("environ", {}))
    if (piece := how.pop("piece", None)) is not None:
        bucket.PIECE, client.FIRST_WAIT, client.LONGEST_WAIT = piece, 0.01, 0.05
        shares.LEASE_SECONDS, shares.POLL_SECONDS = 2.0, 0.2


def _die_at_request(number, keep):
    count, tried = 0, client.tried

    def counted(where, ask):
        nonlocal count
        count += 1
        if count == number and keep < 0.5:
            os.kill(os.getpid(), signal.SIGKILL)
        found = tried(where, ask)
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    client.tried = counted


def _die_at(number, keep):
    count = 0

    def counted(change):
        def wrapped(*arguments):
            nonlocal count
            count += 1
            if count == number:
                if change is append:
                    descriptor, data = arguments
                    whole = memoryview(data).cast("B")
                    os.write(descriptor, whole[: int(len(whole) * keep)])
                os.kill(os.getpid(), signal.SIGKILL)
            return change(*arguments)

        return wrapped

    append, rename, sync = disk.append, disk.rename, disk.sync
    disk.append, disk.rename, disk.sync = counted(append), counted(rename), counted(sync)
    writer.os = _Os(counted)


class _Os:
    """`os` with a truncation that counts."""

    def __init__(self, counted):
        self.ftruncate = counted(os.ftruncate)

    def __getattr__(self, name):
        return getattr(os, name)


def on_ray(inputs, out, address):
    """Compile with test_ray.py's options on a Ray that is running."""
    import ray

    ray.init(address=address, log_to_driver=False, logging_level=40)
    options = Options(formats=("arrow", "npy", "olmo"), range_bytes=40_000, shard_bytes=120_000, append_eos=True)
    compile_corpus(inputs, tokenizer(), out, options, engine="ray", threads=2)
    ray.shutdown()


def snapshot(folder):
    """Name and digest of every file."""
    paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def serve():
    """For each line of JSON on standard input: fork, run, perhaps kill; answer with the exit status (-9: killed)."""
    tokenizer()
    for line in sys.stdin:
        task = json.loads(line)
        kill_after = task.pop("kill_after", None)
        options = Options(**{**task.pop("options"), "formats": tuple(task.pop("formats"))})
        pid = os.fork()
        if not pid:
            try:
                run(options=options, **task)
            except BaseException:  # noqa: BLE001
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(pid, signal.SIGKILL)  # of one that is done already: it is not waited for yet, so this is no error
        start = time.perf_counter()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(json.dumps([status, time.perf_counter() - start]), flush=True)  # noqa: T201


if __name__ == "__main__":
    if sys.argv[1:2] == ["ray"]:
        on_ray(**json.loads(sys.argv[2]))
    else:
        serve()

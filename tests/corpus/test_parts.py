"""Plan, run, finish: a corpus made by many processes has the bytes of one, whoever did what and who was killed."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import types

import pytest
import victim
from conftest import dies_after, make_texts, write_jsonl
from server import Server

import jittok
from jittok.cli import main
from jittok.corpus import (
    Options,
    compile_corpus,
    corpus_status,
    finish_corpus,
    plan_corpus,
    run_corpus,
    verify,
)
from jittok.corpus.store import claim, open_store
from jittok.corpus.store.base import Unreachable
from jittok.corpus.tasks import shares
from jittok.corpus.tasks.crew import Stopped
from jittok.corpus.tasks.finish import Unfinished
from jittok.corpus.tasks.plan import read_plan
from jittok.corpus.tasks.run import TaskOutput, Work
from jittok.corpus.tasks.shares import Claims, Part, part_of
from jittok.errors import CorpusError, InWords

pa = pytest.importorskip("pyarrow")
pytest.importorskip("filelock")
FORMATS = ("npy", "megatron", "arrow", "parquet", "olmo")
OPTIONS = Options(formats=FORMATS, range_bytes=20_000, shard_bytes=40_000, append_eos=True, on_error="skip")


@pytest.fixture(scope="module")
def work(tmp_path_factory, tok):
    """Inputs of all kinds, some lines of them bad, and the bytes of one process's corpus."""
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("parts")
    inputs = [write_jsonl(folder / "a.jsonl", make_texts(300, 1))]
    inputs[0].write_bytes(inputs[0].read_bytes().replace(b'{"id": 250,', b'{"id" 250,').replace(b'{"id": 9,', b"{,"))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(write_jsonl(folder / "b.jsonl", make_texts(200, 2)).read_bytes()))
    pq.write_table(pa.table({"text": [*make_texts(200, 3), None]}), folder / "c.parquet", row_group_size=40)
    with pa.ipc.new_file(folder / "d.arrow", pa.schema([("text", pa.string())])) as file:
        file.write_table(pa.table({"text": make_texts(200, 4)}), max_chunksize=50)
    inputs += [folder / name for name in ("b.jsonl.gz", "c.parquet", "d.arrow")]
    for k in range(5):
        write_jsonl(folder / f"small{k}.jsonl", make_texts(10, k))
    inputs += [folder / f"small{k}.jsonl" for k in range(5)]
    compile_corpus(inputs, tok, folder / "whole", OPTIONS, threads=1)
    return inputs, victim.snapshot(folder / "whole")


@pytest.fixture(scope="module")
def server():
    if sys.platform == "win32":
        pytest.skip("fork servers")
    made = Server()
    yield made
    made.close()


def test_the_corpus_of_these_tests_has_what_they_are_about(work):
    _, whole = work
    names = {name.partition("/")[2] for name in whole}
    assert sum(name.endswith(".ids.npy") for name in names) > 8
    assert any("-000" in name for name in names)
    errors = [name for name in whole if name.startswith("errors/")]
    assert len(errors) >= 3


@pytest.mark.process
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_seven_parts_in_any_order_some_of_them_killed_make_the_bytes_of_one_process(work, server, tmp_path, tok, seed):
    inputs, whole = work
    out, rng = tmp_path / "out", random.Random(seed)
    planned = plan_corpus(inputs, tok, out, OPTIONS, parts=7)
    assert planned.tasks > 7
    left, kills = list(range(7)), 0
    while left:
        rng.shuffle(left)
        how = {"kill_after": rng.uniform(0, 0.3)} if kills < 6 else {}
        if kills in (1, 4):
            how = {"die_at": rng.randrange(5, 60), "keep": 0.5}
        status, _ = server.run(inputs, out, OPTIONS, part=str(left[0]), threads=rng.choice([1, 2]), **how)
        assert status in (0, -9)
        kills += status == -9
        if status == 0:
            left.pop(0)
            assert (
                set(range(7)) == {number % 7 for number in corpus_status(out).missing} | set(range(7)) - set(left)
                or left
            )
    assert kills >= 2
    finish_corpus(out)
    assert victim.snapshot(out) == whole


def test_a_part_without_tasks_is_done_and_parts_change_no_byte(work, tmp_path, tok):
    inputs, whole = work
    out = tmp_path / "out"
    planned = plan_corpus(inputs, tok, out, OPTIONS, parts=1000)
    assert run_corpus(out, part="999").done == 0
    assert [run_corpus(out, part=f"{i}/2").done for i in (1, 0)] == [planned.tasks // 2, -(-planned.tasks // 2)]
    again = run_corpus(out, part="0/2")
    assert (again.done, again.before) == (0, -(-planned.tasks // 2))
    assert corpus_status(out).missing == ()
    found = finish_corpus(out)
    assert victim.snapshot(out) == whole
    assert finish_corpus(out).documents == found.documents
    assert run_corpus(out, part="3").done == 0
    assert corpus_status(out) is None


def test_a_plan_reads_no_document_and_is_small(work, tmp_path, tok, monkeypatch):
    inputs, whole = work
    monkeypatch.setattr("jittok.corpus.ranges.units.read_unit", None)
    plan_corpus(inputs, tok, tmp_path / "out", OPTIONS, parts=7)
    assert (tmp_path / "out" / ".jittok" / "plan.json").stat().st_size < 6000
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".jittok", ".jittok.lock"]
    monkeypatch.undo()
    # one process goes on with what was planned for many
    run_corpus(tmp_path / "out", part="2")
    assert compile_corpus(inputs, tok, tmp_path / "out", OPTIONS).resumed > 0
    assert victim.snapshot(tmp_path / "out") == whole


def test_finish_names_what_is_missing_and_what_failed(tmp_path, tok):
    path = write_jsonl(tmp_path / "a.jsonl", make_texts(300))
    right = path.read_bytes()
    path.write_bytes(
        right.replace(b'{"id": 150,', b'{"id" 150,', 1).replace(b'{"id": 151, "text": "', b'{"id": 151,  "text":"')
    )
    size, stamp = path.stat().st_size, path.stat().st_mtime_ns
    options = Options(formats=("npy",), range_bytes=10_000, shard_bytes=30_000)
    out = tmp_path / "out"
    plan_corpus([path], tok, out, options)
    with pytest.raises(CorpusError, match="no plan"):
        finish_corpus(tmp_path / "other")
    with pytest.raises(Unfinished, match="tasks not done: 0, 1, 2"):
        finish_corpus(out)
    ran = run_corpus(out, threads=2)
    assert len(ran.failed) == 1
    ((number, why),) = ran.failed.items()
    assert "a.jsonl, line 151: found" in why
    assert corpus_status(out).failed == ran.failed
    assert run_corpus(out, claim=True).failed == ran.failed, "tried again, as it may have been mended"
    assert corpus_status(out).missing == (number,)
    with pytest.raises(Unfinished, match=rf"1 of \d tasks not done: {number}; failed: {number} \(.*line 151"):
        finish_corpus(out)
    data = right + b" " * (size - len(right) - 1) + b"\n" * (size > len(right))
    path.write_bytes(data[:size])
    os.utime(path, ns=(stamp, stamp))  # mended in its place
    if len(data) == size:
        assert run_corpus(out).failed == {}
        assert not list((out / ".jittok" / "t").glob("*.failed"))
        assert finish_corpus(out).documents == 300


def test_a_file_that_is_gone_makes_its_task_missing(work, tmp_path, tok):
    inputs, whole = work
    out = tmp_path / "out"
    plan_corpus(inputs, tok, out, OPTIONS)
    run_corpus(out)
    next((out / "npy").glob("00002*.ids.npy")).unlink()
    with pytest.raises(Unfinished, match=r"task 2: npy/00002.*no such file"):
        finish_corpus(out)
    assert run_corpus(out).done == 1
    finish_corpus(out)
    assert victim.snapshot(out) == whole


def test_what_differs_from_the_plan_is_refused(work, tmp_path, tok):
    inputs, _ = work
    copies = [tmp_path / path.name for path in inputs]
    for path, copy in zip(inputs, copies, strict=True):
        shutil.copy2(path, copy)
    out = tmp_path / "out"
    plan_corpus(copies, tok, out, OPTIONS)
    with pytest.raises(CorpusError, match="begun with gpt-2"):
        run_corpus(out, jittok.bundled("mistral"))
    for copy, path in zip(copies, inputs, strict=True):  # other files of the same names, as on another machine
        copy.unlink()
        shutil.copy2(path, copy)
    assert run_corpus(out, part="0/3").failed == {}
    copies[0].touch()
    failed = run_corpus(out).failed
    assert failed
    assert all("as when the corpus was planned" in why for why in failed.values())
    with pytest.raises(CorpusError, match="standard input"):
        plan_corpus(["-"], tok, tmp_path / "stdin", Options(kind="txt"))


VARIABLES = [
    ({"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "8", "SLURM_ARRAY_TASK_MIN": "0"}, 8, Part(3, 8)),
    ({"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "8", "SLURM_ARRAY_TASK_MIN": "1"}, 8, Part(2, 8)),
    ({"SLURM_ARRAY_TASK_ID": "8", "SLURM_ARRAY_TASK_COUNT": "8", "SLURM_ARRAY_TASK_MIN": "1"}, None, Part(7, 8)),
    ({"SLURM_ARRAY_TASK_ID": "5", "SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MIN": "3"}, 8, Part(5, 8)),
    ({"SLURM_ARRAY_TASK_ID": "8", "SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MIN": "3"}, 8, "0 to 7"),
    ({"SLURM_ARRAY_TASK_ID": "2"}, 8, Part(2, 8)),
    ({"AWS_BATCH_JOB_ARRAY_INDEX": "7"}, 8, Part(7, 8)),
    ({"AWS_BATCH_JOB_ARRAY_INDEX": "7"}, None, "parts N"),
    ({"JOB_COMPLETION_INDEX": "0"}, 8, Part(0, 8)),
    ({"JOB_COMPLETION_INDEX": "9"}, 8, "0 to 7"),
    ({"JOB_COMPLETION_INDEX": "x"}, 8, "a whole number"),
    ({"CLOUD_RUN_TASK_INDEX": "4", "CLOUD_RUN_TASK_COUNT": "5"}, None, Part(4, 5)),
    ({"CLOUD_RUN_TASK_INDEX": "4", "CLOUD_RUN_TASK_COUNT": "5"}, 9, Part(4, 9)),
    ({"CLOUD_RUN_TASK_INDEX": "4"}, 9, "a whole number"),
    ({}, 8, "no variable of a scheduler"),
]


@pytest.mark.parametrize(("environ", "parts", "expected"), VARIABLES)
def test_the_part_of_a_scheduler_is_that_of_its_variables(environ, parts, expected):
    if isinstance(expected, str):
        with pytest.raises(CorpusError, match=expected):
            part_of("auto", parts, environ)
    else:
        assert part_of("auto", parts, environ) == expected


@pytest.mark.parametrize("said", ["", "a", "1/0", "3/3", "-1/3", "1/2/3", "1.0", "\u0661/3"])
def test_what_is_no_part_is_refused(said):
    with pytest.raises(CorpusError, match="part"):
        part_of(said, 2)


def test_free_tasks_are_claimed_by_one_process_each(work, tmp_path, tok, monkeypatch):
    inputs, whole = work
    monkeypatch.setattr(shares, "POLL_SECONDS", 0.05)
    out = tmp_path / "out"
    planned = plan_corpus(inputs, tok, out, OPTIONS)
    ran = []
    threads = [threading.Thread(target=lambda: ran.append(run_corpus(out, tok, claim=True, threads=1))) for _ in "12"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(each.done for each in ran) == planned.tasks
    finish_corpus(out)
    assert victim.snapshot(out) == whole


def test_the_lease_of_a_process_that_died_ends(work, tmp_path, tok, monkeypatch):
    inputs, whole = work
    monkeypatch.setattr(shares, "POLL_SECONDS", 0.05)
    out = tmp_path / "out"
    plan_corpus(inputs, tok, out, OPTIONS)
    store = open_store(out)
    assert claim(store, ".jittok/t/00003.lease", seconds=1.0) is not None  # and nobody renews it
    assert corpus_status(out).claimed == (3,)
    started = time.monotonic()
    run_corpus(out, tok, claim=True)
    assert time.monotonic() - started > 0.8
    assert not list((out / ".jittok" / "t").glob("*.lease"))
    finish_corpus(out)
    assert victim.snapshot(out) == whole


def test_clocks_that_differ_cost_work_and_change_nothing(work, tmp_path, tok, monkeypatch):
    """Each look at the clock may be an hour off: leases seem to have ended, or to last."""
    inputs, whole = work
    rng, real = random.Random(5), time.time
    clock = types.SimpleNamespace(time=lambda: real() + rng.choice([-3600, -100, 0, 0, 100, 3600]))
    monkeypatch.setattr("jittok.corpus.store.lease.time", clock)
    monkeypatch.setattr(shares, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(shares, "LEASE_SECONDS", 0.5)
    out, ran = tmp_path / "out", []
    plan_corpus(inputs, tok, out, OPTIONS)
    threads = [threading.Thread(target=lambda: ran.append(run_corpus(out, tok, claim=True, threads=1))) for _ in "123"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.failed for each in ran] == [{}, {}, {}]
    finish_corpus(out)
    assert victim.snapshot(out) == whole


def test_a_lease_that_is_held_is_renewed(work, tmp_path, tok, monkeypatch):
    inputs, _ = work
    monkeypatch.setattr(shares, "LEASE_SECONDS", 0.4)
    out = tmp_path / "out"
    plan_corpus(inputs[:1], tok, out, OPTIONS)
    slow = threading.Event()
    from jittok.corpus.tasks.run import TaskOutput

    add, seen = TaskOutput.add, []

    def slowly(self, *arguments):
        if not seen:
            seen.append(self.number)
            slow.wait(1.2)
            seen.append(claim(open_store(out), f".jittok/t/{self.number:05d}.lease", 0.1))
        add(self, *arguments)

    monkeypatch.setattr(TaskOutput, "add", slowly)
    run_corpus(out, tok, claim=True, threads=1)
    assert seen[1] is None, "it was free"


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(
    ("name", "how"),
    [("SIGTERM", "run"), pytest.param("SIGUSR1", "compile", marks=pytest.mark.slow)],
)
def test_a_signal_ends_a_run_with_status_143_and_the_same_command_does_the_rest(tmp_path, tok, name, how):
    path = write_jsonl(tmp_path / "a.jsonl", make_texts(8_000))
    out, options = tmp_path / "out", Options(formats=("npy",), range_bytes=50_000, shard_bytes=200_000)
    reading = ["--format", "npy", "--range-bytes", "50000", "--shard-bytes", "200000", "--no-space-check"]
    plan_corpus([path], tok, out, options)
    arguments = ["run", str(out)] if how == "run" else [str(path), "--vocab", "gpt-2", "--out", str(out), *reading]
    command = [sys.executable, "-m", "jittok", "corpus", *arguments, "--threads", "2"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not list((out / ".jittok" / "t").glob("*.done")) and time.monotonic() < until and child.poll() is None:
        time.sleep(0.005)
    child.send_signal(getattr(signal, name))
    _, said = child.communicate()
    assert child.returncode == 143, said
    assert "stopped by a signal" in said
    assert 0 < len(corpus_status(out).done) < len(corpus_status(out).missing) + len(corpus_status(out).done)
    assert not list((out / ".jittok").glob("w/*")), "what was under way is removed"
    found = compile_corpus([path], tok, out, options)
    assert 0 < found.resumed < found.documents == 8_000


def test_the_steps_as_commands(work, tmp_path, capsys):
    inputs, whole = work
    out = str(tmp_path / "out")
    reading = ["--format", ",".join(FORMATS), "--range-bytes", "20000", "--shard-bytes", "40000", "--append-eos",
               "--on-error", "skip", "--vocab", "gpt-2"]  # fmt: skip

    def told(*arguments, status=0):
        assert main(["corpus", *arguments]) == status
        return capsys.readouterr()

    assert "tasks for 3 parts, 9 inputs" in told("plan", *map(str, inputs), "--out", out, *reading, "--parts", "3").out
    assert "not done: 0, 1, 2" in told("finish", out, status=3).err
    assert "done now, 0 before" in told("run", out, "--part", "1").out
    assert "free; " in told("status", out).out
    assert json.loads(told("status", out, "--json").out)["finished"] is False
    told("run", out, "--claim")
    assert "shards" in told("finish", out).out
    assert told("status", out).out == f"{out}: finished\n"
    assert victim.snapshot(out) == whole
    for wrong in (["run"], ["run", out, "x"], ["finish", out, "--out", out], ["plan", "--out", out, "--vocab", "gpt-2"],
                  ["run", out, "--parts", "3"], ["status", out, "--part", "1"], [*map(str, inputs), "--out", out],
                  ["run", out, "--claim", "--part", "1"]):  # fmt: skip
        with pytest.raises(SystemExit):
            main(["corpus", *wrong])
        assert "see jittok corpus --help" in capsys.readouterr().err


def test_verify_in_parts_finds_what_one_call_finds(work, tmp_path, tok):
    inputs, _ = work
    out = tmp_path / "out"
    compile_corpus(inputs[:2], tok, out, OPTIONS)
    whole = verify(out, tok, hashes_only=True)
    assert whole.ok
    parts = [verify(out, tok, hashes_only=True, part=f"{i}/3") for i in range(3)]
    for name in ("files", "bytes", "of_documents"):
        assert sum(getattr(part, name) for part in parts) == getattr(whole, name)
    few = verify(out, tok, all=True, part="2/4")
    assert few.ok
    assert 0 < few.documents == few.of_documents < whole.of_documents
    assert 0 < few.witnessed_shards == few.of_shards
    path = sorted((out / "npy").glob("*.ids.npy"))[1]
    path.write_bytes(path.read_bytes()[:-2] + b"\0\0")
    assert [verify(out, tok, hashes_only=True, part=f"{i}/3").ok for i in range(3)] == [True, False, True]
    with pytest.raises(CorpusError, match="part"):
        verify(out, tok, part="3/3")


def test_a_run_that_is_interrupted_leaves_no_scratch(work, tmp_path, tok, monkeypatch):
    inputs, _ = work
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        dies_after(patch, 7)
        with pytest.raises(KeyboardInterrupt):
            compile_corpus(inputs, tok, out, OPTIONS, threads=2, check_space=False)
    until = time.monotonic() + 20
    while list((out / ".jittok").glob("w/*")) and time.monotonic() < until:
        time.sleep(0.01)
    assert not list((out / ".jittok").glob("w/*"))


def _with_bad_tasks(tmp_path, tok):
    """A plan some of whose tasks fail, and have failed before."""
    bad = []
    for k in range(4):
        bad.append(write_jsonl(tmp_path / f"{k}.jsonl", make_texts(100, k)))
        if k % 2:
            bad[-1].write_bytes(bad[-1].read_bytes().replace(b'{"id": 50,', b'{"id" 50,'))
    out = tmp_path / "out"
    options = Options(formats=("npy",), range_bytes=2_000, shard_bytes=8_000)
    planned = plan_corpus(bad, tok, out, options)
    failed = run_corpus(out, tok, threads=2).failed
    assert len(failed) >= 2
    return out, planned, failed


def test_processes_that_hold_tasks_that_fail_do_not_wait_for_each_other(tmp_path, tok, monkeypatch):
    monkeypatch.setattr(shares, "POLL_SECONDS", 0.05)
    out, _, failed = _with_bad_tasks(tmp_path, tok)
    ran = []
    both = [
        threading.Thread(target=lambda: ran.append(run_corpus(out, tok, claim=True, threads=2)), daemon=True)
        for _ in "12"
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(30)
    assert not any(thread.is_alive() for thread in both)
    assert {number for each in ran for number in each.failed} == set(failed)
    assert not list((out / ".jittok" / "t").glob("*.lease"))


def test_who_waits_for_leases_keeps_no_one_from_finishing(work, tmp_path, tok, monkeypatch):
    inputs, _ = work
    monkeypatch.setattr(shares, "POLL_SECONDS", 0.3)
    out = tmp_path / "out"
    planned = plan_corpus(inputs, tok, out, OPTIONS)
    store = open_store(out)
    other = claim(store, ".jittok/t/00003.lease", seconds=60)
    stop, told = shares.Cancellation(), []

    def claims():
        with pytest.raises(Stopped) as error:
            run_corpus(out, tok, claim=True, threads=3, stop=stop)
        told.append(error)

    thread = threading.Thread(target=claims, daemon=True)
    thread.start()
    until = time.monotonic() + 30
    while time.monotonic() < until:
        leases = [path.name for path in (out / ".jittok" / "t").glob("*.lease")]
        if len(corpus_status(out).done) == planned.tasks - 1 and leases == ["00003.lease"]:
            break
        time.sleep(0.02)
    assert leases == ["00003.lease"], "the leases of tasks that are done are given up"
    assert thread.is_alive()
    stop.set()
    thread.join(10)
    assert told
    other.release()


def test_a_lease_is_renewed_again_after_the_store_was_out_of_reach(work, tmp_path, tok):
    inputs, _ = work
    out, asked, held = tmp_path / "out", [], threading.Event()
    plan_corpus(inputs[:1], tok, out, OPTIONS)

    class Outage:
        def renew(self):
            asked.append(None)
            if len(asked) > 2:
                held.set()
            raise Unreachable(str(out), InWords("no answer"), "a server")

        release = renew

    work_of = Work(open_store(out), read_plan(open_store(out)), (), OPTIONS, (), None)
    with Claims(work_of, shares.Cancellation(), 0.03) as claims:
        claims._held[0] = Outage()
        assert held.wait(10)
        claims.release(0)


def test_an_input_that_a_machine_does_not_see_fails_its_task_and_loses_no_document(work, tmp_path, tok):
    inputs, whole = work
    folder = tmp_path / "mounted"
    folder.mkdir()
    copies = [shutil.copy2(path, folder / path.name) for path in inputs]
    out = tmp_path / "out"
    plan_corpus(copies, tok, out, OPTIONS)
    folder.rename(tmp_path / "elsewhere")
    failed = run_corpus(out, tok, part="0/2").failed
    assert failed
    assert all("expected the input that was planned: is its folder mounted" in why for why in failed.values())
    (tmp_path / "elsewhere").rename(folder)
    assert run_corpus(out, tok).failed == {}
    finish_corpus(out)
    found = victim.snapshot(out)
    tokens = {name for name in whole if name.startswith("npy/")}
    assert {name: found[name] for name in tokens} == {name: whole[name] for name in tokens}


def test_who_claims_tasks_does_those_again_whose_files_are_gone(work, tmp_path, tok):
    inputs, whole = work
    out = tmp_path / "out"
    planned = plan_corpus(inputs, tok, out, OPTIONS)
    run_corpus(out, tok)
    next((out / "npy").glob("00002*.ids.npy")).unlink()
    ran = run_corpus(out, tok, claim=True)
    assert (ran.done, ran.before) == (1, planned.tasks - 1)
    finish_corpus(out)
    assert victim.snapshot(out) == whole


@pytest.mark.parametrize("meanwhile", ["finished", "begun anew"])
def test_a_process_of_an_older_plan_overwrites_nothing(tmp_path, tok, monkeypatch, meanwhile):
    path = write_jsonl(tmp_path / "a.jsonl", make_texts(100))
    out, options, after = tmp_path / "out", Options(formats=("npy",)), {}
    plan_corpus([path], tok, out, options)
    add = TaskOutput.add

    def slow(self, *arguments):
        add(self, *arguments)
        if not after:  # this process stood still, its lease has ended, and its files are taken for those of the dead
            after["none"] = None
            if meanwhile == "finished":
                assert run_corpus(out, tok).failed == {}
                finish_corpus(out)
            else:
                (out / ".jittok" / "w").rename(tmp_path / "w")
                plan_corpus([path], tok, out, Options(formats=("npy",), append_eos=True))
                (tmp_path / "w").rename(out / ".jittok" / "w")
            after.update(victim.snapshot(out))

    monkeypatch.setattr(TaskOutput, "add", slow)
    with pytest.raises(CorpusError, match=f"{meanwhile}.*, expected the plan that this process began with"):
        run_corpus(out, tok, threads=1)
    del after["none"]
    shutil.rmtree(out / ".jittok" / "w", ignore_errors=True)
    assert victim.snapshot(out) == {name: digest for name, digest in after.items() if not name.startswith(".jittok/w/")}
    assert not list((out / ".jittok").glob("t/*"))


@pytest.mark.parametrize("kind", ["lease", "scratch"])
def test_a_corpus_that_others_are_at_is_not_begun_anew(tmp_path, tok, kind):
    path = write_jsonl(tmp_path / "a.jsonl", make_texts(100))
    out, other = tmp_path / "out", Options(formats=("npy",), append_eos=True)
    plan_corpus([path], tok, out, Options(formats=("npy",)))
    store = open_store(out)
    if kind == "lease":
        lease = claim(store, ".jittok/t/00000.lease", seconds=60)
    else:
        (store.scratch(".jittok/w/00000.x") / "0").write_bytes(b"x")
    with pytest.raises(
        CorpusError, match="finish that one with its own options, or stop its processes and run jittok corpus abandon"
    ):
        plan_corpus([path], tok, out, other)
    assert plan_corpus([path], tok, out, Options(formats=("npy",))).tasks == 1
    if kind == "lease":
        lease.release()
    else:
        store.clear(".jittok/w")
    plan_corpus([path], tok, out, other)
    assert compile_corpus([path], tok, out, other).documents == 100


@pytest.mark.parametrize(
    "change",
    [
        lambda row: json.dumps([9, *row[1:]]) + "\n",
        lambda row: json.dumps([row[0], 9, *row[2:]]) + "\n",
        lambda row: json.dumps([-1, *row[1:]]) + "\n",
        lambda _: "",
        lambda row: 2 * (json.dumps(row) + "\n"),
    ],
    ids=["shard", "source", "negative", "fewer", "more"],
)
def test_lists_of_bad_documents_that_no_task_wrote_are_refused(tmp_path, tok, change):
    source, out = tmp_path / "a.jsonl", tmp_path / "out"
    source.write_text('{"text": "a"}\n{"text" 1}\n')
    plan_corpus([source], tok, out, OPTIONS)
    run_corpus(out, tok)
    (path,) = (out / ".jittok").rglob("*.bad")
    row = path.read_text()
    path.write_text(change(json.loads(row)))
    with pytest.raises(CorpusError, match=r"00000\.bad: found ValueError: .* expected lines that jittok wrote"):
        finish_corpus(out)
    path.write_text(row)
    assert finish_corpus(out).bad_documents == 1


def test_why_a_task_failed_has_the_words_of_who_asks(tmp_path, tok, capsys):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one"}\nno\n')
    out = tmp_path / "out"
    plan_corpus([path], tok, out, Options(formats=("npy",)))
    (why,) = run_corpus(out, tok).failed.values()
    assert "(to continue: on_error='skip' or on_error='replace')" in why
    assert "(to continue: on_error='skip'" in corpus_status(out).failed[0]
    for step, status in (("run", 1), ("status", 0), ("finish", 3)):
        for form in ([], ["--json"]):
            assert main(["corpus", step, str(out), *form]) == status
            said = "".join(capsys.readouterr())
            assert "on_error" not in said
            assert step == "finish" or "(to continue: --on-error skip or --on-error replace)" in said


@pytest.mark.parametrize(
    ("step", "option", "said"),
    [
        ("run", ["--dry-run"], "--dry-run: expected it without run"),
        ("run", ["--on-error", "skip"], "--on-error: expected it without run"),
        ("run", ["--engine", "ray"], "--engine: expected it without run"),
        ("run", ["--format", "npy"], "--format: expected it without run"),
        ("run", ["--cache-bytes", "1M"], "--cache-bytes: expected it with --vocab"),
        ("status", ["--threads", "2"], "--threads: expected it without status"),
        ("finish", ["--vocab", "gpt-2"], "--vocab: expected it without finish"),
        ("plan", ["--dry-run"], "--dry-run: expected it without plan"),
        ("plan", ["--engine", "ray"], "--engine: expected it without plan"),
    ],
)
def test_a_step_passes_over_no_option(tmp_path, capsys, step, option, said):
    inputs = [str(tmp_path), "--vocab", "gpt-2", "--out", str(tmp_path / "out")] if step == "plan" else [str(tmp_path)]
    with pytest.raises(SystemExit):
        main(["corpus", step, *inputs, *option])
    assert said in capsys.readouterr().err


def test_units_of_a_task_are_found_from_its_first(work, tok, tmp_path):
    """As if all units of the corpus were gone through."""
    from jittok.corpus.inputs.finding import find_sources
    from jittok.corpus.ranges.units import units

    inputs, _ = work
    plan_corpus(inputs, tok, tmp_path / "out", OPTIONS)
    plan = read_plan(open_store(tmp_path / "out"))
    sources, _ = find_sources(inputs, plan.options)
    found = [list(plan.units_of(number, sources)) for number in range(len(plan.tasks))]
    assert len(found) > 3
    assert [unit for task in found for unit in task] == list(units(sources, plan.options))

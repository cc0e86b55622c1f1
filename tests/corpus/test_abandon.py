"""An unfinished corpus is removed with all that is its own, and nothing else; leases that ended are told from those
that are held."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import make_texts, write_jsonl

from jittok.cli import main
from jittok.corpus import (
    Options,
    abandon_corpus,
    compile_corpus,
    corpus_status,
    finish_corpus,
    plan_corpus,
    run_corpus,
)
from jittok.corpus.formats import FORMATS, KEPT, format_class
from jittok.corpus.formats.fields import Fields
from jittok.corpus.shards.manifest import read_manifest
from jittok.corpus.store import claim, open_store
from jittok.corpus.store.lease import is_held
from jittok.corpus.tasks import shares
from jittok.corpus.tasks.output import Superseded, TaskOutput
from jittok.corpus.tasks.records import name_of
from jittok.errors import CorpusError

pytest.importorskip("pyarrow")
pytest.importorskip("filelock")
OPTIONS = Options(formats=tuple(FORMATS), keep=("id",), range_bytes=5000, shard_bytes=10_000, train_val=0.8)


@pytest.fixture
def begun(tmp_path, tok):
    """Three of the tasks of a corpus are done."""
    path, out = write_jsonl(tmp_path / "a.jsonl", make_texts(200)), tmp_path / "out"
    assert plan_corpus([path], tok, out, OPTIONS).tasks > 5
    run_corpus(out, tok, part="1/3")
    return path, out


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_all_goes_that_is_of_the_corpus_and_nothing_else(begun, capsys):
    _, out = begun
    for name in ("train/npy/mine.npy", "train/npy/00099.ids.npy", "val/notes.txt", "arrow/00001.arrow", "README"):
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text("of others")
    before = files(out)
    assert main(["corpus", "abandon", str(out), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "would remove" in said
    assert files(out) == before
    assert main(["corpus", "abandon", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert f"{told['files']} files" in said
    assert files(out) == sorted([".jittok.lock", "README", "arrow/00001.arrow", "train/npy/00099.ids.npy",
                                 "train/npy/mine.npy", "val/notes.txt"])  # fmt: skip
    assert told["files"] == len([name for name in before if ".jittok" not in name]) - 5
    assert not (out / "train" / "megatron").exists()
    with pytest.raises(CorpusError, match="found no plan, expected an unfinished corpus"):
        abandon_corpus(out)
    with pytest.raises(CorpusError, match="found no plan"):
        abandon_corpus(out / "nowhere")
    assert not (out / "nowhere").exists()


def test_a_folder_is_empty_afterwards_and_may_be_another_corpus(begun, tok):
    path, out = begun
    (out / "val" / "manifest.json").write_text("of a finish that was killed")
    abandon_corpus(out)
    assert files(out) == [".jittok.lock"]
    assert sorted(each.name for each in out.iterdir()) == [".jittok.lock"]
    compile_corpus([path], tok, out, Options(formats=("npy",)))


def test_a_finished_corpus_stays(begun, tok):
    path, out = begun
    run_corpus(out, tok)
    finish_corpus(out)
    before = files(out)
    with pytest.raises(CorpusError, match="found a finished corpus, expected an unfinished one"):
        abandon_corpus(out)
    assert files(out) == before
    compile_corpus([path], tok, out.parent / "one", Options(formats=("npy",)))
    with pytest.raises(CorpusError, match="found a finished corpus"):
        abandon_corpus(out.parent / "one")


def test_what_died_while_it_removed_is_done_again(begun, monkeypatch):
    _, out = begun
    left, store = [4], open_store(out)
    delete = type(store).delete

    def dies(self, name):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        delete(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "delete", dies)
        with pytest.raises(KeyboardInterrupt):
            abandon_corpus(out)
    assert len(files(out)) > 10
    with pytest.raises(CorpusError, match="no plan"):
        run_corpus(out)
    abandon_corpus(out)
    assert files(out) == [".jittok.lock"]


def test_who_is_at_a_task_meanwhile_notices_and_writes_nothing(begun, tok, monkeypatch):
    _, out = begun
    at_it, gone, add = threading.Event(), threading.Event(), TaskOutput.add

    def slow(self, *arguments):
        add(self, *arguments)
        at_it.set()
        gone.wait(20)

    monkeypatch.setattr(TaskOutput, "add", slow)
    caught = []

    def run():
        try:
            run_corpus(out, tok, part="0/3", threads=1)
        except Superseded as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert at_it.wait(20)
    abandon_corpus(out)
    gone.set()
    thread.join()
    assert "it has been finished or removed" in str(caught[0])
    assert files(out) == [".jittok.lock"]


def test_a_bucket_is_emptied_too(tmp_path, tok):
    pytest.importorskip("obstore")
    path = write_jsonl(tmp_path / "a.jsonl", make_texts(60))
    out = f"memory://{tmp_path.name}/out"
    plan_corpus([path], tok, out, OPTIONS)
    run_corpus(out, tok)
    store = open_store(out)
    store.put("train/mine", b"1")
    found = abandon_corpus(out)
    assert found.done == found.tasks > 1
    assert [entry.name for entry in store.objects()] == ["train/mine"]


def test_leases_that_have_ended_are_told_from_those_that_are_held(begun, capsys):
    _, out = begun
    store = open_store(out)
    assert claim(store, name_of(0, "lease"), 100.0)
    assert claim(store, name_of(2, "lease"), -1.0) is not None
    found = corpus_status(out)
    assert (found.claimed, found.expired) == ((0,), (2,))
    assert main(["corpus", "status", str(out)]) == 0
    free = found.tasks - len(found.done) - 1
    assert (
        f"1 claimed, 0 failed, {free} free (1 begun by processes whose leases have ended); " in capsys.readouterr().out
    )
    with pytest.raises(CorpusError, match="found processes that have leases, on tasks 0, expected none"):
        abandon_corpus(out)
    store.delete(name_of(0, "lease"))
    abandon_corpus(out)


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_task_at_which_one_process_after_the_other_dies_has_failed(begun, tok, monkeypatch):
    """As those do that the system kills for memory."""
    _, out = begun
    dies = "import os, signal; from jittok.corpus.tasks.output import TaskOutput as T\n"
    dies += "from jittok.corpus import run_corpus; from jittok.corpus.tasks import shares\n"
    dies += "shares.LEASE_SECONDS = 0.3; add = T.add\n"
    dies += "def kill(self, *a):\n if self.number == 3: os.kill(os.getpid(), signal.SIGKILL)\n add(self, *a)\n"
    dies += f"T.add = kill; run_corpus({str(out)!r}, claim=True, threads=1)"
    monkeypatch.setattr(shares, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(shares, "LEASE_SECONDS", 0.3)
    monkeypatch.setattr(shares, "MOST_LOST", 2)
    for _ in range(2):
        assert subprocess.run([sys.executable, "-c", dies], check=False).returncode == -signal.SIGKILL
        until = time.monotonic() + 10
        while is_held(open_store(out), name_of(3, "lease")) and time.monotonic() < until:
            time.sleep(0.05)
        assert corpus_status(out).expired == (3,)
    found = run_corpus(out, tok, claim=True)
    assert list(found.failed) == [3]
    with pytest.raises(CorpusError, match=r"not done: 3; failed: 3 \(task 3: found 2 processes that died at it"):
        finish_corpus(out)
    assert "for memory (status 137)" in found.failed[3]
    assert run_corpus(out, tok, claim=True).failed == {}, "tried again, as there may be more memory"
    finish_corpus(out)


def test_names_of_files_are_those_that_formats_say(begun, tok):
    _, out = begun
    run_corpus(out, tok)
    finish_corpus(out)
    for side in ("train", "val"):
        shards = read_manifest(out / side)["shards"]
        known = {name for form in FORMATS for name in format_class(form).names()} | set(Fields.names())
        for shard in shards:
            assert {file["name"] for file in shard["files"]} == {name.format(shard["shard"]) for name in known}
    assert {name.partition("/")[0] for name in known} == {*FORMATS, KEPT}

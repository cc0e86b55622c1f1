"""No range of a task is lost between its threads, and a task that has ended in neither way is an error."""

from __future__ import annotations

import pytest
from conftest import make_texts, write_jsonl

from jittok.cli import main
from jittok.corpus import Options, plan_corpus, run_corpus
from jittok.corpus.compiler import _work_of
from jittok.corpus.store import open_store
from jittok.corpus.tasks.plan import read_plan
from jittok.corpus.tasks.run import TaskRun
from jittok.errors import CorpusError
from jittok.kernels.jit.pool import Cancellation

pytest.importorskip("filelock")
pytest.importorskip("orjson")


@pytest.fixture
def planned(tmp_path, tok):
    """A corpus of one task, of several ranges."""
    out = tmp_path / "out"
    path = write_jsonl(tmp_path / "a.jsonl", make_texts(60))
    assert plan_corpus([path], tok, out, Options(formats=("npy",), range_bytes=5_000, shard_bytes=0)).tasks == 1
    return out


def task(out, tok):
    store = open_store(out)
    return TaskRun(_work_of(store, read_plan(store), tok), 0, Cancellation())


def ranges(run):
    """All ranges of a task, read."""
    return list(iter(run._take, None))


class Ready(dict):
    """Results that wait; `missed`: the next was looked for in vain."""

    missed = False

    def pop(self, *arguments):
        found = super().pop(*arguments)
        self.missed = found is None
        return found


class Turn:
    """A lock after whose release something happens."""

    def __init__(self, inner, then):
        self.inner, self.then = inner, then

    def __enter__(self):
        return self.inner.__enter__()

    def __exit__(self, *error):
        self.inner.__exit__(*error)
        self.then()

    def __getattr__(self, name):
        return getattr(self.inner, name)


def test_a_result_given_right_after_the_writer_has_looked_for_it_is_written(planned, tok):
    run = task(planned, tok)
    first, *others = [(number, run._result(raw)) for number, raw in ranges(run)]
    assert others

    def give():
        if run._ready.missed and others:
            run._ready.missed = False
            run._put(*others.pop(0))

    run._ready = Ready()
    run._turn = Turn(run._turn, give)
    run._put(*first)
    assert not others
    assert run._next == run._read
    run.work()
    assert run.done is not None
    assert run.done.documents > 50


def test_a_task_that_ends_without_one_of_its_ranges_fails(planned, tok):
    run = task(planned, tok)
    assert ranges(run)  # and whoever has them never gives them
    with pytest.raises(CorpusError, match=r"task 0: found ranges that no thread has written.* run the same command"):
        run.work()
    assert run.done is None
    stopped = task(planned, tok)
    assert ranges(stopped)
    stopped.abandon()
    stopped.work()
    assert stopped.done is None


def test_a_command_does_not_end_with_0_when_a_task_is_neither_done_nor_failed(planned, tok, monkeypatch, capsys):
    put, last = TaskRun._put, len(ranges(task(planned, tok))) - 1
    with monkeypatch.context() as patch:
        patch.setattr(TaskRun, "_put", lambda run, number, result: number == last or put(run, number, result))
        assert main(["corpus", "run", str(planned), "--threads", "2"]) == 1
    assert "task 0 failed: " in capsys.readouterr().out

    def ends(run):
        run._exhausted = True

    with monkeypatch.context() as patch:
        patch.setattr(TaskRun, "work", ends)
        with pytest.raises(CorpusError, match="a fault of jittok"):
            run_corpus(planned, tok, threads=1)
    assert run_corpus(planned, tok, threads=2).done == 1


def test_a_fault_of_the_code_is_raised_and_no_failure_of_a_task(planned, tok, monkeypatch):
    def wrong(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(TaskRun, "_result", wrong)
    with pytest.raises(ZeroDivisionError):
        run_corpus(planned, tok, threads=2)

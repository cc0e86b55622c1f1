"""A corpus that is abandoned, begun anew or finished while a process is at it: nothing of the old one stays, nothing of
the new one is lost."""

from __future__ import annotations

import pytest
from conftest import make_texts, write_jsonl

from jittok.cli import main
from jittok.corpus import (
    Options,
    abandon_corpus,
    corpus_status,
    finish_corpus,
    plan_corpus,
    run_corpus,
    verify,
)
from jittok.corpus.store import claim, open_store
from jittok.corpus.tasks import output
from jittok.corpus.tasks.finish import Unfinished
from jittok.corpus.tasks.output import Superseded
from jittok.corpus.tasks.records import name_of, write_failed
from jittok.errors import CorpusError, InWords

pytest.importorskip("pyarrow")
pytest.importorskip("filelock")
pytest.importorskip("orjson")
OPTIONS = Options(formats=("npy", "arrow"))
SHUFFLED = Options(formats=("npy",), shuffle_documents=3)


@pytest.fixture(params=["folder", "bucket"])
def out(request, tmp_path):
    """A folder, and a bucket."""
    if request.param == "folder":
        return tmp_path / "out"
    pytest.importorskip("obstore")
    return f"memory://{tmp_path.name}/out"


@pytest.fixture
def path(tmp_path):
    return write_jsonl(tmp_path / "a.jsonl", make_texts(40))


def names(out):
    return [entry.name for entry in open_store(out).objects() if entry.name != ".jittok.lock"]


def meanwhile(patch, where, name, act):
    """The first call of a function waits until something else has happened."""
    real, acts = getattr(where, name), [act]

    def late(*arguments, **more):
        if acts:
            acts.pop()()
        return real(*arguments, **more)

    patch.setattr(where, name, late)


def test_no_file_of_an_abandoned_corpus_stays(out, path, tok, monkeypatch):
    plan_corpus([path], tok, out, OPTIONS)
    meanwhile(monkeypatch, type(open_store(out)), "publish", lambda: abandon_corpus(out))
    with pytest.raises(Superseded, match="finished or removed"):
        run_corpus(out, tok, part="0/1")
    assert names(out) == []
    plan_corpus([path], tok, out, SHUFFLED)


def test_no_record_of_an_abandoned_corpus_stays(out, path, tok, monkeypatch):
    plan_corpus([path], tok, out, OPTIONS)
    meanwhile(monkeypatch, output, "write_done", lambda: abandon_corpus(out))
    with pytest.raises(Superseded, match="finished or removed"):
        run_corpus(out, tok)
    assert names(out) == []


def test_no_file_of_an_abandoned_corpus_replaces_one_of_another(out, path, tok, monkeypatch):
    plan_corpus([path], tok, out, OPTIONS)

    def other():
        abandon_corpus(out)
        plan_corpus([path], tok, out, SHUFFLED)
        assert run_corpus(out, tok).done == 1

    with monkeypatch.context() as patch:
        meanwhile(patch, type(open_store(out)), "publish", other)
        with pytest.raises(Superseded, match="begun anew"):
            run_corpus(out, tok, part="0/1")
    if open_store(out).local is None:  # an upload that was under way
        with pytest.raises(Unfinished, match="no such file"):
            finish_corpus(out)
        assert run_corpus(out, tok).done == 1
    finish_corpus(out)
    assert verify(out, tok).ok


def test_a_finished_corpus_keeps_what_a_second_process_has_written_again(out, path, tok, monkeypatch):
    plan_corpus([path], tok, out, OPTIONS)

    def other():
        assert run_corpus(out, tok).done == 1
        finish_corpus(out)

    meanwhile(monkeypatch, type(open_store(out)), "publish", other)
    with pytest.raises(Superseded, match="finished or removed"):
        run_corpus(out, tok, part="0/1")
    assert verify(out, tok).ok


def test_finish_finds_files_of_another_corpus_by_their_marks(tmp_path, path, tok):
    pytest.importorskip("obstore")
    out = f"memory://{tmp_path.name}/out"
    store = open_store(out)
    plan_corpus([path], tok, out, OPTIONS)
    run_corpus(out, tok)
    name = "npy/00000.ids.npy"
    right, mark = store.read(name), store.mark_of(name)
    (tmp_path / "other").write_bytes(right[:-1] + b"\1")
    store.publish(tmp_path / "other", name, "0" * 16 + mark[16:])
    with pytest.raises(
        Unfinished, match=r"task 0: npy/00000.ids.npy is a file that another corpus wrote here.*run does"
    ):
        finish_corpus(out)
    assert run_corpus(out, tok).done == 1
    assert store.read(name) == right
    store.put(name, right)  # a copy of other programs: without a mark
    finish_corpus(out)
    assert verify(out, tok).ok


def test_live_leases_alone_keep_another_plan_from_a_place(out, path, tok):
    plan_corpus([path], tok, out, OPTIONS)
    held = claim(open_store(out), name_of(0, "lease"), 100.0)
    with pytest.raises(
        CorpusError, match=r"a lease on task 0, expected .* or stop its processes and run jittok corpus abandon"
    ):
        plan_corpus([path], tok, out, SHUFFLED)
    held.release()
    assert claim(open_store(out), name_of(0, "lease"), -1.0) is not None
    plan_corpus([path], tok, out, SHUFFLED)
    assert run_corpus(out, tok).done == 1


def test_an_abandon_that_was_killed_is_named_as_the_remedy(out, path, tok, monkeypatch):
    plan_corpus([path], tok, out, OPTIONS)
    run_corpus(out, tok)
    store, left = open_store(out), [2]
    delete = type(store).delete

    def dies(self, name):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        delete(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "delete", dies)
        with pytest.raises(KeyboardInterrupt):
            abandon_corpus(out)
    with pytest.raises(CorpusError, match="jittok corpus abandon was ended before all was removed: run it again"):
        plan_corpus([path], tok, out, SHUFFLED)
    abandon_corpus(out)
    plan_corpus([path], tok, out, SHUFFLED)


def test_a_format_less_is_no_change_of_layouts(tmp_path, path, tok):
    out = tmp_path / "out"
    plan_corpus([path], tok, out, Options(formats=("npy", "parquet")))
    run_corpus(out, tok)
    with pytest.raises(CorpusError) as error:
        plan_corpus([path], tok, out, Options(formats=("npy",)))
    assert "formats" in str(error.value)
    assert "layout" not in str(error.value)


def test_a_failed_task_that_is_tried_again_is_claimed(tmp_path, path, tok, capsys):
    out = tmp_path / "out"
    plan_corpus([path], tok, out, OPTIONS)
    store = open_store(out)
    write_failed(store, 0, CorpusError("a", InWords("b"), "c"))
    assert corpus_status(out).claimed == ()
    assert claim(store, name_of(0, "lease"), 100.0)
    found = corpus_status(out)
    assert (found.claimed, list(found.failed), found.expired) == ((0,), [0], ())
    assert main(["corpus", "status", str(out)]) == 0
    said = capsys.readouterr().out
    assert "1 claimed, 1 failed, 0 free" in said
    assert "task 0 failed (it is tried again now): " in said
    assert claim(store, name_of(0, "lease"), 100.0) is None

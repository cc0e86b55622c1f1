"""The law: work folders are opened by descriptor without following links, and names are single path components."""

import contextlib
import json
import os
import shutil
import sys

import pytest
from conftest import dies_after, make_texts, write_jsonl

from jittok.corpus import Options, compile_corpus, verify
from jittok.corpus.shards import manifest
from jittok.corpus.shards.manifest import DIGEST, WORK, read_manifest, write_manifest
from jittok.corpus.store.disk import Folder, file_name, is_component
from jittok.corpus.store.local import LocalStore
from jittok.corpus.tasks.begin import LOCK
from jittok.corpus.tasks.plan import read_plan
from jittok.corpus.tasks.records import read_done
from jittok.errors import CorpusError

pytest.importorskip("filelock")
pytest.importorskip("orjson")
if sys.platform == "win32":
    pytest.skip("links need rights", allow_module_level=True)

OPTIONS = Options(formats=("npy",), range_bytes=10_000, shard_bytes=30_000)


PRECIOUS = ("plan.json", "letter.txt", "00000.done", "00000.ids.npy")


@pytest.fixture
def source(tmp_path):
    return write_jsonl(tmp_path / "a.jsonl", make_texts(120, 1))


@pytest.fixture
def precious(tmp_path):
    """A folder of somebody's files, which must stay as they are."""
    folder = tmp_path / "precious"
    folder.mkdir()
    for name in PRECIOUS:
        (folder / name).write_bytes(b"mine")
    yield folder
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == dict.fromkeys(PRECIOUS, b"mine")


def stopped(source, out, tok, monkeypatch, ranges=5):
    """A run that ends after so many ranges: the first task is done, and one is under way."""
    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        dies_after(patch, ranges)
        compile_corpus([source], tok, out, OPTIONS, threads=1)
    assert (out / WORK / "t" / "00000.done").exists()


@pytest.mark.parametrize("begun", [False, True])
def test_a_work_folder_that_is_a_link_is_refused(source, precious, tmp_path, tok, begun, monkeypatch):
    out = tmp_path / "out"
    if begun:
        stopped(source, out, tok, monkeypatch)
        (out / WORK).rename(tmp_path / "real")
    out.mkdir(exist_ok=True)
    (out / WORK).symlink_to(precious)
    with pytest.raises(CorpusError, match="link"):
        compile_corpus([source], tok, out, OPTIONS)


def test_a_work_folder_that_is_a_link_is_left_when_the_corpus_is_finished(source, precious, tmp_path, tok):
    compile_corpus([source], tok, tmp_path / "out", OPTIONS)
    (tmp_path / "out" / WORK).symlink_to(precious)
    with pytest.raises(CorpusError, match="link"):
        compile_corpus([source], tok, tmp_path / "out", OPTIONS)


@pytest.mark.parametrize("name", [WORK, LOCK, "npy"])
def test_other_things_in_place_of_a_folder_or_file_are_refused(source, precious, tmp_path, tok, name):
    for number, make in enumerate((lambda at: at.write_bytes(b"mine"), os.mkfifo, lambda at: at.symlink_to(precious))):
        out = tmp_path / f"out{number}"
        out.mkdir()
        if name != WORK:
            (out / WORK).mkdir()
        if name == LOCK and number == 0:
            continue  # a file is what it is
        make(out / name)
        with pytest.raises(CorpusError, match="expected"):
            compile_corpus([source], tok, out, OPTIONS)


@pytest.mark.parametrize("how", ["symlink", "hardlink", "pipe", "folder"])
@pytest.mark.parametrize("name", ["plan.json", "t/00000.done"])
def test_files_of_the_work_folder_that_are_links_are_not_written(
    source, precious, tmp_path, tok, how, name, monkeypatch
):
    out = tmp_path / "out"
    stopped(source, out, tok, monkeypatch)
    place = out / WORK / name
    place.unlink()
    {
        "symlink": lambda: place.symlink_to(precious / place.name),
        "hardlink": lambda: os.link(precious / place.name, place),
        "pipe": lambda: os.mkfifo(place),
        "folder": place.mkdir,
    }[how]()
    with contextlib.suppress(CorpusError, OSError):
        compile_corpus([source], tok, out, OPTIONS)


def test_links_where_files_are_made_are_replaced(source, precious, tmp_path, tok, monkeypatch):
    """Names that a run will use, all known beforehand: links there lead nowhere."""
    compile_corpus([source], tok, tmp_path / "whole", OPTIONS)
    compile_corpus([source], tok, tmp_path / "whole", OPTIONS)
    out = tmp_path / "out"
    stopped(source, out, tok, monkeypatch)
    (out / "manifest.json.part").symlink_to(precious / "letter.txt")
    for name in ("00000.ids.npy", "00001.ids.npy", "00001.offsets.npy"):
        (out / "npy" / name).unlink(missing_ok=True)
        (out / "npy" / name).symlink_to(precious / "00000.ids.npy")
    compile_corpus([source], tok, out, OPTIONS)
    assert verify(out, tok).ok
    for path in (tmp_path / "whole").rglob("*"):
        there = out / path.relative_to(tmp_path / "whole")
        assert not there.is_symlink()
        assert there.is_dir() or there.read_bytes() == path.read_bytes()


NAMES = ["../x", "/etc/x", "..", ".", "", "a\0b", "a/b/c", "npy/../x", "npy//x", "npy/", "/npy", "a" * 300, 7, None, []]


HUGE = [-1, 2**63, 10**30, -(10**30), "7", None, [], {}, 1.5, True]
COUNTED = ("documents", "tokens", "text_bytes", "blank", "bad", "lost", "read", "task")
FORGED = {
    **{f"a name {name!r}": lambda fact, name=name: _file(fact).update(name=name) for name in NAMES},
    **{
        f"{key} {number!r}": lambda fact, key=key, number=number: fact.update({key: number})
        for key in COUNTED for number in HUGE
    },
    **{
        f"a range of {number!r}": lambda fact, number=number: fact["shards"][0]["ranges"][0].__setitem__(2, number)
        for number in HUGE
    },
    "one document more": lambda fact: fact.update(documents=fact["documents"] + 1),
    "one token more in a shard": lambda fact: fact["shards"][0].update(tokens=fact["shards"][0]["tokens"] + 1),
    "ranges in another order": lambda fact: fact["shards"][0]["ranges"].reverse(),
    "a shard twice": lambda fact: fact["shards"].append(fact["shards"][0]),
    "no shard": lambda fact: fact["shards"].clear(),
    "the label of another": lambda fact: fact["shards"][0].update(shard="00007"),
    "the file of another": lambda fact: _file(fact).update(name="npy/00007.ids.npy"),
    "a digest": lambda fact: _file(fact).update(sha256=7),
    "a size": lambda fact: _file(fact).update(bytes=-1),
    "another plan": lambda fact: fact.update(plan="0" * 64),
    "an input": lambda fact: fact["digests"][0].__setitem__(0, 3),
    "an input's digest": lambda fact: fact["digests"][0].__setitem__(3, "x"),
    "its kind": lambda fact: fact["digests"][0].__setitem__(4, "words"),
    "a field more": lambda fact: fact.update(more=1),
    "a field less": lambda fact: fact.pop("read"),
    "the last input": lambda fact: fact.update(last=[9, 1]),
}  # fmt: skip


def _file(fact):
    return fact["shards"][0]["files"][0]


@pytest.fixture(scope="module")
def begun(tmp_path_factory, tok):
    """A source, the bytes of its whole corpus, and one that was begun."""
    folder = tmp_path_factory.mktemp("begun")
    path = write_jsonl(folder / "a.jsonl", make_texts(120, 1))
    compile_corpus([path], tok, folder / "whole", OPTIONS)
    with pytest.MonkeyPatch.context() as patch:
        stopped(path, folder / "out", tok, patch)
    return path, folder


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_record_that_no_task_could_have_written_is_not_believed(begun, tmp_path, tok, change):
    """The end is the same corpus: never a manifest that says what is not so."""
    source, folder = begun
    out = tmp_path / "out"
    shutil.copytree(folder / "out", out)
    record = out / WORK / "t" / "00000.done"
    fact = json.loads(record.read_bytes())
    change(fact)
    record.write_text(json.dumps(fact))
    store = LocalStore(out)
    assert read_done(store, read_plan(store), 0) is None
    compile_corpus([source], tok, out, OPTIONS, check_space=False, threads=1)
    assert (out / manifest.MANIFEST).read_bytes() == (folder / "whole" / manifest.MANIFEST).read_bytes()
    assert not (tmp_path / "x").exists()


def _later(fact):
    fact["version"] = 2


PLANS = {
    "another version": _later, "no plan": lambda fact: fact.pop("plan"), "no tasks": lambda fact: fact.pop("tasks"),
    "a task": lambda fact: fact["tasks"][0].__setitem__(0, -1), "an id": lambda fact: fact.update(id="0" * 64),
    "parts": lambda fact: fact.update(parts=0), "inputs": lambda fact: fact["plan"]["inputs"][0].pop("path"),
    "options": lambda fact: fact["plan"]["options"].update(append_eos=7), "a number": lambda fact: fact.update(plan=7),
}  # fmt: skip


@pytest.mark.parametrize("change", PLANS.values(), ids=PLANS)
def test_a_plan_that_jittok_did_not_write_is_an_error(begun, tmp_path, tok, change):
    source, folder = begun
    out = tmp_path / "out"
    shutil.copytree(folder / "out", out)
    plan = out / WORK / "plan.json"
    fact = json.loads(plan.read_bytes())
    change(fact)
    plan.write_text(json.dumps(fact))
    with pytest.raises(CorpusError, match="plan"):
        compile_corpus([source], tok, out, OPTIONS)
    plan.write_text("[" * 100_000)
    with pytest.raises(CorpusError, match="start again"):
        compile_corpus([source], tok, out, OPTIONS)


def test_what_an_earlier_version_began_is_told(source, tmp_path, tok):
    out = tmp_path / "out"
    (out / WORK).mkdir(parents=True)
    (out / WORK / "ledger.jsonl").write_text("")
    with pytest.raises(CorpusError, match="an earlier version of jittok began"):
        compile_corpus([source], tok, out, OPTIONS)


# ---- the manifest


def test_every_flipped_bit_of_a_manifest_is_found(source, tmp_path, tok):
    compile_corpus([source], tok, tmp_path / "out", Options(formats=("npy",)))
    place = tmp_path / "out" / manifest.MANIFEST
    whole = place.read_bytes()
    assert verify(tmp_path / "out", tok).ok
    assert len(whole) > 1000
    for at in range(len(whole)):
        for bit in range(8):
            try:
                manifest.parsed(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :], place)
            except CorpusError:
                continue
            raise AssertionError(f"bit {bit} of byte {at} may be flipped")
    for other in (whole[:-1], whole + b"\n", whole.replace(b"\n", b"\r\n"), json.dumps(json.loads(whole)).encode()):
        place.write_bytes(other)
        with pytest.raises(CorpusError):
            read_manifest(tmp_path / "out")
    place.write_bytes(whole)
    assert verify(tmp_path / "out", tok).ok


def set_at(made, path, value):
    """Put a value where a path of keys leads."""
    for key in path[:-1]:
        made = made[key]
    made[path[-1]] = value


def test_a_manifest_that_was_written_anew_is_believed_in_nothing_that_cannot_be(source, tmp_path, tok):
    compile_corpus([source], tok, tmp_path / "out", OPTIONS)
    whole = read_manifest(tmp_path / "out")

    def refused(change):
        made = json.loads(json.dumps(whole))
        change(made)
        write_manifest(tmp_path / "out", made)
        with pytest.raises(CorpusError, match="manifest"):
            verify(tmp_path / "out", tok)

    for name in NAMES:
        refused(lambda made, name=name: made["shards"][0]["files"][0].update(name=name))
    for number in (-1, 2**63, 1.5, "7", None):
        refused(lambda made, number=number: made.update(tokens=number))
        refused(lambda made, number=number: made["shards"][0]["ranges"][0].__setitem__(0, number))
        refused(lambda made, number=number: made["shards"][0]["files"][0].update(bytes=number))
    refused(lambda made: made["shards"][0]["ranges"][0].__setitem__(0, 99))
    refused(lambda made: made["shards"][0].update(documents=10**9))
    for other in (2, [], {}, 1.5):
        for path in (("writers",), ("jittok",), ("vocab", "name"), ("vocab", "llama_cpp"), ("options", "lines"),
                     ("options", "separator"), ("inputs", 0, "kind"), ("inputs", 0, "packing"), ("inputs", 0)
                     ):  # fmt: skip
            if other != {} or path != ("writers",):
                refused(lambda made, path=path, other=other: set_at(made, path, other))
    refused(lambda made: set_at(made, ("vocab", "tokens"), "many"))
    refused(lambda made: set_at(made, ("options", "formats", 0), [7]))
    refused(lambda made: made["vocab"].pop("name"))
    refused(lambda made: made["options"].pop("dtype"))
    refused(lambda made: made.pop("vocab"))
    refused(lambda made: made.update(manifest=4))
    write_manifest(tmp_path / "out", whole)
    assert read_manifest(tmp_path / "out") == whole
    assert DIGEST not in whole


def test_a_manifest_of_the_version_before_is_read(source, tmp_path, tok):
    compile_corpus([source], tok, tmp_path / "out", OPTIONS)
    whole = {**read_manifest(tmp_path / "out"), "manifest": manifest.WITHOUT_DIGEST}
    (tmp_path / "out" / manifest.MANIFEST).write_bytes(manifest._text(whole))
    assert read_manifest(tmp_path / "out") == whole
    assert verify(tmp_path / "out", tok).ok


# ---- alone


def test_names():
    assert is_component("00000.npy.ids")
    assert file_name("npy/a.npy", "here") == ("npy", "a.npy")
    assert not any(map(is_component, NAMES))


def test_a_folder_is_reached_whatever_its_name_is_given_to(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with Folder(tmp_path) as outer, outer.inner("a") as folder:
        (tmp_path / "a").rename(tmp_path / "c")
        (tmp_path / "a").symlink_to(tmp_path / "b")
        (folder.path / "file").write_bytes(b"x")
        assert (tmp_path / "c" / "file").exists()
        assert outer.inner("nothing", make=False) is None
        with pytest.raises(CorpusError):
            outer.inner("a")
        with pytest.raises(CorpusError):
            outer.inner("../b")

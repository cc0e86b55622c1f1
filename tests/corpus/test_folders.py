"""The law: work folders are opened by descriptor without following links, and names are single path components."""

import contextlib
import json
import os
import sys

import pytest
from conftest import make_texts, write_jsonl

from jittok.corpus import Options, compile_corpus, verify
from jittok.corpus.compiler import LOCK
from jittok.corpus.shards import manifest
from jittok.corpus.shards.ledger import Ledger
from jittok.corpus.shards.manifest import DIGEST, WORK, read_manifest, write_manifest
from jittok.corpus.store import disk
from jittok.corpus.store.disk import Folder, file_name, is_component
from jittok.errors import CorpusError

pytest.importorskip("filelock")
pytest.importorskip("orjson")
if sys.platform == "win32":
    pytest.skip("links need rights", allow_module_level=True)

OPTIONS = Options(formats=("npy",), range_bytes=10_000, shard_bytes=30_000)


@pytest.fixture
def source(tmp_path):
    return write_jsonl(tmp_path / "a.jsonl", make_texts(120, 1))


@pytest.fixture
def precious(tmp_path):
    """A folder of somebody's files, which must stay as they are."""
    folder = tmp_path / "precious"
    folder.mkdir()
    for name in ("ledger.jsonl", "letter.txt", "00000.npy.ids", "00000.ids.npy", "00000.npy.offsets"):
        (folder / name).write_bytes(b"mine")
    yield folder
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == dict.fromkeys(
        ("ledger.jsonl", "letter.txt", "00000.npy.ids", "00000.ids.npy", "00000.npy.offsets"), b"mine"
    )


def stopped(source, out, tok, monkeypatch, after):
    """A run that ends after so many changes of the directory."""
    left, append = after, disk.append

    def counted(descriptor, data):
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError("stopped")
        append(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "append", counted)
        with contextlib.suppress(OSError):
            compile_corpus([source], tok, out, OPTIONS, threads=1)


@pytest.mark.parametrize("begun", [False, True])
def test_a_work_folder_that_is_a_link_is_refused(source, precious, tmp_path, tok, begun, monkeypatch):
    out = tmp_path / "out"
    if begun:
        stopped(source, out, tok, monkeypatch, 20)
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
        (out / WORK).mkdir()
        Ledger(out / WORK / "ledger.jsonl").close()
        if name == WORK:
            (out / WORK / "ledger.jsonl").unlink()
            (out / WORK).rmdir()
        if name == LOCK and number == 0:
            continue  # a file is what it is
        make(out / name)
        with pytest.raises(CorpusError, match="expected"):
            compile_corpus([source], tok, out, OPTIONS)


@pytest.mark.parametrize("how", ["symlink", "hardlink", "pipe", "folder"])
@pytest.mark.parametrize("name", ["ledger.jsonl", "00000.npy.ids"])
def test_files_of_the_work_folder_that_are_links_are_not_written(
    source, precious, tmp_path, tok, how, name, monkeypatch
):
    out = tmp_path / "out"
    stopped(source, out, tok, monkeypatch, 12)
    place = out / WORK / name
    assert place.exists()
    place.unlink()
    {
        "symlink": lambda: place.symlink_to(precious / name),
        "hardlink": lambda: os.link(precious / name, place),
        "pipe": lambda: os.mkfifo(place),
        "folder": place.mkdir,
    }[how]()
    with pytest.raises(CorpusError, match=name):
        compile_corpus([source], tok, out, OPTIONS)


def test_links_where_files_are_made_are_replaced(source, precious, tmp_path, tok):
    """Names that a run will use, all known beforehand: links there lead nowhere."""
    compile_corpus([source], tok, tmp_path / "whole", OPTIONS)
    out = tmp_path / "out"
    (out / WORK).mkdir(parents=True)
    Ledger(out / WORK / "ledger.jsonl").close()
    for number in range(4):
        for key in ("npy.ids", "npy.offsets", "lengths", "errors"):
            (out / WORK / f"{number:05d}.{key}").symlink_to(precious / "letter.txt")
    (out / ".manifest.json.part").symlink_to(precious / "letter.txt")
    (out / "npy").mkdir()
    (out / "npy" / "00000.ids.npy").symlink_to(precious / "00000.ids.npy")
    compile_corpus([source], tok, out, OPTIONS)
    assert verify(out, tok).ok
    for path in (tmp_path / "whole").rglob("*"):
        there = out / path.relative_to(tmp_path / "whole")
        assert not there.is_symlink()
        assert there.is_dir() or there.read_bytes() == path.read_bytes()


NAMES = ["../x", "/etc/x", "..", ".", "", "a\0b", "a/b/c", "npy/../x", "npy//x", "npy/", "/npy", "a" * 300, 7, None, []]


@pytest.mark.parametrize("name", NAMES, ids=repr)
@pytest.mark.parametrize("key", ["name", "part"])
def test_names_in_a_ledger_lead_nowhere(source, tmp_path, tok, name, key, monkeypatch):
    out = tmp_path / "out"
    stopped(source, out, tok, monkeypatch, 12)
    ledger = Ledger(out / WORK / "ledger.jsonl")
    assert not any("shard" in fact for fact in ledger.facts)
    counts = {what: sum(fact[what] for fact in ledger.facts if "range" in fact) for what in ("documents", "tokens")}
    file = {"name": "npy/00000.ids.npy", "bytes": 4, "sha256": "0" * 64, "part": "00000.npy.ids", key: name}
    ledger.add({"shard": 0, **counts, "files": [file]})
    ledger.close()
    with pytest.raises(CorpusError, match="expected") as caught:
        compile_corpus([source], tok, out, OPTIONS)
    assert str(out) in str(caught.value)
    assert not (tmp_path / "x").exists()


HUGE = [-1, 2**31, 2**63, 10**30, -(10**30), "7", None, [], {}, 1.5]


@pytest.mark.parametrize("number", HUGE, ids=repr)
@pytest.mark.parametrize("key", ["range", "documents", "tokens", "lines", "streams", "prefix", "shard", "input"])
def test_numbers_in_a_ledger_are_an_error_or_done_again(source, tmp_path, tok, number, key, monkeypatch):
    out = tmp_path / "out"
    stopped(source, out, tok, monkeypatch, 12)
    ledger = Ledger(out / WORK / "ledger.jsonl")
    fact = next(fact for fact in reversed(ledger.facts) if "range" in fact)
    if key == "streams":
        fact["streams"] = {name: [number, 0] for name in fact["streams"]}
    elif key in ("shard", "input"):
        fact = {key: number}
    else:
        fact[key] = [0, 0, number] if key == "range" else number
    ledger.add(fact)
    ledger.close()
    with contextlib.suppress(CorpusError):
        compile_corpus([source], tok, out, OPTIONS)


def _swapped(facts):
    """Two ranges in the other order."""
    places = [place for place, fact in enumerate(facts) if "range" in fact]
    facts[places[0]], facts[places[1]] = facts[places[1]], facts[places[0]]


def _set(kind, **values):
    """The last line of a kind, with other values."""

    def change(facts):
        next(fact for fact in reversed(facts) if kind in fact).update(values)

    return change


FORGED = {
    "swapped": _swapped,
    "twice": lambda facts: facts.append(facts[-1]),
    "one document more": lambda facts: facts[-1].update(documents=facts[-1]["documents"] + 1),
    "one token more": lambda facts: facts[-1].update(tokens=facts[-1]["tokens"] + 1),
    "documents of a shard": _set("shard", documents=1),
    "tokens of a shard": _set("shard", tokens=1),
    "a digest of a shard": lambda facts: next(f for f in facts if "shard" in f)["files"][0].update(sha256=7),
    "a part that is no text": lambda facts: next(f for f in facts if "shard" in f)["files"][0].update(part="\ud800"),
    "blank": _set("range", blank=-1000),
    "true": _set("range", blank=True),
    "one number of a stream": lambda facts: facts[-1]["streams"].update({"npy.ids": [1]}),
    "an input": lambda facts: facts.append({"input": 3, "bytes": 1, "sha256": "0" * 64}),
    "an input's digest": lambda facts: facts.append({"input": 0, "bytes": 1, "sha256": "x"}),
    "a line of another kind": lambda facts: facts.append({"ranges": [0, 0, 0]}),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_ledger_that_no_run_could_have_written_is_an_error_or_done_again(source, tmp_path, tok, change, monkeypatch):
    """The end is the same corpus or none: never a manifest that says what is not so."""
    compile_corpus([source], tok, tmp_path / "whole", OPTIONS)
    out = tmp_path / "out"
    stopped(source, out, tok, monkeypatch, 26)
    ledger = Ledger(out / WORK / "ledger.jsonl")
    facts = list(ledger.facts)
    assert [kind in facts[-1] for kind in ("range", "shard")] == [True, False]
    assert any("shard" in fact for fact in facts)
    change(facts)
    ledger.cut(0)
    for fact in facts:
        ledger.add(fact)
    ledger.close()
    with contextlib.suppress(CorpusError):
        compile_corpus([source], tok, out, OPTIONS)
    if (out / manifest.MANIFEST).exists():
        assert (out / manifest.MANIFEST).read_bytes() == (tmp_path / "whole" / manifest.MANIFEST).read_bytes()


def test_a_ledger_of_other_lines_is_an_error(source, tmp_path, tok):
    for number, fact in enumerate(({}, {"plan": 7}, {"plan": {}}, {"range": []}, {"plan": {"jittok": 1}})):
        out = tmp_path / str(number)
        (out / WORK).mkdir(parents=True)
        ledger = Ledger(out / WORK / "ledger.jsonl")
        for each in (fact, fact):
            ledger.add(each)
        ledger.close()
        with pytest.raises(CorpusError, match="start again"):
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
    refused(lambda made: made.update(manifest=3))
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

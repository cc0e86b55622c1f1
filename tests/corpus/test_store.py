"""The law: a store gives back what was put into it, whole; conditional writes have one winner; no name leads out."""

import os
import pickle
import sys
import threading
import time
from pathlib import Path

import pytest

from jittok.corpus.store import claim, is_far, open_store
from jittok.corpus.store.base import Store
from jittok.corpus.store.local import GUARD_SECONDS, LocalStore
from jittok.errors import CorpusError

NAMES = ("../x", "/x", "x/../../y", "a//b", "a/./b", "", ".", "..", "a\\b", "C:/x", "a\0b", "x/" * 20 + "y")


@pytest.fixture(params=["folder", "file://", "memory://"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory://":
        pytest.importorskip("obstore")
        return open_store(f"memory://{tmp_path.name}/{time.time_ns()}")
    return open_store(tmp_path / "out" if request.param == "folder" else f"file://{tmp_path}/out")


def test_what_was_put_is_read_back_in_any_part(store: Store) -> None:
    assert list(store.objects()) == []
    assert store.head("a/b") is None
    store.put("a/b", b"0123456789")
    store.put("a/c", b"")
    assert store.read("a/b") == b"0123456789"
    assert [store.read("a/b", *part) for part in ((2, 5), (5, None), (8, 99), (10, 20), (12, None))] == [
        b"234", b"56789", b"89", b"", b""
    ]  # fmt: skip
    assert store.read("a/c") == b""
    store.put("a/b", b"new")
    assert store.read_tagged("a/b")[0] == b"new"
    found = store.head("a/b")
    assert found is not None
    assert (found.name, found.size) == ("a/b", 3)
    assert [each[:2] for each in store.objects()] == [("a/b", 3), ("a/c", 0)]


def test_what_is_not_there_is_said_with_its_place(store: Store) -> None:
    for ask in (store.read, store.read_tagged):
        with pytest.raises(FileNotFoundError) as error:
            ask("none/b")  # type: ignore[operator]
        assert error.value.filename.endswith("/none/b")
    store.delete("none/b")
    store.clear("none")
    assert store.mark_of("none") == ""
    assert not store.replace("none/b", b"", "tag")


def test_a_listing_is_sorted_and_of_one_folder(store: Store) -> None:
    names = ["a-b/x", "a/x", "a/y/z", "a0", "b/x"]
    for name in reversed(names):
        store.put(name, b"1")
    assert [each.name for each in store.objects()] == sorted(names)
    assert [each.name for each in store.objects("a")] == ["a/x", "a/y/z"]
    store.clear("a")
    assert [each.name for each in store.objects()] == ["a-b/x", "a0", "b/x"]


def test_of_many_creators_one_wins(store: Store) -> None:
    won: list[tuple[int, int]] = []
    gate = threading.Barrier(4)

    def work(worker: int) -> None:
        gate.wait()
        won.extend((k, worker) for k in range(20) if store.create(f"t/{k}", str(worker).encode()))

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(k for k, _ in won) == list(range(20))
    assert all(store.read(f"t/{k}") == str(worker).encode() for k, worker in won)


def test_of_many_replacers_none_loses_another_s_write(store: Store) -> None:
    store.put("n", b"0")

    def work() -> None:
        for _ in range(10):
            while True:
                data, tag = store.read_tagged("n")
                if store.replace("n", str(int(data) + 1).encode(), tag):
                    break

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.read("n") == b"30"


def test_a_finished_file_is_moved_to_its_name(store: Store) -> None:
    folder = store.scratch(".jittok/w1")
    data = os.urandom(9 << 20)  # two pieces of an upload
    (folder / "part").write_bytes(data)
    store.publish(folder / "part", "npy/00000.ids.npy", "run/1")
    assert not (folder / "part").exists()
    assert store.read("npy/00000.ids.npy") == data
    assert store.mark_of("npy/00000.ids.npy") == ("" if store.local else "run/1")
    (folder / "other").write_bytes(b"left by a run that died")
    assert list(store.scratch(".jittok/w1").iterdir()) == []
    store.clear(".jittok/w1")
    assert not folder.exists()
    assert [each.name for each in store.objects()] == ["npy/00000.ids.npy"]
    assert store.discard_unfinished() == 0


def test_a_temporary_file_is_discarded_in_its_folder_alone(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("a/b", b"x")
    left, inner = (tmp_path / folder / ".b.0123456789abcdef.part" for folder in ("", "a"))
    left.touch()
    inner.touch()
    assert store.discard_unfinished() == 1
    assert not left.exists()
    assert inner.exists()
    assert store.discard_unfinished("a") == 1
    assert store.discard_unfinished("nowhere") == 0
    assert store.read("a/b") == b"x"


@pytest.mark.parametrize("name", NAMES)
def test_no_name_leads_out(store: Store, name: str) -> None:
    for call in (store.head, store.read, store.delete, store.scratch, lambda name: store.put(name, b"")):
        with pytest.raises(CorpusError, match=r"name|FOLDER"):
            call(name)


def test_a_pickled_store_is_the_same_place(store: Store) -> None:
    store.put("a", b"1")
    assert pickle.loads(pickle.dumps(store)).read("a") == b"1"


def test_a_lease_has_one_holder_until_it_ends(store: Store) -> None:
    lease = claim(store, "t/0.lease", 60)
    assert lease is not None
    assert claim(store, "t/0.lease") is None
    assert lease.renew()
    assert lease.renew()
    lease.release()
    short = claim(store, "t/0.lease", 0.01)
    assert short is not None
    time.sleep(0.05)
    other = claim(store, "t/0.lease")
    assert other is not None
    assert not short.renew()
    short.release()  # no longer its own: nothing happens
    assert other.renew()


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"owner":"x","until":1e300}', b'{"owner":"x","until":NaN}'])
def test_what_is_no_lease_ends_a_while_after_it_was_written(store: Store, text: bytes, monkeypatch) -> None:
    from jittok.corpus.store import lease

    store.put("t/0.lease", text)
    assert claim(store, "t/0.lease") is None
    monkeypatch.setattr(lease, "SECONDS", -5.0)
    assert claim(store, "t/0.lease", 60) is not None


class Deaf(LocalStore):
    """A store whose answers to writes are lost: it says that somebody else was there first."""

    def create(self, name: str, data: bytes) -> bool:
        super().create(name, data)
        return False

    def replace(self, name: str, data: bytes, tag: str) -> bool:
        super().replace(name, data, tag)
        return False


def test_a_lease_whose_answer_was_lost_is_still_held(tmp_path: Path) -> None:
    lease = claim(Deaf(tmp_path), "t/0.lease", 0.01)
    assert lease is not None
    assert lease.renew()
    time.sleep(0.05)
    assert claim(Deaf(tmp_path), "t/0.lease") is not None  # taken over
    assert not lease.renew()


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights")
def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "letter").write_bytes(b"mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / "t").symlink_to(tmp_path / "precious")
    (out / "letter").symlink_to(tmp_path / "precious" / "letter")
    store = open_store(out)
    for name in ("t/letter", "letter"):
        with pytest.raises(CorpusError, match="link"):
            store.read(name)
    with pytest.raises(CorpusError, match="link"):
        store.put("t/new", b"")
    with pytest.raises(CorpusError, match="link"):
        store.scratch("t/new")
    store.put("letter", b"a file in place of the link")
    assert [each.name for each in store.objects()] == ["letter"]
    store.clear("t")
    assert not (out / "t").is_symlink()
    assert (tmp_path / "precious" / "letter").read_bytes() == b"mine"


def test_a_guard_of_a_dead_process_is_broken(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put("a", b"1")
    _, tag = store.read_tagged("a")
    guard = tmp_path / ".a.guard"
    guard.touch()
    assert not store.replace("a", b"2", tag)
    os.utime(guard, (0, time.time() - GUARD_SECONDS - 1))
    assert store.replace("a", b"2", tag)
    assert not guard.exists()


def test_a_file_system_without_hard_links_creates_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_paths: object, **_options: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    store = open_store(tmp_path)
    assert store.create("t/a", b"1")
    assert not store.create("t/a", b"2")
    assert store.read("t/a") == b"1"
    assert [each.name for each in (tmp_path / "t").iterdir()] == ["a"]


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jittok.corpus.store import disk

    store = open_store(tmp_path)
    store.put("a", b"old")

    def full(_descriptor: int, _data: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "append", full)
    for write in (lambda: store.put("a", b"new"), lambda: store.create("b", b"new")):
        with pytest.raises(OSError, match="space"):
            write()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert store.read("a") == b"old"


@pytest.mark.parametrize("url", ["ftp://x/y", "https://x/y", "s3:/x/y", "hf://x/y"])
def test_other_schemes_are_refused(url: str) -> None:
    assert not is_far(url)
    with pytest.raises(CorpusError, match="s3://"):
        open_store(url)


@pytest.mark.parametrize("url", ["s3://", "s3:///x", "gs://", "s3://bucket/a/../b"])
def test_a_url_without_bucket_or_with_a_prefix_that_leads_out_is_refused(url: str) -> None:
    pytest.importorskip("obstore")
    with pytest.raises(CorpusError, match=r"BUCKET|name"):
        open_store(url)


def test_without_obstore_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ImportError, match=r"pip install '.*\[cloud\]'"):
        open_store("s3://bucket/x")

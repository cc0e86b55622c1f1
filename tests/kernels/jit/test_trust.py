"""The law: code and tables come only from folders and files that belong to this user or root, and that no one else can
write to. Anything else gives one log line, and work in memory."""

import ast
import logging
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from small_package import environment

import jittok
from jittok.kernels import vocab_cache
from jittok.kernels.jit import store, trust

pytestmark = pytest.mark.skipif(not trust.BY_DESCRIPTOR, reason="no users or no folders by descriptor")
root_only = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="gives files away")
NOBODY = 65_534

SHOW = """
import numpy as np
from jittok.climb import climb
out = np.zeros(3, np.int64)
climb(out)
print(out.tolist(), climb.cache_hit)
"""


def run(home: Path, **settings: str) -> tuple[str, list[str]]:
    """What a process of its own shows, and its log."""
    env = {**environment(home), **settings}
    done = subprocess.run([sys.executable, "-c", SHOW], env=env, cwd=home, capture_output=True, text=True, check=True)
    return done.stdout.strip(), done.stderr.splitlines()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """root/part/name, written."""
    place = tmp_path / "root" / "part" / "name"
    trust.write_file(place, b"con", b"tent")
    assert trust.read_file(place) == b"content"
    return place


MODES = [0o777, 0o1777, 0o775, 0o757, 0o722]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("up", [0, 1, 2])
def test_what_others_may_write_to_is_not_read(place: Path, up: int, mode: int) -> None:
    [place, *place.parents][up].chmod(mode)
    with pytest.raises(trust.Distrusted, match="others"):
        trust.read_file(place)
    if up:
        with pytest.raises(trust.Distrusted, match="others"):
            trust.write_file(place, b"new")
    else:  # in a folder of ours the file is put right
        trust.write_file(place, b"new")
        assert trust.read_file(place) == b"new"


@pytest.mark.parametrize("up", [0, 1, 2])
def test_what_belongs_to_another_is_not_read(place: Path, up: int, monkeypatch: pytest.MonkeyPatch) -> None:
    inode, real = [place, *place.parents][up].stat().st_ino, os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        return os.stat_result([*found[:4], NOBODY, *found[5:]]) if found.st_ino == inode else found

    monkeypatch.setattr(os, "fstat", fstat)
    with pytest.raises(trust.Distrusted, match=f"belongs to user {NOBODY}"):
        trust.read_file(place)


@pytest.mark.parametrize("me", [0, 1000])
def test_what_belongs_to_root_is_read_by_all_and_what_is_ours_by_us(me: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: me)
    for owner, fine in ((0, True), (me, True), (me + 1, False)):
        found = SimpleNamespace(st_uid=owner, st_mode=0o100644)
        assert (trust.doubt(found) is None) is fine  # type: ignore[arg-type]


def test_links_pipes_and_folders_are_no_entries(place: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"content")
    for make in (lambda: place.symlink_to(other), lambda: os.mkfifo(place), place.mkdir):
        place.unlink()
        make()
        with pytest.raises(OSError):  # noqa: PT011  whatever the system says of it
            trust.read_file(place)
        if not place.is_dir():
            trust.write_file(place, b"mended")
            assert not place.is_symlink()
            assert trust.read_file(place) == b"mended"
    assert other.read_bytes() == b"content"


def test_a_part_that_is_a_link_is_not_followed(place: Path, tmp_path: Path) -> None:
    place.parent.rename(tmp_path / "elsewhere")
    place.parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):  # noqa: PT011
        trust.read_file(place)
    with pytest.raises(OSError):  # noqa: PT011
        trust.write_file(place, b"new")
    assert (tmp_path / "elsewhere" / "name").read_bytes() == b"content"


def test_an_entry_that_is_exchanged_after_the_question_is_not_what_is_read(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = trust.check

    def check(descriptor: int, name: object) -> None:
        real(descriptor, name)
        if name == str(place):
            place.unlink()
            place.write_bytes(b"forged!")

    monkeypatch.setattr(trust, "check", check)
    assert trust.read_file(place) == b"content"


def test_nothing_is_left_of_a_file_that_cannot_be_written(place: Path) -> None:
    with pytest.raises(TypeError):
        trust.write_file(place, b"a", None)  # type: ignore[arg-type]
    assert [path.name for path in place.parent.iterdir()] == ["name"]


@pytest.mark.process
@pytest.mark.parametrize("setting", ["JITTOK_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"])
def test_a_cache_that_others_may_write_to_is_not_used(home: Path, setting: str) -> None:
    folder = home / "shared"
    chosen = folder if setting == "JITTOK_CACHE_DIR" else folder / "jittok"
    chosen.mkdir(parents=True)
    chosen.chmod(0o777)
    shown, log = run(home, **{"JITTOK_CACHE_DIR": "", "NUMBA_CACHE_DIR": "", setting: str(folder)})
    assert shown == "[1, 2, 3] False"
    assert len(log) == 1
    assert "may be written by others" in log[0]
    assert list(chosen.iterdir()) == []


def chosen(folder: object, monkeypatch: pytest.MonkeyPatch) -> Path | None:
    """What a process would use that is told to keep things there."""
    monkeypatch.setenv("JITTOK_CACHE_DIR", str(folder))
    found = store.cache_dir.__wrapped__()
    return found and Path(found)


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo])
def test_what_is_no_folder_is_no_cache_and_is_told(
    make: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make(tmp_path / "file")  # type: ignore[operator]
    assert chosen(tmp_path / "file", monkeypatch) is None
    assert [record.getMessage().count("is no folder") for record in caplog.records] == [1]
    caplog.clear()
    assert chosen(tmp_path / "file" / "below", monkeypatch) is None
    assert len(caplog.records) == 1


def test_a_cache_is_where_it_was_wherever_the_process_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert chosen("cache", monkeypatch) == tmp_path / "cache"


@pytest.mark.parametrize(("mode", "fine"), [(0o777, False), (0o757, False), (0o1777, True), (0o775, True)])
def test_a_cache_below_a_folder_that_everybody_may_write_to_is_not_used(
    mode: int, fine: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cache = tmp_path / "open" / "own" / "cache"
    cache.mkdir(parents=True)
    (tmp_path / "link").symlink_to(cache.parent)
    (tmp_path / "open").chmod(mode)
    for place in (cache, tmp_path / "link" / "cache"):
        caplog.clear()
        assert chosen(place, monkeypatch) == (place if fine else None)
        assert len(caplog.records) == (not fine)


@root_only
def test_a_cache_that_is_reached_by_a_link_of_another_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "own" / "cache").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "own")
    assert chosen(tmp_path / "link" / "cache", monkeypatch) is not None
    os.lchown(tmp_path / "link", NOBODY, NOBODY)
    assert chosen(tmp_path / "link" / "cache", monkeypatch) is None
    assert f"the link {tmp_path / 'link'} of user {NOBODY}" in caplog.text


@pytest.mark.process
@root_only
def test_code_that_belongs_to_another_is_not_run(home: Path) -> None:
    cache = home / "cache"
    assert run(home) == ("[1, 2, 3] False", [])
    (entry,) = (cache / "kernels").glob("*.o")
    for path in (cache, cache / "kernels", entry):
        os.chown(path, NOBODY, NOBODY)
        shown, log = run(home)
        assert shown == "[1, 2, 3] False"
        assert len(log) == 1
        assert f"belongs to user {NOBODY}" in log[0]
        os.chown(path, 0, 0)
    assert run(home) == ("[1, 2, 3] True", [])  # what is in a folder of ours was written again


@pytest.mark.process
def test_a_cache_that_cannot_be_written_is_told_once_and_nothing_is_compiled_twice(home: Path) -> None:
    code = """
import numpy as np
from jittok.kernels.jit import compiler, store, trust
from jittok.climb import climb
def refused(*_): raise PermissionError(13, "read-only")
trust._write, compiled, real = refused, [], compiler.compile_kernel
compiler.compile_kernel = lambda function: compiled.append(function.__qualname__) or real(function)
for _ in range(3):
    climb(np.zeros(3, np.int64))
    store.write(store.place("jittok.other", "kernel", "fast", bytes(32)), bytes(32), b"code")
print(sorted(compiled))
"""
    env = environment(home)
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    names = ast.literal_eval(done.stdout)
    assert len(names) == len(set(names)) > 0


def test_tables_of_another_are_not_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: object) -> None:
    monkeypatch.setattr(vocab_cache, "cache_dir", lambda: tmp_path / "cache")
    ids = jittok.bundled("gpt-2").encode("a text").tolist()
    (kept,) = (tmp_path / "cache" / "vocabularies").glob("*-encoder.vocab")
    key = kept.name.split("-")[0]
    assert vocab_cache.load_arrays(key, "encoder") is not None
    monkeypatch.setattr(trust, "_told", set())
    for path in (kept, kept.parent, kept.parent.parent):
        mode = path.stat().st_mode
        path.chmod(mode | 0o002)
        with caplog.at_level(logging.WARNING):  # type: ignore[attr-defined]
            assert vocab_cache.load_arrays(key, "encoder") is None
        assert jittok.bundled("gpt-2").encode("a text").tolist() == ids
        path.chmod(mode)
        assert vocab_cache.load_arrays(key, "encoder") is not None
    assert caplog.text.count("may be written by others") == 1  # type: ignore[attr-defined]


def test_the_cache_is_listed_and_cleared_without_following_links(tmp_path: Path, monkeypatch: object) -> None:
    monkeypatch.setattr(vocab_cache, "cache_dir", lambda: tmp_path / "cache")  # type: ignore[attr-defined]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_bytes(b"kept")
    (tmp_path / "cache" / "vocabularies").mkdir(parents=True)
    (tmp_path / "cache" / "kernels").symlink_to(tmp_path / "mine")
    (tmp_path / "cache" / "vocabularies" / "a.path").symlink_to(tmp_path / "mine" / "letter.txt")
    (tmp_path / "cache" / "vocabularies" / "b.path").symlink_to(tmp_path / "nowhere")
    assert vocab_cache.clear()[0] == 2
    assert (tmp_path / "mine" / "letter.txt").read_bytes() == b"kept"
    assert store.MAGIC

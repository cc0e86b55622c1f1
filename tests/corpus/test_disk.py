"""Writes that last, on systems that this one is not."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from jittok.corpus.store import disk


def test_where_fsync_leaves_data_in_the_drive_the_full_one_is_asked_for(tmp_path: Path, monkeypatch: object) -> None:
    asked: list[int] = []
    system = SimpleNamespace(F_FULLFSYNC=51, fcntl=lambda _descriptor, what: asked.append(what))
    monkeypatch.setattr(disk, "fcntl", system)  # type: ignore[attr-defined]
    disk.write_new(tmp_path / "a", b"text")
    assert asked == [51, 51]  # the file and its folder
    assert (tmp_path / "a").read_bytes() == b"text"


def test_a_file_system_that_knows_no_full_one_gets_the_plain_one(tmp_path: Path, monkeypatch: object) -> None:
    def refused(_descriptor: int, _what: int) -> None:
        raise OSError(45, "not supported")

    done: list[int] = []
    monkeypatch.setattr(disk, "fcntl", SimpleNamespace(F_FULLFSYNC=51, fcntl=refused))  # type: ignore[attr-defined]
    monkeypatch.setattr(disk.os, "fsync", done.append)  # type: ignore[attr-defined]
    disk.write_new(tmp_path / "a", b"text")
    assert len(done) == 2


def test_where_folders_cannot_be_opened_they_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "FOLDERS_OPEN", False)
    opened = disk.os.open

    def refused(path: object, *rest: int) -> int:
        if isinstance(path, Path) and path.is_dir():
            raise PermissionError(13, "a folder")
        return opened(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(disk.os, "open", refused)
    disk.sync(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    disk.sync(tmp_path / "a")

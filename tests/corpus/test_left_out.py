"""What is not taken for a document, and that it is told: hidden files, links, no bytes at all, no text."""

from __future__ import annotations

import io
import os
import sys

import pytest

from jittok.cli import main
from jittok.corpus import Options
from jittok.corpus.inputs.finding import find_sources

pytest.importorskip("filelock")
pytest.importorskip("pyarrow")


def test_hidden_files_and_linked_folders_are_told(tmp_path):
    data = tmp_path / "data"
    (data / ".git").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    for path in (data / "a.txt", data / ".b.txt", data / ".git" / "c.txt", tmp_path / "other" / "d.txt"):
        path.write_text("x")
    (data / "link").symlink_to(tmp_path / "other")
    sources, left_out = find_sources([data], Options())
    assert [source.path for source in sources] == [str(data / "a.txt")]
    assert left_out == [str(data / name) for name in (".b.txt", ".git", "link")]


def test_a_folder_that_may_not_be_read_is_left_out_with_skip(tmp_path, monkeypatch):
    (tmp_path / "data" / "closed").mkdir(parents=True)
    (tmp_path / "data" / "a.txt").write_text("x")
    scandir = os.scandir

    def refusing(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(PermissionError):
        find_sources([tmp_path / "data"], Options())
    sources, left_out = find_sources([tmp_path / "data"], Options(on_error="skip"))
    assert (len(sources), left_out) == (1, [str(tmp_path / "data" / "closed")])
    with pytest.raises(PermissionError):
        find_sources([tmp_path / "data" / "closed"], Options(on_error="skip"))


@pytest.mark.parametrize("kind", [[], ["--lines"], ["--input-format", "jsonl"]])
def test_empty_standard_input_makes_no_corpus(tmp_path, monkeypatch, capfd, kind):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert main(["corpus", "-", *kind, "--vocab", "gpt-2", "--out", str(tmp_path / "out")]) == 2
    assert "-: found nothing at all, expected documents" in capfd.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "said"), [(b"\xff\xfea\0b\0", "text in UTF-16"), (b"a\0b", "binary data"), (b"\x1f\x8b..", "gzip")]
)
def test_what_is_no_text_is_refused_under_any_name(tmp_path, capfd, content, said):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    for command in ("count", "encode"):
        assert main([command, str(path), "--vocab", "gpt-2"]) == 2
        assert f"a.txt: found {said}" in capfd.readouterr().err
        assert main([command, str(path), "--vocab", "gpt-2", "--input-format", "txt"]) == 0
        capfd.readouterr()
    path.write_bytes(b'{"text": "a"}\n')
    assert main(["count", str(path), "--vocab", "gpt-2"]) == 0
    path = path.rename(path.with_suffix(".log"))  # a name that does not say that it is text
    assert main(["count", str(path), "--vocab", "gpt-2"]) == 2
    assert "a.log: found JSON Lines, expected plain text" in capfd.readouterr().err


def test_a_bad_line_is_quoted_once_and_says_how_to_go_on(tmp_path, capfd):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "a"\n')
    assert main(["corpus", str(path), "--vocab", "gpt-2", "--out", str(tmp_path / "out")]) == 2
    err = capfd.readouterr().err
    assert """line 1: found '{"text": "a"' (""" in err
    assert "--on-error skip" in err


def test_what_a_glob_matches_beside_files_is_told(tmp_path):
    data = tmp_path / "data"
    (data / "en" / "deep").mkdir(parents=True)
    for path in (data / "a.txt", data / "en" / "b.txt", data / "en" / "deep" / "c.txt"):
        path.write_text("x")
    (data / "gone.txt").symlink_to(tmp_path / "nothing")

    def found(pattern):
        sources, left_out = find_sources([data / pattern], Options())
        return tuple([os.path.relpath(each, data) for each in some] for some in ((s.path for s in sources), left_out))

    assert found("*") == (["a.txt"], ["en", "gone.txt"])
    assert found("*.txt") == (["a.txt"], ["gone.txt"])
    assert found("*/*") == (["en/b.txt"], ["en/deep"])
    assert found("*/*.txt") == (["en/b.txt"], [])
    assert found("**") == (["a.txt", "en/b.txt", "en/deep/c.txt"], ["gone.txt"])
    assert found("**/*.txt") == (["a.txt", "en/b.txt", "en/deep/c.txt"], ["gone.txt"])


@pytest.mark.parametrize("pattern", ["*/*.txt", "**/*.txt", "*/a.txt"])
def test_a_folder_that_a_glob_may_not_look_into_is_told(tmp_path, monkeypatch, pattern):
    for name in ("closed", "open"):
        (tmp_path / "data" / name).mkdir(parents=True)
        (tmp_path / "data" / name / "a.txt").write_text("x")
    given, access = tmp_path / "data" / pattern, os.access
    assert len(find_sources([given], Options())[0]) == 2
    monkeypatch.setattr(os, "access", lambda path, mode: "closed" not in path and access(path, mode))
    with pytest.raises(PermissionError, match="closed"):
        find_sources([given], Options())
    assert str(tmp_path / "data" / "closed") in find_sources([given], Options(on_error="skip"))[1]

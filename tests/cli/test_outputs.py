"""Outputs are whole or not there, and replace nothing that no one said may be replaced."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

import jittok
from jittok.cli import main
from jittok.common.writers.atomic_files import atomic_file

pytest.importorskip("pyarrow")
pytest.importorskip("orjson")

COMMANDS = {
    "convert": (["convert", "gpt-2", "--to", "tiktoken", "--out", "out"], "out"),
    "the name that convert gives": (["convert", "gpt-2", "--to", "tiktoken"], "gpt-2.tiktoken"),
    "train": (["train", "text.txt", "--size", "260", "--out", "out.gguf"], "out.gguf"),
    "one of several sizes": (["train", "text.txt", "--sizes", "260,261", "--out", "out.json"], "out-261.json"),
    "what stands beside vocab.json": (["train", "text.txt", "--size", "260", "--out", "vocab.json"], "merges.txt"),
    "words": (["train", "text.txt", "--save-words", "out"], "out"),
    "trace": (["train", "text.txt", "--size", "260", "--trace", "out"], "out"),
    "page": (["compare", "gpt-2", "gpt-2", "--corpus", "text.txt", "--html", "out"], "out"),
    "ids": (["encode", "--vocab", "gpt-2", "-o", "out", "text.txt"], "out"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_nothing_is_replaced_unless_it_is_said(
    case: str, capfd: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("to be or not to be " * 9)
    command, out = COMMANDS[case]
    place = tmp_path / out
    if case == "ids":
        jittok.bundled("gpt-2").encode_batch(["before"]).save(place)
    else:
        place.write_text("before")
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert main(command) == 2
    err = capfd.readouterr().err
    assert f"{out}: found an existing file or folder, expected a new name, or --overwrite" in err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == kept
    assert main([*command, "--overwrite"]) == 0
    assert any(path.read_bytes() != content for path, content in kept.items())


def test_the_extension_of_a_converted_file_tells_its_kind(
    capfd: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["convert", "gpt-2", "-o", "a.tiktoken"]) == 0
    assert jittok.load("a.tiktoken", pattern="a", cache=False).token_to_id("hello") == 31373
    for given, says in (
        (["--out", "a.bin"], "--out: found 'a.bin', expected the extension .gguf, .json, .tiktoken or .model"),
        ([], "found no output, expected --out FILE"),
    ):
        assert main(["convert", "gpt-2", *given]) == 2
        assert says in capfd.readouterr().err
    with pytest.raises(SystemExit):
        main(["convert", "gpt-2", "b.gguf"])
    assert "unrecognized arguments: b.gguf; --out FILE" in capfd.readouterr().err


def test_convert_replaces_nothing_unless_it_is_said(tmp_path: Path) -> None:
    out = tmp_path / "out.tiktoken"
    out.write_text("before")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        jittok.convert(jittok.bundled("gpt-2"), out)
    assert out.read_text() == "before"


def test_a_file_that_was_not_finished_is_not_there(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("before")

    def interrupted() -> None:
        with atomic_file(out) as new:
            new.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert out.read_text() == "before"
    with atomic_file(out) as new:
        new.write_text("all")
    assert out.read_text() == "all"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    with pytest.raises(FileNotFoundError, match="no folder"), atomic_file(tmp_path / "no folder" / "out"):
        pass


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        (["convert", "model", "--to", "tokenizer.json", "--out", "model/tokenizer.json"], "model/tokenizer.json"),
        (["convert", "gpt-2", "--to", "tiktoken", "--out", "text.txt", "--corpus", "text.txt"], "text.txt"),
        (["compare", "gpt-2", "model/tokenizer.json", "--html", "model/tokenizer.json"], "model/tokenizer.json"),
        (["train", "text.txt", "--size", "260", "--trace", "text.txt"], "text.txt"),
        (["train", "texts", "--size", "260", "--trace", "texts/below/text.txt"], "texts/below/text.txt"),
        (["train", "*.txt", "--size", "260", "--trace", "text.txt"], "text.txt"),
        (["train", "--words", "text.txt", "--save-words", "text.txt"], "text.txt"),
        (["convert", "gpt-2", "--to", "tiktoken", "--out", "text.txt", "--corpus", "t*t"], "text.txt"),
        (
            ["compare", "bert", "gpt-2", "--corpus", "**/text.txt", "--html", "texts/below/text.txt"],
            "texts/below/text.txt",
        ),
    ],
)
def test_what_is_read_is_never_replaced(
    command: list[str], kept: str, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "tokenizer.json").write_text("{}")
    (tmp_path / "text.txt").write_text("to be")
    (tmp_path / "texts" / "below").mkdir(parents=True)
    (tmp_path / "texts" / "below" / "text.txt").write_text("or not")
    before = (tmp_path / kept).read_text()
    assert main([*command, "--overwrite"]) == 2
    assert f"{kept}: found an input file, expected another name" in capsys.readouterr().err
    assert (tmp_path / kept).read_text() == before


def test_permissions_and_long_names_stay_and_links_are_followed(tmp_path: Path) -> None:
    out, link = tmp_path / ("é" * 125 + ".json"), tmp_path / "link"
    out.write_text("before")
    out.chmod(0o600)
    link.symlink_to(out)
    with atomic_file(link) as new:
        new.write_text("after")
    assert out.read_text() == "after"
    assert out.stat().st_mode & 0o777 == 0o600
    assert link.is_symlink()


def test_of_two_files_the_one_that_failed_is_named(tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    with pytest.raises(OSError, match="second"), atomic_file(tmp_path / "first"), atomic_file(tmp_path / "second"):
        pass
    with pytest.raises(FileNotFoundError, match="lost"), atomic_file(tmp_path / "first"):
        (tmp_path / "lost").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["second"]


@pytest.mark.process
@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no /dev/stdout")
def test_standard_output_is_written_to_where_it_is(tmp_path: Path) -> None:
    """As the shell has opened it: after what is there, and before what is printed later."""
    program = (
        "import sys\nfrom jittok.common.writers.atomic_files import atomic_file\nsys.stdout.write('a ')\n"
        "with atomic_file(sys.argv[1]) as new: new.write_text('page')\nsys.stdout.write(' z')"
    )
    log = tmp_path / "log"
    for name in ("/dev/stdout", "/dev/fd/1"):
        command = [sys.executable, "-c", program, name]
        assert subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout in (b"pagea  z", b"a page z")
        log.write_text("before ")
        with log.open("a") as file:
            subprocess.run(command, check=True, stdout=file)
        assert log.read_text() == "before a page z"
        with log.open("w") as file:
            subprocess.run(command, check=True, stdout=file)
        assert log.read_text() == "a page z"
    with pytest.raises(FileNotFoundError), atomic_file("/dev/fd/87654"):
        pass


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_disk_that_is_full_is_told_with_the_name_of_the_output(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("to be")
    assert main(["train", "a.txt", "--save-words", "/dev/full"]) == 2
    assert capsys.readouterr().err == "jittok train: /dev/full: No space left on device\n"
    with pytest.raises(OSError, match="No space") as caught, atomic_file("out"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == "out"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.process
@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no /dev/stdout")
def test_an_output_that_is_standard_output_has_no_report_in_it(tmp_path: Path) -> None:
    text, found = tmp_path / "a.txt", tmp_path / "found"
    text.write_text("to be or not to be " * 20)
    small = tmp_path / "small.gguf"
    jittok.train(["to be or not to be"] * 9, 260, special=["<s>"], eos="<s>").save(small)
    for outputs, given in (
        (("--save-words",), ["train", str(text), "--size", "260"]),
        (("--out",), ["convert", str(small), "--to", "tiktoken"]),
    ):
        there = tmp_path / "there"
        command = [sys.executable, "-m", "jittok", *given, *outputs]
        done = subprocess.run([*command, str(there)], check=True, capture_output=True)
        with found.open("wb") as file:
            piped = subprocess.run([*command, "/dev/stdout"], check=True, stdout=file, stderr=subprocess.PIPE)
        assert found.read_bytes() == there.read_bytes()
        assert len(piped.stderr.splitlines()) >= len(done.stdout.splitlines())
        there.unlink()


def test_a_converted_file_goes_where_a_link_or_a_pipe_leads(tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "own.tiktoken", tmp_path / "link.tiktoken", tmp_path / "pipe.tiktoken"
    target.write_text("before")
    target.chmod(0o600)
    link.symlink_to(target)
    tok = jittok.train(["to be or not to be"] * 9, 260, special=["<s>"], eos="<s>").tokenizer
    jittok.convert(tok, link, overwrite=True)
    raw = target.read_bytes()
    assert raw.startswith(b"IQ== ")
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o600
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    jittok.convert(tok, pipe)
    assert pipe.is_fifo()
    reader.join(60)
    assert read == [raw]
    assert sorted(path.name for path in tmp_path.iterdir()) == [link.name, target.name, pipe.name]


def test_two_outputs_of_one_name_are_refused(capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("to be")
    assert main(["train", "text.txt", "--size", "260", "--out", "a.json", "--trace", "./a.json"]) == 2
    assert "a.json: found the same name for two outputs" in capsys.readouterr().err
    assert not (tmp_path / "a.json").exists()


def test_a_folder_that_is_refused_for_a_corpus_stays_as_it_is(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "text.txt").write_text("to be")
    assert main(["corpus", "--vocab", "gpt-2", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "expected an empty directory" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no folder for files in memory")
def test_a_file_in_memory_is_a_file() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        place = Path(folder, "out")
        place.write_text("old")
        with pytest.raises(ZeroDivisionError), atomic_file(place) as new:
            new.write_text(f"half, and {1 / 0}")
        assert [each.name for each in Path(folder).iterdir()] == ["out"]
        assert place.read_text() == "old"
        assert main(["convert", "gpt-2", "--to", "tiktoken", "--out", str(place)]) == 2
        assert place.read_text() == "old"

"""No option is passed over, and what fails is told by its own name."""

from __future__ import annotations

import errno
import io
from pathlib import Path
from typing import Any

import pytest

import jittok
from jittok.cli import main, one_line
from jittok.corpus.options import MOST_BYTES, parse_bytes
from jittok.corpus.ranges import units
from jittok.errors import CorpusError


@pytest.mark.parametrize(
    "option", [["--jsonl"], ["--lines"], ["--input-format", "jsonl"], ["--field", "body"], ["--column", "body"]]
)
def test_a_text_that_is_given_is_no_file_of_a_kind(run: Any, option: list[str]) -> None:
    for command in (["encode", "-p"], ["count", "-p"], ["trace"]):
        status, out, said = run(*command, '{"text": "a"}', *option)
        assert (status, out) == (2, "")
        assert f"and {option[0]}, expected {option[0]} only with a file or standard input" in said


def test_a_text_that_is_given_has_no_second_document(run: Any) -> None:
    assert run("trace", "a", "--document", 2)[0] == 2


@pytest.mark.parametrize("number", ["inf", "-inf", "nan", "1e30", "4E", "9e18T", ""])
def test_a_number_of_bytes_that_cannot_be_is_told(run: Any, number: str) -> None:
    status, _, said = run("encode", "/dev/null", f"--max-document-bytes={number}")
    assert status == 2
    assert "expected a number of bytes such as 500000, 64M or 1G" in said
    with pytest.raises(CorpusError, match="a number of bytes"):
        parse_bytes(number, "--memory")
    assert parse_bytes("1T", "--memory") == 1 << 40 < MOST_BYTES


def test_ids_come_out_of_a_folder_and_no_device(run: Any) -> None:
    status, _, said = run("encode", "-p", "a", "-o", "/dev/null")
    assert status == 2
    assert "/dev/null: found a device, pipe or open file, expected a folder name" in said


def test_an_id_that_cannot_be_is_told_with_its_line(run: Any, tmp_path: Path) -> None:
    status, out, said = run("decode", stdin=b"[1]\n\n[2, 50257]\n")
    assert (status, out) == (2, '"')
    assert said == "jittok decode: -, line 3: token 50257: expected 0 <= id < 50257\n"
    assert "line 1: found b'{\"ids\": {}}'" in run("decode", stdin=b'{"ids": {}}')[2]
    run("encode", "-p", "a", "-o", tmp_path / "ids")
    assert main(["decode", "--vocab", "gpt-2", str(tmp_path / "ids")]) == 0


class Broken(io.RawIOBase):
    """A file of a disk that fails."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, _whence: int = 0) -> int:
        return place

    def tell(self) -> int:
        return 0

    def readinto(self, _buffer: object) -> int:
        raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.jsonl", "a.jsonl.gz"])
def test_a_disk_that_fails_is_told_with_the_file(
    run: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(b"{}" * 100)
    monkeypatch.setattr(units.Source, "open", lambda _source: io.BufferedReader(Broken()))
    status, _, said = run("count", tmp_path / name, "--errors", "replace")
    assert status == 2, said
    assert f"{name}: " in said or f"{name}, line 1: " in said
    assert "Input/output error" in said
    assert "standard output" not in said


def test_a_vocabulary_that_cannot_be_read_is_told_with_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    if not Path("/proc/self/mem").exists():
        pytest.skip("a file whose first byte cannot be read")
    assert main(["info", "/proc/self/mem"]) == 2
    assert capsys.readouterr().err == "jittok info: /proc/self/mem: Input/output error\n"
    assert "standard output" not in one_line(OSError(errno.EIO, "Input/output error"))


def test_json_that_holds_nothing_is_told_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_bytes(b"{}")
    assert main(["info", str(tmp_path / "x.json")]) == 2
    assert "found JSON with no keys, expected a GGUF file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "expected"),
    [(["--name", "caf\udce9"], "--name: found 'caf\\udce9', expected a text (str) in UTF-8"),
     (["--pre-regex", ""], "--pre-regex: found '', which never splits, expected a regular expression")],
)  # fmt: skip
def test_training_refuses_before_any_work(
    option: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xff")  # which would be an error of its own
    out = ["--out", str(tmp_path / "a.json")]
    assert main(["train", str(tmp_path / "a.txt"), "--size", "300", *out, *option]) == 2
    assert expected in capsys.readouterr().err
    with pytest.raises(ValueError, match="name: found"):
        jittok.train(["a b"], 258, name="\ud800")


def test_a_pre_that_goes_into_no_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "x.json")
    assert main(["convert", "gpt-2", "--to", "tokenizer.json", "--pre", "qwen2", "--out", out]) == 2
    assert "--pre: found 'qwen2' for a tokenizer.json, expected none (only GGUF files" in capsys.readouterr().err

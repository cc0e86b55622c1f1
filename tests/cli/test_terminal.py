"""Names of files, tokens and texts that are commands to a terminal, or to gdb, are told and never carried out."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import jittok
from jittok.cli import main
from jittok.display.terminal import COMMANDS, harmless, one_name, print_table

EVIL = "x\x1b]0;title\x07\x1b[31m\u202ey"
TOLD = r"x\x1b]0;title\x07\x1b[31m\u202ey"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with such a name, with a text and a small tokenizer whose names and token are of that kind."""
    folder = tmp_path / EVIL
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("no such names here")
    (folder / f"{EVIL}.txt").write_text("the cat the dog")
    (folder / "other.txt").write_text("the cat")
    (folder / f"{EVIL}.json").write_text(
        json.dumps(
            {
                "model": {"type": "WordLevel", "vocab": {"?": 0, "the": 1, EVIL: 2}, "unk_token": "?"},
                "pre_tokenizer": {"type": "WhitespaceSplit"},
            }
        )
    )
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def told(capfdbinary: Any) -> Any:
    """told(status, argument, ...): what a command prints, to both streams; no part of it is a command."""

    def go(status: int, *arguments: str) -> str:
        try:
            found: object = main(arguments)
        except SystemExit as leave:
            found = leave.code
        assert found == status
        captured = capfdbinary.readouterr()
        said: str = (captured.out + captured.err).decode()
        assert COMMANDS.search(said) is None, said
        return said

    return go


def test_names_in_errors_are_told_with_escapes(here: Path, told: Any) -> None:
    (here / "bad.jsonl").write_text(json.dumps({EVIL: 1}) + "\n")
    vocab = f"{EVIL}.json"
    for arguments in (
        ["encode", "--vocab", vocab, f"{EVIL}.none"],
        ["encode", "--vocab", f"{EVIL}.none", "-p", "a"],
        ["encode", "--vocab", f"{EVIL}.txt", "-p", "a"],
        ["decode", "--vocab", vocab, f"{EVIL}.txt"],
        ["verify", "--vocab", vocab, str(here)],
        ["encode", "--vocab", vocab, f"--{EVIL}"],
        ["train", f"{EVIL}.txt", "--size", "300", "--out", f"{EVIL}/x.gguf"],
    ):
        assert TOLD in told(2, *arguments), arguments
    told(2, "count", "--vocab", vocab, "bad.jsonl")
    assert r"--a\x1bb" in told(2, "encode", "--a\x1bb\nc", "--vocab", vocab)


@pytest.mark.usefixtures("here")
def test_names_and_tokens_in_answers_are_told_with_escapes(told: Any) -> None:
    vocab = f"{EVIL}.json"
    assert TOLD in told(0, "count", "--vocab", vocab, f"{EVIL}.txt", "other.txt")
    assert TOLD in told(0, "info", vocab)
    assert TOLD in told(0, "trace", "--vocab", vocab, f"the {EVIL}")
    assert TOLD in told(0, "compare", vocab, vocab, "--corpus", f"{EVIL}.txt")
    assert json.loads(told(0, "count", "--json", "--vocab", vocab, f"{EVIL}.txt"))["tokens"] == 4


def test_a_corpus_of_such_names_is_told_with_escapes(here: Path, told: Any) -> None:
    pytest.importorskip("filelock")
    pytest.importorskip("pyarrow")
    assert TOLD in told(0, "corpus", f"{EVIL}.txt", "--vocab", f"{EVIL}.json", "--out", f"{EVIL}.out")
    (here / f"{EVIL}.out" / "arrow" / "00000.arrow").write_bytes(b"")
    assert "differences" in told(1, "verify", "--vocab", f"{EVIL}.json", f"{EVIL}.out")


def test_a_line_end_in_a_name_makes_no_line(here: Path, told: Any) -> None:
    (here / "a\n9 total.txt").write_text("the")
    assert "1 a\\n9 total.txt\n" in told(0, "count", "--vocab", f"{EVIL}.json", "a\n9 total.txt", "other.txt")
    assert one_name("a\nb\tc\x1b") == r"a\nb\tc\x1b"


@pytest.mark.usefixtures("here")
def test_spaces_in_a_name_stay(told: Any) -> None:
    assert "a  b\u3000c.txt: found nothing" in told(2, "count", "--vocab", f"{EVIL}.json", "a  b\u3000c.txt")


def test_text_stays_as_it_is() -> None:
    for text in ("", "a\tb\nc", "n\u00e4\u3000\u200d\U0001f600", "\udcff\\"):
        assert harmless(text) == text
    assert harmless("\r\x7f\x9b\u2028") == r"\r\x7f\x9b\u2028"


class Terminal(io.StringIO):
    """What a terminal is sent."""

    def isatty(self) -> bool:
        return True


def test_a_table_in_colour_takes_nothing_for_markup() -> None:
    pytest.importorskip("rich")
    for text in ("[/x]", "[red]x", "\\[/x]", "[link=a]b"):
        out = Terminal()
        print_table(text, [("name", text), (text, EVIL)], out)
        shown = out.getvalue()
        assert shown.count(text) == 3
        assert "\x07" not in shown
        assert "]0;title" in shown


def test_tokens_on_a_terminal_are_told_with_escapes(here: Path) -> None:
    pty = pytest.importorskip("pty")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(
            sys.executable, [sys.executable, "-m", "jittok", "encode", "--vocab", f"{here}/{EVIL}.json", "-p", EVIL]
        )
    said = b""
    try:
        while piece := os.read(terminal, 1 << 16):
            said += piece
    except OSError:  # the end of it, on Linux
        pass
    assert os.waitpid(pid, 0)[1] == 0
    assert f"2 -> '{TOLD}'" in said.decode()


def test_a_name_is_no_command_to_gdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tok = jittok.bundled("gpt-2")
    name = "a\nshell echo 'oh'\n#.gguf"
    tok = jittok.Tokenizer(tok.vocab._replace(source=name))
    script = tok.trace("a").gdb()
    assert "\nshell" not in script
    assert r"-m $'a\x0ashell echo \'oh\'\x0a#.gguf' --ids" in script

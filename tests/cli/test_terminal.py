"""Names of files, tokens and texts may hold commands to a terminal, or to gdb. They are printed, never carried out."""

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
from jittok.common.display.terminal import (
    COMMANDS,
    harmless,
    harmless_json,
    one_name,
    print_notes,
    print_table,
    visible,
)

EVIL = "x\x1b]0;title\x07\x1b[31m\u202ey"
TOLD = r"x\x1b]0;title\x07\x1b[31m\u202ey"


@pytest.fixture
def here(folder_named: Any) -> Path:
    """A folder with such a name. It holds a text and a small tokenizer with such names, and with such a token."""
    folder: Path = folder_named(EVIL, "the cat the dog", EVIL)
    (folder / "other.txt").write_text("the cat")
    return folder


@pytest.fixture
def told(capfdbinary: Any) -> Any:
    """told(status, argument, ...): what a command prints to both streams. No part of it is a command to a terminal."""

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
    assert "a  b\u3000c.txt: found no such file" in told(2, "count", "--vocab", f"{EVIL}.json", "a  b\u3000c.txt")


def test_text_stays_as_it_is() -> None:
    for text in ("", "a\tb\nc", "n\u00e4\u3000\u200d\U0001f600", "\udcff\\"):
        assert harmless(text) == text
    assert harmless("\r\x7f\x9b\u2028") == r"\r\x7f\x9b\u2028"


def test_which_characters_are_commands() -> None:
    ends = [(0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F), (0x2028, 0x202E), (0x2066, 0x2069)]
    commands = {c for first, last in ends for c in range(first, last + 1)}
    for c in (*range(0x100), *range(0x2000, 0x2100), 0xFEFF):
        assert (harmless(chr(c)) != chr(c)) == (c in commands), hex(c)
        assert json.loads(harmless_json(f'"{chr(c)}"') if c in commands else json.dumps(chr(c))) == chr(c)
        assert not c or COMMANDS.search(harmless_json(chr(c))) is None


def test_notes_tables_and_pieces_have_no_commands_in_them() -> None:
    out = io.StringIO()
    print_notes(EVIL, [EVIL, "a"], out)
    print_table(EVIL, [(EVIL, EVIL)], out)
    assert out.getvalue() == f"{TOLD}\n  - {TOLD}\n  - a\n{TOLD}\n  {TOLD}  {TOLD}\n"
    assert visible(f"{EVIL}\n\r\t\u00e9".encode() + b"\xff") == TOLD + r"\n\r\t" + "\u00e9" + r"\xff"


@pytest.mark.usefixtures("here")
def test_data_as_json_has_escapes_of_json(told: Any) -> None:
    vocab, word = f"{EVIL}.json", "x\x1b\x7f\x9b\u202ey"
    Path("text.txt").write_text(f"the {word}")
    Path("other.json").write_text(Path(vocab).read_text().replace('"the"', '"that"'))
    assert json.loads(told(0, "trace", "--vocab", vocab, "--json", word))["text"] == word
    found = json.loads(told(1, "compare", vocab, "other.json", "--ids", "--json", "--corpus", "text.txt"))
    assert found["a"]["name"] == vocab
    out = f"{word}.gguf"
    found = json.loads(told(0, "convert", "gpt-2", "--to", "gguf", "--corpus", "text.txt", "--json", "--out", out))
    assert found["path"] == out
    found, warning = told(0, "train", "text.txt", "--size", "262", "--json", "--out", f"{word}.json").splitlines()
    assert "no end-of-text token" in warning
    assert json.loads(found)["vocabularies"][0]["files"] == [f"{word}.json"]


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

    def seen(vocab: str, text: str) -> str:
        """What `encode` sends to a terminal."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(sys.executable, [sys.executable, "-m", "jittok", "encode", "--vocab", vocab, "-p", text])
        said = b""
        try:
            while piece := os.read(terminal, 1 << 16):
                said += piece
        except OSError:  # the end of it, on Linux
            pass
        assert os.waitpid(pid, 0)[1] == 0
        return said.decode()

    assert f"2 -> '{TOLD}'" in seen(f"{here}/{EVIL}.json", EVIL)
    assert r"-> '\x9b'" in seen("gpt-2", "\u06db")  # the second of its two bytes is a command of 8-bit terminals


@pytest.mark.usefixtures("here")
def test_tokens_in_a_pipe_are_their_bytes(capfdbinary: Any) -> None:
    assert main(["encode", "--vocab", f"{EVIL}.json", "-p", EVIL]) == 0
    assert f"2 -> '{EVIL}'".encode() in capfdbinary.readouterr().out
    assert main(["encode", "--vocab", "gpt-2", "-p", "\u06db"]) == 0
    assert b"-> '\x9b'" in capfdbinary.readouterr().out


def test_a_name_is_no_command_to_gdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tok = jittok.bundled("gpt-2")
    name = "a\nshell echo 'oh'\n#.gguf"
    tok = jittok.Tokenizer(tok.vocab._replace(source=name))
    script = tok.trace("a").gdb()
    assert "\nshell" not in script
    assert r"-m $'a\x0ashell echo \'oh\'\x0a#.gguf' --ids" in script

"""--help of every command: options in groups, examples that can be typed, lines that fit the terminal. Wrong use says
what to write."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from jittok.cli import COMMANDS, build_parser, main


def helped(command: str, capsys: Any, monkeypatch: Any, columns: int) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit) as leave:
        main([command, "--help"] if command else ["--help"])
    assert leave.value.code == 0
    shown: str = capsys.readouterr().out
    return shown


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_no_line_of_help_is_wider_than_the_terminal(
    command: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = helped(command, capsys, monkeypatch, columns)
    assert [line for line in shown.splitlines() if len(line) > columns] == []


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_two_examples_or_more_of_every_command_can_be_typed(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for columns in (80, 40):
        shown = helped(command, capsys, monkeypatch, columns)
        examples = shown.partition("\nexamples:\n")[2].replace(" \\\n", "")
        typed = [line for line in examples.splitlines() if not line.lstrip().startswith("#")]
        assert len(typed) >= 2
        for line in typed:
            for part in line.split(" | "):
                words = shlex.split(part.partition(" < ")[0])
                if words[0] == "jittok" and words[-1] != "--help":
                    assert build_parser().parse_args(words[1:]).command in COMMANDS
        assert any(f"jittok {command}".strip() in line for line in typed)


@pytest.mark.parametrize("command", COMMANDS)
def test_options_are_in_groups(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = helped(command, capsys, monkeypatch, 80)
    alone = shown.partition("\noptions:\n")[2].partition("\n\n")[0]
    assert alone.split() == ["-h,", "--help", "show", "this", "help", "message", "and", "exit"]
    titles = re.findall(r"^([a-z ]+):$", shown, re.M)
    assert titles[-1] == "examples"
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["encode", "--idz", "--vocab", "gpt-2"], "jittok encode: unrecognized option --idz; did you mean --ids?"),
        (["encode", "--vocb", "gpt-2"], "unrecognized option --vocb; did you mean --vocab?"),
        (["encode", "--tokenizer", "gpt-2"], "unrecognized option --tokenizer; write --vocab"),
        (["encode", "--vocab", "gpt-2", "--add-special-tokens"], "write --add-special"),
        (["encode", "--vocab", "gpt-2", "-j", "4"], "unrecognized option -j; write --threads"),
        (["decode", "--vocab", "gpt-2", "--skip-special-tokens"], "write --remove-special"),
        (["train", "a", "--vocab-size", "9"], "write --size"),
        (["corpus", "a", "--output-dir", "b"], "write --out"),
        (["encode", "--vocab", "gpt-2", "--zzzzzz"], "unrecognized option --zzzzzz (see jittok encode --help)"),
        (["encode", "-p", "a"], "found no --vocab, expected a tokenizer file, a folder with one, or a bundled name"),
        (["--vocab", "gpt-2", "encode"], "found --vocab before the command, expected jittok COMMAND --vocab ..."),
        (["decod"], "found no command 'decod', expected one of encode, decode, "),
        (["decod"], "; did you mean jittok decode?"),
        (["tokenize"], "; did you mean jittok encode?"),
        (["help"], "; did you mean jittok --help?"),
        (["count", "--vocab", "gpt-2", "--on-error", "skip"], "found 'skip', expected fail or replace"),
    ],
)
def test_wrong_use_says_what_to_write(given: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leave:
        main(given)
    assert leave.value.code == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


def test_what_looks_like_an_option_and_is_none_is_left_alone(run: Any) -> None:
    assert run("count", "--prompt=--idz")[:2] == (0, "3\n")
    assert run("count", "-p--idz")[:2] == (0, "3\n")
    assert run("count", "-p", "--idz")[2].startswith("jittok count: argument -p/--prompt: expected one argument")
    assert main(["count", "--vocab", "gpt-2", "--", "--idz"]) == 2


def test_old_names_of_options_are_taken(run: Any, tmp_path: Path) -> None:
    for name in ("--output", "--out", "-o"):
        assert run("encode", "-p", "hi", name, tmp_path / name, "--json")[0] == 0
        assert (tmp_path / name / "ids.npy").exists()
    for options in (["--errors", "replace"], ["--errors=replace"], ["--on-error", "replace"]):
        assert run("encode", "--ids", "-p", "hi", *options)[:2] == (0, "[5303]\n")
    assert run("encode", "-p", "hi", "--errors", "strict")[0] == 0


ROWS = '{"text": "hi"}\n{"text": "hi hi"}\n'


def test_jsonl_is_short_for_the_input_format_of_commands_that_encode(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text(ROWS)
    assert run("count", "--jsonl", path)[1] == "3\n"
    assert run("encode", "--ids", "--jsonl", path)[1] == "[5303]\n[5303, 23105]\n"
    pytest.importorskip("pyarrow")
    pytest.importorskip("filelock")
    assert "2 documents" in run("corpus", "--jsonl", path, "--out", tmp_path / "shards")[1]


def test_jsonl_is_short_for_the_input_format_of_other_commands(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.txt"
    path.write_text(ROWS)
    assert main(["train", str(path), "--jsonl", "--save-words", str(tmp_path / "words.tsv")]) == 0
    assert "2 documents" in capfd.readouterr().out
    assert main(["compare", "gpt-2", "gpt-2", "--jsonl", "--corpus", str(path)]) == 0
    assert main(["train", "--words", str(tmp_path / "words.tsv"), "--jsonl", "--size", "300", "--out", "x.json"]) == 2
    assert "found --jsonl and --words" in capfd.readouterr().err


def test_ids_are_decoded_from_arguments(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for given in (
        ["15496", "11", "995"],
        ["15496,", "11,995"],
        ["15496,11,995"],
        ["[15496, 11, 995]"],
        ["15496 11 995"],
    ):
        assert run("decode", *given)[:2] == (0, "Hello, world")
    assert run("decode", "99999999")[2] == "jittok decode: ID: token 99999999: expected 0 <= id < 50257\n"
    assert run("decode", "15496", "x")[0] == 2
    monkeypatch.chdir(tmp_path)
    (tmp_path / "11").write_text("995")
    assert run("decode", "11")[1] == " world"  # a file of this name


def test_a_text_is_read_from_an_argument_and_a_misspelt_file_is_not(run: Any) -> None:
    status, out, err = run("count", "Hello, world")
    assert (status, out) == (0, "3\n")
    assert err == "count: no such file: encoding the argument as text (use -p TEXT to say so)\n"
    assert run("encode", "--ids", "What is this?")[1] == "[2061, 318, 428, 30]\n"
    for given, says in (
        (["Hello"], "(for a text: -p Hello)"),
        (["Hello", "world"], "(for a text: -p 'Hello world')"),
        (["my file.txt"], "(for a text: -p 'my file.txt')"),
        (["folder/my file"], "(for a text: -p 'folder/my file')"),
        (["Hello, world", "-"], "(for a text: -p TEXT)"),
    ):
        status, _, err = run("count", *given)
        assert status == 2
        assert f"{given[0]}: found no such file or directory" in err
        assert says in err
    assert "found TEXT and --lines" in run("count", "Hello, world", "--lines")[2]


def test_prose_in_folders_is_read_by_commands_that_look_at_texts(run: Any, tmp_path: Path) -> None:
    for name in ("a.md", "b.rst", "c.txt", "d.png"):
        (tmp_path / name).write_text("hi")
    assert run("count", "--json", tmp_path)[1].startswith('{"tokens": 3,')
    assert main(["compare", "gpt-2", "gpt-2", "--corpus", str(tmp_path)]) == 0

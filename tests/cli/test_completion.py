"""Scripts of completion, run by the shells themselves; the manual page."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jittok.cli import COMMANDS, build_parser, main
from jittok.cli.machine.completion import commands_of

ROOT = Path(__file__).resolve().parents[2]
BASH = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _jittok; printf "%s\\n" "${COMPREPLY[@]}"'
SHELLS = ("bash", "zsh", "fish")


def script(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["completion", shell]) == 0
    path = tmp_path / f"jittok.{shell}"
    path.write_text(capsys.readouterr().out, "utf-8")
    return path


def run(*command: str, cwd: Path) -> list[str]:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_takes_its_script(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = script(shell, tmp_path, capsys)
    text = path.read_text("utf-8")
    assert all(command in text for command in COMMANDS)
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    assert run(shell, "-n", str(path), cwd=tmp_path) == []


@pytest.mark.process
def test_bash_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    path = script("bash", tmp_path, capsys)
    (tmp_path / "data").mkdir()
    (tmp_path / "text.txt").touch()

    def completed(*words: str) -> list[str]:
        return run("bash", "-c", BASH, "bash", str(path), "jittok", *words, cwd=tmp_path)

    assert completed("enc") == ["encode"]
    assert completed("encode", "--vocab", "gpt") == ["gpt-2"]
    assert completed("encode", "--add") == ["--add-special"]
    assert completed("encode", "te") == ["text.txt"]
    assert completed("convert", "--to", "t") == ["tokenizer.json", "tiktoken"]
    assert completed("cache", "w") == ["warm"]
    assert completed("corpus", "--out", "") == ["data"]


@pytest.mark.process
def test_fish_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("fish") is None:
        pytest.skip("no fish here")
    path = script("fish", tmp_path, capsys)

    def completed(line: str) -> list[str]:
        found = run("fish", "--no-config", "-c", f"source {path}; complete -C {line!r}", cwd=tmp_path)
        return [each.split("\t")[0] for each in found]

    assert completed("jittok enc") == ["encode"]
    assert "gpt-2" in completed("jittok encode --vocab gp")
    assert completed("jittok convert --to g") == ["gguf"]


def test_every_option_is_completed() -> None:
    commands = {command.name: command for command in commands_of(build_parser())}
    assert set(commands) == set(COMMANDS)
    names = {name for each in commands["corpus"].arguments for name in each.names}
    assert {"--vocab", "--out", "-o", "--help"} <= names
    takes = {name: each.takes for each in commands["encode"].arguments for name in each.names}
    assert takes["--vocab"] == "vocab"
    assert takes["--json"] == ""
    assert takes["--on-error"] == "fail replace"
    assert takes["--input-format"].split() == ["txt", "jsonl", "parquet", "arrow"]
    assert takes["--out"] == "folder"


def test_the_manual_page_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    import man_page

    monkeypatch.setenv("COLUMNS", "80")
    written: Any = (ROOT / "docs" / "jittok.1").read_text("utf-8")
    assert written == man_page.page(), "python tools/man_page.py writes it"

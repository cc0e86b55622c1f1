"""A run of the command line in this process."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from jittok.cli import main


@pytest.fixture
def folder_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """folder_named(name, text, word): the new working directory of this name. It holds NAME.txt with the text and
    NAME.json, a small tokenizer with the words "the" and `word`."""

    def make(name: str, text: str, word: str) -> Path:
        folder = tmp_path / name
        try:
            folder.mkdir()
        except OSError:
            pytest.skip("no such names here")
        (folder / f"{name}.txt").write_text(text)
        small = {"model": {"type": "WordLevel", "vocab": {"?": 0, "the": 1, word: 2}, "unk_token": "?"},
                 "pre_tokenizer": {"type": "WhitespaceSplit"}}  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps(small))
        monkeypatch.chdir(folder)
        return folder

    return make


@pytest.fixture
def run(capfdbinary: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    def go(*arguments: object, stdin: bytes | None = b"") -> tuple[int, str, str]:
        given = None if stdin is None else io.TextIOWrapper(io.BytesIO(stdin))
        monkeypatch.setattr("sys.stdin", given)
        try:
            status = main([*map(str, arguments), "--vocab", "gpt-2"])
        except SystemExit as leave:
            status = leave.code if isinstance(leave.code, int) else 1
        out, err = capfdbinary.readouterr()
        assert err.count(b"\n") <= 1
        return status, out.decode(), err.decode()

    return go

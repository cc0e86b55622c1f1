"""A run of the command line in this process."""

from __future__ import annotations

import io
from typing import Any

import pytest

from jittok.cli import main


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

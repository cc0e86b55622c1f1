"""The line of progress fits the terminal, and what matters most stays."""

from __future__ import annotations

import io

import pytest

from jittok.corpus import progress
from jittok.corpus.progress import Progress, ProgressLine

LARGE = Progress(123_456_789, 98_765_432_109, 5, 5 << 40, 9 << 40, 1.0, 123.4e6, 45.67e6, 123_456.0)


def test_a_line_is_never_wider_than_it_may_be() -> None:
    for width in range(1, 120):
        assert len(LARGE.line(width)) <= width
    assert len(LARGE.line()) > 80
    assert LARGE.line(40).startswith(" 56 %  ")
    assert LARGE.line(10) == " 56 %"
    assert "left" in LARGE.line(60)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [80, 40])
def test_the_line_leaves_a_column_of_the_terminal_free(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(progress, "SECONDS_BEFORE_FIRST", 0.0)
    stream = Terminal()
    line = ProgressLine(stream)
    line(LARGE)
    shown = [each for each in stream.getvalue().split("\r") if each]
    assert shown
    assert max(map(len, shown)) < columns

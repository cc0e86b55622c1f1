"""The line of progress fits the terminal, and what matters most stays."""

from __future__ import annotations

import io

import pytest

from jittok.common.display.progress import Line, Progress

LARGE = Progress("corpus", 5 << 40, 9 << 40, "bytes", 1e5, 123_456_789, 98_765_432_109, 5 << 40)


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
    stream = Terminal()
    line = Line(stream, patience=0)
    line(LARGE)
    shown = [each for each in stream.getvalue().split("\r") if each]
    assert shown
    assert max(map(len, shown)) < columns

"""Plain data in, text for a terminal out. Colour only where `rich` is installed and the stream is a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO


def visible(piece: bytes) -> str:
    """A piece as one line of text: control characters and bytes that are no UTF-8 are escaped."""
    shown = piece.decode("utf-8", "backslashreplace").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def table(title: str, rows: Sequence[tuple[str, object]]) -> str:
    """Names and values in two columns under a title."""
    width = max((len(name) for name, _ in rows), default=0)
    lines = [title, *(f"  {name:<{width}}  {value}".rstrip() for name, value in rows)]
    return "\n".join(lines)


def print_table(title: str, rows: Sequence[tuple[str, object]], stream: IO[str]) -> None:
    """`table` to a stream, in colour where that is possible."""
    if stream.isatty():
        try:
            from rich.console import Console
            from rich.table import Table
        except ImportError:
            pass
        else:
            grid = Table(title=title, title_justify="left", show_header=False, box=None)
            grid.add_column(style="cyan")
            grid.add_column(overflow="fold")
            for name, value in rows:
                grid.add_row(name, str(value).replace("[", "\\["))
            Console(file=stream).print(grid)
            return
    stream.write(table(title, rows) + "\n")

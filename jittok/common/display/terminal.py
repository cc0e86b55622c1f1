"""Plain data in, text for a terminal out. Color only where `rich` is installed and the stream is a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple

from jittok.common.display.characters import readable

COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters, and characters that change the direction of the text after them. Line feeds and tabs are not
among them."""


def harmless(text: str) -> str:
    """A text for people, with control characters escaped. Names of files and tokens may hold commands to a terminal."""
    return COMMANDS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def harmless_json(text: str) -> str:
    """The same for JSON, with JSON's own escapes. The parsed data is the same."""
    return COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_name(name: str) -> str:
    """The name of a file as part of a line. Line ends and tabs are escaped too, so the name cannot add lines."""
    return harmless(name.replace("\n", "\\n").replace("\t", "\\t"))


def visible(piece: bytes) -> str:
    """A piece as one line of text: control characters and bytes that are invalid UTF-8 are escaped."""
    shown = piece.decode("utf-8", "backslashreplace").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def table(title: str, rows: Sequence[tuple[str, object]]) -> str:
    """Names and values in two columns under a title."""
    width = max((len(name) for name, _ in rows), default=0)
    lines = [title, *(f"  {name:<{width}}  {value}".rstrip() for name, value in rows)]
    return "\n".join(lines)


def print_notes(title: str, notes: Sequence[str], stream: IO[str]) -> None:
    """Write a title and one line per note to a stream."""
    stream.write(harmless("\n".join([title, *(f"  - {note}" for note in notes)])) + "\n")


def print_table(title: str, rows: Sequence[tuple[str, object]], stream: IO[str]) -> None:
    """`table` to a stream, in color where that is possible."""
    if stream.isatty():
        try:
            from rich.console import Console
            from rich.table import Table
            from rich.text import Text
        except ImportError:
            pass
        else:  # Text: rich would parse brackets in a str as markup
            grid = Table(title=Text(harmless(title)), title_justify="left", show_header=False, box=None)
            grid.add_column(style="cyan")
            grid.add_column(overflow="fold")
            for name, value in rows:
                grid.add_row(Text(harmless(name)), Text(harmless(str(value))))
            Console(file=stream).print(grid)
            return
    stream.write(harmless(table(title, rows)) + "\n")


WIDEST = 60
"""Limit of characters of a cell."""
GOOD, BAD, FAINT, TITLE = "bold green", "dim", "dim", "bold"


class StyledText(NamedTuple):
    """A run of a line; `style` is one of rich's."""

    text: str
    style: str = ""


Line = list[StyledText]


def uncoloured(shown: Iterator[Line]) -> str:
    """Lines without their styles."""
    return "\n".join(harmless("".join(run.text for run in line)).rstrip() for line in shown)


def print_lines(shown: Iterator[Line], stream: IO[str], colour: bool | None = None) -> None:
    """Write lines to a stream, in color if it is a terminal (or `colour` is True) and rich is installed."""
    if stream.isatty() if colour is None else colour:
        try:
            from rich.console import Console
            from rich.text import Text
        except ImportError:
            pass
        else:
            console = Console(file=stream, force_terminal=True, soft_wrap=True, highlight=False)
            for line in shown:
                console.print(Text.assemble(*((harmless(run.text), run.style) for run in line)))
            return
    for line in shown:
        stream.write(harmless("".join(run.text for run in line)).rstrip() + "\n")


def columns(rows: list[list[StyledText]]) -> Iterator[Line]:
    """Rows of cells as lines, each column as wide as its widest cell."""
    widths = [max(len(row[k].text) for row in rows if k < len(row)) for k in range(max(map(len, rows)))]
    for row in rows:
        line: Line = [StyledText("  ")]
        for cell, width in zip(row, widths, strict=False):
            line += [cell, StyledText(" " * (width - len(cell.text) + 2))]
        yield line


def clipped(text: str | None) -> str:
    """A text for a cell: control characters and white space visible, at most WIDEST characters."""
    if text is None:
        return ""
    shown = readable(text.encode("utf-8", "surrogateescape"))
    return shown if len(shown) <= WIDEST else shown[: WIDEST - 1] + "…"

"""Tables as HTML, bounded: plain cells in, markup out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from jittok.common.display.colours import background
from jittok.common.display.tokens import rest

ROWS = 40
"""Limit of rows of a table."""
LINE = "1px solid #8885"
CELL = f"padding:1px 7px;text-align:left;border:{LINE}"
TABLE = "border-collapse:collapse;margin:4px 0"


class Markup(str):
    """HTML that is already escaped."""

    __slots__ = ()


class TableCell(NamedTuple):
    """A cell of a picture: `inside` is HTML."""

    inside: str
    columns: int = 1
    style: str = ""
    title: str = ""


def plain(value: object) -> str:
    """A value as HTML."""
    if isinstance(value, Markup):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return escape(str(value))


def table(head: Sequence[str], rows: Iterable[Sequence[object]], count: int, more: str = "rows") -> str:
    """A table of the first ROWS rows of `count`; without a head if all its names are empty."""
    lines = []
    for number, row in enumerate(rows):
        if number == ROWS:
            break
        lines.append("<tr>" + "".join(f'<td style="{CELL}">{plain(value)}</td>' for value in row) + "</tr>")
    names = "".join(f'<th style="{CELL}">{escape(name)}</th>' for name in head)
    top = f"<thead><tr>{names}</tr></thead>" if any(head) else ""
    return f'<table style="{TABLE}">{top}<tbody>{"".join(lines)}</tbody></table>' + rest(count - ROWS, more)


def grid(rows: Iterable[Sequence[TableCell]]) -> str:
    """A picture made of cells of several columns."""
    lines = []
    for row in rows:
        cells = []
        for cell in row:
            span = f' colspan="{cell.columns}"' if cell.columns > 1 else ""
            title = f' title="{escape(cell.title)}"' if cell.title else ""
            cells.append(f'<td{span}{title} style="padding:1px 4px;text-align:center;{cell.style}">{cell.inside}</td>')
        lines.append("<tr>" + "".join(cells) + "</tr>")
    return f'<table style="{TABLE}"><tbody>{"".join(lines)}</tbody></table>'


def box(hue: int, opacity: float = 0.25) -> str:
    """The style of a cell with a border and a background."""
    return f"border:{LINE};{background(hue, opacity)}"

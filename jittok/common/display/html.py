"""Plain data in, HTML out: inline styles, no script, readable in light and in dark, bounded for long inputs."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from jittok.common.display.tables import Markup, table
from jittok.common.display.tokens import chips, fold

Record = dict[str, Any]


def token_rows(rows: Sequence[Sequence[Record]], lengths: Sequence[int], row_count: int, id_count: int) -> str:
    """A table of the first tokens of the first rows.

    `rows`: tokens to show, perhaps cut, as `tokens.chips` takes them; `lengths`: how many tokens each row really has.
    """
    lines = []
    for number, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        more = f" … {length - len(row)} more" if length > len(row) else ""
        lines.append((number, length, Markup(f'<div style="text-align:left">{chips(row)}{more}</div>')))
    shown = f", the first {len(rows)} shown" if row_count > len(rows) else ""
    return f"<div>{row_count} rows, {id_count} ids{shown}</div>" + table(
        ("row", "ids", "first tokens"), lines, len(lines)
    )


def aligned(tokens: Sequence[Record], title: str) -> str:
    """The tokens of one text, with their spans."""
    return f'<div style="max-width:100%;overflow-x:auto"><div>{escape(title)}</div>{chips(tokens)}</div>'


def facts(title: str, rows: Sequence[tuple[str, object]], tokens: Sequence[Record] = ()) -> str:
    """Names and values under a title, with special tokens folded."""
    folded = fold(f"{len(tokens)} special token{'' if len(tokens) == 1 else 's'}", chips(tokens)) if tokens else ""
    return f"<div><b>{escape(title)}</b></div>{table(('', ''), rows, len(rows))}{folded}"

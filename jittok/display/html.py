"""Plain data in, HTML out: inline styles, no script, readable in light and in dark, bounded for long inputs."""

from __future__ import annotations

import html
from collections.abc import Sequence

CELL = "text-align:right;padding:2px 8px;font-variant-numeric:tabular-nums"


def token_rows(rows: Sequence[Sequence[int]], lengths: Sequence[int], row_count: int, id_count: int) -> str:
    """A table of the first ids of the first rows.

    `rows`: ids to show, perhaps cut; `lengths`: how many ids each of them really has.
    """
    lines = []
    for number, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        shown = html.escape(" ".join(map(str, row))) + (f" … {length - len(row)} more" if length > len(row) else "")
        lines.append(
            f'<tr><td style="{CELL}">{number}</td><td style="{CELL}">{length}</td>'
            f'<td style="text-align:left;padding:2px 8px">{shown}</td></tr>'
        )
    more = f", the first {len(rows)} shown" if row_count > len(rows) else ""
    caption = f'<caption style="text-align:left">{row_count} rows, {id_count} ids{more}</caption>'
    head = '<tr><th>row</th><th>ids</th><th style="text-align:left">first ids</th></tr>'
    return f"<table>{caption}<thead>{head}</thead><tbody>{''.join(lines)}</tbody></table>"


def facts(title: str, rows: Sequence[tuple[str, object]]) -> str:
    """A two-column table of names and values under a title."""
    cells = "".join(
        f'<tr><td style="text-align:left;padding:2px 8px">{html.escape(name)}</td>'
        f'<td style="text-align:left;padding:2px 8px">{html.escape(str(value))}</td></tr>'
        for name, value in rows
    )
    return f'<table><caption style="text-align:left">{html.escape(title)}</caption><tbody>{cells}</tbody></table>'

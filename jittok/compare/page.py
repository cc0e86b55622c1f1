"""A comparison as HTML: inline styles, no script, readable in light and in dark."""

from __future__ import annotations

from html import escape
from typing import Any

from jittok.common.display.tables import Markup, table

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 64rem; padding: 0 1rem;
  background: Canvas; color: CanvasText; }
table { border-collapse: collapse; }
td, th { vertical-align: top; }
"""
SHOWN = 20
LONGEST_SHOWN = 60
"""Limit of characters of a text, or tokens of a difference, that are shown."""


def whole(title: str, inside: str) -> str:
    """A page."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>{inside}</body></html>\n"
    )


def comparison(found: dict[str, Any]) -> str:
    """A `Comparison` as HTML."""
    share = f"{found['differing']} of {found['documents']} documents differ"
    sides = [
        (name, found[key]["name"], found[key]["answers"], found[key]["type"], found[key]["tokens"],
         f"{found[key]['tokens_per_byte']:.4f}")
        for name, key in (("A", "a"), ("B", "b"))
    ]  # fmt: skip
    parts = [
        f"<div><b>{share}</b>, {found['bytes']} bytes, {found['partings']} differences</div>",
        table(("", "tokenizer", "answers as", "type", "tokens", "a byte"), sides, len(sides)),
    ]
    if found["partings"]:
        parts.append('<div style="display:flex;flex-wrap:wrap;gap:2em">')
        parts += [_bars("cause", found["causes"]), _bars("script", found["scripts"]), "</div>"]
        shown = found["frequent"][:SHOWN]
        rows = [
            (row["count"], _code(row["text"]), _tokens(row["a"]), _tokens(row["b"]), row["cause"], row["script"],
             f"{row['where']}, byte {row['byte']}")
            for row in shown
        ]  # fmt: skip
        head = ("count", "text", "A", "B", "cause", "script", "first in")
        parts.append(f'<div style="max-width:100%;overflow-x:auto">{table(head, rows, len(rows))}</div>')
    parts += [f"<div>{escape(note)}</div>" for note in found["notes"]]
    return "".join(parts)


def _bars(title: str, counts: dict[str, int]) -> str:
    """Counts with a bar each."""
    most = max(counts.values(), default=1)
    rows = [
        (
            name,
            count,
            Markup(f'<div style="background:#7aa6;height:.8em;width:{max(8 * count / most, 0.1):.1f}em"></div>'),
        )
        for name, count in list(counts.items())[:12]
    ]
    return f"<div>{table((title, 'differences', ''), rows, len(rows))}</div>"


def _code(text: str) -> Markup:
    short = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
    return Markup(f'<code style="white-space:pre-wrap">{escape(repr(short)[1:-1])}</code>')


def _tokens(texts: list[str]) -> Markup:
    """Tokens in boxes, with spaces visible."""
    box = '<span style="background:{};border-radius:.2em;white-space:pre;padding:0 .15em;margin-right:.15em">{}</span>'
    colours = ("#7aa4", "#d9a4")
    shown = [box.format(colours[k % 2], escape(text) or "∅") for k, text in enumerate(texts[:LONGEST_SHOWN])]
    more = f"… {len(texts) - LONGEST_SHOWN} more" if len(texts) > LONGEST_SHOWN else ""
    return Markup(f'<div style="text-align:left;font-family:monospace">{"".join(shown)}{more}</div>')


def machines(found: dict[str, Any], verdict: str) -> str:
    """`Machines` as HTML."""
    rows = [(part["name"], part["verdict"], part["says"], _lines(part["examples"])) for part in found["parts"]]
    parts = [
        f"<div>A <b>{escape(found['a'])}</b>, B <b>{escape(found['b'])}</b></div>",
        table(("part", "verdict", "what it rests on", "examples"), rows, len(rows)),
        f"<div><b>{escape(verdict)}</b></div>",
    ]
    if found["witness"] is not None:
        sides = [(name, _tokens(found["witness"][key])) for name, key in (("A", "a"), ("B", "b"))]
        parts.append(table(("", ""), sides, 2))
    parts += [f"<div>tried: {escape(text)}</div>" for text in found["tried"]]
    return "".join(parts)


def _lines(texts: list[str]) -> Markup:
    return Markup("<br>".join(f"<code>{escape(text)}</code>" for text in texts))

"""Tokens in color, as HTML: plain records in, markup out. Readable without any style as well."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from jittok.common.display.characters import parts, shares
from jittok.common.display.colours import alternate, background

SHOWN, FOLDED = 100, 200
"""Limits of tokens that are shown at once, and that can be unfolded."""
SPECIAL = {"control", "unknown", "user_defined"}
CHIP = "color:inherit;border-radius:3px;padding:1px 2px;white-space:pre-wrap"
CLOSE = "margin:1px -1px"
"""A space between tokens shows where they end, even if a site removes all styles."""
DIM = "opacity:.55"

Record = dict[str, Any]


def chips(tokens: Sequence[Record]) -> str:
    """Colored tokens, equal colors never side by side; long rows are folded.

    A token has `id` and, where known, `bytes` (hex digits), `text`, `attributes`, `score`, `rank`, `span`,
    `source` (the bytes of the text, shown in place of its own). Without bytes it shows its id.
    """
    seen = tokens[: SHOWN + FOLDED]
    told = shares([_raw(token) or b"" for token in seen])
    spans = [
        chip(token, hue, share)
        for token, hue, share in zip(seen, alternate([token["id"] for token in seen]), told, strict=True)
    ]
    open_, more = " ".join(spans[:SHOWN]), spans[SHOWN:]
    if more:
        open_ += fold(f"{len(tokens) - SHOWN} more", " ".join(more) + rest(len(tokens) - len(seen), "tokens"))
    return f'<div style="line-height:1.9">{open_}</div>'


def chip(token: Record, hue: int, share: str = "") -> str:
    """One token. share: which bytes it holds of a character that it holds only in part."""
    known = _raw(token)
    raw = str(token["id"]).encode() if known is None else known
    special = SPECIAL & set(token.get("attributes", ()))
    style = f"{CHIP};{CLOSE};{background(hue)}"
    if special:
        style += ";border:1px solid"
    elif share or "byte" in token.get("attributes", ()):
        style += ";border-bottom:2px dotted"
    end = "<br>" if raw.endswith(b"\n") and not special else ""
    inside = f'<code style="{style}" title="{escape(caption(token, share))}">{marked(raw) or "∅"}</code>'
    return f"<b>{inside}</b>{end}" if special else inside + end


def _raw(token: Record) -> bytes | None:
    digits = token.get("source", token.get("bytes"))
    return None if digits is None else bytes.fromhex(digits)


def caption(token: Record, share: str = "") -> str:
    """The tooltip of a token."""
    lines = [f"id {token['id']}"]
    if token.get("text") is not None:
        lines.append(f"token {token['text']!r}")
    if "bytes" in token:
        lines.append(f"bytes {token['bytes'] or 'none'}")
    if token.get("rank") is not None:
        lines.append(f"merge rank {token['rank']}")
    elif token.get("score"):
        lines.append(f"score {token['score']:.6g}")
    if token.get("attributes"):
        lines.append(", ".join(token["attributes"]))
    if token.get("span"):
        lines.append("bytes {} to {} of the text".format(*token["span"]))
    return "\n".join([*lines, *([share] if share else [])])


def marked(raw: bytes) -> str:
    """Bytes as HTML: white space as dim marks, lone bytes as hex digits."""
    return "".join(
        f'<span style="{DIM}">{escape(text)}</span>' if kind == "space" else escape(text) for kind, text in parts(raw)
    )


def fold(title: str, inside: str, *, shown: bool = False) -> str:
    """Something that can be unfolded, without a script."""
    opened = " open" if shown else ""
    head = f'<summary style="cursor:pointer">{escape(title)}</summary>'
    return f'<details{opened}>{head}<div style="margin-left:1em">{inside}</div></details>'


def rest(count: int, what: str) -> str:
    """A note that some are not shown."""
    return f'<div style="{DIM}">… and {count} {what} more</div>' if count > 0 else ""


def text_chip(text: str | bytes, hue: int = 0, title: str = "") -> str:
    """A colored run of text."""
    raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    style = f"{CHIP};{background(hue)}"
    return f'<code style="{style}" title="{escape(title)}">{marked(raw) or "∅"}</code>'


def text_chips(texts: Sequence[str], titles: Sequence[str] = ()) -> str:
    """Colored runs side by side."""
    said = titles or [""] * len(texts)
    chips = [text_chip(text, k % 7, title) for k, (text, title) in enumerate(zip(texts, said, strict=True))]
    return " ".join(chips).replace(CHIP, f"{CHIP};{CLOSE}")


def marked_text(text: str) -> str:
    """A text as HTML, as `marked`."""
    return marked(text.encode("utf-8", "surrogateescape"))

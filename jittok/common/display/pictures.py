"""Pictures of stages, made of tables alone: they need no script, no style sheet and no image."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any

from jittok.common.display.colours import background
from jittok.common.display.tables import LINE, TableCell, grid
from jittok.common.display.tokens import CHIP, CLOSE, DIM, marked, rest

Record = dict[str, Any]
WIDEST = 48
"""Limit of columns of a picture; longer ones are shown as tables only."""
STEPS = 40
"""Limit of steps of a queue that are drawn."""
BARS = 24
"""Limit of rows of bars that are drawn for a lattice."""
STRONG, WEAK = 0.5, 0.12


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


def merges(symbols: Record, pops: Sequence[Record]) -> str:
    """A queue as a pyramid: a row per step, each symbol as wide as the symbols it was merged from. "" if it is too
    wide."""
    first = symbols["symbols"]
    count = len(first)
    if count > WIDEST:
        return ""
    rows = [
        [
            TableCell("start", style=DIM),
            *(TableCell(_symbol(text), style=_box(0), title=f"symbol {i}") for i, text in enumerate(first)),
        ]
    ]
    for pop in pops[:STEPS]:
        value = f"rank {pop['rank']}" if "rank" in pop else f"score {pop['score']:g}"
        what = f"pair ({pop['left']}, {pop['right']}), {value}"
        head = TableCell(f"{pop['step']} · {escape(value)}", style="white-space:nowrap;text-align:left", title=what)
        if pop["stale"] or pop["symbols"] is None:
            state = "stale" if pop["stale"] else "merged"
            note = f"{state}: ({pop['left']}, {pop['right']}) {_symbol(pop['text'])}"
            rows.append([head, TableCell(note, count, f"text-align:left;{DIM}", what)])
            continue
        cells, i = [head], 0
        while i >= 0:
            symbol = pop["symbols"][i]
            end = symbol["next"] if symbol["next"] >= 0 else count
            new = i == pop["left"]
            cells.append(
                TableCell(
                    _symbol(symbol["text"]),
                    end - i,
                    _box(2, STRONG) + ";font-weight:bold" if new else _box(0, WEAK),
                    f"symbol {i}: n {symbol['n']}, prev {symbol['prev']}, next {symbol['next']}",
                )
            )
            i = symbol["next"]
        rows.append(cells)
    return grid(rows) + rest(len(pops) - STEPS, "steps")


def lattice(rows: Sequence[Record]) -> str:
    """The bars of all challengers over the characters of a normalized text; the best path is the first row.

    "" if the text is too long for a picture.
    """
    positions = sorted(
        {0, *(row["position"] for row in rows), *(r["input_offset"] for row in rows for r in row["challengers"])}
    )
    if len(positions) - 1 > WIDEST or len(positions) < 2:
        return ""
    column = {position: k for k, position in enumerate(positions)}
    path: list[Any] = []
    others: list[Any] = []
    for row in rows:
        for rival in row["challengers"]:
            best = rival["won"] and (rival["token_id"], rival["input_offset"]) == (row["token_id"], row["input_offset"])
            bar = (column[rival["input_offset"]], column[row["position"]], rival, best, row["on_path"] and best)
            (path if row["on_path"] and best else others).append(bar)
    lines = [_packed_row(path, len(positions) - 1, "best path")]
    waiting = sorted(others, key=lambda bar: (bar[1] - bar[0], bar[0]))
    while waiting and len(lines) < BARS:
        line: list[Any] = []
        for bar in list(waiting):
            if all(bar[1] <= other[0] or bar[0] >= other[1] for other in line):
                line.append(bar)
                waiting.remove(bar)
        lines.append(_packed_row(sorted(line, key=lambda bar: bar[0]), len(positions) - 1, ""))
    ruler = [
        TableCell("byte", style=DIM),
        *(TableCell(str(position), style=f"{DIM};text-align:left") for position in positions[:-1]),
    ]
    return grid([ruler, *lines]) + rest(len(waiting), "challengers")


def _packed_row(bars: Sequence[Any], count: int, name: str) -> list[TableCell]:
    cells, at = [TableCell(name, style=f"white-space:nowrap;{DIM}")], 0
    for start, stop, rival, best, on_path in bars:
        if start > at:
            cells.append(TableCell("", start - at))
        style = _box(2, STRONG) + ";font-weight:bold" if on_path else _box(0) if best else _box(5, WEAK)
        title = f"id {rival['token_id']}, score {rival['score']:.6g}, sum {rival['score_sum']:.6f}, " + (
            "on the best path"
            if on_path
            else "best way to its end"
            if best
            else "won for a while"
            if rival["won"]
            else "lost"
        )
        score = f'<br><span style="font-size:80%;font-weight:normal">{rival["score_sum"]:.2f}</span>'
        cells.append(TableCell(_symbol(rival["text"]) + score, stop - start, style, title))
        at = stop
    if at < count:
        cells.append(TableCell("", count - at))
    return cells


def matches(rows: Sequence[Record], word: str) -> str:
    """The offsets of a word where a token was searched for, each as wide as the token found. "" if the word is too
    long."""
    raw = word.encode()
    starts = [k for k, byte in enumerate(raw) if byte & 0xC0 != 0x80]
    positions = sorted({*starts, len(raw), *(row["start"] for row in rows), *(row["stop"] or 0 for row in rows)})
    if len(positions) - 1 > WIDEST:
        return ""
    column = {position: k for k, position in enumerate(positions)}
    ruler = [
        TableCell("byte", style=DIM),
        *(
            TableCell(f'{marked(raw[i:j])}<br><span style="{DIM};font-size:80%">{i}</span>', style=_box(0, WEAK))
            for i, j in pairwise(positions)
        ),
    ]
    lines = [ruler]
    for row in rows:
        start = column[row["start"]]
        cells = [TableCell(f"from {row['start']}", style=f"white-space:nowrap;{DIM}")]
        if start:
            cells.append(TableCell("", start))
        tried = f"{len(row['tried'])} tried, ends {row['tried']}"
        if row["token_id"] is None or row["stop"] is None:
            cells.append(TableCell("no token", len(positions) - 1 - start, _box(3, STRONG), tried))
        else:
            stop = column[row["stop"]]
            inside = f'{_symbol(row["text"])}<br><span style="font-size:80%">{row["token_id"]}</span>'
            cells.append(TableCell(inside, stop - start, _box(3, WEAK) if row["unk"] else _box(2, STRONG), tried))
            if stop < len(positions) - 1:
                cells.append(TableCell("", len(positions) - 1 - stop))
        lines.append(cells)
    return grid(lines)


def _symbol(text: str) -> str:
    return marked(text.encode("utf-8", "surrogateescape"))


def _box(hue: int, opacity: float = 0.25) -> str:
    return f"border:{LINE};{background(hue, opacity)}"

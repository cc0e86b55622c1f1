"""Stages "lattice" (Unigram) and "path" (PLaMo): the paths that were compared at each offset, and the best one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jittok.common.display.tables import ROWS, Markup, TableCell, box, grid, table
from jittok.common.display.terminal import FAINT, GOOD, StyledText, clipped
from jittok.common.display.tokens import DIM, fold, marked_text, rest, text_chip
from jittok.trace.recorder import Record
from jittok.trace.stages.base import PICTURES, Records, StageKind, grouped

COLUMNS = 48
"""Limit of columns of a picture; longer texts are shown as tables only."""
BARS = 24
"""Limit of rows of bars that are drawn."""
STRONG, WEAK = 0.5, 0.12


class LatticeStage(StageKind):
    """The best path to each offset."""

    name = "lattice"
    about = "all tokens that fit, and the best path to each offset"

    def html(self, records: Records, context: Record) -> str:
        """A picture and a table."""
        out: list[str] = []
        for rows in grouped(records, "word" if "word" in records[0] else "fragment").values():
            if sum(map(len, out)) > PICTURES:
                break
            out.append(_bars(rows))
            lines = [
                (
                    row["position"],
                    Markup(text_chip(row["text"], 2 if row["on_path"] else 0)),
                    row["token_id"],
                    row["input_offset"],
                    f"{row['score_sum']:.6f}",
                    len(row["challengers"]),
                    "yes" if row["on_path"] else "",
                )
                for row in rows[:ROWS]
            ]
            head = ("position", "text", "token_id", "input_offset", "score_sum", "challengers", "on the best path")
            out.append(
                fold(
                    f"{len(rows)} positions that can be reached",
                    table(head, lines, len(rows), "positions"),
                    shown=not out[-1],
                )
            )
        return "".join(out)

    def row(self, record: Record, context: Record) -> list[StyledText]:
        """A line of a terminal."""
        rivals = [
            f"{clipped(rival['text'])} {rival['score_sum']:.3f}{'' if rival['won'] else ' lost'}"
            for rival in record["challengers"][:6]
        ]
        style = GOOD if record["on_path"] else ""
        return [
            StyledText(("▶ " if record["on_path"] else "  ") + str(record["position"]), style),
            StyledText(clipped(record["text"]), style),
            StyledText(f"id {record['token_id']}"),
            StyledText(f"from {record['input_offset']}"),
            StyledText(f"{record['score_sum']:.6f}"),
            StyledText("; ".join(rivals), FAINT),
        ]

    def sentence(self, record: Record, regexes: Sequence[str]) -> str:
        """What happened."""
        if not record["challengers"]:
            return "position 0: the start, score 0"
        won, count = f"{record['text']!r} (id {record['token_id']})", len(record["challengers"])
        best = f"best of {count} is {won} from {record['input_offset']}, sum {record['score_sum']:.6f}"
        return f"position {record['position']}: {best}{', on the best path' if record['on_path'] else ''}"


def _bars(rows: Sequence[Record]) -> str:
    """The bars of all challengers over the characters of a normalized text; the best path is the first row.

    "" if the text is too long for a picture.
    """
    positions = sorted(
        {0, *(row["position"] for row in rows), *(r["input_offset"] for row in rows for r in row["challengers"])}
    )
    if len(positions) - 1 > COLUMNS or len(positions) < 2:
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
        style = box(2, STRONG) + ";font-weight:bold" if on_path else box(0) if best else box(5, WEAK)
        title = f"id {rival['token_id']}, score {rival['score']:.6g}, sum {rival['score_sum']:.6f}, " + (
            "on the best path"
            if on_path
            else "best path to its end"
            if best
            else "won for a while"
            if rival["won"]
            else "lost"
        )
        score = f'<br><span style="font-size:80%;font-weight:normal">{rival["score_sum"]:.2f}</span>'
        cells.append(TableCell(marked_text(rival["text"]) + score, stop - start, style, title))
        at = stop
    if at < count:
        cells.append(TableCell("", count - at))
    return cells


class PathStage(StageKind):
    """The cheapest path from each offset to the end."""

    name = "path"
    about = "the cheapest path from each offset to the end"

    def html(self, records: Records, context: Record) -> str:
        """A picture and a table."""
        rows = [
            (
                row["position"],
                Markup(text_chip(row["text"], 2 if row["on_path"] else 0)),
                row["token_id"],
                row["length"],
                row["cost"],
                len(row["challengers"]),
                "yes" if row["on_path"] else "",
            )
            for row in records[:ROWS]
        ]
        return table(
            ("offset", "piece", "id", "code points", "cost to the end", "compared", "taken"),
            rows,
            len(records),
            "offsets",
        )

    def row(self, record: Record, context: Record) -> list[StyledText]:
        """A line of a terminal."""
        style = GOOD if record["on_path"] else ""
        return [
            StyledText(("▶ " if record["on_path"] else "  ") + str(record["position"]), style),
            StyledText(clipped(record["text"]), style),
            StyledText(f"id {record['token_id']}"),
            StyledText(f"cost {record['cost']}"),
            StyledText(f"{len(record['challengers'])} compared", FAINT),
        ]

    def sentence(self, record: Record, regexes: Sequence[str]) -> str:
        """What happened."""
        if record["token_id"] is None:
            return f"position {record['position']}: no piece"
        what = f"token {record['token_id']}" if record["token_id"] >= 0 else "bytes"
        end = ", on the cheapest path" if record["on_path"] else ""
        count, text = len(record["challengers"]), f"{record['text']!r} ({what})"
        return f"position {record['position']}: cheapest of {count} is {text}, cost {record['cost']}{end}"

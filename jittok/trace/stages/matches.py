"""Stage "matches": the longest token at each offset (WordPiece, RWKV), and what else was tried."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise

from jittok.common.display.tables import ROWS, Markup, TableCell, box, grid, table
from jittok.common.display.terminal import FAINT, GOOD, StyledText, clipped
from jittok.common.display.tokens import DIM, fold, marked, marked_text, text_chip
from jittok.trace.recorder import Record
from jittok.trace.stages.base import PICTURES, Records, StageKind, grouped
from jittok.vocab.describe import shown

COLUMNS = 48
"""Limit of columns of a picture; longer words are shown as tables only."""
STRONG, WEAK = 0.5, 0.12


def match_record(
    word: bytes, start: int, attempts: Sequence[tuple[int, int | None]], *, unknown: bool, why: str | None
) -> Record:
    """An offset of a word where a token was searched for. attempts: the ends that were tried, each with its token; the
    last one decides. unknown: the word becomes the unknown token, for the reason `why`."""
    stop, token = attempts[-1]
    return {
        "start": start, "stop": None if token is None else stop,
        "text": None if token is None else shown(word[start:stop]), "token_id": token,
        "tried": [end for end, _ in attempts], "unk": unknown, "why": why,
    }  # fmt: skip


class MatchesStage(StageKind):
    """The offsets where a token was searched for."""

    name = "matches"
    about = "the longest token at each offset"

    def html(self, records: Records, context: Record) -> str:
        """A picture and a table."""
        words = context["stages"]["words"]
        out = []
        if words:
            by_word = grouped(records, "word")
            for word in words:
                rows = by_word.get(word["word"], [])
                out.append(f"<div>{_picture(rows, word['text'])}</div>")
                if sum(map(len, out)) > PICTURES:
                    out.pop()
                    break
                out += [
                    f'<div style="{DIM}">{escape(row["why"])}</div>'
                    for row in rows
                    if row["why"] and row["token_id"] is None
                ]
        positions = [
            [
                *([row["word"]] if words else []),
                row["start"],
                row["stop"],
                None if row["text"] is None else Markup(text_chip(row["text"], 2)),
                row["token_id"],
                row["why"] or f"{len(row['tried'])} tried: ends {_first_numbers(row['tried'])}",
            ]
            for row in records[:ROWS]
        ]
        head = [*(["word"] if words else []), "start", "stop", "text", "id", "tried"]
        listed = table(head, positions, len(records), "offsets")
        return "".join(out) + (fold(f"all {len(records)} offsets", listed) if out else listed)

    def row(self, record: Record, context: Record) -> list[StyledText]:
        """A line of a terminal."""
        where = f"word {record['word']} from {record['start']}" if "word" in record else f"from {record['start']}"
        tried = f"{len(record['tried'])} tried"
        if record["token_id"] is None or record["stop"] is None:
            return [
                StyledText(where, FAINT),
                StyledText("no token", "bold red"),
                StyledText(""),
                StyledText(record["why"] or ""),
            ]
        return [
            StyledText(where, FAINT),
            StyledText(clipped(record["text"]), GOOD),
            StyledText(f"id {record['token_id']}"),
            StyledText(record["why"] or tried, FAINT),
        ]

    def sentence(self, record: Record, regexes: Sequence[str]) -> str:
        """What happened."""
        if record["token_id"] is None or (record["unk"] and record["stop"] is None):
            return f"at {record['start']}: {record['why']}"
        head = f"at {record['start']}: the longest token is {record['text']!r}, id {record['token_id']}"
        return f"{head}, after {len(record['tried'])} tries" + (f" ({record['why']})" if record["why"] else "")


def _picture(rows: Sequence[Record], word: str) -> str:
    """The offsets of a word where a token was searched for, each as wide as the token found. "" if the word is too
    long."""
    raw = word.encode()
    starts = [k for k, byte in enumerate(raw) if byte & 0xC0 != 0x80]
    positions = sorted({*starts, len(raw), *(row["start"] for row in rows), *(row["stop"] or 0 for row in rows)})
    if len(positions) - 1 > COLUMNS:
        return ""
    column = {position: k for k, position in enumerate(positions)}
    ruler = [
        TableCell("byte", style=DIM),
        *(
            TableCell(f'{marked(raw[i:j])}<br><span style="{DIM};font-size:80%">{i}</span>', style=box(0, WEAK))
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
            cells.append(TableCell("no token", len(positions) - 1 - start, box(3, STRONG), tried))
        else:
            stop = column[row["stop"]]
            inside = f'{marked_text(row["text"])}<br><span style="font-size:80%">{row["token_id"]}</span>'
            cells.append(TableCell(inside, stop - start, box(3, WEAK) if row["unk"] else box(2, STRONG), tried))
            if stop < len(positions) - 1:
                cells.append(TableCell("", len(positions) - 1 - stop))
        lines.append(cells)
    return grid(lines)


def _first_numbers(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers[:12])) + (" …" if len(numbers) > 12 else "")

"""Stage "tokens": the result."""

from __future__ import annotations

from collections.abc import Sequence

from jittok.common.display.tables import ROWS, Markup, table
from jittok.common.display.terminal import FAINT, GOOD, WIDEST, StyledText, clipped
from jittok.common.display.tokens import chips, fold, text_chip
from jittok.trace.recorder import Record
from jittok.trace.stages.base import Records, StageKind


class TokensStage(StageKind):
    """The tokens, with their spans."""

    name = "tokens"
    about = "the result"

    def html(self, records: Records, context: Record) -> str:
        """A picture and a table."""
        return chips(records) + fold("as a table", token_table(records))

    def row(self, record: Record, context: Record) -> list[StyledText]:
        """A line of a terminal."""
        value = (
            f"rank {record['rank']}"
            if record.get("rank") is not None
            else f"score {record['score']:g}"
            if record["score"]
            else ""
        )
        return [
            StyledText(str(record["index"]), FAINT),
            StyledText(str(record["id"])),
            StyledText(clipped(record["piece"]), GOOD),
            StyledText(record["bytes"] if len(record["bytes"]) <= WIDEST else record["bytes"][:WIDEST] + "…"),
            StyledText("{} to {}".format(*record["span"]), FAINT),
            StyledText(value, FAINT),
            StyledText(", ".join(record["attributes"]), FAINT),
        ]

    def sentence(self, record: Record, regexes: Sequence[str]) -> str:
        """What happened."""
        start, stop = record["span"]
        return f"{record['id']} {record['piece']!r}, bytes {start} to {stop}, {' '.join(record['attributes'])}"


def token_table(records: Records) -> str:
    """The tokens as a table."""
    rows = [
        (
            row["index"],
            row["id"],
            Markup(text_chip(bytes.fromhex(row["bytes"]), row["id"] % 7)),
            row["bytes"],
            "{} to {}".format(*row["span"]),
            row["rank"] if row.get("rank") is not None else row["score"] or None,
            ", ".join(row["attributes"]),
        )
        for row in records[:ROWS]
    ]
    return table(("", "id", "piece", "bytes", "of the text", "rank or score", "type"), rows, len(records), "tokens")

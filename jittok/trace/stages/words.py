"""Stages "split" and "words": the pre-tokens, and what cut them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from jittok.common.display.tables import ROWS, Markup, table
from jittok.common.display.terminal import FAINT, GOOD, WIDEST, StyledText, clipped
from jittok.common.display.tokens import fold, rest, text_chips
from jittok.trace.recorder import Record
from jittok.trace.stages.base import MOST_SHOWN, Records, StageKind


class SplitStage(StageKind):
    """The words after each stage of a file's splitter."""

    name = "split"
    about = "the words after each stage of the file's splitter"

    def html(self, records: Records, context: Record) -> str:
        """A picture and a table."""
        rows = [(row["fragment"], row["step"], Markup(text_chips(row["words"][:MOST_SHOWN]))) for row in records[:ROWS]]
        return table(("fragment", "stage", "words"), rows, len(records), "stages")

    def row(self, record: Record, context: Record) -> list[StyledText]:
        """A line of a terminal."""
        return [
            StyledText(f"fragment {record['fragment']}", FAINT),
            StyledText(clipped(record["step"])),
            StyledText(" | ".join(map(clipped, record["words"][:WIDEST])), GOOD),
        ]

    def sentence(self, record: Record, regexes: Sequence[str]) -> str:
        """What happened."""
        return f"{record['step']} leaves {len(record['words'])} words: {' '.join(map(repr, record['words'][:20]))}"


class WordsStage(StageKind):
    """The words, and the regex that gave each its bounds."""

    name = "words"
    about = "what the regexes (or BERT's rules) cut the text into"

    def html(self, records: Records, context: Record) -> str:
        """A picture and a table."""
        regexes = context["regexes"]
        titles = []
        for record in records[:MOST_SHOWN]:
            regex = record.get("regex")
            how = "matched by" if record.get("matched") else "left between matches of"
            where = f"word {record['word']}, {record['length']} bytes at {record['offset']}"
            titles.append(where if regex is None else f"{where}\n{how} regex {regex}")
        shown = text_chips([record["text"] for record in records[:MOST_SHOWN]], titles)
        used = sorted({record["regex"] for record in records if record.get("regex") is not None})
        rows = [(number, Markup(f"<code>{escape(regexes[number])}</code>")) for number in used if number < len(regexes)]
        patterns = (
            fold(
                f"{len(rows)} regex that cut them" if len(rows) == 1 else f"{len(rows)} regexes that cut them",
                table(("", "regex"), rows, len(rows)),
            )
            if rows
            else ""
        )
        return f'<div style="line-height:1.9">{shown}</div>{rest(len(records) - MOST_SHOWN, "words")}{patterns}'

    def row(self, record: Record, context: Record) -> list[StyledText]:
        """A line of a terminal."""
        regexes = context["regexes"]
        row = [
            StyledText(str(record["word"]), FAINT),
            StyledText(clipped(record["text"]), GOOD),
            StyledText(f"{record['length']} bytes at {record['offset']}", FAINT),
        ]
        if record.get("regex") is not None and record["regex"] < len(regexes):
            how = "matched by" if record["matched"] else "left by"
            row.append(StyledText(f"{how} regex {record['regex']}: {clipped(regexes[record['regex']])}", FAINT))
        return row

    def sentence(self, record: Record, regexes: Sequence[str]) -> str:
        """What happened."""
        head = f"{record['text']!r}, {record['length']} bytes at {record['offset']}"
        if record.get("regex") is None:
            return head
        regex = regexes[record["regex"]] if record["regex"] < len(regexes) else ""
        short = regex if len(regex) <= 60 else regex[:60] + "…"
        how = "matched by" if record["matched"] else "left over by"
        return f"{head}, {how} regex {record['regex']} {short}"

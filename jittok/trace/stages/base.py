"""What every stage of a trace has: how its records are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jittok.common.display.terminal import Line, StyledText, columns
from jittok.trace.recorder import Record

Records = Sequence[Record]
Stages = Mapping[str, Records]
MOST_SHOWN = 200
"""Limit of characters, words or runs of a text that are shown at once."""
PICTURES = 60_000
"""Limit of characters of HTML of the pictures of one stage."""


class StageKind:
    """A stage: its records as HTML, as lines of a terminal, and as sentences. All from plain data."""

    name: str
    about: str

    def html(self, records: Records, context: Record) -> str:
        """A picture where one helps, and a table. context: the text, the regexes and all stages of the trace."""
        raise NotImplementedError

    def row(self, record: Record, context: Record) -> list[StyledText]:
        """The columns of one record in a terminal."""
        raise NotImplementedError

    def lines(self, records: Records, context: Record) -> Iterator[Line]:
        """A line per record."""
        return columns([self.row(record, context) for record in records])

    def sentence(self, record: Record, regexes: Sequence[str]) -> str:
        """What happened. regexes: the patterns that words refer to by number."""
        raise NotImplementedError


def grouped(records: Records, key: str) -> dict[Any, list[Record]]:
    """Records by the value of a field, in order."""
    groups: dict[Any, list[Record]] = {}
    for record in records:
        groups.setdefault(record[key], []).append(record)
    return groups


def clipped_text(text: str) -> str:
    """A text, at most MOST_SHOWN characters of it."""
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "…"

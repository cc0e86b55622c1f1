"""Collects the records of the sessions of a trace."""

from __future__ import annotations

from typing import Any

from jittok.vocab import Vocab

Record = dict[str, Any]
"""Names and plain values: str, int, float, bool, None, and lists and records of these."""
SYMBOL_ROWS = 200_000
"""Symbols are listed after each step until a trace has this many rows of them; after that they are None."""


class Recorder:
    """The stages of a trace under construction. replace: text that cannot be encoded becomes U+FFFD or the unknown
    token."""

    def __init__(self, vocab: Vocab, replace: bool) -> None:
        self.vocab = vocab
        self.replace = replace
        self.fragment = 0  # the number of the current fragment in the final buffer
        self.stages: dict[str, list[Record]] = {}
        self.symbol_rows = 0

    def add(self, stage: str, **record: Any) -> Record:
        """Append a record, which names its fragment first."""
        whole = {"fragment": self.fragment, **record}
        self.stages.setdefault(stage, []).append(whole)
        return whole

    def count(self, stage: str) -> int:
        """How many records a stage has."""
        return len(self.stages.get(stage, []))

    def mark(self) -> dict[str, int]:
        """The state that `back_to` restores."""
        return {stage: len(records) for stage, records in self.stages.items()}

    def back_to(self, mark: dict[str, int]) -> None:
        """Drop the records since `mark`."""
        for stage, records in self.stages.items():
            del records[mark.get(stage, 0) :]

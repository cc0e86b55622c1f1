"""Collects the records of the sessions of a trace."""

from __future__ import annotations

from typing import Any

from jittok.reference.mapped_text import Mapped
from jittok.reference.merging import MERGED, OFFERED, Pair, Symbols
from jittok.trace.stage import Record
from jittok.vocab import Vocab
from jittok.vocab.describe import shown

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


def units(text: Mapped) -> list[list[int]]:
    """[first byte, end, source start, source end] of each part that was rewritten as one unit."""
    found: list[list[int]] = []
    for k, (start, stop) in enumerate(zip(text.starts, text.stops, strict=True)):
        if found and found[-1][2:] == [start, stop] and found[-1][1] == k:
            found[-1][1] = k + 1
        else:
            found.append([k, k + 1, start, stop])
    return found


class Merging:
    """An observer of `merge_pairs`: a record per pop in `merges`, and the pairs offered before the first one.

    position: fields that identify the word; name: of a pair's priority, "rank" or "score".
    """

    def __init__(self, recorder: Recorder, position: Record, name: str) -> None:
        self.recorder, self.position, self.name = recorder, position, name
        self.offers: list[Record] = []
        self.steps = 0
        self._offers = self.offers  # where the next offer belongs
        self._rows: list[Record] | None = None

    def start(self, symbols: Symbols) -> None:
        """Record the symbols before the first step."""
        self._rows = [self._row(symbols, i) for i in range(len(symbols.n))]

    def __call__(self, what: str, pair: Pair, symbols: Symbols) -> None:
        """One step; see `merging.Observe`."""
        if what == OFFERED:
            self._offers.append(self._entry(pair))
            return
        self._offers = []
        self.steps += 1
        merged = what == MERGED
        if self._rows is not None and self.recorder.symbol_rows + len(self._rows) > SYMBOL_ROWS:
            self._rows = None
        if self._rows is not None:
            self.recorder.symbol_rows += len(self._rows)
            if merged:
                self._rows = list(self._rows)
                for i in {pair.left, pair.right, symbols.next[pair.left]} - {-1}:
                    self._rows[i] = self._row(symbols, i)
        self.recorder.add(
            "merges",
            **self.position,
            step=self.steps,
            **self._entry(pair),
            stale=not merged,
            applied=merged,
            offers=self._offers,
            symbols=self._rows,
        )

    def _entry(self, pair: Pair) -> Record:
        entry: Record = {"left": pair.left, "right": pair.right, "text": shown(pair.text)}
        if self.name == "rank":
            return {**entry, "rank": int(pair.priority)}
        return {**entry, "id": self.recorder.vocab.ids[pair.text], "score": 0.0 - pair.priority}

    @staticmethod
    def _row(symbols: Symbols, i: int) -> Record:
        return {
            "text": shown(symbols.piece(i)),
            "n": symbols.n[i],
            "prev": symbols.prev[i],
            "next": symbols.next[i],
        }

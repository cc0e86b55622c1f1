"""Not a layout of ids: the account of documents that were skipped or mended, a JSON object a line."""

from __future__ import annotations

import json
from pathlib import Path

from jittok.corpus.formats.base import Format, Lazy, Output, Rows, Shard, Stream


class Errors(Format):
    """`errors/00000.jsonl`, only where a shard has any."""

    name = "errors"
    small, large, small_size = "int32", "int32", 1 << 31

    def streams(self) -> list[Stream]:
        """The lines."""
        return [Stream("errors", 0, self._lines, final=True)]

    def _lines(self, rows: Rows) -> bytes:
        facts = (
            {"file": self.facts.sources[bad.source], "line": bad.line, "found": bad.found, "expected": bad.expected}
            for bad in rows.bad
        )
        return "".join(json.dumps(fact) + "\n" for fact in facts).encode()

    def finish(self, shard: Shard) -> list[Output]:
        """The lines, if there are any."""
        path = shard.path("errors")
        return [Output(path, f"errors/{shard.number:05d}.jsonl")] if path.stat().st_size else []

    def blocks(self, folder: Path, number: int, documents: int) -> list[Lazy]:  # noqa: ARG002  there are no documents
        """None."""
        return []

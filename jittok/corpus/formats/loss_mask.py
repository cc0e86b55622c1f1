"""What is to be learned, beside layouts of ids alone: a byte for each id of a shard, 1 or 0, and no header.

It is what OLMo reads as `label_mask` (bool), and datatrove as `.loss`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok.corpus.formats.base import MASK, Format, Output, Rows, Shard, Stream


class LossMask(Format):
    """A file a shard, in the order of its ids."""

    name = MASK
    per_token = 1
    per_document = 0
    keeps_mask = True

    def _dtype(self) -> np.dtype[Any]:
        return np.dtype(np.uint8)

    def streams(self) -> list[Stream]:
        """The bytes."""
        return [Stream(self.name, 0, _mask, final=True)]

    def finish(self, shard: Shard) -> list[Output]:
        """The stream as it is."""
        return [Output(shard.path(self.name), name) for name in self.names()]

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """One file."""
        return (f"{MASK}/{{}}.bin",)


def _mask(rows: Rows) -> Any:
    assert rows.mask is not None
    return rows.mask

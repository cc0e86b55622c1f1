"""datatrove's .ds, .ds.index and .ds.metadata. Source: datatrove, pipeline/tokens/tokenizer.py and utils/dataset.py."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from jittok.corpus.formats.base import LENGTHS, Block, Format, Lazy, Output, Shard, Stream
from jittok.corpus.formats.disk_ids import read_array


class Datatrove(Format):
    """Bare ids; the index has the end of each document in tokens, without a 0 before."""

    name = "datatrove"

    def streams(self) -> list[Stream]:
        """Lengths and ids."""
        return [LENGTHS, self.ids_stream("datatrove.ds")]

    def finish(self, shard: Shard) -> list[Output]:
        """Index and metadata."""
        index, metadata = shard.path("datatrove.index"), shard.path("datatrove.metadata")
        with index.open("wb") as file:
            for ends in shard.ends():
                file.write(ends.astype("<u8").data)
        name = self.facts.vocab_name.replace("|", " ").replace("\n", " ") or "Unknown Tokenizer"
        metadata.write_text(
            f"{name}|{self.dtype.itemsize}\n{shard.tokens}\n{readable(shard.tokens)}", encoding="utf-8", newline="\n"
        )
        stem = f"datatrove/{shard.number:05d}_unshuffled.ds"
        return [
            Output(shard.path("datatrove.ds"), stem),
            Output(index, f"{stem}.index"),
            Output(metadata, f"{stem}.metadata"),
        ]

    def blocks(self, folder: Path, number: int, documents: int) -> list[Lazy]:
        """One block a shard."""
        return [Lazy(documents, partial(self._block, folder / "datatrove" / f"{number:05d}_unshuffled.ds"))]

    def _block(self, path: Path) -> Block:
        ends = read_array(path.with_name(f"{path.name}.index"), "<u8")
        return Block(self.ids_of(path), np.concatenate([np.zeros(1, np.int64), ends.astype(np.int64)]))


def readable(tokens: int) -> str:
    """The count as datatrove writes it: 4419 is `4.42 kT`, fewer than 1000 stand as `T` alone."""
    number, unit = float(tokens), ""
    for larger in "kMGTPE":
        if number < 1000:
            break
        number, unit = number / 1000, larger
    digits = 2 if number < 10 else 1 if number < 100 else 0
    return f"{number:.{digits}f} {unit}T"

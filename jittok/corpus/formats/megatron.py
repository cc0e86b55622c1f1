"""Megatron's .bin and .idx. Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py.

An empty document is a document of no sequences. The width is that of Megatron's own rule: uint16 below 65,500 tokens,
else int32.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.formats.base import (
    INT32_MAX,
    LENGTHS,
    Block,
    Format,
    Output,
    Rows,
    Shard,
    Stream,
    read_array,
    too_long,
)
from jittok.errors import CorpusError

MAGIC = b"MMIDIDX\x00\x00"
CODES = {"uint16": 8, "int32": 4}
ARRAYS_AT = 34


class Megatron(Format):
    """One sequence a document."""

    name = "megatron"
    large = "int32"
    small_size = 65499  # uint16 when the vocabulary is *smaller* than 65500
    per_document = 20

    def streams(self) -> list[Stream]:
        """Lengths and ids."""
        return [LENGTHS, self.ids_stream("megatron.bin")]

    def check(self, rows: Rows, tokens: int) -> None:  # noqa: ARG002
        """A sequence length is an int32."""
        too_long(self.name, rows, INT32_MAX, self.facts.sources)

    def finish(self, shard: Shard) -> list[Output]:
        """The index."""
        index = shard.path("megatron.idx")
        sequences = sum(int(np.count_nonzero(lengths)) for lengths in shard.lengths())
        with index.open("wb") as file:
            file.write(MAGIC + np.array(1, "<u8").tobytes() + bytes([CODES[self.dtype.name]]))
            file.write(np.array([sequences, shard.documents + 1], "<u8").tobytes())
            for part in self._index(shard):
                file.write(part.data)
        paths = shard.path("megatron.bin"), index
        return [Output(path, name) for path, name in zip(paths, self.names(), strict=True)]

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Ids and index."""
        return "megatron/{}_text_document.bin", "megatron/{}_text_document.idx"

    def _index(self, shard: Shard) -> Iterator[NDArray[Any]]:
        """Lengths in tokens, starts in bytes, then after which sequence each document ends."""
        for lengths in shard.lengths():
            yield lengths[lengths > 0].astype("<i4")
        at = 0
        for lengths in shard.lengths():
            full = lengths[lengths > 0] * self.dtype.itemsize
            yield (np.cumsum(full) - full + at).astype("<i8")
            at += int(full.sum())
        yield np.zeros(1, "<i8")
        done = 0
        for lengths in shard.lengths():
            yield (np.cumsum(lengths > 0) + done).astype("<i8")
            done += int(np.count_nonzero(lengths))

    def ids_file(self, label: str) -> str:
        """The file of ids."""
        return f"{label}_text_document.bin"

    def block(self, path: Path) -> Block:
        """The ids, and the offsets from the file beside them."""
        index = path.with_suffix(".idx")
        head = index.read_bytes()[:ARRAYS_AT] if index.stat().st_size < ARRAYS_AT else _head(index)
        sequences, ends = self.counts(index, head)
        lengths = read_array(index, "<i4", ARRAYS_AT, sequences)
        positions = read_array(index, "<i8", ARRAYS_AT + 12 * sequences, ends)
        starts = np.zeros(sequences + 1, np.int64)
        np.cumsum(lengths, out=starts[1:])
        return Block(self.ids_of(path), starts[positions])

    def counts(self, index: Path, head: bytes) -> tuple[int, int]:
        """How many sequences and places of documents an index has, by its head. CorpusError if it is none."""
        if head[:9] != MAGIC or head[17] != CODES[self.dtype.name]:
            raise CorpusError(str(index), repr(head[:18]), "the head of a Megatron index of these ids")
        sequences, ends = (int(number) for number in np.frombuffer(head, "<u8", 2, 18))
        return sequences, ends


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(ARRAYS_AT)

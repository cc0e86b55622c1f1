"""Arrow IPC files and Parquet: one column `input_ids: list<int32>`, as the `datasets` library stores it.

Both are made from plain ids when a shard is full: neither can be appended to after a crash. Batches and row groups are
cut by documents and tokens alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jittok.corpus.formats.base import (
    IDS32,
    INT32_MAX,
    LENGTHS,
    Block,
    Facts,
    Format,
    Lazy,
    Output,
    Rows,
    Shard,
    Stream,
    too_long,
)
from jittok.errors import CorpusError, missing

BATCH_TOKENS = 1 << 22
GROUP_TOKENS = 1 << 24
COLUMN = "input_ids"
INT32_SIZE = 1 << 31


class _Table(Format):
    """What both share."""

    small, large, small_size = "int32", "int32", INT32_SIZE
    per_document = 4
    batch_tokens = BATCH_TOKENS

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        try:
            import pyarrow as pa
        except ImportError:
            raise missing(f"format {self.name}", "pyarrow", "corpus") from None
        names = {"jittok.vocab.fingerprint": facts.fingerprint, "jittok.vocab.name": facts.vocab_name}
        self.schema = pa.schema([pa.field(COLUMN, pa.list_(pa.int32()))], metadata=names)

    def streams(self) -> list[Stream]:
        """Lengths and ids."""
        return [LENGTHS, IDS32]

    def check(self, rows: Rows, tokens: int) -> None:  # noqa: ARG002
        """A list may have no more than 2^31 - 1 items; batches are cut below that."""
        too_long(self.name, rows, INT32_MAX - self.batch_tokens, self.facts.sources)

    def batches(self, shard: Shard) -> Iterator[Any]:
        """Record batches: a batch ends with the document that fills it."""
        import pyarrow as pa

        with shard.path(IDS32.key).open("rb") as file:  # read, not mapped: mapped pages count as memory of the process
            for lengths in shard.lengths():
                ends = np.cumsum(lengths)
                start = 0
                while start < lengths.size:
                    before = int(ends[start - 1]) if start else 0
                    stop = min(int(np.searchsorted(ends, before + self.batch_tokens)) + 1, lengths.size)
                    offsets = np.concatenate([[before], ends[start:stop]]) - before
                    values = pa.array(np.fromfile(file, "<i4", int(offsets[-1])))
                    rows = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)
                    yield pa.record_batch([rows], schema=self.schema)
                    start = stop


class Arrow(_Table):
    """Arrow IPC file format, not compressed: readers map it."""

    name = "arrow"

    def finish(self, shard: Shard) -> list[Output]:
        """The file."""
        import pyarrow as pa

        path = shard.path("arrow")
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, self.schema) as writer:
            for batch in self.batches(shard):
                writer.write_batch(batch)
        return [Output(path, f"arrow/{shard.number:05d}.arrow")]

    def blocks(self, folder: Path, number: int, documents: int) -> list[Lazy]:  # noqa: ARG002  the file tells
        """One block a record batch."""
        import pyarrow as pa

        path = folder / "arrow" / f"{number:05d}.arrow"
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        found = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        return [Lazy(batch.num_rows, partial(_block_of, batch.column(0))) for batch in found]


class Parquet(_Table):
    """Parquet, ids packed with zstandard and without a dictionary."""

    name = "parquet"
    batch_tokens = GROUP_TOKENS
    per_token = 1.4
    per_document = 1

    def finish(self, shard: Shard) -> list[Output]:
        """The file."""
        import pyarrow.parquet as pq

        path = shard.path("parquet")
        with pq.ParquetWriter(str(path), self.schema, compression="zstd", use_dictionary=False) as writer:
            for batch in self.batches(shard):
                writer.write_batch(batch, row_group_size=batch.num_rows)
        return [Output(path, f"parquet/{shard.number:05d}.parquet")]

    def blocks(self, folder: Path, number: int, documents: int) -> list[Lazy]:  # noqa: ARG002  the file tells
        """One block a row group; it has to be unpacked, so it is read and not mapped."""
        import pyarrow.parquet as pq

        path = folder / "parquet" / f"{number:05d}.parquet"
        with pq.ParquetFile(path) as file:
            rows = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        return [Lazy(count, partial(_row_group, path, i)) for i, count in enumerate(rows)]


def _row_group(path: Path, group: int) -> Block:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        column = file.read_row_group(group, columns=[COLUMN]).column(0).combine_chunks()
    return _block_of(column.chunk(0) if hasattr(column, "chunks") else column)


def _block_of(column: Any) -> Block:
    if column.null_count:
        raise CorpusError(COLUMN, f"{column.null_count} nulls", "none")
    offsets = column.offsets.to_numpy().astype(np.int64)
    return Block(column.flatten().to_numpy(), offsets - offsets[0])

"""Arrow IPC files and Parquet: one column `input_ids: list<int32>`, as the `datasets` library stores it.

Both are written as a shard grows. A record batch, and the last row group of several, ends with the range that fills
it, so ids of a range are written from where they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.rows import TokenArray
from jittok.corpus.formats.base import (
    INT32_MAX,
    Block,
    DiskIds,
    Facts,
    Format,
    Lazy,
    Output,
    Rows,
    Shard,
    Sink,
    read_array,
    too_long,
)
from jittok.corpus.options import MASKS
from jittok.corpus.store import disk
from jittok.corpus.store.blocks import Seekable
from jittok.errors import CorpusError, InWords, MalformedArray, missing

BATCH_TOKENS = 1 << 21
"""Tokens of a batch of Arrow, or more: those of the range that reaches them."""
KEPT_BYTES = 16 << 20
"""Bytes of kept fields with which a batch, or row group, ends with fewer tokens: they are in memory until then."""
GROUP_TOKENS = 1 << 20
"""Tokens of a row group of Parquet, or fewer, unless a single document has more. Its pages, and the levels that are
made for it, are in memory at once."""
LARGEST_BATCH = 1 << 30
"""Tokens from which on a batch is cut by documents: the offsets in it are int32."""
ZSTD_LEVEL = 1
COLUMN = "input_ids"
LARGEST_HEAD = 1 << 20
"""Bytes that are read of what Arrow asks for at once: a head and its batch. Ids are read by those who want them."""
INT32_SIZE = 1 << 31


class _Table(Format):
    """What both share."""

    slowness = 2
    keeps_fields = keeps_mask = True
    writer = "pyarrow"
    small, large, small_size = "int32", "int32", INT32_SIZE
    per_document = 4
    batch_tokens = BATCH_TOKENS
    most_tokens = LARGEST_BATCH

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        try:
            import pyarrow as pa
        except ImportError:
            raise missing(f"format {self.name}", "pyarrow", "corpus") from None
        names = {"jittok.vocab.fingerprint": facts.fingerprint, "jittok.vocab.name": facts.vocab_name}
        masks = [pa.field(MASKS, pa.list_(pa.uint8()))] if facts.learn else []
        fields = [
            pa.field(COLUMN, pa.list_(pa.int32())),
            *masks,
            *(pa.field(name, pa.large_string()) for name in facts.keep),
        ]
        self.schema = pa.schema(fields, metadata=names)

    def check(self, rows: Rows, tokens: int) -> None:  # noqa: ARG002
        """A list may have no more than 2^31 - 1 items; batches are cut below that."""
        too_long(self.name, rows, INT32_MAX - self.batch_tokens, self.facts.sources)

    def sink(self, shard: Shard) -> Sink:
        """The file, which is written as it grows."""
        return _TableSink(self, shard.path(self.name))

    def opened(self, file: Any) -> Any:
        """A writer of record batches: `write_batch`, `close`."""
        raise NotImplementedError


class HashedFile:
    """A file that Arrow writes to, with the SHA-256 of what was written."""

    def __init__(self, path: Path) -> None:
        self._descriptor, self._at = disk.create(path), 0
        self.digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        """Append bytes."""
        view = memoryview(data).cast("B")
        if not self.closed:  # else the table was given up, and what its writer adds at the end goes nowhere
            disk.append(self._descriptor, view)
            self.digest.update(view)
        self._at += len(view)
        return len(view)

    def tell(self) -> int:
        """Bytes so far."""
        return self._at

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._descriptor < 0

    def writable(self) -> bool:
        """For Arrow."""
        return True


class _TableSink(Sink):
    """A table of one shard."""

    def __init__(self, form: _Table, path: Path) -> None:
        self.form, self.path = form, path
        self._file = HashedFile(path)
        self._writer = form.opened(self._file)
        self._held: list[Rows] = []
        self._tokens = self._kept = 0

    def append(self, rows: Rows) -> None:
        if self._tokens + rows.ids.size > LARGEST_BATCH:
            self._write()
        self._held.append(rows)
        self._tokens += rows.ids.size
        self._kept += rows.kept_bytes()
        if self._tokens >= self.form.batch_tokens or self._kept >= KEPT_BYTES:
            self._write()

    def _write(self) -> None:
        import pyarrow as pa

        held, self._held, self._tokens, self._kept = self._held, [], 0, 0
        if not held:
            return
        ids, lengths, mask = held[0].ids, held[0].lengths, held[0].mask
        if len(held) > 1:
            ids, lengths = np.concatenate([r.ids for r in held]), np.concatenate([r.lengths for r in held])
            mask = None if mask is None else np.concatenate([r.mask for r in held if r.mask is not None])
        kept = [pa.concat_arrays(columns) for columns in zip(*(rows.kept for rows in held), strict=True)]
        offsets = np.zeros(lengths.size + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        for first, last in _cuts(offsets, self.form.most_tokens):
            low, high = int(offsets[first]), int(offsets[last])
            places = pa.array((offsets[first : last + 1] - low).astype(np.int32))
            rows = [pa.ListArray.from_arrays(places, pa.array(np.ascontiguousarray(ids[low:high], "<i4")))]
            if mask is not None:
                rows.append(pa.ListArray.from_arrays(places, pa.array(np.ascontiguousarray(mask[low:high]))))
            self._writer.write_batch(pa.record_batch([*rows, *(c[first:last] for c in kept)], schema=self.form.schema))

    def finish(self) -> list[Output]:
        self._write()
        self._writer.close()
        self._file.close()
        (name,) = self.form.names()
        return [Output(self.path, name, self._file.digest.hexdigest())]

    def close(self) -> None:
        self._held = []
        self._file.close()
        with contextlib.suppress(Exception):
            self._writer.close()


def _cuts(offsets: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Documents [first, last) of each batch: all, or as many as have `most` tokens, one at least."""
    first, count = 0, offsets.size - 1
    while first < count:
        last = int(np.searchsorted(offsets, offsets[first] + most, "right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


class Arrow(_Table):
    """Arrow IPC file format, not compressed: readers may map it."""

    name = "arrow"
    layout = 2

    def opened(self, file: Any) -> Any:
        """A writer of the file format."""
        import pyarrow as pa

        return pa.ipc.new_file(pa.PythonFile(file, "w"), self.schema)

    def blocks(self, folder: Path, label: str, documents: int) -> list[Lazy]:  # noqa: ARG002  the file has them
        """One block a record batch."""
        path = folder / "arrow" / f"{label}.arrow"
        return [Lazy(batch.documents, partial(_read_batch, path, batch)) for batch in batches_of(path)]

    def masks(self, folder: Path, label: str, documents: int) -> list[Lazy]:  # noqa: ARG002
        """The column of masks."""
        path = folder / "arrow" / f"{label}.arrow"
        return [Lazy(batch.documents, partial(_read_mask, path, batch)) for batch in batches_of(path, masked=True)]


class _Heads(Seekable):
    """A file as Arrow reads its heads: of what it asks for at once only the front is read, and zeros are after.

    Not mapped: truncating a mapped file kills the process that reads it.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._size = file.seek(0, os.SEEK_END)
        self._given: list[tuple[NDArray[np.uint8], int]] = []  # what was read, and from where

    def read(self, size: int = -1) -> Any:
        there = max(self._size - self._at, 0)
        size = there if size < 0 else min(size, there)
        found = np.frombuffer(mmap.mmap(-1, max(size, 1)), np.uint8)[:size]  # pages no one looks at take no memory
        self._file.seek(self._at)
        read = self._file.readinto(found[:LARGEST_HEAD].data)  # type: ignore[attr-defined]  # a file that was cut holds fewer: Arrow notices
        if read < min(size, LARGEST_HEAD):
            found = found[:read]
        self._given.append((found, self._at))
        self._at += found.size
        return found

    def close(self) -> None:
        self._file.close()
        super().close()

    def position(self, address: int) -> int:
        """The offset in the file of the byte at this address; -1 if it is not of the file."""
        for array, position in reversed(self._given):
            if 0 <= address - array.ctypes.data < array.size:
                return position + address - array.ctypes.data
        return -1

    def release(self) -> None:
        """Of what was read."""
        self._given.clear()


class Batch(NamedTuple):
    """Where in its file a record batch has its offsets (int32[documents + 1]), its ids (int32[tokens]) and, where that
    is asked for, the mask of what is to be learned (uint8[tokens])."""

    offsets: int
    documents: int
    ids: int
    tokens: int
    mask: int = 0


def batches_of(path: Path, masked: bool = False) -> list[Batch]:
    """The record batches of a file. CorpusError if it is not as it was written."""
    return list(batches_in(path.open("rb", buffering=0), str(path), masked))


def batches_in(file: IO[bytes], where: str, masked: bool = False) -> Iterator[Batch]:
    """As `batches_of`, one after the other, of a file that is closed at the end; its head is read for each."""
    with _naming(where):
        yield from _batches_in(file, where, masked)


@contextlib.contextmanager
def _naming(where: str) -> Iterator[None]:
    """Arrow's errors as a CorpusError of this file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, MalformedArray, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's; Arrow's own, without a number, is about a file that is too short
        raise CorpusError(where, str(error), "the file that was written") from error


def _batches_in(opened: IO[bytes], path: str, masked: bool) -> Iterator[Batch]:
    import pyarrow as pa

    with contextlib.closing(_Heads(opened)) as heads, pa.PythonFile(heads, "r") as file:
        reader = pa.ipc.open_file(file)
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            column = batch.column(COLUMN)
            if column.type != pa.list_(pa.int32()) or column.null_count or column.values.null_count:
                raise CorpusError(str(path), InWords(f"a column of {column.type}"), "lists of int32 without nulls")
            _, offsets, _, ids = column.buffers()
            buffers, counts = [offsets, ids], [len(column), len(column.values)]  # what is empty lies nowhere
            if masked:
                buffers.append(_mask_of(path, batch, column))
                counts.append(len(column.values))
            positions = [heads.position(b.address) if b and n else 0 for b, n in zip(buffers, counts, strict=True)]
            if min(positions) < 0:
                raise CorpusError(str(path), InWords(f"batch {number} packed"), "batches that are not packed")
            heads.release()
            yield Batch(positions[0], counts[0], positions[1], counts[1], positions[-1] if masked else 0)


def _mask_of(path: str, batch: Any, column: Any) -> Any:
    """The buffer of the mask of a batch, as many bytes as there are ids. Its offsets are those of the ids."""
    import pyarrow as pa

    masks = batch.column(MASKS)
    if masks.type != pa.list_(pa.uint8()) or masks.null_count or len(masks.values) != len(column.values):
        raise CorpusError(path, InWords(f"a column {MASKS} of {masks.type}"), "lists of uint8 without nulls, one an id")
    return masks.buffers()[3]


def _read_mask(path: Path, batch: Batch) -> Block:
    block = _read_batch(path, batch)
    return Block(DiskIds(path, np.uint8, batch.mask, batch.tokens), block.offsets)


def _read_batch(path: Path, batch: Batch) -> Block:
    offsets = read_array(path, "<i4", batch.offsets, batch.documents + 1 if batch.documents else 0).astype(np.int64)
    ids = DiskIds(path, "<i4", batch.ids, batch.tokens)
    return Block(ids, offsets if batch.documents else np.zeros(1, np.int64))


class Parquet(_Table):
    """Parquet: ids split by their bytes (BYTE_STREAM_SPLIT) and packed with zstandard, without a dictionary."""

    name = "parquet"
    layout = 3
    slowness = 3
    batch_tokens = most_tokens = GROUP_TOKENS
    per_token = 1.4
    per_document = 1

    def opened(self, file: Any) -> Any:
        """A writer whose batches are row groups."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        return _GroupWriter(
            pq.ParquetWriter(
                pa.PythonFile(file, "w"), self.schema, compression="zstd", compression_level=ZSTD_LEVEL,
                use_dictionary=False, column_encoding={f"{COLUMN}.list.element": "BYTE_STREAM_SPLIT"},
                write_statistics=False,
            )
        )  # fmt: skip

    def blocks(self, folder: Path, label: str, documents: int) -> list[Lazy]:  # noqa: ARG002  the file has them
        """One block a row group; it has to be unpacked, so it is read and not mapped."""
        return self._groups(folder, label, COLUMN)

    def masks(self, folder: Path, label: str, documents: int) -> list[Lazy]:  # noqa: ARG002
        """The column of masks."""
        return self._groups(folder, label, MASKS)

    def _groups(self, folder: Path, label: str, column: str) -> list[Lazy]:
        path = folder / "parquet" / f"{label}.parquet"
        return groups_of(partial(_opened, path), str(path), column)


class _GroupWriter:
    """A Parquet writer, each of whose batches is a row group."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write_batch(self, batch: Any) -> None:
        self._writer.write_batch(batch, row_group_size=max(batch.num_rows, 1))

    def close(self) -> None:
        self._writer.close()


def _opened(path: Path) -> Any:
    import pyarrow as pa

    return pa.OSFile(os.fsencode(path))


def groups_of(opened: Callable[[], Any], where: str, column: str = COLUMN) -> list[Lazy]:
    """The row groups of a Parquet file, which is opened for each. CorpusError for what is none."""
    import pyarrow.parquet as pq

    with _naming(where), opened() as raw, pq.ParquetFile(raw) as file:
        rows = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
    return [Lazy(count, partial(_row_group, opened, where, i, column)) for i, count in enumerate(rows)]


def _row_group(opened: Callable[[], Any], where: str, group: int, name: str) -> Block:
    import pyarrow.parquet as pq

    with _naming(where), opened() as raw, pq.ParquetFile(raw) as file:
        column = file.read_row_group(group, columns=[name]).column(0).combine_chunks()
    return _block_of(column.chunk(0) if hasattr(column, "chunks") else column)


def _block_of(column: Any) -> Block:
    if column.null_count:
        raise CorpusError(COLUMN, InWords(f"{column.null_count} nulls"), "none")
    rows = TokenArray.from_arrow(column)
    return Block(rows.ids.copy() if column.type.value_type.bit_width == 32 else rows.ids.astype(np.uint8), rows.offsets)

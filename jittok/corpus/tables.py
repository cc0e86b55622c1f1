"""Rows of Parquet and Arrow files, cut into ranges by the bytes of their text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import Any

import numpy as np

from jittok.corpus.buffers import check_buffers
from jittok.corpus.far import is_url
from jittok.corpus.limits import Limit
from jittok.corpus.one_file import check_parquet
from jittok.corpus.options import Options
from jittok.corpus.pages import check_pages
from jittok.corpus.sources import Source
from jittok.errors import CorpusError, InWords, MalformedArray, missing
from jittok.inputs import arrow

BATCH_BYTES = 4 << 20
"""Text read from a row group at once, by the average of its rows."""
BATCH_ROWS = 1 << 16
READ_AT_ONCE = 1 << 20
"""Packed bytes of a row group that are read at once, as a row group may be as large as its file."""
UNPACKED = 64 << 20
"""Bytes that the rows of one batch may have where each may be the longest value of a dictionary: a small file may hold
it a million times."""


def _arrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        raise missing("reading and writing tables", "pyarrow", "corpus") from None
    return pa


def _local_file(path: str | os.PathLike[str]) -> Any:
    """A file of this disk, opened by Arrow, whose name need not be UTF-8."""
    return _arrow().OSFile(os.fsencode(path))


def _opened(source: Source) -> Any:
    return source.open() if is_url(source.path) else source.same(_local_file(source.path))


def _parquet(source: Source, **options: Any) -> Any:
    pa = _arrow()
    import pyarrow.parquet as pq

    remote = is_url(source.path)
    file = _opened(source)
    # by default the packed bytes of a whole row group are read; far away each read is a request
    reads: dict[str, Any] = {} if remote else {"pre_buffer": False, "buffer_size": READ_AT_ONCE}
    try:
        return pq.ParquetFile(file, memory_map=False, **reads, **options)
    except pa.ArrowInvalid as error:
        raise CorpusError(source.path, str(error), "a whole Parquet file") from error


def row_groups(source: Source) -> int:
    """Number of row groups. Raises CorpusError for what is no Parquet file, or more than one."""
    with _parquet(source) as file, _opened(source) as raw:
        check_parquet(raw, file.metadata, source.path)
        return int(file.metadata.num_row_groups)


def rows_of(source: Source, group: int) -> int:
    """Number of rows of one row group."""
    with _parquet(source) as file:
        return int(file.metadata.row_group(group).num_rows)


def parquet_rows(source: Source, group: int, options: Options, first: int) -> Iterator[tuple[int, Any, float]]:
    """(k, rows of range k, share of the file that has been read) of one row group, from range `first` on."""
    pa = _arrow()
    with _parquet(source) as file:
        check_column(file.schema_arrow, options.column, source.path)
        facts, count = file.metadata.row_group(group), file.metadata.num_row_groups
        names = [facts.column(i).path_in_schema for i in range(facts.num_columns)]
        column = facts.column(names.index(options.column)) if options.column in names else None
        size = column.total_uncompressed_size if column is not None else 0
        rows = max(1, min(BATCH_ROWS, facts.num_rows * BATCH_BYTES // max(size, 1)))
        try:
            if column is not None and facts.num_rows:
                remote = is_url(source.path)
                with _opened(source) as raw:
                    where = f"{source.path}, row group {group}"
                    check_pages(raw, column, options.max_document_bytes, where, believe=remote)
            if column is not None and column.has_dictionary_page:
                longest = _longest_in_dictionary(source, group, options.column, file.metadata)
                rows = max(1, min(rows, UNPACKED // max(longest, 1)))
            batches = file.iter_batches(batch_size=rows, row_groups=[group], columns=[options.column])
            columns = (batch.column(0) for batch in batches)
            limit = Limit(f"{source.path}, row group {group}", options.max_document_bytes, "row")
            for at, array, done in cut_rows(columns, options.range_bytes):
                limit.rows(array, done - len(array))
                if at >= first:
                    yield at, array, (group + min(done / max(facts.num_rows, 1), 1)) / count
        except (pa.ArrowInvalid, OSError) as error:
            raise CorpusError(f"{source.path}, row group {group}", str(error), "readable rows") from error


def _longest_in_dictionary(source: Source, group: int, column: str, facts: Any) -> int:
    """Bytes of the longest value in the dictionary of one row group's column."""
    import pyarrow.compute as pc

    with _parquet(source, metadata=facts, read_dictionary=[column]) as file:
        for batch in file.iter_batches(batch_size=1, row_groups=[group], columns=[column]):
            values = batch.column(0)
            values = getattr(values, "dictionary", values)
            return int(pc.max(pc.binary_length(values)).as_py() or 0)
    return 0


def arrow_rows(source: Source, options: Options, first: int) -> Iterator[tuple[int, Any, float]]:
    """The same of an Arrow IPC file or stream, of which this column is read. It is not mapped: whoever cuts a mapped
    file kills the process. What its places say is checked before anything follows them."""
    pa = _arrow()
    read = 0
    with _opened(source) as file:
        try:
            reader, total = _ipc_reader(file, source, options)
            with _opened(source) as raw:
                most, remote = options.max_document_bytes, is_url(source.path)
                check_buffers(raw, most, source.path, stream=total is None, believe=remote)
            batches = (reader.get_batch(i) for i in range(total)) if total is not None else iter(reader)

            def columns() -> Iterator[Any]:
                nonlocal read
                for batch in batches:
                    read += 1
                    column = batch.column(options.column)
                    arrow.check_rows(column)
                    yield column

            limit = Limit(source.path, options.max_document_bytes, "row")
            for at, array, done in cut_rows(columns(), options.range_bytes):
                limit.rows(array, done - len(array))
                if at >= first:
                    yield at, array, read / total if total else file.tell() / max(source.size or 1, 1)
        except MalformedArray as error:
            where = f"{source.path}, batch {read - 1}, column {options.column!r}, {error.where}"
            raise CorpusError(where, error.found, f"{error.expected}: write the file again") from error
        except (pa.ArrowException, OSError, EOFError) as error:
            raise CorpusError(source.path, str(error), "a whole Arrow IPC file or stream") from error


def _ipc_reader(file: Any, source: Source, options: Options) -> tuple[Any, int | None]:
    """A reader of one column of an IPC file, and its number of batches; None for a stream."""
    pa = _arrow()

    def opened(kind: Any) -> Any:
        file.seek(0)
        schema = kind(file).schema
        check_column(schema, options.column, source.path)
        file.seek(0)
        return kind(file, options=pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(options.column)]))

    try:
        reader = opened(pa.ipc.open_file)
    except pa.ArrowInvalid:
        return opened(pa.ipc.open_stream), None
    return reader, reader.num_record_batches


def check_column(schema: Any, column: str, path: str) -> None:
    """CorpusError when a table has no such column of texts."""
    pa = _arrow()
    if column not in schema.names:
        raise CorpusError(path, InWords(f"columns {', '.join(schema.names)}"), f"a column {column!r} (--column)")
    kind = schema.field(column).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
    if not any(getattr(pa.types, f"is_{name}")(kind) for name in tests):
        raise CorpusError(path, InWords(f"column {column!r} of {kind}"), "texts (string, large_string, binary)")


def _plain(column: Any) -> Iterator[Any]:
    """The same rows without a dictionary, about BATCH_BYTES of text at a time."""
    pa = _arrow()
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        yield column
        return
    values = column.dictionary
    if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):
        values = values.cast(pa.large_binary())
    lengths = pc.fill_null(pc.binary_length(values).take(column.indices), 0)
    ends = np.cumsum(lengths.to_numpy(zero_copy_only=False).astype(np.int64))
    marks = np.arange(BATCH_BYTES, int(ends[-1]) if ends.size else 0, BATCH_BYTES)
    for start, stop in pairwise(sorted({0, *np.searchsorted(ends, marks, "right").tolist(), len(column)})):
        yield column.slice(start, stop - start).cast(column.type.value_type)


def cut_rows(columns: Iterable[Any], step: int) -> Iterator[tuple[int, Any, int]]:
    """(k, the rows whose text begins in bytes [k * step, (k + 1) * step) of all texts, rows so far)."""
    pa = _arrow()
    import pyarrow.compute as pc

    pending: list[Any] = []
    current, total, rows = 0, 0, 0
    for column in chain.from_iterable(map(_plain, columns)):
        if pa.types.is_string_view(column.type):
            column = column.cast(pa.large_string())  # noqa: PLW2901
        elif pa.types.is_binary_view(column.type):
            column = column.cast(pa.large_binary())  # noqa: PLW2901
        if not len(column):
            continue
        lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        ends = np.cumsum(lengths) + total
        numbers = (ends - lengths) // step
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(column)]
        for start, stop in pairwise(cuts):
            number = int(numbers[start])
            if number != current and pending:
                yield current, pa.chunked_array(pending), rows
                pending = []
            current = number
            pending.append(column.slice(start, stop - start))
            rows += stop - start
        total = int(ends[-1])
    if pending:
        yield current, pa.chunked_array(pending), rows

"""Rows of Parquet and Arrow files, cut into ranges by the bytes of their text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from jittok.corpus.inputs.hostile_tables import (
    WHOLE_ARROW,
    WHOLE_PARQUET,
    ArrowMessages,
    ParquetColumn,
    ParquetFooter,
    check_table,
    place_of,
)
from jittok.corpus.inputs.remote import Fetched, is_url, open_far
from jittok.corpus.inputs.sources import OF_A_FILE, Source
from jittok.corpus.options import Options
from jittok.corpus.ranges.columns import ChatColumns, KeptColumns, TextColumn, chat_columns, text_column
from jittok.corpus.ranges.cutting import Limit
from jittok.errors import CorpusError, InWords, MalformedArray, missing

BATCH_BYTES = 4 << 20
"""Text read from row groups at once, by the average of their rows."""
BATCH_ROWS = 1 << 16
READ_AT_ONCE = 1 << 20
"""Packed bytes of a row group that are read at once, as a row group may be as large as its file."""
UNPACKED = 64 << 20
"""Bytes that the rows of one batch may have where each may be the longest value of a dictionary: a small file may hold
it a million times."""
FEW_ROWS = 64
"""Rows that are read one by one, where they may be long, without a look at the values of their dictionary."""
FOOTER = 64 << 10
"""Bytes at the end of a far file that are read at once: most footers."""
FOOTERS = 4
"""That are kept: tasks of several files may be under way at once."""
SIGNATURE = 28
"""Bytes of the signature after a footer that can be read of a file with encrypted columns."""


def _arrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        raise missing("reading and writing tables", "pyarrow", "corpus") from None
    return pa


def _local_file(path: str | os.PathLike[str]) -> Any:
    """A file of this disk, opened by Arrow, whose name need not be UTF-8."""
    return _arrow().OSFile(os.fsencode(path))


@contextmanager
def _opened(source: Source, content: bytes | None = None) -> Iterator[Any]:
    """The bytes of a table, read from anywhere: those in memory, where they have been read."""
    pa = _arrow()
    if content is not None:
        with pa.BufferReader(content) as file:
            yield file
    elif is_url(source.path):
        with open_far(source.path, source.size, source.stamp) as far:
            yield far
    else:
        try:
            file = _local_file(source.path)
        except OSError as error:  # Arrow's text has no file that others could read off
            raise OSError(error.errno, os.strerror(error.errno), source.path) if error.errno else error from None
        with source.same(file):
            yield file


def _unreadable(where: str, error: BaseException, expected: str) -> BaseException:
    """The error to raise for one of Arrow: a CorpusError, unless the machine is at fault."""
    number = getattr(error, "errno", None)
    if number is not None and number not in OF_A_FILE:
        return error
    return CorpusError(where, InWords(" ".join(str(error).split())), expected)


class Footer(NamedTuple):
    """The footer of a Parquet file, read once."""

    facts: Any
    schema: Any  # of Arrow
    signed: bool  # some columns are encrypted: asking pyarrow for the facts of one ends the process
    columns: tuple[str, ...]  # the paths of its leaves


def _parquet(file: Any, source: Source, facts: Any = None, **options: Any) -> Any:
    pa = _arrow()
    import pyarrow.parquet as pq

    # by default the packed bytes of a whole row group are read; what is in memory needs no buffer, which is cleared
    at_once = READ_AT_ONCE if isinstance(file, pa.OSFile) else 0
    try:
        return pq.ParquetFile(file, metadata=facts, memory_map=False, pre_buffer=False, buffer_size=at_once, **options)
    except (pa.ArrowException, OSError, OverflowError) as error:
        if "encrypted" in str(error).lower() or "decrypt" in str(error).lower():
            raise encrypted(source.path, "a Parquet file with an encrypted footer") from error
        raise _unreadable(source.path, error, WHOLE_PARQUET) from error


def encrypted(path: str, found: str) -> CorpusError:
    """The error for encrypted data."""
    return CorpusError(path, InWords(found), "an unencrypted table: decrypt it with its keys and write it again")


def footer_of(source: Source, content: bytes | None = None) -> Footer:
    """The footer of a Parquet file. CorpusError for what is none, or more than one."""
    return _read_footer(source, content) if content is not None else _footer_of(source)


@lru_cache(FOOTERS)
def _footer_of(source: Source) -> Footer:
    return _read_footer(source)


def _read_footer(source: Source, content: bytes | None = None) -> Footer:
    with _opened(source, content) as raw:
        file = raw
        if content is None and is_url(source.path):
            size = source.size or 0
            file = Fetched(raw, size, [(max(size - FOOTER, 0), size)])
        with _parquet(file, source) as table:
            facts, schema, fields = table.metadata, table.schema, table.schema_arrow
            columns = tuple(schema.column(i).path for i in range(len(schema)))
            end = file.seek(0, os.SEEK_END)
            file.seek(end - 8)
            signed = int.from_bytes(file.read(4), "little") == facts.serialized_size + SIGNATURE
            check_table(file, source.path, ParquetFooter(facts, [] if signed else range(len(columns))))
    return Footer(facts, fields, signed, columns)


def row_groups(source: Source) -> int:
    """Number of row groups. Raises CorpusError for what is no Parquet file, or more than one."""
    return int(footer_of(source).facts.num_row_groups)


def rows_of(source: Source, group: int) -> int:
    """Number of rows of one row group."""
    return int(footer_of(source).facts.row_group(group).num_rows)


def rows_before(source: Source, group: int) -> int:
    """Number of rows of the row groups before one."""
    facts = footer_of(source).facts
    return sum(facts.row_group(number).num_rows for number in range(group))


def has_column(source: Source, column: str) -> bool:
    """Whether the footer tells of a column by this name alone."""
    footer = footer_of(source)
    return column in footer.columns and not footer.signed


def bytes_of_groups(source: Source, column: str, groups: Iterable[int]) -> int:
    """Bytes of the texts of row groups; of all columns, where the one cannot be told."""
    footer = footer_of(source)
    leaf = footer.columns.index(column) if has_column(source, column) else None
    facts = (footer.facts.row_group(group) for group in groups)
    return sum(
        int(group.total_byte_size if leaf is None else group.column(leaf).total_uncompressed_size) for group in facts
    )


def groups_together(source: Source, column: str, step: int) -> Iterator[tuple[int, int]]:
    """Row groups [first, stop) that are read together: until their texts have `step` bytes."""
    footer = footer_of(source)
    leaf = None if footer.signed else _leaf_of(footer, column)
    first, size, count = 0, 0, footer.facts.num_row_groups
    for group in range(count):
        facts = footer.facts.row_group(group)
        size += facts.total_byte_size if leaf is None else facts.column(leaf).total_uncompressed_size
        if size >= step:
            yield first, group + 1
            first, size = group + 1, 0
    if first < count:
        yield first, count


def parquet_rows(
    source: Source, groups: Sequence[int] | None, options: Options, first: int, content: bytes | None = None
) -> Iterator[tuple[int, Any, float]]:
    """(k, rows of range k, share of the file that has been read) of row groups (None: all), from range `first` on.
    `content`: the bytes of the file, where they are in memory."""
    pa = _arrow()
    footer, name = footer_of(source, content), options.of_tables
    groups = range(footer.facts.num_row_groups) if groups is None else groups
    if not len(groups):
        return
    where = f"{source.path}, row group {groups[0]}"
    with _opened(source, content) as raw:
        facts = [footer.facts.row_group(group) for group in groups]
        total = sum(group.num_rows for group in facts)
        try:
            wanted = _wanted(footer.schema, source, options)
            leaf = _leaf(footer, raw, source, name, groups)
            leaves = _below(footer, _names(options)) if options.messages else [leaf] if leaf is not None else []
            columns = [[group.column(each) for each in leaves] for group in facts]
            every = list(chain.from_iterable(columns))
            kept = KeptColumns(footer.schema, options.keep, source.path)
            file = raw
            if content is None and is_url(source.path):
                file = Fetched(raw, source.size or 0, list(map(place_of, every)))
            for group, some, number in zip(facts, columns, groups, strict=False):
                for column in some if group.num_rows else ():
                    check_table(
                        file, f"{source.path}, row group {number}", ParquetColumn(column), options.max_document_bytes
                    )
            with _parquet(file, source, footer.facts) as table:
                rows = _rows_at_once(facts, columns)
                if any(column.has_dictionary_page for column in every):
                    longest = max(column.total_uncompressed_size for column in every)
                    if options.messages is not None:
                        longest = min(longest, UNPACKED // FEW_ROWS)
                    elif rows * longest > UNPACKED and rows > FEW_ROWS:  # it costs more to read them one by one
                        longest = _longest_in_dictionary(
                            file, source, groups, name, footer.columns[leaf or 0], footer.facts
                        )
                    rows = max(1, min(rows, UNPACKED // max(longest, 1)))
                batches = table.iter_batches(rows, list(groups), [*_names(options), *options.keep], use_threads=False)
                texts = _texts_of(batches, wanted, kept)
                limit = Limit(where, options.max_document_bytes, "row")
                share, count = len(groups) / max(footer.facts.num_row_groups, 1), max(footer.facts.num_row_groups, 1)
                for at, array, done in cut_rows(texts, options.range_bytes):
                    limit.rows(array, done - len(array))
                    found = [kept.take(array)]
                    del array  # nothing here holds what the encoder releases
                    if at >= first:
                        yield at, found.pop(), groups[0] / count + share * min(done / max(total, 1), 1)
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(where, error, "readable rows") from error


def _leaf(footer: Footer, raw: Any, source: Source, name: str, groups: Sequence[int]) -> int | None:
    """The number of the column of texts, None where it cannot be told. CorpusError where it cannot be read."""
    if footer.signed:
        with _parquet(raw, source, footer.facts) as table:
            try:
                next(table.iter_batches(batch_size=1, row_groups=list(groups)[:1], columns=[name]), None)
            except OSError as error:
                if "decrypt" in str(error).lower():
                    raise encrypted(source.path, f"the encrypted column {name!r}") from error
                raise
    return _leaf_of(footer, name)


def _leaf_of(footer: Footer, name: str) -> int | None:
    """The number of a column, a member of a struct, or the texts of a list; None where it cannot be told."""
    if name in footer.columns:
        return footer.columns.index(name)
    inside = [k for k, path in enumerate(footer.columns) if path.startswith(f"{name}.")]
    return inside[0] if len(inside) == 1 else None


def _below(footer: Footer, names: Sequence[str]) -> list[int]:
    """The numbers of the columns of these names, and of all that are inside them."""
    return [
        k for k, path in enumerate(footer.columns) if any(path == name or path.startswith(f"{name}.") for name in names)
    ]


def _names(options: Options) -> list[str]:
    """The columns that documents are in."""
    return [options.of_tables, *([options.tools] if options.tools else [])]


def _wanted(schema: Any, source: Source, options: Options) -> TextColumn | ChatColumns:
    """The texts, or the chats, of a table."""
    if options.messages is None:
        return text_column(schema, options.column, source.path, options.join)
    return chat_columns(schema, options.messages, options.tools, source.path)


def _rows_at_once(groups: Sequence[Any], columns: Sequence[Sequence[Any]]) -> int:
    """Rows of a batch of BATCH_BYTES, by the average of the group with the longest rows."""
    average = max(
        (
            sum(column.total_uncompressed_size for column in some) / max(group.num_rows, 1)
            for group, some in zip(groups, columns, strict=False)
        ),
        default=0.0,
    )
    count = sum(group.num_rows for group in groups)  # room is taken for a whole batch
    return int(max(1, min(BATCH_ROWS, count, int(BATCH_BYTES / max(average, 1e-3)))))


def _longest_in_dictionary(file: Any, source: Source, groups: Sequence[int], column: str, leaf: str, facts: Any) -> int:
    """Bytes of the longest value in the dictionaries of a column of row groups."""
    import pyarrow.compute as pc

    longest = 0
    with _parquet(file, source, facts, read_dictionary=[leaf]) as table:
        for group in groups:
            for batch in table.iter_batches(batch_size=1, row_groups=[group], columns=[column]):
                values = batch.column(0)
                while values.type.num_fields:  # a struct or a list
                    values = values.field(0) if hasattr(values, "field") else values.values
                values = getattr(values, "dictionary", values)
                longest = max(longest, int(pc.max(pc.binary_length(values)).as_py() or 0))
                break
    return longest


def arrow_rows(
    source: Source, options: Options, first: int, content: bytes | None = None
) -> Iterator[tuple[int, Any, float]]:
    """The same for one column of an Arrow IPC file or stream. The file is read, not memory-mapped: truncating a
    mapped file kills the process that reads it. Offsets are checked before they are used."""
    pa = _arrow()
    read = 0
    with _opened(source, content) as file:
        try:
            reader, total, wanted, kept = _ipc_reader(file, source, options)
            with _opened(source, content) as raw:
                remote = is_url(source.path) and content is None
                check_table(raw, source.path, ArrowMessages(total is None), options.max_document_bytes, remote)
            batches = (reader.get_batch(i) for i in range(total)) if total is not None else iter(reader)

            def columns() -> Iterator[Any]:
                nonlocal read
                for batch in batches:
                    read += 1
                    column = wanted.of(batch)
                    wanted.check(column)
                    kept.add(batch)
                    yield wanted.texts(column)

            limit = Limit(source.path, options.max_document_bytes, "row")
            for at, array, done in cut_rows(columns(), options.range_bytes):
                limit.rows(array, done - len(array))
                found = [kept.take(array)]
                del array  # as in `parquet_rows`
                if at >= first:
                    yield at, found.pop(), read / total if total else file.tell() / max(source.size or 1, 1)
        except MalformedArray as error:
            where = f"{source.path}, batch {read - 1}, column {options.of_tables!r}, {error.where}"
            raise CorpusError(where, error.found, f"{error.expected}: write the file again") from error
        except (pa.ArrowException, OSError, EOFError) as error:
            raise _unreadable(source.path, error, WHOLE_ARROW) from error


def _ipc_reader(
    file: Any, source: Source, options: Options
) -> tuple[Any, int | None, TextColumn | ChatColumns, KeptColumns]:
    """A reader of the columns that are wanted of an IPC file; its number of batches, None for a stream; the column of
    the texts; the fields to keep."""
    pa = _arrow()

    def opened(kind: Any) -> tuple[Any, TextColumn | ChatColumns, KeptColumns]:
        file.seek(0)
        schema = kind(file).schema
        wanted = _wanted(schema, source, options)
        kept = KeptColumns(schema, options.keep, source.path)
        file.seek(0)
        names = dict.fromkeys((*wanted.columns, *(path[0] for path in kept.paths)))
        indices = sorted(map(schema.get_field_index, names))
        return kind(file, options=pa.ipc.IpcReadOptions(included_fields=indices)), wanted, kept

    try:
        reader, wanted, kept = opened(pa.ipc.open_file)
    except pa.ArrowInvalid:
        reader, wanted, kept = opened(pa.ipc.open_stream)
        return reader, None, wanted, kept
    return reader, reader.num_record_batches, wanted, kept


def _texts_of(batches: Iterable[Any], wanted: TextColumn | ChatColumns, kept: KeptColumns) -> Iterator[Any]:
    for batch in batches:
        kept.add(batch)
        yield wanted.texts(wanted.of(batch))


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
                yield current, _taken(pending), rows
            current = number
            pending.append(column.slice(start, stop - start))
            rows += stop - start
        total = int(ends[-1])
    column = None  # so what is yielded is all there is of it
    if pending:
        yield current, _taken(pending), rows


def _taken(pending: list[Any]) -> Any:
    """The arrays of a list as one, and the list is empty."""
    found = _arrow().chunked_array(pending)
    pending.clear()
    return found

"""Arrow tables: a column of texts to a column of ids, without a Python object a document."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jittok.errors import missing
from jittok.kernels.inputs import Errors
from jittok.tokenizer import Tokenizer
from jittok.tokenizer.loading import bundled, load

if TYPE_CHECKING:
    import pyarrow as pa

Vocabulary = Tokenizer | str | os.PathLike[str]
Table = TypeVar("Table", "pa.Table", "pa.RecordBatch")


def tokenizer_of(vocab: Vocabulary) -> Tokenizer:
    """A Tokenizer as it is; else the one of a tokenizer file, or of a bundled name where no such file is."""
    if isinstance(vocab, Tokenizer):
        return vocab
    if Path(vocab).exists():
        return load(vocab)
    return bundled(os.fspath(vocab))


def encode_column(
    texts: pa.Array | pa.ChunkedArray,
    tok: Tokenizer,
    *,
    add_special: bool = False,
    parse_special: bool = False,
    errors: Errors = "strict",
    threads: int | None = None,
) -> pa.Array:
    """`list<int32>` (`large_list` from 2^31 ids on) of a string or binary array; nulls stay null. No id is copied."""
    try:
        import pyarrow as pa
    except ImportError:
        raise missing("jittok.arrow", "pyarrow", "arrow") from None

    if not isinstance(texts, pa.Array | pa.ChunkedArray):
        found = type(texts).__name__
        raise TypeError(f"found a {found}, expected an Arrow array (encode_batch takes any sequence of texts)")
    rows = tok.encode_batch(texts, add_special=add_special, parse_special=parse_special, errors=errors, threads=threads)
    lists = rows.to_arrow()
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    nulls = [_nulls(chunk) for chunk in chunks]
    if not any(found.true_count for found in nulls):
        return lists
    return type(lists).from_arrays(lists.offsets, lists.values, mask=pa.concat_arrays(nulls))


def _nulls(texts: pa.Array) -> pa.BooleanArray:
    """Which rows are null. In a dictionary array a row is also null if its entry is."""
    if not hasattr(texts, "dictionary") or not texts.dictionary.null_count:
        return texts.is_null()
    return texts.dictionary.is_null().take(texts.indices).fill_null(True)


def encode_table(
    table: Table,
    tok: Tokenizer,
    column: str = "text",
    output: str = "input_ids",
    *,
    add_special: bool = False,
    parse_special: bool = False,
    errors: Errors = "strict",
    threads: int | None = None,
) -> Table:
    """The table (or record batch) with a column `output` of ids; a column of that name is replaced.

    KeyError when there is no column `column`, TypeError when it holds no texts, EncodingFailed as for `encode_batch`.
    """
    if column not in table.schema.names:
        raise KeyError(f"found columns {', '.join(table.schema.names)}, expected {column!r} among them")
    ids = encode_column(
        table.column(column), tok, add_special=add_special, parse_special=parse_special, errors=errors, threads=threads
    )
    if output in table.schema.names:
        return table.set_column(table.schema.names.index(output), output, ids)
    return table.append_column(output, ids)


def table_options(given: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of `encode_table`, checked here rather than in a worker. TypeError for others."""
    known = ("add_special", "parse_special", "errors", "threads")
    for name in given:
        if name not in known:
            raise TypeError(f"found argument {name!r}, expected {', '.join(known)}")
    return given

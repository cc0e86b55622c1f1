"""The column of a table that holds the texts: a column, a member of a struct, lists of texts that are
joined, and extension types such as Arrow's JSON, which are read as what they are stored as."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jittok.common.rows.checks import arrow_offsets
from jittok.errors import CorpusError, InWords, missing
from jittok.kernels.inputs import arrow

TEXTS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
LISTS = ("list", "large_list", "fixed_size_list")


def _arrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        raise missing("reading and writing tables", "pyarrow", "corpus") from None
    return pa


class TextColumn(NamedTuple):
    """Where the texts of a table are: a column, and names of members from the outermost struct inward."""

    name: str
    path: tuple[str, ...]
    is_plain: bool  # a column of texts as it is
    join: str | None = None  # what is between the texts of a list

    def of(self, batch: Any) -> Any:
        """The column of a record batch that the texts are in, checked as far as `texts` needs."""
        return batch.column(batch.schema.get_field_index(self.path[0]))

    def texts(self, column: Any) -> Any:
        """The texts of a column that `check` has found to be sound: an array of strings or binaries, or of a dictionary
        of these."""
        if self.is_plain:
            return column
        pa = _arrow()
        array = _storage(column)
        for name in self.path[1:]:
            array = _storage(array.flatten()[array.type.get_field_index(name)])  # with the nulls around it
        if not _is(array.type, LISTS):
            return array
        import pyarrow.compute as pc

        # bytes as they are: what is not UTF-8 is an error of its document
        lists = array.cast(pa.large_list(pa.large_binary()))
        return pc.binary_join(lists, pa.scalar((self.join or "").encode(), pa.large_binary()))

    def check(self, column: Any) -> None:
        """MalformedArray, TypeError or an error of Arrow where a column of a file cannot be right."""
        if self.is_plain:
            arrow.check_rows(column)
            return
        array = _storage(column)
        for name in self.path[1:]:
            array.validate()
            array = _storage(array.field(array.type.get_field_index(name)))
        if _is(array.type, LISTS):
            array.validate()
            if not _is(array.type, ("fixed_size_list",)):
                dtype = np.int64 if _is(array.type, ("large_list",)) else np.int32
                arrow_offsets(array, dtype, len(array.values))
            array = _storage(array.values)
        arrow.check_rows(array)


def text_column(schema: Any, name: str, where: str, join: str | None = None) -> TextColumn:
    """The column of this name in a schema: that very name, else names joined by dots. CorpusError when there is no such
    column of texts."""
    path = (name,) if name in schema.names or "." not in name else tuple(name.split("."))
    kind, is_plain = None, True
    for depth, part in enumerate(path):
        names = schema.names if kind is None else [kind.field(i).name for i in range(kind.num_fields)]
        if part not in names:
            inside = f" in {'.'.join(path[:depth])!r}" if depth else ""
            found = f"columns {', '.join(names)}" if not depth else f"members {', '.join(names)}{inside}"
            raise CorpusError(where, InWords(found), f"a column {name!r} (--column)")
        if names.count(part) > 1:
            found = f"{names.count(part)} columns {'.'.join(path[: depth + 1])!r}"
            raise CorpusError(where, InWords(found), "exactly one column of that name (--column)")
        kind = schema.field(part).type if kind is None else kind.field(part).type
        is_plain = is_plain and depth == 0 and not hasattr(kind, "storage_type")
        kind = getattr(kind, "storage_type", kind)
        if depth < len(path) - 1 and not _is(kind, ("struct",)):
            found = f"column {'.'.join(path[: depth + 1])!r} of {kind}"
            raise CorpusError(where, InWords(found), f"a struct with a member {path[depth + 1]!r}")
    if _is(kind, LISTS) and _holds_texts(kind.value_type):  # type: ignore[union-attr]
        if join is None:
            found = f"column {name!r} of {kind}"
            raise CorpusError(where, InWords(found), "one text a row, or what is between those of a list (--join)")
        return TextColumn(name, path, False, join)
    if not _holds_texts(kind):
        raise CorpusError(where, InWords(f"column {name!r} of {kind}"), "texts (string, large_string, binary)")
    return TextColumn(name, path, is_plain)


def _holds_texts(kind: Any) -> bool:
    kind = getattr(kind, "storage_type", kind)
    if _is(kind, ("dictionary",)):
        kind = kind.value_type
    return _is(kind, TEXTS)


def _is(kind: Any, names: tuple[str, ...]) -> bool:
    types = _arrow().types
    return any(getattr(types, f"is_{name}")(kind) for name in names)


def _storage(array: Any) -> Any:
    """An array without its extension type."""
    return getattr(array, "storage", array)

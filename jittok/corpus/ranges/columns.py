"""The column of a table that holds the texts: a column, a member of a struct, lists of texts that are
joined, and extension types such as Arrow's JSON, which are read as what they are stored as."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
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

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that are read for it."""
        return (self.path[0],)

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


class ChatColumns(NamedTuple):
    """Where the chats of a table are: the names of the messages and of the tools, and the paths to them. The text of a
    row is JSON, an object with these two names."""

    names: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that are read for it."""
        return tuple(path[0] for path in self.paths)

    def of(self, batch: Any) -> Any:
        """The columns of a record batch."""
        return [batch.column(batch.schema.get_field_index(path[0])) for path in self.paths]

    def check(self, columns: Any) -> None:
        """An error of Arrow where a column of a file cannot be right."""
        for column in columns:
            column.validate(full=True)

    def texts(self, columns: Any) -> Any:
        """An array of large_string; null where there are no messages."""
        pa, fields = _arrow(), []
        for column, path in zip(columns, self.paths, strict=True):
            array = _storage(column)
            for name in path[1:]:
                array = _storage(array.flatten()[array.type.get_field_index(name)])
            fields.append(array.to_pylist())
        rows = (dict(zip(self.names, row, strict=True)) for row in zip(*fields, strict=True))
        return pa.array([None if row[self.names[0]] is None else _as_json(row) for row in rows], pa.large_string())


def chat_columns(schema: Any, messages: str, tools: str | None, where: str) -> ChatColumns:
    """The columns of chats. CorpusError when there is no such column, and for messages that are no list and no text."""
    path, kind, _ = _found(schema, messages, where, "--messages")
    if not _is(kind, LISTS) and not _holds_texts(kind):
        raise CorpusError(where, InWords(f"column {messages!r} of {kind}"), "lists of messages, or texts of their JSON")
    if tools is None:
        return ChatColumns((messages,), (path,))
    return ChatColumns((messages, tools), (path, _found(schema, tools, where, "--tools")[0]))


def text_column(schema: Any, name: str, where: str, join: str | None = None) -> TextColumn:
    """The column of this name in a schema: that very name, else names joined by dots. CorpusError when there is no such
    column of texts."""
    path, kind, is_plain = _found(schema, name, where, "--column")
    if _is(kind, LISTS) and _holds_texts(kind.value_type):
        if join is None:
            found = f"column {name!r} of {kind}"
            raise CorpusError(where, InWords(found), "one text a row, or what is between those of a list (--join)")
        return TextColumn(name, path, False, join)
    if not _holds_texts(kind):
        raise CorpusError(where, InWords(f"column {name!r} of {kind}"), "texts (string, large_string, binary)")
    return TextColumn(name, path, is_plain)


def _found(schema: Any, name: str, where: str, option: str) -> tuple[tuple[str, ...], Any, bool]:
    """(the path of a column, its type, whether it is a column of the table as it is)."""
    path = (name,) if name in schema.names or "." not in name else tuple(name.split("."))
    kind, is_plain = None, True
    for depth, part in enumerate(path):
        names = schema.names if kind is None else [kind.field(i).name for i in range(kind.num_fields)]
        if part not in names:
            inside = f" in {'.'.join(path[:depth])!r}" if depth else ""
            found = f"columns {', '.join(names)}" if not depth else f"members {', '.join(names)}{inside}"
            raise CorpusError(where, InWords(found), f"a column {name!r} ({option})")
        if names.count(part) > 1:
            found = f"{names.count(part)} columns {'.'.join(path[: depth + 1])!r}"
            raise CorpusError(where, InWords(found), f"exactly one column of that name ({option})")
        kind = schema.field(part).type if kind is None else kind.field(part).type
        is_plain = is_plain and depth == 0 and not hasattr(kind, "storage_type")
        kind = getattr(kind, "storage_type", kind)
        if depth < len(path) - 1 and not _is(kind, ("struct",)):
            found = f"column {'.'.join(path[: depth + 1])!r} of {kind}"
            raise CorpusError(where, InWords(found), f"a struct with a member {path[depth + 1]!r}")
    return path, kind, is_plain


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


# ---- fields that stand beside the ids


def arrow_for_fields() -> Any:
    """pyarrow. MissingPackage where it is not installed."""
    try:
        import pyarrow as pa
    except ImportError:
        raise missing("fields beside the ids", "pyarrow", "corpus") from None
    return pa


@dataclass
class KeptRows:
    """The texts of some rows of a table, and for each kept field an array of large_string."""

    texts: Any
    kept: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def nbytes(self) -> int:
        """Of the texts."""
        return int(self.texts.nbytes)


class KeptColumns:
    """The kept fields of a table: batches are added, and rows taken, in order."""

    def __init__(self, schema: Any, names: Sequence[str], where: str) -> None:
        self.paths = [_found(schema, name, where, "--keep")[0] for name in names]
        self._held: deque[list[Any]] = deque()

    def add(self, batch: Any) -> None:
        """The fields of a record batch."""
        if self.paths:
            self._held.append([_texts_of(self._of(batch, path)) for path in self.paths])

    def take(self, texts: Any) -> Any:
        """These texts, the next ones, with their fields; the texts alone where there are none."""
        if not self.paths:
            return texts
        found: list[list[Any]] = [[] for _ in self.paths]
        left = len(texts)
        while left:
            arrays = self._held.popleft()
            count = min(left, len(arrays[0]))
            for column, array in zip(found, arrays, strict=True):
                column.append(array[:count])
            if count < len(arrays[0]):
                self._held.appendleft([array[count:] for array in arrays])
            left -= count
        empty = arrow_for_fields().array([], arrow_for_fields().large_string())
        return KeptRows(texts, tuple(arrow_for_fields().concat_arrays([empty, *column]) for column in found))

    @staticmethod
    def _of(batch: Any, path: tuple[str, ...]) -> Any:
        array = _storage(batch.column(batch.schema.get_field_index(path[0])))
        for name in path[1:]:
            array.validate()
            array = _storage(array.flatten()[array.type.get_field_index(name)])
        return array


def _texts_of(array: Any) -> Any:
    """The values of a column as texts: large_string."""
    pa = arrow_for_fields()
    if _holds_texts(array.type):
        arrow.check_rows(array)
    else:
        array.validate(full=True)
    if _is(array.type, ("dictionary",)):
        array = array.dictionary_decode()
    if pa.types.is_nested(array.type):
        return pa.array([None if row is None else _as_json(row) for row in array.to_pylist()], pa.large_string())
    with suppress(pa.ArrowException):
        found = array.cast(pa.large_string())
        found.validate(full=True)  # a string of a file need not be UTF-8
        return found
    raw = array.cast(pa.large_binary()).to_pylist()
    return pa.array([None if row is None else row.decode("utf-8", "replace") for row in raw], pa.large_string())


def _as_json(row: Any) -> str:
    def other(each: Any) -> str:
        return each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each)

    return json.dumps(row, ensure_ascii=False, default=other)

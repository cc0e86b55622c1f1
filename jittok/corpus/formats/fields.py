"""The fields that documents keep, in a table beside layouts of ids alone: row k is of document k of the shard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jittok.corpus.formats.base import Facts, Format, Output, Rows, Shard, Sink
from jittok.corpus.formats.tables import KEPT_BYTES, HashedFile

ROWS = 1 << 14
"""Documents of a record batch, or fewer where they keep KEPT_BYTES."""


class Fields(Format):
    """An Arrow IPC file a shard, a column of large_string for each field; nulls where a document has no such field."""

    name = "kept"
    small, large, small_size = "int32", "int32", 1 << 31
    per_token = 0
    per_document = 64
    keeps_fields = True
    writer = "pyarrow"

    def __init__(self, facts: Facts) -> None:
        from jittok.corpus.ranges.columns import arrow_for_fields

        pa = arrow_for_fields()
        super().__init__(facts)
        self.schema = pa.schema([pa.field(name, pa.large_string()) for name in facts.keep])

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """An Arrow file."""
        return ("kept/{}.arrow",)

    def _dtype(self) -> Any:
        return None  # it has no ids

    def sink(self, shard: Shard) -> Sink:
        """The file, which is written as it grows."""
        return _FieldsSink(self, shard.path(self.name))


class _FieldsSink(Sink):
    def __init__(self, form: Fields, path: Path) -> None:
        import pyarrow as pa

        self.form, self.path = form, path
        self._file = HashedFile(path)
        self._writer = pa.ipc.new_file(pa.PythonFile(self._file, "w"), form.schema)
        self._held: list[Rows] = []

    def append(self, rows: Rows) -> None:
        self._held.append(rows)
        documents = sum(each.lengths.size for each in self._held)
        if documents >= ROWS or sum(each.kept_bytes() for each in self._held) >= KEPT_BYTES:
            self._write()

    def _write(self) -> None:
        import pyarrow as pa

        held, self._held = self._held, []
        if held:
            columns = [pa.concat_arrays(each) for each in zip(*(rows.kept for rows in held), strict=True)]
            self._writer.write_batch(pa.record_batch(columns, schema=self.form.schema))

    def finish(self) -> list[Output]:
        self._write()
        self._writer.close()
        self._file.close()
        (name,) = self.form.names()
        return [Output(self.path, name, self._file.digest.hexdigest())]

    def close(self) -> None:
        self._held = []
        self._file.close()

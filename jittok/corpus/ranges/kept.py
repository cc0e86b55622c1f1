"""The fields that documents keep beside their ids: texts, a column for each field.

A string is its text, any other value of JSON as it is written, and a number, date or boolean of a table as Arrow writes
it; lists and structs of a table are JSON. What has no such field, and what is no row (plain text), has a null. Whatever
stands there never costs a document: invalid UTF-8 and lone surrogates are U+FFFD.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jittok.corpus.inputs.json_lines import OTHER, TEXT, Lines, lines_of_block, path_in
from jittok.corpus.inputs.json_rows import kept_value
from jittok.corpus.inputs.json_scan import GIVEN, ODD_VALUE, gather_values
from jittok.corpus.inputs.kinds import TABLES
from jittok.corpus.inputs.sources import Source
from jittok.corpus.options import Options
from jittok.corpus.ranges.columns import KeptRows, arrow_for_fields
from jittok.corpus.ranges.documents import RangeTexts
from jittok.corpus.ranges.units import RawRange
from jittok.kernels.jit import frozen

Columns = tuple[Any, ...]
"""A pyarrow array of large_string for each field."""


class _Part(NamedTuple):
    """The fields of the lines of a file after the first `before`."""

    source: int
    before: int
    columns: Columns


class Kept:
    """The kept fields of a range: read before its payload is, asked for when its documents are known."""

    def __init__(self, raw: RawRange, sources: Sequence[Source], options: Options) -> None:
        self.count = len(options.keep)
        if raw.pieces:
            pieces = [(piece.source, piece.kind, piece.before, piece.payload) for piece in raw.payload]
        else:
            pieces = [(raw.key.source, sources[raw.key.source].kind, 0, raw.payload)]
        self._parts = [
            _Part(source, before, _columns(payload, kind, options))
            for source, kind, before, payload in pieces
            if kind == "jsonl" or kind in TABLES
        ]

    def __call__(self, texts: RangeTexts) -> Columns:
        """The fields of each document."""
        pa = arrow_for_fields()
        rows = np.full(texts.lines.size, -1, np.int64)
        at = 0
        for source, before, columns in self._parts:
            low, high = np.searchsorted(texts.sources, [source, source + 1])
            lines, size = texts.lines[low:high] - before, len(columns[0])
            here = (lines > 0) & (lines <= size)
            rows[low:high][here] = at + lines[here] - 1
            at += size
        taken = pa.array(rows, mask=rows < 0)
        empty = pa.array([], pa.large_string())
        return tuple(
            pa.concat_arrays([empty, *(part.columns[k] for part in self._parts)]).take(taken) for k in range(self.count)
        )


def _columns(payload: Any, kind: str, options: Options) -> Columns:
    if kind == "jsonl":
        return _of_json(payload, options)
    assert isinstance(payload, KeptRows)
    return payload.kept


def _of_json(block: bytes, options: Options) -> Columns:
    lines = lines_of_block(block, options.field, others=options.keep)
    return tuple(_field(block, lines, k, name, len(options.keep)) for k, name in enumerate(options.keep))


def _field(block: bytes, lines: Lines, k: int, name: str, fields: int) -> Any:
    """The values of one field on all lines of a block."""
    pa = arrow_for_fields()
    count = lines.codes.size
    spans = lines.spans.reshape(count, fields, 2)[:, k].copy()
    spans[lines.codes != TEXT] = -1  # of which the kernel says nothing
    sizes = np.where(spans[:, 0] >= 0, spans[:, 1] - spans[:, 0], 0)
    data, out = frozen(np.frombuffer(block, np.uint8), np.uint8), np.empty(int(sizes.sum()), np.uint8)
    ends, codes = np.zeros(count, np.int64), np.zeros(count, np.uint8)
    asked = lines.codes == OTHER
    if spans.size and not asked.all():
        size = gather_values(data, frozen(spans.ravel(), np.int64), 0, 2, out, ends, codes)
        if size < 0:
            raise AssertionError(f"gather_values: {size}")
    if path_in(block, name) == [name] != name.split("."):  # the kernel has not looked for a member of an object
        asked = asked | (lines.codes == TEXT) & (spans[:, 0] < 0)
    asked = asked | (codes == ODD_VALUE)
    offsets = np.concatenate([np.zeros(1, np.int64), ends])
    null = codes != GIVEN
    bits = np.packbits(~null, bitorder="little")
    found = pa.LargeStringArray.from_buffers(count, *(pa.py_buffer(part) for part in (offsets, out, bits)))
    if not asked.any():
        return found
    values = found.to_pylist()
    for row in np.flatnonzero(asked).tolist():
        start, stop = lines.span(row, len(block))
        values[row] = kept_value(block[start:stop].removeprefix(b"\xef\xbb\xbf"), name)
    return pa.array(values, pa.large_string())

"""A stage of a trace: a list of plain records, their columns as a NumPy array, and both as JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.trace.recorder import Record
from jittok.trace.stages import stage_html, stage_text

MISSING = -1
"""The value for None in a column of integers of `Stage.array`."""


class Stage(list[Record]):
    """The records of one stage, in the order in which they happened. A list with its own display."""

    def __init__(self, name: str, records: list[Record]) -> None:
        super().__init__(records)
        self.name = name
        self.context: Record = {}
        """What pictures need besides the records: the text and the other stages; see `Trace`."""

    def to_dict(self) -> list[Record]:
        """The records as values that JSON supports: an infinite or missing number is None."""
        plain: list[Record] = finite(list(self))
        return plain

    def to_json(self, *, indent: int | None = None) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)

    @property
    def array(self) -> NDArray[Any]:
        """A structured array with a row per record: its numbers and flags. None is -1 among integers, NaN among
        floats."""
        names = list(dict.fromkeys(name for record in self for name in record))
        columns: dict[str, NDArray[Any]] = {}
        for name in names:
            values = [record.get(name) for record in self]
            column = _column(values)
            if column is not None:
                columns[name] = column
        rows = np.empty(len(self), [(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            rows[name] = column
        return rows

    def __repr__(self) -> str:
        return stage_text(self.name, self, self.context)

    def _repr_html_(self) -> str:
        return stage_html(self.name, self, self.context)


def _column(values: list[Any]) -> NDArray[Any] | None:
    """A column of bool, int64 or float64; None if it holds anything else."""
    known = [value for value in values if value is not None]
    if not all(isinstance(value, int | float) for value in known):
        return None
    if known and all(isinstance(value, bool) for value in known) and len(known) == len(values):
        return np.array(values, np.bool_)
    if all(isinstance(value, int) for value in known):
        return np.array([MISSING if value is None else value for value in values], np.int64)
    return np.array([math.nan if value is None else value for value in values], np.float64)


def finite(value: Any) -> Any:
    """The same records and lists with None for numbers that JSON does not support."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return value

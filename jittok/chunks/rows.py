"""The class `Rows`: encoded texts cut to rows for training, with the text and the segments that their ids come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jittok.chunks.padding import on_threads, pad_rows, padding_of
from jittok.chunks.windows import (
    FIRST_START,
    FIRST_STOP,
    LENGTH,
    PART,
    PARTS,
    ROW,
    SECOND_START,
    SECOND_STOP,
    TEXT,
)
from jittok.chunks.written import RUN, SPECIAL, Template, write_rows, write_spans, write_types
from jittok.common.pipeline.pipeline import FIRST_TEXT, SECOND_TEXT
from jittok.common.rows.ids import Ids
from jittok.common.rows.padded import Padded, Side, int32, padded_length, padding_id
from jittok.common.rows.ragged import read_only_array, row_number
from jittok.common.rows.token_array import Describe, TokenArray
from jittok.errors import InWords, MalformedArray, refuse_keywords
from jittok.kernels.jit import frozen

if TYPE_CHECKING:
    from jittok.align import AlignmentBatch

Unit = Literal["characters", "bytes"]
Align = Callable[[Any, Unit], "AlignmentBatch"]
"""align(texts, unit): as they were encoded."""
COLUMNS = ((FIRST_START, FIRST_STOP), (SECOND_START, SECOND_STOP))
CHANGED = "the texts of these rows have changed since they were encoded: encode them again"


BothIds = tuple[NDArray[np.int32], NDArray[np.int32]]
"""The ids of all first and of all second texts."""


class Source(NamedTuple):
    """Texts that rows were made of: the first or the second ones."""

    texts: Any
    offsets: NDArray[np.int64]  # where their ids begin and end
    align: Align


class Facts(NamedTuple):
    """What rows know beside their ids."""

    parts: tuple[tuple[int, int], ...]  # the template, see `Pipeline.template`
    pad_id: int | None
    max_length: int | None  # what rows were cut to, if they were
    threads: int | None = None


class Rows(TokenArray):
    """Rows of ids, each with special tokens around a text, a pair, or a window of it; made by `Tokenizer.encode_batch`.

    A TokenArray, so `ids`: int32[total]; `offsets`: int64[rows + 1], row i is ids[offsets[i]:offsets[i + 1]]. And
    `row_of`: int64[rows], the number of the text that each row is of; `types`: int32[total], the segment of each id, as
    the file's template has it; `sequences`: int32[total], 0 or 1 for ids of the first or the second text, -1 for
    special tokens. `spans()` finds where the ids are in the texts. All arrays are read-only, and made when asked for.

    >>> import jittok
    >>> tok = jittok.bundled("gpt-2")
    >>> rows = tok.encode_batch(["one two three four", "five"], max_length=3, overlap=1, windows=True)
    >>> rows.to_list(), rows.row_of.tolist()
    ([[505, 734, 1115], [1115, 1440], [13261]], [0, 0, 1])
    """

    __slots__ = ("_facts", "_ids", "_made", "_table", "_template", "_texts")
    _facts: Facts
    _template: Template
    _ids: BothIds
    _table: NDArray[np.int64]
    _texts: tuple[Source, ...]
    _made: dict[str, NDArray[Any]]

    def __init__(self, *_: object) -> None:
        raise TypeError("Rows are made by tok.encode_batch(texts, max_length=...)")

    @classmethod
    def of_table(
        cls, facts: Facts, ids: BothIds, table: NDArray[np.int64], texts: tuple[Source, ...] = (),
        describe: Describe | None = None,
    ) -> Rows:  # fmt: skip
        """The rows of a table, whose lines are inside the ids of all first and of all second texts."""
        made = object.__new__(cls)
        fields: dict[str, Any] = {
            "_facts": facts, "_ids": ids, "_table": table, "_texts": texts, "_describe": describe,
            "_around": (0, 0), "_pad_id": facts.pad_id, "_made": {}, "_template": template_of(facts.parts),
        }  # fmt: skip
        for name, value in fields.items():
            object.__setattr__(made, name, value)
        return made

    # ---- what a TokenArray has

    @property
    def offsets(self) -> NDArray[np.int64]:  # type: ignore[override]
        """int64[rows + 1]: where the rows begin and end in `ids`."""
        return self._once("offsets", lambda: np.append(0, np.cumsum(self._table[:, LENGTH])))

    @property
    def ids(self) -> NDArray[np.int32]:  # type: ignore[override]
        """int32[total]: the ids of all rows."""
        return self._once("ids", lambda: self._written(np.int32, 1, write_rows, self._template, *self._ids))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64[rows]: ids of each row."""
        return self._once("lengths", self._table[:, LENGTH].copy)

    @property
    def row_of(self) -> NDArray[np.int64]:
        """int64[rows]: the number of the text that a row is of."""
        return self._once("row_of", self._table[:, TEXT].copy)

    @property
    def types(self) -> NDArray[np.int32]:
        """int32[total]: the segment of each id: 0, and 1 for the second text, or what the file's template says."""
        return self._once("types", lambda: self._written(np.int32, 1, write_types, self._template, 0))

    @property
    def sequences(self) -> NDArray[np.int32]:
        """int32[total]: 0 or 1 for the ids of the first or the second text, -1 for special tokens."""
        return self._once("sequences", lambda: self._written(np.int32, 1, write_types, self._template, 1))

    @property
    def max_length(self) -> int | None:
        """What rows were cut to; None where nothing was to be cut."""
        return self._facts.max_length

    def spans(self, unit: Unit = "characters") -> NDArray[np.int64]:
        """int64[total, 2]: start and stop of each id in its text, the first or the second; 0 and 0 for special tokens.

        The texts are encoded once more, by `align_batch`. They must still be what they were: ValueError otherwise, and
        for rows from an iterator or a pickle, which keep no texts.
        """
        if unit not in ("characters", "bytes"):
            raise ValueError(f"unit: found {unit!r}, expected 'characters' or 'bytes'")
        if not self._texts:
            raise ValueError("these rows keep no texts: encode a list, and ask for spans in the same process")
        return self._once(f"spans in {unit}", lambda: self._spans(unit))

    def __len__(self) -> int:
        return len(self._table)

    @overload
    def __getitem__(self, row: int) -> Ids: ...
    @overload
    def __getitem__(self, row: slice) -> Rows: ...
    def __getitem__(self, row: int | slice) -> Ids | Rows:
        if isinstance(row, slice):
            return self._some(self._table[row])
        row = row_number(row, len(self))
        if "ids" in self._made:
            return self.ids[self.offsets[row] : self.offsets[row + 1]].view(Ids)
        return self._some(self._table[row : row + 1]).ids.view(Ids)

    def take(self, rows: ArrayLike) -> Rows:
        """These rows in this order, as for a shuffled batch; no id is copied. IndexError if there is no such row."""
        chosen = read_only_array(rows, np.int64, "rows")
        for row in (int(chosen.min()), int(chosen.max())) if chosen.size else ():
            row_number(row, len(self))
        return self._some(self._table[chosen])

    def __repr__(self) -> str:
        return f"Rows({len(self)} rows, {int(self._table[:, LENGTH].sum())} ids)"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (tuple(self._facts), *_compact(self._ids, self._table))

    # ---- padded

    def to_padded(  # type: ignore[override]
        self,
        length: int | None = None,
        *,
        pad_id: int | None = None,
        side: Side = "right",
        multiple_of: int | None = None,
        pad_type: int = 0,
        **others: NoReturn,
    ) -> Padded:
        """Rows of one length: their ids, a mask, and types of segments, `(ids, mask, types)`.

        `length=None`: the longest row. `multiple_of`: the length is rounded up to a multiple of it. `pad_id=None`: that
        of the vocabulary. `side`: where the padding goes. `pad_type`: its type. ValueError for a row that is longer,
        and for a multiple that does not divide the `max_length` of the rows, as they might become longer than it.
        """
        if others:
            refuse_keywords(self.to_padded, others)
        pad_id, pad_type = padding_id(pad_id, self._facts.pad_id, side), int32(pad_type, "pad_type")
        length = self._padded_length(length, multiple_of)
        padding = padding_of(length, pad_id, pad_type, side, self._template.types)
        return pad_rows(self._template, self._ids, self._table, padding, self._facts.threads)

    def _padded_length(self, length: int | None, multiple_of: int | None) -> int:
        lengths = self._table[:, LENGTH]
        longest, most = int(lengths.max(initial=0)), self._facts.max_length
        length = padded_length(length, longest, multiple_of)
        if multiple_of is not None and most is not None and most % multiple_of:
            raise ValueError(
                f"multiple_of: found {multiple_of}, expected a divisor of {most}, the max_length of these rows"
            )
        if length < longest:
            row = int(np.argmax(lengths > length))
            raise ValueError(
                f"row {row}: found {lengths[row]} ids, expected at most {length}: max_length={length} of encode_batch "
                "cuts texts, length=None pads to the longest row"
            )
        return length

    # ---- parts

    def _once(self, name: str, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """An array that is made when it is first asked for."""
        if name not in self._made:
            array = make()
            array.flags.writeable = False
            self._made[name] = array
        return self._made[name]

    def _written(self, dtype: Any, width: int, kernel: Any, *given: Any) -> NDArray[Any]:
        """What a kernel writes for each id."""
        flat, offsets = frozen(self._table.reshape(-1), np.int64), self.offsets
        out = np.empty(width * int(offsets[-1]), dtype)

        def write(begin: int, end: int) -> None:
            kernel(*given, flat, offsets, begin, end, out)

        on_threads(write, len(self), out.size, self._facts.threads)
        return out

    def _some(self, table: NDArray[np.int64]) -> Rows:
        """The rows of these lines of the table."""
        return Rows.of_table(self._facts, self._ids, table, self._texts, self._describe)

    def _same(self, describe: Describe | None, _around: tuple[int, int], _pad_id: int | None) -> Rows:
        return Rows.of_table(self._facts, self._ids, self._table, self._texts, describe)

    def _spans(self, unit: Unit) -> NDArray[np.int64]:
        used = np.flatnonzero(np.bincount(self._table[:, TEXT]))  # np.unique imports much at its first call
        table, found = self._table.copy(), [frozen([], np.int64)] * 2
        for k, (source, (start, stop)) in enumerate(zip(self._texts, COLUMNS, strict=False)):
            numbers = used if isinstance(source.texts, list | tuple) else np.arange(source.offsets.size - 1)
            begins, ends = source.offsets[numbers], source.offsets[numbers + 1]
            all_of_them = numbers.size == source.offsets.size - 1
            batch = source.align(source.texts if all_of_them else [source.texts[n] for n in numbers.tolist()], unit)
            before = self._ids[k] if all_of_them else self._ids[k][_places(begins, ends)]
            if not (np.array_equal(batch.ids, before) and np.array_equal(np.diff(batch.offsets), ends - begins)):
                raise ValueError(CHANGED)
            moved = np.zeros(source.offsets.size, np.int64)
            moved[numbers] = batch.offsets[:-1] - begins
            table[:, [start, stop]] += moved[table[:, TEXT]][:, None]
            found[k] = frozen(batch.spans.reshape(-1), np.int64)
        flat = self._some(table)._written(np.int64, 2, write_spans, self._template, *found)
        spans: NDArray[np.int64] = flat.reshape(-1, 2)
        return spans


def template_of(parts: tuple[tuple[int, int], ...]) -> Template:
    """The template of parts and their types, for kernels."""
    ids = [part for part, _ in parts]
    sequences = [{FIRST_TEXT: 0, SECOND_TEXT: 1}.get(part, SPECIAL) for part in ids]
    of_parts = ([value for value in values for _ in range(RUN)] for values in ([kind for _, kind in parts], sequences))
    return Template(frozen(ids, np.int32), *(frozen(values, np.int32) for values in of_parts))


def _places(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers from each start to its stop, one after the other."""
    counts = stops - starts
    before = np.cumsum(counts) - counts
    places: NDArray[np.int64] = np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
    return places


def _compact(ids: BothIds, table: NDArray[np.int64]) -> tuple[BothIds, NDArray[np.int64]]:
    """The same rows over no more ids than they have."""
    table, made = table.copy(), list(ids)
    for k, (start, stop) in enumerate(COLUMNS):
        counts = table[:, stop] - table[:, start]
        if int(counts.sum()) < ids[k].size:
            made[k] = ids[k][_places(table[:, start], table[:, stop])]
            table[:, stop] = np.cumsum(counts)
            table[:, start] = table[:, stop] - counts
    return (made[0], made[1]), table


def _unpickled(facts: tuple[Any, ...], ids: BothIds, table: NDArray[np.int64]) -> Rows:
    """Unpickle rows. MalformedArray for a line that is not inside the ids."""
    its, first, second = Facts(*facts), *(read_only_array(each, np.int32, "ids") for each in ids)
    table = np.ascontiguousarray(table, np.int64).reshape(-1, ROW)
    before, after = table[:, PARTS] % PART, table[:, PARTS] // PART
    good = (table[:, PARTS] >= 0) & (before <= after) & (after <= len(its.parts)) & (table[:, TEXT] >= 0)
    length = after - before
    for source, what, (start, stop) in zip((first, second), (FIRST_TEXT, SECOND_TEXT), COLUMNS, strict=True):
        good &= (table[:, start] >= 0) & (table[:, start] <= table[:, stop]) & (table[:, stop] <= source.size)
        at = next((k for k, (part, _) in enumerate(its.parts) if part == what), -1)
        holds = (before <= at) & (at < after)
        length += np.where(holds, table[:, stop] - table[:, start] - 1, 0)
    if not (good & (length == table[:, LENGTH])).all():
        row = int(np.argmin(good & (length == table[:, LENGTH])))
        raise MalformedArray(f"row {row} of a pickle", InWords(f"{table[row].tolist()}"), "a line inside its ids")
    return Rows.of_table(its, (first, second), table)

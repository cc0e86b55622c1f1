"""Kernels cut and write rows as the plain reference does, for any template, lengths and options."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.chunks.cutting import STRATEGIES
from jittok.chunks.rows import template_of
from jittok.chunks.windows import LENGTH, NO_STEP, PARTS, ROW, TEXT, TOO_SHORT, WHOLE, Cutting, cut_rows
from jittok.chunks.written import RUN, Padding, write_padded, write_rows, write_spans, write_types
from jittok.common.pipeline.pipeline import FIRST_TEXT, SECOND_TEXT
from jittok.kernels.jit import frozen
from jittok.reference.chunks.windows import document_rows, rows

SPECIAL = st.lists(st.tuples(st.integers(900, 910), st.integers(0, 3)), max_size=2)


@st.composite
def templates(draw: st.DrawFn, paired: bool) -> list[tuple[int, int]]:
    texts = [(FIRST_TEXT, draw(st.integers(0, 2)))]
    if paired:
        texts.insert(draw(st.integers(0, 1)), (SECOND_TEXT, draw(st.integers(0, 2))))
    parts = draw(SPECIAL)
    for text in texts:
        parts += [text, *draw(SPECIAL)]
    return parts


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, ...]:
    paired = draw(st.booleans())
    lengths = st.integers(0, draw(st.sampled_from([3, 12, 40])))
    texts = draw(st.lists(st.tuples(lengths, lengths), min_size=1, max_size=6))
    strategy = draw(st.sampled_from([None, *STRATEGIES]))
    room, overlap = draw(st.integers(0, 14)), draw(st.integers(0, 6))
    return draw(templates(paired)), paired, texts, strategy, room, overlap, draw(st.sampled_from(["left", "right"]))


def arrays(lengths: list[int]) -> tuple[Any, Any]:
    """The ids of texts of these lengths, all different, and their offsets."""
    offsets = np.cumsum([0, *lengths])
    return frozen(np.arange(offsets[-1]), np.int32), frozen(offsets, np.int64)


def table_of(how: Cutting, first: Any, second: Any) -> Any:
    """int64[rows, ROW], or the code and the report; the count is right before there is room for all rows."""
    report, empty = np.zeros(3, np.int64), np.zeros(0, np.int64)
    count = cut_rows(how, first, second, empty, report)
    if count < 0:
        return count, report.tolist()
    table = np.empty(ROW * count, np.int64)
    assert cut_rows(how, first, second, table, report) == count
    return table.reshape(-1, ROW)


def check(table: Any, template: list[tuple[int, int]], sources: tuple[Any, Any], wanted: list[Any]) -> None:
    """The written rows are the wanted: ids, types, sequences and spans, flat and padded."""
    made, flat = template_of(tuple(template)), frozen(table.reshape(-1), np.int64)
    assert table[:, LENGTH].tolist() == [len(row) for row in wanted]
    offsets = frozen(np.cumsum([0, *map(len, wanted)]), np.int64)
    total, count = int(offsets[-1]), len(wanted)
    items = [item for row in wanted for item in row]
    ids, kinds, spans = np.empty(total, np.int32), np.empty(total, np.int32), np.empty(2 * total, np.int64)
    write_rows(made, *sources, flat, offsets, 0, count, ids)
    assert ids.tolist() == [item.id for item in items]
    for sequences in (0, 1):
        write_types(made, sequences, flat, offsets, 0, count, kinds)
        assert kinds.tolist() == [item.sequence if sequences else item.type for item in items]
    of_ids = [frozen(np.stack([each, each + 1], 1).reshape(-1), np.int64) for each in sources]
    write_spans(made, *of_ids, flat, offsets, 0, count, spans)
    assert spans.reshape(-1, 2).tolist() == [[item.id, item.id + 1] if item.sequence >= 0 else [0, 0] for item in items]
    for left, spare, typed in ((0, 0, 1), (1, 3, 1), (0, 21, 0)):
        length = max(map(len, wanted)) + spare
        padding = Padding(length, left, typed, frozen([7] * RUN, np.int32), frozen([9] * RUN, np.int32))
        out, types = np.full((count, length), -9, np.int32), np.full((count, length), -9, np.int32)
        mask = np.full((count, length), 5, np.uint8)
        grids = (each.reshape(-1) for each in (out, mask, types))
        write_padded(made, *sources, flat, 0, count, padding, *grids)
        for k, row in enumerate(wanted):
            rest = length - len(row)

            def filled(values: list[int], pad: int, rest: int = rest, left: int = left) -> list[int]:
                return [pad] * rest * left + values + [pad] * rest * (1 - left)

            assert out[k].tolist() == filled([item.id for item in row], 7)
            assert mask[k].tolist() == filled([1] * len(row), 0)
            assert types[k].tolist() == (filled([item.type for item in row], 9) if typed else [-9] * length)


@given(cases(), st.booleans())
@example(([(FIRST_TEXT, 0)], False, [(0, 0)], "only_first", 0, 0, "left"), True)
@example(([(1, 0), (FIRST_TEXT, 0), (SECOND_TEXT, 1)], True, [(0, 9), (9, 9)], "longest_first", 5, 1, "right"), True)
@example(([(FIRST_TEXT, 0)], False, [(9, 0)], "only_second", 5, 1, "right"), False)
@example(([(FIRST_TEXT, 0), (SECOND_TEXT, 1)], True, [(3, 4)], "only_first", 4, 0, "right"), False)  # all of its ids
@example(([(FIRST_TEXT, 0)], False, [(3, 0)], "longest_first", 0, 1, "right"), True)
@example(([(FIRST_TEXT, 0)], False, [(4, 0)], "longest_first", 3, 1, "left"), True)  # the last window is short
def test_rows_are_those_of_the_reference(case: tuple[Any, ...], every: bool) -> None:
    template, paired, texts, strategy, room, overlap, side = case
    (first, of_first), (second, of_second) = arrays([a for a, _ in texts]), arrays([b for _, b in texts])
    number = WHOLE if strategy is None else STRATEGIES[strategy]
    swapped = [part for part, _ in template if part < 0] == [SECOND_TEXT, FIRST_TEXT]
    how = Cutting(
        number, room, overlap, int(side == "left"), int(every), int(paired), int(swapped), len(template), 0, 0
    )  # fmt: skip
    found = table_of(how, of_first, of_second)
    wanted, row_of = [], []
    for text, (a, b) in enumerate(texts):
        ids = (np.arange(n) + offsets[text] for n, offsets in ((a, of_first), (b, of_second)))
        one, other = (each.tolist() for each in ids)
        options: dict[str, Any] = {"room": None if strategy is None else room, "overlap": overlap, "side": side}
        given_pair = other if paired else None
        if isinstance(found, tuple) and found[1][0] == text:
            with pytest.raises(ValueError, match="overlap" if found[0] == NO_STEP else "truncation"):
                rows(one, given_pair, template, strategy=strategy or "longest_first", **options)
            return
        made = rows(one, given_pair, template, strategy=strategy or "longest_first", **options)
        wanted += made if every else made[:1]
        row_of += [text] * (len(made) if every else 1)
    assert not isinstance(found, tuple), found
    assert found[:, TEXT].tolist() == row_of
    check(found, template, (first, second if paired else frozen([], np.int32)), wanted)


@given(
    templates(False), st.lists(st.integers(0, 20), min_size=1, max_size=4), st.integers(1, 9), st.integers(0, 8),
    st.sampled_from(["left", "right"]), st.booleans(), st.booleans(),
)  # fmt: skip
@example([(900, 1), (901, 2), (FIRST_TEXT, 0), (902, 0)], [0, 7], 1, 0, "right", True, True)
@example([(FIRST_TEXT, 0)], [0], 3, 0, "left", True, True)
def test_special_tokens_are_once_around_the_windows_of_a_document(
    template: list[tuple[int, int]], lengths: list[int], length: int, overlap: int, side: str, every: bool, cuts: bool
) -> None:
    overlap = overlap % length
    first, offsets = arrays(lengths)
    before = template.index(next(part for part in template if part[0] == FIRST_TEXT))
    how = Cutting(int(cuts), length, overlap, int(side == "left"), int(every), 0, 0, len(template), before, 1)
    found = table_of(how, offsets, frozen([], np.int64))
    wanted = []
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        ids = list(range(start, stop))
        made = document_rows(ids, template, length=length if cuts else None, overlap=overlap, side=side)
        wanted += made if every else made[:1]
    check(found, template, (first, frozen([], np.int32)), wanted)
    assert ((found[:, PARTS] >> 16) <= len(template)).all()


def test_a_table_that_is_full_is_not_written_past_its_end() -> None:
    how = Cutting(STRATEGIES["longest_first"], 2, 1, 0, 1, 0, 0, 1, 0, 0)
    _, offsets = arrays([9, 9])
    table = np.full(ROW * 12, -1, np.int64)
    room = table[: ROW * 10]
    assert cut_rows(how, offsets, frozen([], np.int64), room, np.zeros(3, np.int64)) == 16
    assert (table[ROW * 8 :] == -1).all()


def test_a_text_that_would_lose_all_of_its_ids_is_reported() -> None:
    (_, first), (_, second) = arrays([1, 3, 3]), arrays([1, 5, 5])
    of_first, of_second = (
        Cutting(STRATEGIES[name], 4, 0, 0, 1, 1, 0, 2, 0, 0) for name in ("only_first", "only_second")
    )  # fmt: skip
    assert table_of(of_first, first, second) == (TOO_SHORT, [1, 3, 4])
    assert table_of(of_second, first, second)[:, TEXT].tolist() == [0, *[1] * 5, *[2] * 5]

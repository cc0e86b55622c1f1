"""Rows of ids for training: texts and pairs cut to a length, or into windows, with special tokens around each.

The rules are those of tokenizers, except that a window which would not move on is an error.

>>> pair = [(101, 0), (FIRST_TEXT, 0), (102, 0), (SECOND_TEXT, 1), (102, 1)]
>>> cut = rows([1, 2, 3, 4, 5], [9], pair, room=4, strategy="only_first", overlap=1)
>>> [[item.id for item in row] for row in cut]
[[101, 1, 2, 3, 102, 9, 102], [101, 3, 4, 5, 102, 9, 102]]
>>> [item.type for item in cut[0]]
[0, 0, 0, 0, 0, 1, 1]
>>> once = document_rows([1, 2, 3, 4, 5], [(101, 0), (FIRST_TEXT, 0), (102, 0)], length=3)
>>> [[item.id for item in row] for row in once]
[[101, 1, 2], [3, 4, 5], [102]]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from jittok.common.pipeline.pipeline import FIRST_TEXT, SECOND_TEXT

Part = TypeVar("Part")
Template = Sequence[tuple[int, int]]
"""(an id, FIRST_TEXT or SECOND_TEXT; type of its segment) of each part of a row."""


class Item(NamedTuple):
    """One id of a row."""

    id: int
    type: int
    sequence: int  # 0 or 1: of the first or the second text; -1: a special token
    place: int  # which id of its text; -1 for a special token


Row = list[Item]


def windows(parts: Sequence[Part], size: int, overlap: int, side: str) -> list[Sequence[Part]]:
    """Windows of `size` that share `overlap`; the first one is what truncation keeps, and ends on the other side.

    Without room the first one is empty, and the second one everything.
    """
    if len(parts) <= size:
        return [parts]
    if size == 0:
        return [parts[:0], parts]
    if overlap >= size:
        raise ValueError(f"overlap: found {overlap}, expected less than {size}, the length without special tokens")
    step, count = size - overlap, len(parts)
    number = 1 + -(-(count - size) // step)
    if side == "right":
        return [parts[k * step : k * step + size] for k in range(number)]
    return [parts[max(0, count - k * step - size) : count - k * step] for k in range(number)]


def lengths(first: int, second: int | None, room: int, strategy: str) -> tuple[int, int | None]:
    """How many ids of each text stay where `room` is left for both."""
    excess = first + (second or 0) - room
    if excess <= 0:
        return first, second
    if room == 0:
        return 0, None if second is None else 0
    if second is None and strategy == "only_second":
        raise ValueError("truncation: found 'only_second' without pairs, expected 'only_first' or 'longest_first'")
    if strategy == "longest_first":
        if second is None:
            return room, None
        small, large = min(first, second), max(first, second)
        large = small if small > room else max(small, room - small)
        if small + large > room:
            small, large = room // 2, room - room // 2
        return (small, large) if first <= second else (large, small)
    shortened = first if strategy == "only_first" else second or 0
    if shortened <= excess:
        raise ValueError(f"truncation: found {shortened} ids, {excess} too many, expected {strategy} to leave one")
    return (first - excess, second) if strategy == "only_first" else (first, (second or 0) - excess)


def rows(
    first: Sequence[int], second: Sequence[int] | None, template: Template, *, room: int | None,
    strategy: str = "longest_first", overlap: int = 0, side: str = "right",
) -> list[Row]:  # fmt: skip
    """The rows of one text or pair: the first is the truncated one. room: ids of texts in a row; None: nothing is cut.

    After the first row come the other windows of the text that the template has first, each with every window of the
    other; then its first window with the other ones of the other text.
    """
    a, b = list(enumerate(first)), list(enumerate(second or ()))
    keep = (len(a), len(b)) if room is None else lengths(len(a), None if second is None else len(b), room, strategy)
    cut = room is not None and len(a) + len(b) > room
    firsts = windows(a, keep[0], overlap, side) if cut else [a]
    seconds = windows(b, keep[1] or 0, overlap, side) if cut and second is not None else [b]
    swapped = tuple(part for part, _ in template if part < 0) == (SECOND_TEXT, FIRST_TEXT)
    outer, inner = (seconds, firsts) if swapped else (firsts, seconds)
    order = [(outer[0], inner[0])]
    order += [(x, y) for x in outer[1:] for y in inner]
    order += [(outer[0], y) for y in inner[1:]]
    return [_made(template, *((y, x) if swapped else (x, y))) for x, y in order]


def document_rows(
    ids: Sequence[int], template: Template, *, length: int | None, overlap: int = 0, side: str = "right"
) -> list[Row]:
    """The rows of one text with the special tokens once around all of them: windows of the text with these."""
    whole = _made(template, list(enumerate(ids)), [])
    return [whole] if length is None else [list(row) for row in windows(whole, length, overlap, side)]


def _made(template: Template, first: Sequence[tuple[int, int]], second: Sequence[tuple[int, int]]) -> Row:
    row: Row = []
    for part, kind in template:
        if part in (FIRST_TEXT, SECOND_TEXT):
            sequence = int(part == SECOND_TEXT)
            row += [Item(token, kind, sequence, place) for place, token in (second if sequence else first)]
        else:
            row.append(Item(part, kind, -1, -1))
    return row

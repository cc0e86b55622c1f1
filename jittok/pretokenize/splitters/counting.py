"""The stages of the general splitter that no automaton with one character of look-ahead says (see `program.py`).

They read the classes of `general.py`: `begins` says of each class which stages look for it, the lowest bit of a byte of
`classes` is a cut.
"""

from __future__ import annotations

from jittok._jit import helper
from jittok._raw import Window, get_u8, put_u8


@helper
def _looked_for(begins: Window, stage: int, column: int) -> bool:
    return get_u8(begins, column >> 1) >> stage & 1 != 0


@helper
def _is_rest(begins: Window, classes: Window, i: int) -> bool:
    """Whether byte i is a continuation byte: their class is the one behind the characters' classes, bit 7 of `begins`."""
    return get_u8(begins, get_u8(classes, i) >> 1) & 0x80 != 0


@helper
def _run(begins: Window, stage: int, classes: Window, i: int) -> tuple[int, int]:
    """(end of the run at i of characters that the stage looks for, how many they are); a cut ends it."""
    count = 1
    i += 1
    while get_u8(classes, i) & 1 == 0:
        if not _is_rest(begins, classes, i):
            if not _looked_for(begins, stage, get_u8(classes, i)):
                break
            count += 1
        i += 1
    return i, count


@helper
def _cut(classes: Window, i: int) -> None:
    put_u8(classes, i, get_u8(classes, i) | 1)


@helper
def _cut_threes(begins: Window, classes: Window, i: int, end: int, count: int) -> None:
    """Cuts between groups of three of the `count` characters of i .. end, counted from the right."""
    first = i
    while i < end:
        if not _is_rest(begins, classes, i):
            if i > first and count % 3 == 0:
                _cut(classes, i)
            count -= 1
        i += 1


@helper
def cut_digit_groups(begins: Window, stage: int, classes: Window, size: int) -> None:
    """Runs of numbers in threes from their right ends; what stands before a run belongs to its first group."""
    i = 0
    while i < size:
        if not _looked_for(begins, stage, get_u8(classes, i)):
            i += 1
            continue
        end, count = _run(begins, stage, classes, i)
        _cut_threes(begins, classes, i, end, count)
        _cut(classes, end)
        i = end


@helper
def cut_digit_threes(begins: Window, stage: int, classes: Window, size: int) -> None:
    """A cut wherever a multiple of three ASCII digits, and then none, follows; no cut leaves an empty piece."""
    i = 0
    while i < size:
        if not _looked_for(begins, stage, get_u8(classes, i)):
            i += 1
            continue
        end, count = _run(begins, stage, classes, i)
        _cut_threes(begins, classes, i, end, count)
        if count % 3 == 0:
            _cut(classes, i)
        i = end


@helper
def cut_trailing_space(begins: Window, stage: int, classes: Window, size: int) -> None:
    """A cut before the run of white space that ends a piece."""
    i = 0
    while i < size:
        if not _looked_for(begins, stage, get_u8(classes, i)):
            i += 1
            continue
        end, _ = _run(begins, stage, classes, i)
        if get_u8(classes, end) & 1 != 0:
            _cut(classes, i)
        i = end

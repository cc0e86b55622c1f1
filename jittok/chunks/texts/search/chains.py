"""The chains of pieces that are being cut: what a kernel sees of them, their questions, and boundaries of the texts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.chunks.texts.adjacent import AdjacentWindow, apart
from jittok.chunks.texts.search.sections import AFTER_SPACE, Sections
from jittok.chunks.texts.search.state import (
    ANCHOR,
    CHARACTERS,
    COUNT,
    CURSOR,
    DIRECTION,
    FIRST,
    FIXED,
    INNER,
    NEAR,
    OFFSET,
    PLACES,
    TEXT_START,
    TEXT_STOP,
    USABLE,
)  # fmt: skip
from jittok.kernels.fragments import TEXT, TEXT_PREFIXED
from jittok.kernels.jit import I32, I64, U16, OutI32, OutI64, helper
from jittok.kernels.memory import (
    Window,
    get_i64,
    get_u8,
    get_u64,
    leading_zeros,
    put_i32,
    put_i64,
    trailing_zeros,
    window,
)

_0, _1 = np.uint64(0), np.uint64(1)


class CutOptions(NamedTuple):
    """What is asked of all texts."""

    most: int  # ids of a piece
    overlap: int  # ids that two pieces may share
    once: int  # 1: only the first piece of each text
    ids_before: int  # ids that are put before a text and after it
    ids_after: int
    prefix: int  # bytes that the first token of a text covers and the text does not have
    exact: int  # 1: sizes of tokens that add up to a text are exact; 0: they are guesses
    rounds: int  # 1: counts from an anchor are checked, as ids after it may depend on what is before it


class Answers(NamedTuple):
    """What the questions of the last call gave."""

    ids: I32  # of all of them
    ends: I64  # [questions] where the ids of each end
    sizes: U16  # [tokens + 1] the bytes that token k - 1 covers


class Questions(NamedTuple):
    """Texts that chains ask for: data[starts[k]:stops[k]], of `kinds` TEXT (the inside of one) or TEXT_PREFIXED."""

    starts: OutI64
    stops: OutI64
    kinds: OutI32


class SectionWindow(NamedTuple):
    """`Sections` as windows."""

    starts: Window
    stops: Window
    before: Window
    ids: Window
    ends: Window
    begins: Window
    way: int
    where: int
    alone: int


@helper
def open_sections(found: Sections) -> SectionWindow:
    """Windows onto the arrays."""
    return SectionWindow(
        window(found.starts), window(found.stops), window(found.before), window(found.ids),
        window(found.ends), window(found.begins), found.way, found.where, found.alone,
    )  # fmt: skip


class Chains(NamedTuple):
    """Windows onto the arrays of `advance`."""

    own: AdjacentWindow
    reach: int
    text: Window
    bits: Window
    liked: Window
    state: Window
    ids: Window
    ends: Window
    sizes: Window
    starts: Window
    stops: Window
    kinds: Window
    sections: SectionWindow
    pieces: Window
    made: Window
    most: int
    overlap: int
    once: int
    ids_before: int
    ids_after: int
    prefix: int
    exact: int
    rounds: int


@helper
def get(own: Chains, s: int, field: int) -> int:
    """A word of the chain whose state begins at s."""
    return get_i64(own.state, s + field)


@helper
def put(own: Chains, s: int, field: int, value: int) -> None:
    """Write it."""
    put_i64(own.state, s + field, value)


@helper
def ask_between(own: Chains, s: int, start: int, stop: int, place: int, inner: bool) -> None:
    """Ask for the ids of data[start:stop], to learn of a place. inner: as they are inside of a text."""
    k = get(own, s, COUNT)
    cursor = get(own, s, CURSOR)
    if k == 0:
        put(own, s, FIRST, cursor)
    put_i64(own.starts, cursor + k, start)
    put_i64(own.stops, cursor + k, stop)
    put_i32(own.kinds, cursor + k, TEXT if inner and own.sections.where < AFTER_SPACE else TEXT_PREFIXED)
    put_i64(own.state, s + PLACES + k, place)
    put(own, s, COUNT, k + 1)


@helper
def ask(own: Chains, s: int, place: int) -> None:
    """Ask for the ids between a place and the anchor, where that is of use, or the fixed place."""
    if get(own, s, DIRECTION) > 0:
        far = place >= get(own, s, USABLE)
        inner = far and get(own, s, INNER) != 0
        ask_between(own, s, get(own, s, ANCHOR) if far else get(own, s, FIXED), place, place, inner)
    else:
        ask_between(own, s, place, get(own, s, FIXED), place, False)


@helper
def ids_before(own: Chains, question: int) -> int:
    """Where the ids of a question begin."""
    return get_i64(own.ends, question - 1) if question > 0 else 0


@helper
def raw_answer(own: Chains, s: int, k: int) -> int:
    """The ids of what question k of a chain asked for."""
    question = get(own, s, FIRST) + k
    return get_i64(own.ends, question) - ids_before(own, question)


@helper
def answer(own: Chains, s: int, k: int) -> int:
    """The ids of the whole text of question k."""
    count = raw_answer(own, s, k)
    return count + get(own, s, OFFSET) if place(own, s, k) >= get(own, s, USABLE) else count


@helper
def place(own: Chains, s: int, k: int) -> int:
    """The place that question k asked for."""
    return get_i64(own.state, s + PLACES + k)


@helper
def after(own: Chains, s: int, x: int) -> int:
    """The first boundary after x, which is before the text's end."""
    x += 1
    if get(own, s, CHARACTERS) != 0:
        stop = get(own, s, TEXT_STOP)
        while x < stop and get_u8(own.text, x) & 0xC0 == 0x80:
            x += 1
        return x
    word = get_u64(own.bits, x >> 6) >> np.uint64(x & 63)
    if word != _0:
        return x + trailing_zeros(word)
    at = (x >> 6) + 1
    while get_u64(own.bits, at) == _0:
        at += 1
    return (at << 6) + trailing_zeros(get_u64(own.bits, at))


@helper
def before(own: Chains, s: int, x: int) -> int:
    """The last boundary before x, which is after the text's start."""
    x -= 1
    if get(own, s, CHARACTERS) != 0:
        start = get(own, s, TEXT_START)
        while x > start and get_u8(own.text, x) & 0xC0 == 0x80:
            x -= 1
        return x
    word = get_u64(own.bits, x >> 6) << np.uint64(63 - (x & 63))
    if word != _0:
        return x - leading_zeros(word)
    at = (x >> 6) - 1
    while get_u64(own.bits, at) == _0:
        at -= 1
    return (at << 6) + 63 - leading_zeros(get_u64(own.bits, at))


@helper
def on(own: Chains, s: int, x: int) -> int:
    """The next boundary in the direction of the search."""
    return after(own, s, x) if get(own, s, DIRECTION) > 0 else before(own, s, x)


@helper
def back_to_boundary(own: Chains, s: int, x: int) -> int:
    """The boundary at x, or the next one towards the fixed place."""
    return before(own, s, x + 1) if get(own, s, DIRECTION) > 0 else after(own, s, x - 1)


@helper
def is_apart(own: Chains, s: int, x: int) -> bool:
    """Whether no token crosses the boundary x."""
    return get(own, s, TEXT_START) < x < get(own, s, TEXT_STOP) and apart(own.own, own.text, x)


@helper
def next_apart(own: Chains, s: int, x: int, end: int) -> int:
    """The first place beyond x and before `end` that no token crosses; -1: there is none; -2: none is near."""
    direction, begin = get(own, s, DIRECTION), x
    x = on(own, s, x)
    while direction * (end - x) > 0:
        if is_apart(own, s, x):
            return x
        if direction * (x - begin) > NEAR:
            return -2
        x = on(own, s, x)
    return -1

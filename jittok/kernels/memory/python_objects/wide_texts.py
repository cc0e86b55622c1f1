"""UTF-8 of `str` that are not ASCII, read where Python keeps them; so threads can do it beside each other.

CPython keeps the characters of such a str in one, two or four bytes each. Where they begin and which bits of its state
tell their width is learnt from known ones, as in `texts`; where anything is not found as expected, none is read.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import I64, U8, OutI64, OutU8, frozen, helper, kernel
from jittok.kernels.memory import (
    FAST,
    Window,
    get_i64,
    get_u8,
    get_u16,
    get_u32,
    get_word,
    narrow_8,
    narrow_16,
    narrow_32,
    put_u8,
    put_word,
    spell_8,
    spell_16,
    spell_32,
    window,
)
from jittok.kernels.memory.python_objects.texts import (
    NO_STR,
    STATE_WORD,
    addresses_of,
    any_bits,
    common_bits,
    samples,
    state_of,
    str_layout,
    text_at,
)

SPARE_BYTES = 64
"""Bytes that there must be capacity for after what is written."""
UTF8_BYTES_PER_CHARACTER = np.array([1, 2, 2, 0, 1])
"""By width, how many times as long a text can be in UTF-8; a width of 0 is of texts that are bytes already."""
CODECS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}
"""What reads the characters of a width."""
NONE = np.uint64(0)
SURROGATES = 0xD800 >> 11


class WideLayout(NamedTuple):
    """How a str that is not ASCII is laid out: its characters begin `header` bytes in, the bit `compact` of its state
    is set and one of those of a width."""

    header: int
    compact: int
    one: int
    two: int
    four: int


NO_WIDE = WideLayout(0, 0, 0, 0, 0)
"""It is not known."""


@kernel
def read_wide(
    objects: I64, rows: I64, header: int, compact: int, one: int, two: int, four: int, addresses: OutI64, widths: OutU8
) -> int:
    """Where the characters of some of the objects, which are str, lie and how wide they are: places[row] and
    widths[row]. A width of 0 for those that are laid out in another way. How many are not."""
    done = 0
    for k in range(rows.size):
        row = rows[k]
        state = get_i64(objects[row], STATE_WORD)
        width = 1 if state & one != 0 else 2 if state & two != 0 else 4 if state & four != 0 else 0
        if state & compact == 0:
            width = 0
        widths[row] = width
        if width != 0:
            addresses[row] = objects[row] + header
            done += 1
    return done


@helper
def _put(out: Window, at: int, c: int) -> int:
    """UTF-8 of a character to out[at:]; the offset after it, or -1 for a surrogate. Eight bytes may be written."""
    if c < 0x80:
        put_u8(out, at, c)
        return at + 1
    if c < 0x800:
        put_word(out, at, np.uint64(0x80C0 | c >> 6 | (c & 0x3F) << 8))
        return at + 2
    if c >> 11 == SURROGATES:
        return -1
    if c < 0x10000:
        put_word(out, at, np.uint64(0x8080E0 | c >> 12 | (c >> 6 & 0x3F) << 8 | (c & 0x3F) << 16))
        return at + 3
    tail = (c >> 12 & 0x3F) << 8 | (c >> 6 & 0x3F) << 16 | (c & 0x3F) << 24
    put_word(out, at, np.uint64(0x808080F0 | c >> 18 | tail))
    return at + 4


def _join_of(narrow: Any, spell: Any, get: Any) -> Any:
    """`join(source, size, out, at)`: UTF-8 of `size` characters to `out`; where it ends, -1 for a surrogate."""

    @helper
    def join(source: Window, size: int, out: Window, at: int) -> int:
        i = 0
        while i + 32 <= size:
            if narrow(source, i, out, at) == NONE:
                at += 32
            else:
                at = spell(source, i, out, at)
                if at >= 0:
                    at = spell(source, i + 16, out, at)
                if at < 0:
                    return -1
            i += 32
        while i < size:
            at = _put(out, at, np.int64(get(source, i)))
            if at < 0:
                return -1
            i += 1
        return at

    return join


_join_one = _join_of(narrow_8, spell_8, get_u8)
_join_two = _join_of(narrow_16, spell_16, get_u16)
_join_four = _join_of(narrow_32, spell_32, get_u32)


@kernel
def join_utf8(addresses: I64, sizes: I64, widths: U8, out: OutU8, ends: OutI64) -> int:
    """UTF-8 of texts from addresses one after the other into `out`, which has capacity for them and SPARE bytes more.

    sizes: bytes; widths: of the characters of each, 0 for bytes as they are; ends: int64[texts + 1]
    How many bytes, or -1 - k: text k has a surrogate.
    """
    target, at = window(out), 0
    ends[0] = 0
    for k in range(addresses.size):
        position, size, width = addresses[k], sizes[k], np.int64(widths[k])
        if width == 0:
            i = 0
            while i + 8 <= size:
                put_word(target, at + i, get_word(position, i))
                i += 8
            while i < size:
                put_u8(target, at + i, get_u8(position, i))
                i += 1
            at += size
        else:
            if width == 1:
                at = _join_one(position, size, target, at)
            elif width == 2:
                at = _join_two(position, size // 2, target, at)
            else:
                at = _join_four(position, size // 4, target, at)
            if at < 0:
                return -1 - k
        ends[k + 1] = at
    return at


def wide_texts(texts: tuple[str, ...], rows: NDArray[np.int64], addresses: NDArray[np.int64]) -> NDArray[np.uint8]:
    """uint8[texts] how wide the characters of some of the texts are; where they lie goes to `addresses`. 0 for all
    others and for those that cannot be read in place."""
    widths, layout = np.zeros(len(texts), np.uint8), wide_layout()
    if layout is not NO_WIDE and rows.size:
        read_wide(addresses_of(texts), frozen(rows, np.int64), *layout, addresses, widths)
    return widths


@functools.cache
def wide_layout() -> WideLayout:
    """How this Python lays a str out that is not ASCII, learnt from known ones; NO_WIDE where they do not tell."""
    if not FAST or str_layout() is NO_STR or sys.byteorder != "little":
        return NO_WIDE
    known = [letter * size for letter in "\xe9\u20ac\U0001f600" for size in (*range(1, 40), 300)]
    by_width = [[text for text in known if _width(text) == width] for width in CODECS]
    states = [[state_of(text) for text in texts] for texts in by_width]
    one, two, four = (
        common_bits(own) & ~any_bits([state for others in states if others is not own for state in others])
        for own in states
    )
    first = one & two >> 1 & four >> 2  # 1, 2 and 4 in one field; other bits may be alike by chance
    compact = str_layout().bits & common_bits([state for own in states for state in own])
    if first.bit_count() != 1 or compact.bit_count() != 1:
        return NO_WIDE
    layout = WideLayout(sys.getsizeof(known[-1]) - 4 * (len(known[-1]) + 1), compact, first, 2 * first, 4 * first)
    return layout if all(_is_right(layout, text) for text in (*known, *samples()[1])) else NO_WIDE


def _width(text: str) -> int:
    highest = max(map(ord, text))
    return 1 if highest < 0x100 else 2 if highest < 0x10000 else 4


def _is_right(layout: WideLayout, text: str) -> bool:
    """Whether the characters of a text are found by a layout."""
    width = _width(text)
    kinds = {1: layout.one, 2: layout.two, 4: layout.four}
    found = {kind for kind, bit in kinds.items() if state_of(text) & bit}
    raw = text_at(id(text) + layout.header, width * len(text))
    return found == {width} and raw.decode(CODECS[width]) == text

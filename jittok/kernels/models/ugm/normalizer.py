"""Normalize a span or a fragment of a file, by the table of a tokenizer.json or by sentencepiece's character map.

With a character map, tokenizers normalizes grapheme clusters: those shorter than SHORT_CLUSTER bytes may be keys of the
map. A cluster is taken to be a character and the combining marks after it. Everything else that joins characters
(Hangul, conjuncts of Indic scripts, characters that prepend to the next) makes clusters of SHORT_CLUSTER bytes or more,
so it only matters whether a character with a mark is part of one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jittok.common.unicode.characters import (
    CARRIAGE_RETURN,
    NEWLINE,
    SPACE_BYTE,
    SPACE_MARK_0,
    SPACE_MARK_1,
    SPACE_MARK_2,
    SPACE_MARK_CODE,
)
from jittok.common.unicode.nfc import S_BASE, S_COUNT, T_COUNT
from jittok.kernels.jit import helper
from jittok.kernels.memory import Window, get_i32, get_u8, get_u16, put_u8, window
from jittok.kernels.models.ugm.file_arrays import UnigramFileArrays, UnigramFileWork
from jittok.kernels.models.ugm.lattice import DEPTH
from jittok.kernels.normalize.charsmap.keys import BEGINS_USER, PLAIN, TIED
from jittok.kernels.normalize.charsmap.lookup import longest_known_key, user_path
from jittok.kernels.pretoken_cache.span_loop import WHOLE
from jittok.kernels.structures.double_array import BASE, NO_VALUE, PARENT, ROOT, UNIT, VALUE

ODD_TEXT = -17
"""Kernel code: the reference has to encode this fragment."""
OUTSIDE, INSIDE = 0, 1
"""State: whether the last byte belongs to a word."""
STEP = 64
"""The most bytes that one step writes before capacity is checked again."""
SHORT_CLUSTER = 6
"""Grapheme clusters of this many bytes or more are not looked up as a whole."""
MAPPED, EXTENDS, IS_KEY, CONTROL, PICTURE, ODD, JOINS, BEGINS_KEY = (1 << k for k in range(8))
"""Flags of characters. MAPPED: its normal form differs; EXTENDS: it extends the grapheme cluster before it (U+200D
joins a PICTURE to the next); IS_KEY: it is a key of the character map; CONTROL: nothing extends it; JOINS: it may
belong to the cluster before it, see `is_joined`; ODD: texts with it are left to the reference."""
PREPENDS = BEGINS_KEY
"""With keys of clusters, this flag means: it belongs to the cluster of the character after it."""
LINKS, PARTS = EXTENDS | JOINS, EXTENDS | PREPENDS
"""Combinations with EXTENDS: a linker that may join two consonants; a mark that keeps them apart."""
HANGUL_L, HANGUL_V, HANGUL_T, NO_JAMO = range(4)
"""The kinds of jamo that a Hangul character begins or ends with."""
ZERO_WIDTH_JOINER = 0x200D


class NormalizerWindow(NamedTuple):
    """The tables and the output of the steps, as windows."""

    single: int
    merge: int
    prefix: int
    kinds: Window
    pages: Window
    blocks: Window
    points: Window
    points_size: int
    offsets: Window
    texts: Window
    keys: Window
    key_offsets: Window
    key_texts: Window
    clusters: int
    ends: Window
    ends_size: int
    map_units: Window
    map_size: int
    map_root: int
    replacements: Window
    user: Window
    out: Window
    capacity: int


@helper
def open_normalizer(arrays: UnigramFileArrays, work: UnigramFileWork) -> NormalizerWindow:
    """Windows onto the arrays."""
    table = arrays.table
    return NormalizerWindow(
        arrays.single,
        arrays.merge,
        arrays.prefix,
        window(arrays.kinds),
        window(table.pages),
        window(table.blocks),
        window(table.points),
        table.points.size,
        window(table.offsets),
        window(table.texts),
        window(table.keys.units),
        window(table.key_offsets),
        window(table.key_texts),
        table.clusters,
        window(table.ends),
        table.ends.size,
        window(arrays.charsmap.units),
        arrays.charsmap.units.size,
        arrays.map_root,
        window(arrays.charsmap.replacements),
        window(arrays.user.units),
        window(work.text),
        work.text.size - DEPTH,
    )


@helper
def rewrite(
    own: NormalizerWindow, text: Window, first: int, start: int, stop: int, whole: bool, begins: bool
) -> tuple[int, int]:
    """Normalize text[start:stop] to own.out; (number of bytes, the state after them). In place of the number a code:
    WHOLE if they do not fit or the result depends on the whole fragment, or ODD_TEXT.

    text[first:stop] is valid UTF-8. whole: it is a fragment or some words of one; begins: the fragment begins here, so
    a prefix is added.
    """
    at, state = open_text(own, whole, begins)
    i, at, state = rewrite_on(own, text, first, start, stop, at, state, own.capacity, whole)
    if i < stop:
        return i if i < 0 else WHOLE, state
    return (without_end(own, at) if whole else at), state


@helper
def open_text(own: NormalizerWindow, whole: bool, begins: bool) -> tuple[int, int]:
    """(bytes in own.out, state) before the first step."""
    if not whole or own.prefix == 0:
        return 0, INSIDE
    if own.merge != 0:  # the space before a word is written with the word
        return 0, OUTSIDE
    if not begins:
        return 0, INSIDE
    put_u8(own.out, 0, SPACE_BYTE)
    return 1, OUTSIDE


@helper
def rewrite_on(
    own: NormalizerWindow, text: Window, first: int, i: int, stop: int, at: int, state: int, limit: int, whole: bool
) -> tuple[int, int, int]:
    """Normalize text[i:stop] to own.out[at:] until `limit` is nearly reached; (offset in the text or a code, number of
    bytes in own.out, state after them)."""
    while i < stop and at + STEP <= limit:
        byte = get_u8(text, i)
        kind = get_u8(own.kinds, byte)
        if kind == PLAIN or (kind == TIED and (i + 1 >= stop or get_u8(text, i + 1) < 0x80)):
            at, state = put(own, byte, at, state)
            i += 1
        elif own.single != 0:
            i, at, state = _mapped_step(own, text, i, stop, at, state, whole)
        else:
            i, at, state = table_step(own, text, first, i, stop, at, state)
        if i < 0:
            return i, at, state
    return i, at, state


@helper
def without_end(own: NormalizerWindow, at: int) -> int:
    """The number of bytes after sentencepiece has removed U+2581 from the end of a fragment."""
    while own.single != 0 and own.merge != 0 and at > 0 and get_u8(own.out, at - 1) == SPACE_BYTE:
        at -= 1
    return at


@helper
def put(own: NormalizerWindow, byte: int, at: int, state: int) -> tuple[int, int]:
    """Write one normalized byte, and the space that belongs before it; (offset after it, state)."""
    if own.merge != 0:
        if byte == SPACE_BYTE:
            return at, OUTSIDE
        if state == OUTSIDE:
            put_u8(own.out, at, SPACE_BYTE)
            at += 1
    put_u8(own.out, at, byte)
    return at + 1, INSIDE


@helper
def _put_all(own: NormalizerWindow, text: Window, start: int, stop: int, at: int, state: int) -> tuple[int, int]:
    """Write text[start:stop] by `put`; (offset after it, state), or (WHOLE, state) if it does not fit."""
    while start < stop:
        if at + STEP > own.capacity:
            return WHOLE, state
        at, state = put(own, get_u8(text, start), at, state)
        start += 1
    return at, state


@helper
def _is_mark(text: Window, i: int, size: int) -> bool:
    return (
        size == 3
        and get_u8(text, i) == SPACE_MARK_0
        and get_u8(text, i + 1) == SPACE_MARK_1
        and get_u8(text, i + 2) == SPACE_MARK_2
    )


# ---- sentencepiece


@helper
def _mapped_step(
    own: NormalizerWindow, text: Window, i: int, stop: int, at: int, state: int, whole: bool
) -> tuple[int, int, int]:
    """Normalize a user-defined piece, the longest key of the map or a character; (offset after it or a code, at,
    state)."""
    byte = get_u8(text, i)
    if get_u8(own.kinds, byte) & BEGINS_USER:
        end = user_path(own.user, text, i, stop)[1]
        if end > i:
            while i < end and at >= 0:
                i, at, state = _copied(own, text, i, stop, at, state, whole)
            return i if at >= 0 else WHOLE, at, state
    length, position = longest_known_key(own.map_units, own.map_size, own.map_root, text, i, stop)
    if length > 0:
        byte = get_u8(own.replacements, position)
        while byte != 0:
            if at + STEP > own.capacity:
                return WHOLE, at, state
            at, state = put(own, byte, at, state)
            position += 1
            byte = get_u8(own.replacements, position)
        return i + length, at, state
    i, at, state = _copied(own, text, i, stop, at, state, whole)
    return i if at >= 0 else WHOLE, at, state


@helper
def _copied(
    own: NormalizerWindow, text: Window, i: int, stop: int, at: int, state: int, whole: bool
) -> tuple[int, int, int]:
    """Copy a character, or a space for U+2581; (offset after it, at or WHOLE, state)."""
    byte = get_u8(text, i)
    size = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
    if not _is_mark(text, i, size):
        at, state = _put_all(own, text, i, min(i + size, stop), at, state)
        return i + size, at, state
    if at + STEP > own.capacity or (own.merge != 0 and not whole):
        return i, WHOLE, state  # U+2581 at the end of a text is removed
    if own.merge != 0 and state == OUTSIDE:
        put_u8(own.out, at, SPACE_BYTE)
        at += 1
    put_u8(own.out, at, SPACE_BYTE)
    return i + 3, at + 1, INSIDE


# ---- tokenizer.json


@helper
def does_extend(own: NormalizerWindow, text: Window, i: int) -> bool:
    """Whether the character at i extends the grapheme cluster before it."""
    _, _, flags = character_at(own, text, i)
    return flags & EXTENDS != 0


@helper
def ends_line(text: Window, start: int, i: int) -> bool:
    """Whether text[i] is the line feed of CR LF, the only cluster of several ASCII characters."""
    return i > start and get_u8(text, i) == NEWLINE and get_u8(text, i - 1) == CARRIAGE_RETURN


@helper
def begins_with_mark(own: NormalizerWindow, text: Window, start: int, stop: int) -> bool:
    """Whether text[start:stop] begins with a character that would extend the grapheme cluster of a space before it.
    Invalid UTF-8 is allowed and is no such character."""
    if own.clusters == 0 or start >= stop or get_u8(text, start) < 0xC2:
        return False
    byte = get_u8(text, start)
    size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
    if byte > 0xF4 or start + size > stop or (byte == 0xF4 and get_u8(text, start + 1) > 0x8F):
        return False
    return does_extend(own, text, start)


@helper
def text_end(own: NormalizerWindow, text: Window, start: int, stop: int) -> int:
    """The end of a text without the white space that the file strips. Invalid UTF-8 is allowed."""
    if own.ends_size == 0 or not may_end_white(own, text, start, stop):
        return stop
    while stop > start:
        begin, end, extends = stop, stop, True
        while begin > start and extends:
            end = begin
            begin = character_before(text, start, end)
            if not is_placed(text, begin, end):
                return stop
            begin -= 1 if own.clusters != 0 and ends_line(text, start, begin) else 0
            extends = own.clusters != 0 and does_extend(own, text, begin)
        if begin > start and not is_placed(text, character_before(text, start, begin), begin):
            return stop
        size, _ = rewrite(own, text, start, begin, stop, False, False)
        if size < 0:
            return stop
        at = 0
        while at < size:
            c, bytes_, _ = character_at(own, own.out, at)
            if c != SPACE_BYTE and not _is_end(own, c):
                return stop
            at += bytes_
        stop = begin
    return stop


@helper
def may_end_white(own: NormalizerWindow, text: Window, start: int, stop: int) -> bool:
    """Whether a text may end with white space that the file strips, judged by its last characters."""
    while stop > start:
        begin = character_before(text, start, stop)
        if not is_placed(text, begin, stop):
            return False
        c, _, flags = character_at(own, text, begin)
        if _is_end(own, c) or (c >= 0x80 and flags & MAPPED != 0):
            return True
        if c != SPACE_BYTE and flags & (MAPPED | EXTENDS) == 0:
            return False
        stop = begin
    return False


@helper
def _is_end(own: NormalizerWindow, c: int) -> bool:
    for k in range(own.ends_size):
        if get_i32(own.ends, k) == c:
            return True
    return False


@helper
def table_step(
    own: NormalizerWindow, text: Window, first: int, i: int, stop: int, at: int, state: int
) -> tuple[int, int, int]:
    """Normalize a key, a grapheme cluster or a character; (offset after it or a code, at, state). If it is part of a
    longer cluster (the text begins at `first`), that is normalized character by character."""
    c, size, flags = character_at(own, text, i)
    if flags & ODD:
        return ODD_TEXT, at, state
    end = i + size
    if own.clusters == 0:
        if flags & BEGINS_KEY:
            length, row = _key(own, text, i, stop)
            if length > 0:
                at, state = _put_key(own, row, at, state)
                return i + length if at >= 0 else WHOLE, at, state
        at, state = _put_character(own, text, i, c, size, flags, at, state)
        return end if at >= 0 else WHOLE, at, state
    breaks = c == CARRIAGE_RETURN and end < stop and get_u8(text, end) == NEWLINE
    if breaks:
        end += 1
    elif flags & CONTROL == 0:
        end = cluster_end(own, text, end, stop, flags)
    if i + size < end < i + SHORT_CLUSTER and (breaks or not is_joined(own, text, first, i, c, flags)):
        if flags & IS_KEY:
            at, state = _put_character(own, text, i, c, size, flags, at, state)
            return end if at >= 0 else WHOLE, at, state
        length, row = _key(own, text, i, end)
        if length > 0:
            at, state = _put_key(own, row, at, state)
            return end if at >= 0 else WHOLE, at, state
    while True:
        at, state = _put_character(own, text, i, c, size, flags, at, state)
        i += size
        if at < 0 or at + STEP > own.capacity:
            return WHOLE, at, state
        if i >= end:
            return end, at, state
        c, size, flags = character_at(own, text, i)


@helper
def _key(own: NormalizerWindow, text: Window, i: int, stop: int) -> tuple[int, int]:
    """(length, row) of the shortest key of several characters that matches at text[i:stop]; (0, 0) for none."""
    node, start = ROOT, i
    while i < stop:
        position = get_i32(own.keys, UNIT * node + BASE) ^ get_u8(text, i)
        if get_i32(own.keys, UNIT * position + PARENT) != node:
            break
        node = position
        i += 1
        row = get_i32(own.keys, UNIT * node + VALUE)
        if row != NO_VALUE:
            return i - start, row
    return 0, 0


@helper
def _put_key(own: NormalizerWindow, row: int, at: int, state: int) -> tuple[int, int]:
    return _put_all(own, own.key_texts, get_i32(own.key_offsets, row), get_i32(own.key_offsets, row + 1), at, state)


@helper
def _put_character(
    own: NormalizerWindow, text: Window, i: int, c: int, size: int, flags: int, at: int, state: int
) -> tuple[int, int]:
    """Write the normal form of one character; (offset after it or WHOLE, state)."""
    if flags & MAPPED == 0:
        if c == SPACE_MARK_CODE:  # begins a word like a space, but is never dropped
            put_u8(own.out, at, SPACE_BYTE)
            return at + 1, INSIDE
        return _put_all(own, text, i, i + size, at, state)
    low, high = 0, own.points_size
    while low < high:
        middle = (low + high) >> 1
        if get_i32(own.points, middle) < c:
            low = middle + 1
        else:
            high = middle
    return _put_all(own, own.texts, get_i32(own.offsets, low), get_i32(own.offsets, low + 1), at, state)


# ---- grapheme clusters


@helper
def character_at(own: Any, text: Window, i: int) -> tuple[int, int, int]:
    """(code point, length, flags) of the character at i."""
    c = get_u8(text, i)
    size = 1
    if c >= 0x80:
        size = 2 if c < 0xE0 else 3 if c < 0xF0 else 4
        c &= 0x7F >> size
        for k in range(1, size):
            c = c << 6 | get_u8(text, i + k) & 0x3F
    return c, size, get_u8(own.blocks, get_u16(own.pages, c >> 7) << 7 | c & 127)


@helper
def cluster_end(own: Any, text: Window, end: int, stop: int, flags: int) -> int:
    """The end of the cluster of a character that ends at `end` and has these flags."""
    joined = 1 if flags & PICTURE else 0
    while end < stop and get_u8(text, end) >= 0x80:
        c, size, flags = character_at(own, text, end)
        if flags & EXTENDS:
            joined = 0 if joined != 1 else 2 if c == ZERO_WIDTH_JOINER else 1
        elif joined == 2 and flags & PICTURE:
            joined = 1
        else:
            break
        end += size
    return end


@helper
def is_joined(own: Any, text: Window, start: int, i: int, c: int, flags: int) -> bool:
    """Whether the character at i, with these flags, belongs to the grapheme cluster of the character before it."""
    if i <= start or get_u8(text, i - 1) < 0x80:
        return False
    i = character_before(text, start, i)
    before, _, back = character_at(own, text, i)
    if back & PARTS == PREPENDS:
        return True
    if flags & LINKS != JOINS:
        return False
    _, begins = _jamo(c)
    if begins != NO_JAMO:
        ends, _ = _jamo(before)
        if ends == HANGUL_L:
            return begins != HANGUL_T
        return ends != NO_JAMO and (begins == HANGUL_T or (begins == HANGUL_V and ends == HANGUL_V))
    linked = False
    while back & EXTENDS and back & PARTS != PARTS and i > start:
        linked = linked or back & LINKS == LINKS
        i = character_before(text, start, i)
        before, _, back = character_at(own, text, i)
    _, begins = _jamo(before)
    return linked and back & LINKS == JOINS and begins == NO_JAMO


@helper
def character_before(text: Window, start: int, i: int) -> int:
    """The offset of the character that ends at i."""
    i -= 1
    while i > start and get_u8(text, i) & 0xC0 == 0x80:
        i -= 1
    return i


@helper
def is_placed(text: Window, begin: int, end: int) -> bool:
    """Whether text[begin:end] has the length that its first byte requires, so that it is a character if the text is
    valid UTF-8."""
    byte = get_u8(text, begin)
    size = 1 if byte < 0x80 else 0 if byte < 0xC2 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
    return end - begin == size and (byte < 0xF4 or (byte == 0xF4 and get_u8(text, begin + 1) < 0x90))


@helper
def _jamo(c: int) -> tuple[int, int]:
    """(kind of jamo that a character ends with, kind that it begins with)."""
    if S_BASE <= c < S_BASE + S_COUNT:
        return (HANGUL_V if (c - S_BASE) % T_COUNT == 0 else HANGUL_T), HANGUL_L
    if 0x1100 <= c < 0x1160 or 0xA960 <= c < 0xA980:
        return HANGUL_L, HANGUL_L
    if 0x1160 <= c < 0x11A8 or 0xD7B0 <= c < 0xD7CB:
        return HANGUL_V, HANGUL_V
    if 0x11A8 <= c < 0x1200 or 0xD7CB <= c < 0xD800:
        return HANGUL_T, HANGUL_T
    return NO_JAMO, NO_JAMO

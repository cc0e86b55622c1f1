"""The kernel that finds fields in JSON Lines: the text of each plain line, undone of its escapes, in one buffer.

A line is plain if a strict reader of JSON finds an object in it, with a string of valid UTF-8 in the field of the text;
what stands in its other fields may also be NaN, a number that no float holds, a lone surrogate or invalid UTF-8. Names
that could be meant and are written with escapes, depth of more than MOST_DEPTH and lines of more than LONGEST bytes
are left to Python, and so is every error. `jittok.reference.corpus.json_lines` says the same in plain Python.

Strings are read 64 bytes at a time: one mask of quotation marks, backslashes and control characters. The bytes before
the first of these are copied as they are. Nothing in a line costs more than a look at each byte; a duplicate name
overwrites what the earlier one has left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.kernels.jit import I64, U8, OutI64, OutU8, helper, kernel
from jittok.kernels.memory import (
    Window,
    copy_block,
    equal_mask,
    get_i64,
    get_u8,
    put_i64,
    put_u8,
    string_masks,
    trailing_zeros,
    window,
)
from jittok.kernels.structures.utf8_check import is_malformed

TEXT, BLANK, OTHER = 0, 1, 2
"""What a line is: one with a text, a blank one, one for Python."""
MOST_DEPTH = 60
"""Objects and lists in each other."""
MOST_FIELDS = 60
LONGEST = 4 << 20
"""Bytes of a plain line."""
NO_CAPACITY = -1
QUOTE, BACKSLASH, COLON, COMMA, NEWLINE = 0x22, 0x5C, 0x3A, 0x2C, 0x0A
BRACE, END_BRACE, BRACKET, END_BRACKET = 0x7B, 0x7D, 0x5B, 0x5D
NEXT, ITEM, FIRST, VALUE = 0, 1, 2, 3
"""What may come: a comma or the end, a name or a value, one of these or the end, the value of a name."""
NAN, INFINITY, TRUE, FALSE, NULL = (
    int.from_bytes(w, "little") for w in (b"NaN", b"Infinity", b"true", b"false", b"null")
)
NONE, ONE = np.uint64(0), np.uint64(1)
MARK = 0xEF, 0xBB, 0xBF
SURROGATE, LOW, PLANE = 0xD800, 0xDC00, 0x10000


class Paths(NamedTuple):
    """The fields to find: field f has the names firsts[f] .. firsts[f + 1] - 1, from the outermost object inward, and
    name s is names[cuts[s]:cuts[s + 1]]. Field 0 has the text."""

    names: U8
    cuts: I64
    firsts: I64


class _Search(NamedTuple):
    """Paths as windows, and what is known of the line at hand: for field f state[2 * f] is how many of its names the
    open objects have, state[2 * f + 1] the depth at which the list or object that is its value began (0: none). For
    f > 0 spans[2 * f - 2] and spans[2 * f - 1], from `row` on, are where its value lies, -1 where there is none."""

    names: Window
    cuts: Window
    firsts: Window
    fields: int
    state: Window
    spans: Window
    row: int


@helper
def _after_space(text: Window, i: int, stop: int) -> int:
    while i < stop:
        c = get_u8(text, i)
        if c not in (0x20, 0x09, 0x0D):
            break
        i += 1
    return i


@helper
def _hex(c: int) -> int:
    """The value of a hexadecimal digit, or -1."""
    if 0x30 <= c <= 0x39:
        return c - 0x30
    c |= 0x20
    return c - 0x57 if 0x61 <= c <= 0x66 else -1


@helper
def _unit(text: Window, i: int, stop: int) -> int:
    """The number in the escape \\uXXXX that begins at offset i, or -1."""
    if i + 6 > stop or get_u8(text, i) != BACKSLASH or get_u8(text, i + 1) != 0x75:
        return -1
    unit = 0
    for k in range(i + 2, i + 6):
        digit = _hex(get_u8(text, k))
        if digit < 0:
            return -1
        unit = unit << 4 | digit
    return unit


@helper
def _escaped(c: int) -> int:
    """The character of a short escape, or -1: n is the most frequent."""
    if c == 0x6E:
        return 0x0A
    if c in (QUOTE, BACKSLASH, 0x2F):
        return c
    if c == 0x74:
        return 0x09
    if c == 0x72:
        return 0x0D
    if c == 0x62:
        return 0x08
    return 0x0C if c == 0x66 else -1


@helper
def _after_string(text: Window, i: int, stop: int) -> int:
    """The offset after the string whose first byte is at offset i, or -1."""
    while True:
        if i + 64 <= stop:
            special, _ = string_masks(text, i)
            if special == NONE:
                i += 64
                continue
            i += trailing_zeros(special)
        elif i >= stop:
            return -1
        c = get_u8(text, i)
        if c == QUOTE:
            return i + 1
        if c == BACKSLASH:
            if i + 2 > stop:
                return -1
            if _escaped(get_u8(text, i + 1)) >= 0:
                i += 2
            elif _unit(text, i, stop) >= 0:
                i += 6
            else:
                return -1
        elif c < 0x20:
            return -1
        else:
            i += 1


@helper
def _put_character(out: Window, at: int, code: int) -> int:
    """UTF-8 of a code point at out[at:]; returns the offset after it."""
    if code < 0x80:
        put_u8(out, at, code)
        return at + 1
    if code < 0x800:
        put_u8(out, at, 0xC0 | code >> 6)
        put_u8(out, at + 1, 0x80 | code & 0x3F)
        return at + 2
    if code < PLANE:
        put_u8(out, at, 0xE0 | code >> 12)
        put_u8(out, at + 1, 0x80 | code >> 6 & 0x3F)
        put_u8(out, at + 2, 0x80 | code & 0x3F)
        return at + 3
    put_u8(out, at, 0xF0 | code >> 18)
    put_u8(out, at + 1, 0x80 | code >> 12 & 0x3F)
    put_u8(out, at + 2, 0x80 | code >> 6 & 0x3F)
    put_u8(out, at + 3, 0x80 | code & 0x3F)
    return at + 4


@helper
def _undone(text: Window, i: int, stop: int, out: Window, at: int) -> tuple[int, int]:
    """Undo the escape at offset i: (the offset after it, or -1; the offset after its character in `out`)."""
    if i + 2 > stop:
        return -1, at
    code = _escaped(get_u8(text, i + 1))
    if code >= 0:
        put_u8(out, at, code)
        return i + 2, at + 1
    code = _unit(text, i, stop)
    i += 6
    if code >> 11 == SURROGATE >> 11:
        low = _unit(text, i, stop)
        if code >= LOW or low >> 10 != LOW >> 10:
            return -1, at
        code = PLANE + (code - SURROGATE << 10) + (low - LOW)
        i += 6
    if code < 0:
        return -1, at
    return i, _put_character(out, at, code)


@helper
def _copied(text: Window, i: int, stop: int, out: Window, at: int) -> tuple[int, int]:
    """The string whose first byte is at offset i to out[at:], less its escapes: (the offset after it, the offset after
    it in `out`), or (-1, 0) for what is no string of valid UTF-8."""
    begin, high = at, NONE
    while True:
        if i + 64 <= stop:
            special, some = string_masks(text, i)
            copy_block(text, i, out, at)
            high |= some
            if special == NONE:
                i, at = i + 64, at + 64
                continue
            step = trailing_zeros(special)
            i, at = i + step, at + step
        elif i >= stop:
            return -1, 0
        c = get_u8(text, i)
        if c == QUOTE:
            break
        if c == BACKSLASH:
            i, at = _undone(text, i, stop, out, at)
            if i < 0:
                return -1, 0
        elif c < 0x20:
            return -1, 0
        else:
            put_u8(out, at, c)
            high |= np.uint64(c >> 7)
            i, at = i + 1, at + 1
    if high != NONE and is_malformed(out, begin, at):
        return -1, 0
    return i + 1, at


@helper
def _after_word(text: Window, i: int, stop: int, word: int, size: int) -> int:
    """The offset after a word whose bytes are those of a number, or -1."""
    if i + size > stop:
        return -1
    for k in range(size):
        if get_u8(text, i + k) != word >> 8 * k & 0xFF:
            return -1
    return i + size


@helper
def _after_digits(text: Window, i: int, stop: int) -> int:
    """The offset after one digit or more, or -1."""
    begin = i
    while i < stop and 0x30 <= get_u8(text, i) <= 0x39:
        i += 1
    return i if i > begin else -1


@helper
def _after_number(text: Window, i: int, stop: int) -> int:
    """The offset after a number, Infinity and -Infinity included, or -1."""
    if get_u8(text, i) == 0x2D:
        i += 1
    if i >= stop:
        return -1
    if get_u8(text, i) == 0x49:
        return _after_word(text, i, stop, INFINITY, 8)
    i = i + 1 if get_u8(text, i) == 0x30 else _after_digits(text, i, stop)
    if 0 <= i < stop and get_u8(text, i) == 0x2E:
        i = _after_digits(text, i + 1, stop)
    if 0 <= i < stop and get_u8(text, i) | 0x20 == 0x65:
        i += 1
        if i < stop and (get_u8(text, i) == 0x2B or get_u8(text, i) == 0x2D):
            i += 1
        i = _after_digits(text, i, stop)
    return i


@helper
def _after_scalar(text: Window, i: int, stop: int) -> int:
    """The offset after a number or a word, or -1."""
    c = get_u8(text, i)
    if c == 0x6E:
        return _after_word(text, i, stop, NULL, 4)
    if c == 0x74:
        return _after_word(text, i, stop, TRUE, 4)
    if c == 0x66:
        return _after_word(text, i, stop, FALSE, 5)
    if c == 0x4E:
        return _after_word(text, i, stop, NAN, 3)
    return _after_number(text, i, stop)


@helper
def _is_name(text: Window, i: int, stop: int, search: _Search, name: int) -> int:
    """Whether the bytes i .. stop - 1 of a string are a name: 1, 0, or -1 where they have escapes."""
    first = get_i64(search.cuts, name)
    same = get_i64(search.cuts, name + 1) - first == stop - i
    for k in range(stop - i):
        c = get_u8(text, i + k)
        if c == BACKSLASH:
            return -1
        if same and c != get_u8(search.names, first + k):
            same = False
    return 1 if same else 0


@helper
def _meant(text: Window, i: int, stop: int, search: _Search, depth: int) -> tuple[int, np.uint64, np.uint64]:
    """Of the name in the bytes i .. stop - 1, at a depth: (-1 if that cannot be said, the fields that its value is
    of, those whose value is inside of its value)."""
    here, inner = NONE, NONE
    for f in range(search.fields):
        if get_i64(search.state, 2 * f) != depth - 1:
            continue
        first = get_i64(search.firsts, f)
        found = _is_name(text, i, stop, search, first + depth - 1)
        if found < 0:
            return -1, NONE, NONE
        if found == 1:
            if f > 0:  # what an equal name before it had is gone
                put_i64(search.spans, search.row + 2 * f - 2, -1)
            if get_i64(search.firsts, f + 1) - first == depth:
                here |= ONE << np.uint64(f)
            else:
                inner |= ONE << np.uint64(f)
    return 0, here, inner


@helper
def _enter(search: _Search, here: np.uint64, inner: np.uint64, depth: int, i: int) -> None:
    """A list or object begins at offset i, of which these fields are told as by `_meant`; inside it is this depth."""
    while inner != NONE:
        put_i64(search.state, 2 * trailing_zeros(inner), depth - 1)
        inner &= inner - ONE
    here &= ~ONE
    while here != NONE:
        f = trailing_zeros(here)
        put_i64(search.state, 2 * f + 1, depth)
        put_i64(search.spans, search.row + 2 * f - 2, i)
        here &= here - ONE


@helper
def _leave(search: _Search, depth: int, after: int) -> None:
    """The list or object in which is this depth ends before an offset."""
    for f in range(search.fields):
        if depth > 1 and get_i64(search.state, 2 * f) == depth - 1:
            put_i64(search.state, 2 * f, depth - 2)
        if get_i64(search.state, 2 * f + 1) == depth:
            put_i64(search.state, 2 * f + 1, 0)
            put_i64(search.spans, search.row + 2 * f - 1, after)


@helper
def _begin(search: _Search) -> None:
    for f in range(search.fields):
        put_i64(search.state, 2 * f, 0)
        put_i64(search.state, 2 * f + 1, 0)
        if f > 0:
            put_i64(search.spans, search.row + 2 * f - 2, -1)
            put_i64(search.spans, search.row + 2 * f - 1, -1)


@helper
def _keep(search: _Search, here: np.uint64, start: int, stop: int) -> None:
    """A value that is no list and no object lies in [start, stop)."""
    here &= ~ONE
    while here != NONE:
        f = trailing_zeros(here)
        put_i64(search.spans, search.row + 2 * f - 2, start)
        put_i64(search.spans, search.row + 2 * f - 1, stop)
        here &= here - ONE


@helper
def _object(text: Window, i: int, stop: int, search: _Search, out: Window, at: int) -> tuple[int, int]:
    """The object whose brace is before offset i: (the offset after it, or -1; the offset after its text in out[at:],
    or -1 where it has none)."""
    _begin(search)
    depth, objects, come, end = 1, ONE, FIRST, -1
    here, inner = NONE, NONE
    while depth > 0:
        i = _after_space(text, i, stop)
        if i >= stop:
            return -1, -1
        c, is_object = get_u8(text, i), objects & ONE != NONE
        if come in (NEXT, FIRST):
            if c == (END_BRACE if is_object else END_BRACKET):
                i += 1
                _leave(search, depth, i)
                depth, objects, come = depth - 1, objects >> ONE, NEXT
                continue
            if come == NEXT:
                if c != COMMA:
                    return -1, -1
                i, come = i + 1, ITEM
                continue
        if come != VALUE and is_object:
            after = _after_string(text, i + 1, stop) if c == QUOTE else -1
            if after < 0:
                return -1, -1
            doubt, here, inner = _meant(text, i + 1, after - 1, search, depth)
            if (here | inner) & ONE != NONE:
                end = -1
            i = _after_space(text, after, stop)
            if doubt < 0 or i >= stop or get_u8(text, i) != COLON:
                return -1, -1
            i, come = i + 1, VALUE
            continue
        start, come = i, NEXT
        if c in (BRACE, BRACKET):
            depth += 1
            if depth > MOST_DEPTH:
                return -1, -1
            _enter(search, here, inner if c == BRACE else NONE, depth, i)
            objects = objects << ONE | np.uint64(c == BRACE)
            i, come = i + 1, FIRST
        elif c != QUOTE:
            i = _after_scalar(text, i, stop)
        elif here & ONE != NONE:
            i, end = _copied(text, i + 1, stop, out, at)
        else:
            i = _after_string(text, i + 1, stop)
        if i < 0:
            return -1, -1
        if come == NEXT:
            _keep(search, here, start, i)
        here, inner = NONE, NONE
    return i, end


@helper
def _line_end(text: Window, i: int, stop: int) -> int:
    """The offset of the next line feed, or `stop`."""
    while i + 64 <= stop:
        found = equal_mask(text, i, NEWLINE)
        if found != NONE:
            return i + trailing_zeros(found)
        i += 64
    while i < stop and get_u8(text, i) != NEWLINE:
        i += 1
    return i


@helper
def _is_mark(text: Window, i: int, stop: int) -> bool:
    return (
        i + 3 <= stop
        and get_u8(text, i) == MARK[0]
        and get_u8(text, i + 1) == MARK[1]
        and get_u8(text, i + 2) == MARK[2]
    )


@kernel
def find_fields(
    data: U8, begin: int, limit: int, paths: Paths, at: int, lines: OutI64, ends: OutI64, codes: OutU8,
    out: OutU8, spans: OutI64, state: OutI64,
) -> int:  # fmt: skip
    """Find fields in the lines that begin in data[begin:limit]; returns how many lines that were, or NO_CAPACITY.

    Of line k from `begin` on: lines[k] is where it begins, codes[k] what it is (TEXT, BLANK, OTHER), ends[k] where its
    text ends in `out`; the texts lie one after the other from out[at] on. Stops where `lines` is full. state[0]
    receives where the next line begins, which may be past the end, state[1] where the next text begins.

    data[begin] begins a line. paths: F fields of one name or more, see `Paths`, F at most MOST_FIELDS.
    out: at least at + data.size - begin bytes; ends and codes: as many as `lines`.
    spans: int64[2 * (F - 1)] for each line: where the values of fields 1 .. F - 1 lie in `data`, -1 for none. Of lines
    that are OTHER they say nothing.
    state: int64[2 * F], 2 or more.
    """
    fields, room = paths.firsts.size - 1, lines.size
    width = 2 * (fields - 1)
    if (
        begin < 0 or at < 0 or fields < 1 or fields > MOST_FIELDS or out.size < at + data.size - begin
        or ends.size < room or codes.size < room or spans.size < room * width or state.size < max(2 * fields, 2)
    ):  # fmt: skip
        return NO_CAPACITY
    text, texts, size, i, k = window(data), window(out), data.size, begin, 0
    names, cuts, firsts = window(paths.names), window(paths.cuts), window(paths.firsts)
    known, found = window(state), window(spans)
    while i < min(limit, size) and k < room:
        stop, code, end = min(size, i + LONGEST), OTHER, at
        after = _after_space(text, i + 3 if _is_mark(text, i, stop) else i, stop)
        if after >= size or get_u8(text, after) == NEWLINE:
            code = BLANK
        elif after < stop and get_u8(text, after) == BRACE:
            search = _Search(names, cuts, firsts, fields, known, found, k * width)
            after, end = _object(text, after + 1, stop, search, texts, at)
            if after >= 0:
                after = _after_space(text, after, stop)
                if end >= 0 and (after >= size or get_u8(text, after) == NEWLINE):
                    code = TEXT
        if code == OTHER:
            after, end = _line_end(text, i, size), at
        lines[k], ends[k], codes[k] = i, end, code
        i, at, k = after + 1, end, k + 1
    state[0], state[1] = i, at
    return k


GIVEN, NULL_VALUE, ODD_VALUE = 0, 1, 2
"""What a value is: one that has a text, none, one for Python."""


@kernel
def gather_values(
    data: U8, spans: I64, first: int, step: int, out: OutU8, ends: OutI64, codes: OutU8
) -> int:  # fmt: skip
    """The texts of values: of a string without its escapes, of any other value as it is written. Returns the bytes of
    all, or NO_CAPACITY.

    Value k, of as many as `ends` holds, lies in data[spans[first + k * step]:spans[first + k * step + 1]], nowhere if
    that is -1. Its text ends at ends[k] in `out`, where the one before it ends; codes[k] is GIVEN, NULL_VALUE (null,
    or nowhere), or ODD_VALUE for what is invalid UTF-8 or has a lone surrogate.
    out: as many bytes as all values together.
    """
    text, texts, at = window(data), window(out), 0
    if first < 0 or step < 2 or codes.size < ends.size or spans.size < first + ends.size * step - step + 2:
        return NO_CAPACITY
    for k in range(ends.size):
        i, j, code = spans[first + k * step], spans[first + k * step + 1], NULL_VALUE
        if i >= 0:
            if j <= i or j > data.size or at + j - i > out.size:  # a value has a byte or more
                return NO_CAPACITY
            if get_u8(text, i) == QUOTE:
                after, end = _copied(text, i + 1, j, texts, at)
                code = GIVEN if after == j else ODD_VALUE
                at = end if after == j else at
            elif _after_word(text, i, j, NULL, 4) != j:
                for c in range(i, j):
                    put_u8(texts, at + c - i, get_u8(text, c))
                code = ODD_VALUE if is_malformed(texts, at, at + j - i) else GIVEN
                at += j - i if code == GIVEN else 0
        ends[k], codes[k] = at, code
    return at

"""Rows of JSON Lines that a strict parser refuses, or that are too long for it.

Only the text field must be valid. Python's own `json` writes NaN, Infinity and lone surrogates, programs write 1e400
and integers of a thousand digits, and fields that were cut by bytes end inside a character. None of that changes the
text (`row_of`).

A parser would hold a copy of a long line, and a `str` of up to four bytes a character. So long strings are replaced by
placeholders (`text_of`). The short rest of the line goes to the parser, which resolves names, nesting and duplicate
keys. If the field holds a placeholder, its string is decoded by the parser in parts. The other long strings are decoded
too, as an error in them is an error of the line.
"""

from __future__ import annotations

import io
import json
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

SURROGATE = re.compile("[\ud800-\udfff]")
STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[][{}]', re.DOTALL)
SPACE = re.compile(r"[ \t\n\r]*")
CLOSED_BY = {"[": "]", "{": "}"}
LONG = 4 << 20
"""Lines from this size on are read in this way."""
PART = 1 << 20
"""Bytes of a string that are decoded at once."""
SHORT = 1 << 12
"""Bytes of a string that stays in the line."""
FEW = 1 << 10
"""Bytes of the line for each of its strings, on average: a line with more strings is parsed as a whole."""
SHORT_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
ESCAPE = 6
"""Bytes of an escape such as \\u00e4."""


def member(row: Any, name: str, join: str | None = None) -> Any:
    """The value of a field: of that very name, else of names joined by dots, from the outermost object inward. A list
    of texts is one text, with `join` between them. KeyError, and TypeError for what is no object."""
    if name in row or "." not in name:
        row = row[name]
    else:
        for part in name.split("."):
            if not isinstance(row, dict):
                raise KeyError(name)
            row = row[part]
    if join is not None and isinstance(row, list) and all(isinstance(each, str) for each in row):
        return join.join(row)
    return row


def _integer(_: str) -> int:
    return 0


def _number(_: str) -> float:
    return 0.0


# numbers are no texts: their values are not needed, and may be too large for any number of Python
_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_number, parse_constant=_number)


def row_of(line: bytes, errors: str = "surrogateescape") -> Any:
    """The value of a line, with its strings, and 0 for each number. An invalid UTF-8 byte becomes a lone surrogate,
    or what `errors` (as in `bytes.decode`) makes of it. ValueError for invalid JSON."""
    text = line.decode("utf-8", errors)
    try:
        return _DECODER.decode(text)
    except RecursionError:
        return _flat(text)


def _flat(text: str) -> dict[str, Any]:
    """The same for an object that is nested deeper than the parser allows: the lists and objects that are
    nested so deeply are left empty."""
    row: dict[str, Any] = {}
    for name, start, stop in _members(text):
        with suppress(RecursionError):
            row[name] = [] if text[start:stop][:1] == "[" else {}
            row[name] = _DECODER.raw_decode(text, start)[0]
    return row


def _members(text: str) -> Iterator[tuple[str, int, int]]:
    """(name, where its value begins, where it ends) for each member of an object. ValueError for invalid JSON."""
    at = _space(text, _expect(text, 0, "{"))
    while text[at : at + 1] != "}":
        name, at = _DECODER.raw_decode(text, at)
        if not isinstance(name, str):
            raise ValueError("Expecting property name enclosed in double quotes")
        start = _space(text, _expect(text, at, ":"))
        try:
            _, at = _DECODER.raw_decode(text, start)
        except RecursionError:
            at = _after(text, start)
        yield name, start, at
        at = _space(text, at)
        if text[at : at + 1] != "}":
            at = _space(text, _expect(text, at, ","))
            if text[at : at + 1] == "}":
                raise ValueError("Expecting property name enclosed in double quotes")
    if _space(text, at + 1) != len(text):
        raise ValueError("Extra data")


def kept_value(line: bytes, name: str) -> str | None:
    """The value of a field of a line: the text of a string, any other value as it is written, None for null and where
    there is no such field. What is no text is U+FFFD in it; None for what is no object of JSON."""
    text: str | None = line.decode("utf-8", "replace")
    try:
        members = {each: (start, stop) for each, start, stop in _members(str(text))}
        path = [name] if name in members or "." not in name else name.split(".")
        for part in path:
            found = {each: str(text)[start:stop] for each, start, stop in _members(str(text))}
            text = found.get(part)
            if text is None:
                return None
    except ValueError:
        return None
    if text == "null" or text is None:
        return None
    return SURROGATE.sub("\ufffd", _DECODER.decode(text)) if text.startswith('"') else text


def _space(text: str, at: int) -> int:
    """The offset of the next character that is not white space."""
    found = SPACE.match(text, at)
    return found.end() if found else at


def _expect(text: str, at: int, mark: str) -> int:
    """The offset after a mark. ValueError for any other character."""
    at = _space(text, at)
    if text[at : at + 1] != mark:
        raise ValueError(f"Expecting {mark!r}")
    return at + 1


def _after(text: str, at: int) -> int:
    """The offset after the list or object that begins at an offset. ValueError for unbalanced brackets."""
    open_ones: list[str] = []
    for found in STRING_OR_BRACKET.finditer(text, at):
        mark = found[0]
        if mark in CLOSED_BY:
            open_ones.append(CLOSED_BY[mark])
        elif not mark.startswith('"'):
            if open_ones.pop() != mark:
                raise ValueError(f"a {mark!r} that closes nothing")
            if not open_ones:
                return found.end()
    raise ValueError("a list or object without its end")


Loads = Callable[[bytes], Any]


class String(NamedTuple):
    """A string in a block of lines: the offsets of its opening quote, of its parts, and after its closing quote."""

    start: int
    parts: list[int]  # part k is [parts[k], parts[k + 1])
    stop: int


def text_of(block: bytes, start: int, stop: int, name: str, loads: Loads) -> str | bytes | None:
    """The text of a field of the line [start, stop): UTF-8, or a `str` if it is short. None if the whole line must
    be parsed: it has no such text, or many strings. Raises ValueError and KeyError as `loads` does, and TypeError if
    the line is not an object."""
    if len(name) >= SHORT // ESCAPE:
        return None
    long = _long_strings(block, start, stop)
    if long is None:
        return None
    mark, rest, at = secrets.token_hex(8), [], start
    for number, string in enumerate(long):
        rest += [block[at : string.start], b'"%b %d"' % (mark.encode(), number)]
        at = string.stop
    row = loads(b"".join([*rest, block[at:stop]]))
    value = member(row, name)
    if not isinstance(value, str):
        return None
    found: str | bytes = value
    for number, string in enumerate(long):
        if value == f"{mark} {number}":
            out = io.BytesIO()
            out.writelines(map(str.encode, _decoded(block, string, loads)))
            found = out.getvalue()
        else:
            for _ in _decoded(block, string, loads):
                pass
    return found


def _decoded(block: bytes, string: String, loads: Loads) -> Iterator[str]:
    for start, stop in zip(string.parts, string.parts[1:], strict=False):
        yield loads(b'"%b"' % block[start:stop])


def _long_strings(block: bytes, start: int, stop: int) -> list[String] | None:
    """The strings of more than SHORT bytes in a line. None for a line with many strings or with an unterminated one."""
    found, left, at = [], (stop - start) // FEW, start
    while (at := block.find(b'"', at, stop)) >= 0:
        left -= 1
        if left < 0:
            return None
        short = SHORT_STRING.match(block, at, min(at + SHORT, stop))
        if short:
            at = short.end()
            continue
        parts = [at + 1]
        while (cut := _next_cut(block, parts[-1], stop)) is not None:
            parts.append(cut[0])
            if cut[1]:
                break
        else:
            return None
        found.append(String(at, parts, parts[-1] + 1))
        at = parts[-1] + 1
    return found


def _next_cut(block: bytes, at: int, stop: int) -> tuple[int, bool] | None:
    """The end of the part that begins at an offset, and whether the string ends there. None if the line ends before
    the string does. No part ends inside a character, an escape or a pair of escaped surrogates."""
    part = block[at : min(at + PART, stop)]
    # backslashes escape from left to right, so pairs of them go first; the length stays the same
    plain = part.replace(rb"\\", b"..").replace(rb"\"", b"..")
    end = plain.find(b'"')
    if end >= 0:
        return at + end, True
    if at + len(part) == stop:
        return None
    size = len(part)
    escape = plain.rfind(b"\\", size - 2 * ESCAPE)
    if escape >= 0:
        before = escape - ESCAPE
        pair = _is_surrogate(part, escape, b"cdef") and plain[before : before + 1] == b"\\"
        return at + (before if pair and _is_surrogate(part, before, b"89ab") else escape), False
    for cut in range(size, size - 4, -1):
        if block[at + cut] & 0xC0 != 0x80:
            return at + cut, False
    return at + size, False  # stray continuation bytes: each is an error of its own


def _is_surrogate(part: bytes, at: int, half: bytes) -> bool:
    """Whether an escape is that of a surrogate; one that is cut off may be."""
    code = part[at + 2 : at + 4].lower()
    return part[at + 1 : at + 2] in (b"u", b"") and code[:1] in (b"d", b"") and (code[1:] in half or not code[1:])

"""Rows of JSON Lines, read leniently: only the text field must be valid. What a strict parser refuses in another
field costs no text.

Python's own `json` writes NaN, Infinity and lone surrogates, programs write 1e400 and integers of a thousand digits,
and fields that were cut by bytes end inside a character. None of that changes the text.
"""

from __future__ import annotations

import json
import re
from typing import Any

STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[][{}]', re.DOTALL)
SPACE = re.compile(r"[ \t\n\r]*")
CLOSED_BY = {"[": "]", "{": "}"}


def _integer(_: str) -> int:
    return 0


def _number(_: str) -> float:
    return 0.0


# numbers are no texts: their values are not asked for, and may be too large for any number of Python
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
    """The same for an object that is nested deeper than the parser allows: inner lists and objects are left empty."""
    row: dict[str, Any] = {}
    at = _expect(text, 0, "{")
    while True:
        name, at = _DECODER.raw_decode(text, _space(text, at))
        if not isinstance(name, str):
            raise ValueError("Expecting property name enclosed in double quotes")
        at = _space(text, _expect(text, at, ":"))
        opening = text[at : at + 1]
        if opening in ("[", "{"):
            row[name], at = ([] if opening == "[" else {}), _behind(text, at)
        else:
            row[name], at = _DECODER.raw_decode(text, at)
        at = _space(text, at)
        if text[at : at + 1] == "}":
            break
        at = _expect(text, at, ",")
    if _space(text, at + 1) != len(text):
        raise ValueError("Extra data")
    return row


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


def _behind(text: str, at: int) -> int:
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

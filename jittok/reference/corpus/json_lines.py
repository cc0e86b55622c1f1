r"""Which lines of JSON Lines are plain, and what stands in their fields.

A plain line is an object by the grammar of JSON (RFC 8259), which has a string in the field of the text: one of valid
UTF-8, without lone surrogates. In other fields also NaN and Infinity are values, and strings may hold any bytes but
control characters. Where a name that could be the field's is written with escapes, or where objects and lists are
nested too deeply, a line is not plain, whatever it is. A field has one name or more, from the outermost object inward;
of equal names the last counts.

>>> fields = plain_fields(rb'{"id": 7, "text": "caf\u00e9", "meta": {"url": "a/b"}}', [[b"text"], [b"id"], [b"meta", b"url"]])
>>> fields
[b'caf\xc3\xa9', b'7', b'"a/b"']
>>> plain_fields(b'{"text": null}', [[b"text"]]) is None
True
"""  # noqa: E501  one line of input

from __future__ import annotations

import re
from collections.abc import Sequence

SPACE = re.compile(rb"[ \t\r]*")
STRING = re.compile(rb'"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"')
SCALAR = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|-?Infinity|NaN|true|false|null")
ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|(.))")
SHORT = dict(zip(b'"\\/bfnrt', '"\\/\b\f\n\r\t', strict=True))
MOST_DEPTH = 60
"""Objects and lists in each other."""
Values = dict[int, "tuple[int, int]"]
"""Where the value of each field lies, which has one."""


class NotPlain(ValueError):
    """The line is not plain."""


def plain_fields(line: bytes, fields: Sequence[Sequence[bytes]]) -> list[bytes | None] | None:
    """The text of the first field, and the values of the others as they stand in the line, None for a missing one.
    None if the line is not plain. A byte-order mark before it is ignored."""
    line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        found: Values = {}
        at = _space(line, 0)
        if line[at : at + 1] != b"{":
            return None
        after = _space(line, _value(line, at, fields, list(range(len(fields))), 0, found))
        if after != len(line) or 0 not in found:
            return None
        start, stop = found[0]
        text = _text(line[start:stop])
    except (NotPlain, UnicodeError):
        return None
    return [text, *(line[slice(*found[f])] if f in found else None for f in range(1, len(fields)))]


def _space(line: bytes, at: int) -> int:
    found = SPACE.match(line, at)
    return found.end() if found else at


def _value(
    line: bytes, at: int, fields: Sequence[Sequence[bytes]], open_ones: list[int], depth: int, found: Values
) -> int:
    """The offset after the value at an offset. `open_ones`: the fields of which all names so far, `depth` of them if
    there is any, are those of the objects around."""
    mark = line[at : at + 1]
    if mark == b'"':
        string = STRING.match(line, at)
        if string is None:
            raise NotPlain
        return string.end()
    if mark not in (b"{", b"["):
        scalar = SCALAR.match(line, at)
        if scalar is None:
            raise NotPlain
        return scalar.end()
    if depth == MOST_DEPTH:
        raise NotPlain
    end = b"}" if mark == b"{" else b"]"
    at = _space(line, at + 1)
    if line[at : at + 1] == end:
        return at + 1
    while True:
        if mark == b"{":
            at = _member(line, at, fields, open_ones, depth, found)
        else:
            at = _value(line, at, fields, [], depth + 1, found)
        at = _space(line, at)
        if line[at : at + 1] == end:
            return at + 1
        if line[at : at + 1] != b",":
            raise NotPlain
        at = _space(line, at + 1)


def _member(
    line: bytes, at: int, fields: Sequence[Sequence[bytes]], open_ones: list[int], depth: int, found: Values
) -> int:
    """The offset after a name and its value."""
    string = STRING.match(line, at)
    if string is None:
        raise NotPlain
    name = string[1]
    if open_ones and b"\\" in name:
        raise NotPlain
    meant = [f for f in open_ones if fields[f][depth] == name]
    for f in meant:
        found.pop(f, None)
    at = _space(line, string.end())
    if line[at : at + 1] != b":":
        raise NotPlain
    start = _space(line, at + 1)
    inner = [f for f in meant if len(fields[f]) > depth + 1]
    stop = _value(line, start, fields, inner, depth + 1, found)
    for f in meant:
        if f not in inner:
            found[f] = start, stop
            if f == 0 and line[start : start + 1] == b'"':
                _text(line[start:stop])  # also of one that another after it replaces
    return stop


def _text(string: bytes) -> bytes:
    """UTF-8 of a string with its quotation marks. NotPlain for another value, UnicodeError for what is no text."""
    if string[:1] != b'"':
        raise NotPlain

    def character(found: re.Match[bytes]) -> bytes:
        unit = chr(int(found[1], 16)) if found[1] else SHORT[found[2][0]]
        return unit.encode("utf-16-le", "surrogatepass")

    out, at = "", 1
    units = b""
    for escape in ESCAPE.finditer(string, 1, len(string) - 1):
        if escape.start() > at:  # characters between two escapes part a pair of surrogates
            out += units.decode("utf-16-le") + string[at : escape.start()].decode("utf-8")
            units = b""
        units += character(escape)
        at = escape.end()
    return (out + units.decode("utf-16-le") + string[at:-1].decode("utf-8")).encode()

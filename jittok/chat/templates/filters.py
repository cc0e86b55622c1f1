"""Filters of chat templates that keep the marks of texts (see `marked`): written anew, or those of Jinja that only call
methods of a text or hand items on. Every other one is refused where a text of the chat goes in and plain text comes
out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

import jinja2
import jinja2.filters
import jinja2.nodes
from markupsafe import Markup

from jittok.chat.templates.marked import (
    Marked,
    Runs,
    concat,
    each_run,
    has_unmarked,
    holds,
    joined,
    lost,
    make,
    plain,
    replaced,
    runs_of,
)
from jittok.errors import MarksLost

KEEPING = frozenset(
    [
        "abs", "attr", "batch", "capitalize", "count", "d", "default", "dictsort", "first", "float",
        "groupby", "int", "items", "last", "length", "list", "lower", "map", "max", "min", "reject",
        "rejectattr", "reverse", "round", "select", "selectattr", "slice", "sort", "sum", "unique", "upper",
    ]
)  # fmt: skip
"""Filters of Jinja that call methods of the text, hand items on, or make no text."""
ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&#34;"}


KNOWN = (str, int, float, list, tuple, dict, type(None), jinja2.Undefined)
"""Types of values that can be searched for text. Others may make it later, as iterators do."""


def json_text(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """The filter `tojson` of transformers: `json.dumps` with these arguments, without escapes for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def to_json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """The same, with the marks of the texts in it; what is escaped in a text has that text's mark."""
    text = json_text(value, ensure_ascii, indent, separators, sort_keys)
    if separators is None and not isinstance(indent, str):  # no quote is outside a text
        texts: list[str] = []
        _list_texts(value, sort_keys, texts)
        return make(text, _runs_of_json(text, texts, encode_basestring_ascii if ensure_ascii else encode_basestring))
    if not holds(value):
        return text
    if isinstance(indent, bool) or (indent is not None and not isinstance(indent, int | str)):
        indent = int(indent)
    item, colon = separators or ((", ", ": ") if indent is None else (",", ": "))
    written = _Json(ensure_ascii, item, colon, " " * indent if isinstance(indent, int) else indent, sort_keys)
    written.walk(value, "")
    if "".join(written.texts) != text:
        raise MarksLost("template: filter tojson", "".join(written.texts), f"the text of json.dumps: {text!r}")
    return make(text, tuple(written.runs))


_QUOTED = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')


def _runs_of_json(text: str, texts: list[str], encode: Callable[[str], str]) -> Runs:
    """The runs of a text of JSON, in which `texts` stand between quotes, one after the other."""
    runs: list[tuple[int, int]] = []
    at = count = 0
    for found, own in zip(_QUOTED.finditer(text), [*texts, None], strict=False):
        count += 1
        if type(own) is str or not own:  # no marks
            continue
        start, stop = found.span()
        if text[start:stop] != encode(own):
            break
        own_runs = runs_of(own)
        runs.append((start + 1 - at, 0))
        if len(own_runs) == 1:
            runs.append((stop - start - 2, own_runs[0][1]))
        else:
            runs += ((len(encode(part)) - 2, mark) for part, mark in each_run(own))
        at = stop - 1
    else:
        if count == len(texts):
            runs.append((len(text) - at, 0))
            return tuple(runs)
    raise MarksLost("template: filter tojson", text, "the texts of the value, in the order of json.dumps")


def _list_texts(value: Any, sort_keys: bool, texts: list[str]) -> None:
    """Append all texts in a value, keys among them, in the order of its JSON."""
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, dict):
        for key, part in sorted(value.items()) if sort_keys else value.items():
            texts.append(key if isinstance(key, str) else "")  # which has no marks
            if isinstance(part, str):
                texts.append(part)
            elif isinstance(part, dict | list | tuple):
                _list_texts(part, sort_keys, texts)
    elif isinstance(value, list | tuple):
        for part in value:
            _list_texts(part, sort_keys, texts)


class _Json:
    """Writes a value as `json.dumps` does, with the runs of its texts."""

    def __init__(self, ascii_only: bool, item: str, colon: str, step: str | None, sort_keys: bool) -> None:
        self.encode = encode_basestring_ascii if ascii_only else encode_basestring
        self.item, self.colon, self.step, self.sort_keys = item, colon, step, sort_keys
        self.texts: list[str] = []
        self.runs: list[tuple[int, int]] = []

    def own(self, text: str) -> None:
        """Write what belongs to no text."""
        if text:
            self.texts.append(text)
            self.runs.append((len(text), 0))

    def text(self, value: str) -> None:
        """Write a text between quotes."""
        runs = value.runs if isinstance(value, Marked) else ((len(value), 0),)
        if len(runs) == 1:
            shown = self.encode(value)
            self.texts.append(shown)
            self.runs += ((1, 0), (len(shown) - 2, runs[0][1]), (1, 0))
            return
        self.own('"')
        for part, mark in each_run(value):
            shown = self.encode(part)[1:-1]
            self.texts.append(shown)
            self.runs.append((len(shown), mark))
        self.own('"')

    def walk(self, value: Any, pad: str) -> None:
        """Write a value; pad: the white space before its lines."""
        if isinstance(value, str):
            self.text(value)
            return
        if not isinstance(value, Mapping | list | tuple):
            self.own(json.dumps(value))
            return
        opened, closed = "{}" if isinstance(value, Mapping) else "[]"
        if not value:
            self.own(opened + closed)
            return
        inner = pad if self.step is None else pad + self.step
        line = "" if self.step is None else "\n" + inner
        before, between = opened + line, self.item + line
        if isinstance(value, Mapping):
            for key, part in sorted(value.items()) if self.sort_keys else value.items():
                self.own(before)
                if isinstance(key, str):
                    self.text(key)
                else:  # a number, true, false or null, which becomes a text
                    self.own(json.dumps({key: 0})[1:-4])
                self.own(self.colon)
                self.walk(part, inner)
                before = between
        else:
            for part in value:
                self.own(before)
                self.walk(part, inner)
                before = between
        self.own(closed if self.step is None else "\n" + pad + closed)


class Safe(Marked):
    """What the filter `safe` makes, Jinja's Markup: `+` escapes the other side, `~` and output do not."""

    __slots__ = ()

    def __add__(self, other: Any) -> Safe:
        return safe(concat([self, escaped(other)])) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: Any) -> Safe:
        return safe(concat([escaped(other), self])) if isinstance(other, str) else NotImplemented

    def __html__(self) -> Safe:
        return self


def safe(value: Any) -> Safe:
    """The filter `safe`."""
    text = concat([value])
    made = str.__new__(Safe, plain(text))
    made.runs = text.runs
    return made


def escaped(value: Any) -> Safe:
    """The filter `escape`: no character of it means anything in HTML."""
    if isinstance(value, Safe):
        return value
    text = concat([value])
    return safe(concat(Marked("".join(ESCAPES.get(c, c) for c in part), mark) for part, mark in each_run(text)))


def trim(value: Any, chars: Any = None) -> Marked:
    """The filter `trim`."""
    return concat([value]).strip(chars)


def indent(s: Any, width: Any = 4, first: bool = False, blank: bool = False) -> Marked:
    """The filter `indent`. Every kind of line end becomes a newline, as in Jinja."""
    pad = " " * width if isinstance(width, int) else width
    whole = concat([s])
    found: list[str] = []
    for number, line in enumerate(concat([whole, "\n"]).splitlines()):
        if number:
            found += ("\n", pad if line or blank else "")
        elif first:
            found.append(pad)
        found.append(line)
    return concat(found)


def title(s: Any) -> Marked:
    """The filter `title`, which keeps capitals after hyphens and brackets only."""
    whole = concat([s])
    text = jinja2.filters.do_title(plain(whole))
    if len(text) != len(whole):
        raise lost("a change of case that moves characters")
    return make(text, whole.runs)


def string(value: Any) -> str:
    """The filter `string`."""
    return value if isinstance(value, str) else concat([value])


def join(value: Any, d: str = "", attribute: Any = None) -> Marked:
    """The filter `join`."""
    if attribute is not None:
        raise lost("join(attribute=)")
    return joined(d, value)


def replace(s: Any, old: Any, new: Any, count: Any = None) -> Marked:
    """The filter `replace`."""
    return replaced(string(s), string(old), string(new), -1 if count is None else count)


OWN: dict[str, Callable[..., Any]] = {
    "safe": safe, "e": escaped, "escape": escaped, "tojson": to_json, "trim": trim, "join": join, "replace": replace,
    "indent": indent, "string": string, "title": title,
}  # fmt: skip
"""Filters that are written anew."""


def _checked(name: str, own: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that is written anew, whose text is compared with that of the filter itself: a later Jinja may change
    it."""
    leading = () if getattr(run, "jinja_pass_arg", None) is None else (_PLAIN,)

    def checked(*args: Any, **named: Any) -> Any:
        found = own(*args, **named)
        plain_args = [_plain_value(value) for value in args]
        expected = run(*leading, *plain_args, **{key: _plain_value(value) for key, value in named.items()})
        if str.__ne__(found, str(expected)):
            raise MarksLost(f"template: filter {name}", plain(found), f"the text of Jinja's own: {str(expected)!r}")
        return found

    return checked


_PLAIN = jinja2.nodes.EvalContext(jinja2.Environment(autoescape=False))  # noqa: S701  no HTML
"""What filters are called with that ask whether texts are escaped."""


def _plain_value(value: Any) -> Any:
    """The same with plain texts."""
    if isinstance(value, Safe):
        return Markup(plain(value))  # noqa: S704  no HTML
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, Mapping):
        return {_plain_value(key): _plain_value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_plain_value, value))
    return value


def keeping(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that keeps the marks, or raises MarksLost where they would be lost."""
    if name == "tojson":
        return to_json
    if name in OWN:
        return _checked(name, OWN[name], run)
    if name in KEEPING:
        return run

    def watched(*args: Any, **named: Any) -> Any:
        try:
            found = run(*args, **named)
        except MarksLost:
            raise lost(f"filter {name}") from None
        if (holds(args) or holds(named)) and (has_unmarked(found) or not isinstance(found, KNOWN)):
            raise lost(f"filter {name}")
        return found

    passes = getattr(run, "jinja_pass_arg", None)  # whether it is called with the context
    if passes is not None:
        watched.jinja_pass_arg = passes  # type: ignore[attr-defined]
    return watched

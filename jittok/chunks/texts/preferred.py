"""Where pieces of a text like to end: after lines, after sentences.

Lines end as for `str.splitlines`. A sentence ends after . ! ? and their likes, with quotes and brackets that close, if
white space follows, which belongs to it; after those of Chinese and Japanese in any case; and at blank lines.

>>> ends("One. Two!", "sentence")
[5, 9]
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import regex

By = Literal["token", "line", "sentence"]
"""How pieces end: as late as they can; at the end of a line or of a sentence where there is one."""
WAYS = ("token", "line", "sentence")
_STOPS, _WIDE_STOPS = ".!?\u2026\u3002\uff01\uff1f\u0964\u061f", "\u3002\uff01\uff1f"
_CLOSERS = "\"'\u201d\u2019)]\u300d\u300f"
_SPACES = "".join(c for c in map(chr, range(0x3001)) if c.isspace())


def _any_of(characters: str) -> bytes:
    """A pattern over UTF-8 that matches one of these characters."""
    return b"(?:" + b"|".join(regex.escape(c).encode() for c in characters) + b")"


@cache
def _pattern(by: str) -> regex.Pattern[bytes]:
    """What ends at such a place, in UTF-8. Possessive, and begun only where a run of stops begins, so that the search
    is linear."""
    if by == "line":
        parts = [b"\r\n", *(_any_of(c) for c in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")]
        return regex.compile(b"|".join(parts))
    stops, white = _any_of(_STOPS), _any_of(_SPACES)
    ended = b"(?<!" + stops + b")" + stops + b"++" + _any_of(_CLOSERS) + b"*+" + white + b"++"
    blank = b"\n" + white + b"*\n" + white + b"*+"
    return regex.compile(ended + b"|" + blank + b"|" + _any_of(_WIDE_STOPS) + b"++")


def ends(text: str | bytes, by: str) -> list[int]:
    """Bytes of the text where lines or sentences end, its own end among them. text: `bytes` are UTF-8."""
    raw = text.encode() if isinstance(text, str) else text
    found = [match.end() for match in _pattern(by).finditer(raw)]
    return found if found[-1:] == [len(raw)] else [*found, len(raw)]

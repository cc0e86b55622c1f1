"""The regexes of each pre type and their meaning: the definition that kernels, tests and traces are checked against.

A text starts as one piece. The patterns of a pre type are applied in order. Each pattern splits every piece as if the
piece were the whole text: matches become pieces, and so do the gaps between matches. llama.cpp runs a pattern on one of
three engines, and the same pattern matches differently on each:

    collapsed   std::regex over one byte per code point: ASCII is itself, everything else becomes a byte for its
                category, so that \\p{L} is a set of bytes (as are \\p{Lu}, \\p{Ll}: case is known for ASCII only)
    wide        std::wregex over the code points, with white space above U+007F folded into U+000B
    custom:x    a hand-written splitter that llama.cpp uses instead of this exact pattern (see `custom_splitters`)

The patterns and engines of all pre types are in their records (`records`). Source: llama.cpp, `llm_tokenizer_bpe`
and `unicode_regex_split`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from jittok.common.unicode.tables import (
    CATEGORY,
    COLLAPSED_BYTE,
    COLLAPSED_OTHER,
    COLLAPSED_SPACE,
    LAST_CODE_POINT,
    WHITESPACE,
    byte_encode,
    code_points,
    flags,
    utf8,
)
from jittok.kernels.pretokenize.custom_splitters import SPLITTERS
from jittok.kernels.pretokenize.records import PreType, pre_type, pre_types

__all__ = [
    "COLLAPSED", "CUSTOM", "WIDE", "Piece", "PreType", "collapse", "collapsed_pattern", "compiled", "cut", "pre_type",
    "pre_types", "split", "stages", "wide_pattern", "widen",
]  # fmt: skip

COLLAPSED, WIDE, CUSTOM = "collapsed", "wide", "custom:"
"""Engines. That of a hand-written splitter is CUSTOM followed by its name."""
CLASS_MEMBERS = {
    "N": r"\xD10-9",
    "L": r"\xD2A-Za-z",
    "P": r"\xD3!-#%-*,-/:;?@\[-\]_{}",
    "M": r"\xD4",
    "S": r"\xD5$+<->^`|~",
}
"""The bytes of collapsed text that \\p{..} matches, written as the inside of a set."""
_CATEGORY_ESCAPE = re.compile(r"\\p\{([NPMS]|L[ultmo]?)\}")


class Piece(NamedTuple):
    """A range of code points."""

    start: int
    stop: int
    matched: bool  # by the pattern that cut it out; False for a gap between two matches


@cache
def collapsed_pattern(pattern: str) -> bytes:
    """The pattern as Python's regular expression over collapsed bytes.

    Each \\p{..} becomes a set, or a part of the set around it. For bytes, \\s and \\d are ASCII.
    """
    out, at, inside = "", 0, False
    while at < len(pattern):
        if escape := _CATEGORY_ESCAPE.match(pattern, at):
            members = CLASS_MEMBERS[escape[1][0]]
            out += members if inside else f"[{members}]"
            at = escape.end()
            continue
        size = 2 if pattern[at] == "\\" else 1
        if pattern[at] in "[]":
            inside = pattern[at] == "["
        out += pattern[at : at + size]
        at += size
    return out.encode("ascii")


@cache
def wide_pattern(pattern: str) -> str:
    """The pattern as Python's regular expression over wide text: \\s, \\S, \\d match ASCII as in C++, $ only the
    end."""
    out, at, inside = "", 0, False
    while at < len(pattern):
        part = pattern[at : at + 2] if pattern[at] == "\\" else pattern[at]
        if part in "[]":
            inside = part == "["
        if not inside:
            part = {r"\s": r"[\t-\r ]", r"\S": r"[^\t-\r ]", r"\d": "[0-9]", "$": r"\Z"}.get(part, part)
        else:
            part = {r"\s": r"\t-\r ", r"\d": "0-9"}.get(part, part)
        out += part
        at += 2 if pattern[at] == "\\" else 1
    return out


@cache
def compiled(pattern: str, engine: str) -> Any:
    """The `regex.Pattern` of a pattern of the collapsed or the wide engine."""
    import regex

    return regex.compile(collapsed_pattern(pattern) if engine == COLLAPSED else wide_pattern(pattern))


def collapse(points: Sequence[int]) -> bytes:
    """One byte per code point: the input of the collapsed engine."""
    return bytes(
        [
            c
            if c < 0x80
            else COLLAPSED_SPACE
            if flags(c) & WHITESPACE
            else COLLAPSED_BYTE.get(flags(c) & CATEGORY, COLLAPSED_OTHER)
            for c in points
        ]
    )


def widen(points: Sequence[int]) -> str:
    """One character per code point: the input of the wide engine. All above U+10FFFF become U+10FFFF, in no pattern."""
    return "".join(
        [chr(COLLAPSED_SPACE if c >= 0x80 and flags(c) & WHITESPACE else min(c, LAST_CODE_POINT)) for c in points]
    )


def cut(points: Sequence[int], pattern: str, engine: str) -> list[Piece]:
    """Split one piece by one pattern: pieces in order, without gaps. An empty match is an empty piece."""
    pieces, done = [], 0
    if engine.startswith(CUSTOM):
        splitter = SPLITTERS[engine.removeprefix(CUSTOM)]
        for stop in splitter(points, [flags(c) for c in points]):
            pieces.append(Piece(done, stop, matched=True))
            done = stop
        return pieces
    text = collapse(points) if engine == COLLAPSED else widen(points)
    for match in compiled(pattern, engine).finditer(text):
        if match.start() > done:
            pieces.append(Piece(done, match.start(), matched=False))
        pieces.append(Piece(match.start(), match.end(), matched=True))
        done = match.end()
    if done < len(points):
        pieces.append(Piece(done, len(points), matched=False))
    return pieces


def stages(points: Sequence[int], pre: PreType) -> list[list[Piece]]:
    """The pieces of a text after each of the patterns; the last list holds its pre-tokens."""
    pieces, after = [Piece(0, len(points), matched=False)] if points else [], []
    for pattern, engine in pre.patterns:
        pieces = [
            Piece(piece.start + part.start, piece.start + part.stop, part.matched)
            for piece in pieces
            for part in cut(points[piece.start : piece.stop], pattern, engine)
        ]
        after.append(pieces)
    return after


def split(fragment: bytes, pre: PreType) -> list[bytes]:
    """The pre-tokens of a text as the merger reads them: re-encoded from code points, byte-level if `pre.byte_encode`.

    A pre-token can be empty (an empty match). Callers check for code points above U+10FFFF, which crash llama.cpp.
    """
    points = code_points(fragment)
    words = [b"".join(map(utf8, points[start:stop])) for start, stop, _ in stages(points, pre)[-1]]
    return [byte_encode(word) for word in words] if pre.byte_encode else words

"""The regexes of each pre type and their meaning: the definition that kernels, tests and traces are checked against.

A text starts as one piece. The patterns of a pre type are applied in order. Each pattern splits every piece as if the
piece were the whole text: matches become pieces, and so do the gaps between matches. llama.cpp runs a pattern on one of
three engines, and the same pattern matches differently on each:

    collapsed   std::regex over one byte per code point: ASCII is itself, everything else becomes a byte for its
                category, so that \\p{L} is a set of bytes (as are \\p{Lu}, \\p{Ll}: case is known for ASCII only)
    wide        std::wregex over the code points, with white space above U+007F folded into U+000B
    custom:x    a hand-written splitter that llama.cpp uses instead of this exact pattern (see `SPLITTERS`)

The patterns and engines of all pre types are in their records (`records`). Source: llama.cpp, `llm_tokenizer_bpe`
and `unicode_regex_split`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from jittok.common.unicode.characters import NEWLINE, SPACE_BYTE, SPACE_MARK_CODE
from jittok.common.unicode.tables import (
    CATEGORY,
    COLLAPSED_BYTE,
    COLLAPSED_OTHER,
    COLLAPSED_SPACE,
    LAST_CODE_POINT,
    LETTER,
    MARK,
    NUMBER,
    WHITESPACE,
    byte_encode,
    code_points,
    flags,
    lower,
    utf8,
)
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


# ---- llama.cpp's hand-written splitters, with the same steps
#
# Each takes one piece, as code points and their flags, and yields the ends of the parts that it is split into. Each
# replaces a regex; where the two differ, the splitter decides. Source: llama.cpp, `unicode_regex_split_custom_*`.

QUOTE, RETURN = 0x27, 0x0D
LONG_S, JOINERS = 0x17F, (0x200C, 0x200D)
HAN = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2CEB0, 0x2EBEF),
    (0x2F800, 0x2FA1F),
)
"""The blocks that kimi_k2 calls Han, code points without a character included."""

_Points = Sequence[int]
_Flags = Sequence[int]
CustomSplitter = Callable[[_Points, _Flags], Iterator[int]]


def _is(f: _Flags, k: int, classes: int) -> bool:
    return 0 <= k < len(f) and bool(f[k] & classes)


def _is_other(f: _Flags, k: int, classes: int) -> bool:
    """Whether k is inside the piece, and its character in none of the classes and not white space."""
    return 0 <= k < len(f) and not f[k] & (classes | WHITESPACE)


def _run_end(f: _Flags, k: int, classes: int) -> int:
    while _is(f, k, classes):
        k += 1
    return k


def _other_end(f: _Flags, k: int, classes: int) -> int:
    while _is_other(f, k, classes):
        k += 1
    return k


def _newlines_end(c: _Points, k: int) -> int:
    while k < len(c) and c[k] in (NEWLINE, RETURN):
        k += 1
    return k


def _contraction(c: _Points, k: int, fold: Callable[[int], int]) -> int:
    """Length of 's 't 'm 'd 're 've 'll at k, 0 if there is none."""
    if c[k] != QUOTE or k + 1 >= len(c):
        return 0
    first, second = (chr(fold(x)) for x in (*c[k + 1 : k + 3], 0, 0)[:2])
    if first in "stmd":
        return 2
    return 3 if first + second in ("re", "ve", "ll") else 0


def _space_end(c: _Points, f: _Flags, k: int, *, after_newline: bool) -> int:
    """End of the part that begins with white space at k; k if there is none.

    It ends after the last newline of the run if `after_newline`; else it leaves one character for what follows.
    """
    end = _run_end(f, k, WHITESPACE)
    newlines = [i for i in range(k, end) if c[i] in (NEWLINE, RETURN)]
    if after_newline and newlines:
        return newlines[-1] + 1
    return end - 1 if end - k > 1 and end < len(c) else end


def gpt2(c: _Points, f: _Flags) -> Iterator[int]:
    """'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+."""
    k = 0
    while k < len(c):
        start, first = k, k + (c[k] == SPACE_BYTE)
        if size := _contraction(c, k, int):
            k += size
        elif _is(f, first, LETTER):
            k = _run_end(f, first, LETTER)
        elif _is(f, first, NUMBER):
            k = _run_end(f, first, NUMBER)
        elif _is_other(f, first, LETTER | NUMBER):
            k = _other_end(f, first, LETTER | NUMBER)
        else:
            k = _space_end(c, f, k, after_newline=False)
        k = max(k, start + 1)
        yield k


def _llama_like(c: _Points, f: _Flags, digits: int, word: int) -> Iterator[int]:
    """Words of the classes `word`, with one character before that is no number or newline; numbers by themselves."""
    k = 0
    while k < len(c):
        start, first = k, k + (c[k] == SPACE_BYTE)
        if size := _contraction(c, k, lower):
            k += size
        elif c[k] not in (NEWLINE, RETURN) and not f[k] & NUMBER and (f[k] & word or _is(f, k + 1, word)):
            k = _run_end(f, k + 1, word)
        elif f[k] & NUMBER:
            k = min(_run_end(f, k, NUMBER), k + digits)
        elif _is_other(f, first, word | NUMBER):
            k = _newlines_end(c, _other_end(f, first, word | NUMBER))
        else:
            k = _space_end(c, f, k, after_newline=True)
        k = max(k, start + 1)
        yield k


def llama3(c: _Points, f: _Flags) -> Iterator[int]:
    """Numbers in threes from the left."""
    return _llama_like(c, f, 3, LETTER)


def qwen2(c: _Points, f: _Flags) -> Iterator[int]:
    """Each number alone."""
    return _llama_like(c, f, 1, LETTER)


def qwen35(c: _Points, f: _Flags) -> Iterator[int]:
    """Each number alone, marks belong to words."""
    return _llama_like(c, f, 1, LETTER | MARK)


def is_han(c: int) -> bool:
    """Whether `c` lies in one of the blocks HAN."""
    return any(first <= c <= last for first, last in HAN)


def kimi_k2(c: _Points, f: _Flags) -> Iterator[int]:
    """Runs of Han by themselves, other words with their contraction, numbers in threes."""

    def is_word(k: int) -> bool:
        return _is(f, k, LETTER) and not is_han(c[k])

    k = 0
    while k < len(c):
        start, first = k, k + (c[k] == SPACE_BYTE)
        if is_han(c[k]):
            while k < len(c) and is_han(c[k]):
                k += 1
        elif is_word(k) or (c[k] not in (NEWLINE, RETURN) and not f[k] & (LETTER | NUMBER) and is_word(k + 1)):
            k += not is_word(k)
            while is_word(k):
                k += 1
            k += _contraction(c, k, lower) if k < len(c) else 0
        elif f[k] & NUMBER:
            k = min(_run_end(f, k, NUMBER), k + 3)
        elif _is_other(f, first, LETTER | NUMBER):
            k = _newlines_end(c, _other_end(f, first, LETTER | NUMBER))
        else:
            k = _space_end(c, f, k, after_newline=True)
        k = max(k, start + 1)
        yield k


def digit_groups(c: _Points, f: _Flags) -> Iterator[int]:
    """Runs of numbers in threes counted from the right; the first group includes the text before it."""
    k, done = 0, 0
    while k < len(c):
        end = _run_end(f, k, NUMBER)
        head = (end - k) % 3
        for stop in range(k + (head or 3), end + 1, 3):
            yield stop
            done = stop
        k = max(end, k + 1)
    if done < len(c):
        yield len(c)


def newlines(c: _Points, _f: _Flags) -> Iterator[int]:
    """Runs of newlines, and runs of other characters."""
    for k in range(1, len(c) + 1):
        if k == len(c) or (c[k] == NEWLINE) != (c[k - 1] == NEWLINE):
            yield k


def metaspace(c: _Points, _f: _Flags) -> Iterator[int]:
    """Cuts before each U+2581, as Hugging Face's `Metaspace`."""
    for k in range(1, len(c) + 1):
        if k == len(c) or c[k] == SPACE_MARK_CODE:
            yield k


def k2_horizon(c: _Points, f: _Flags) -> Iterator[int]:
    """As llama3, but words include marks and joiners, and so do runs of other characters."""
    k = 0
    while k < len(c):
        start, first = k, k + (c[k] == SPACE_BYTE)
        if size := _contraction(c, k, lambda x: ord("s") if x == LONG_S else lower(x)):
            k += size
        elif _is_joined(c, f, k) or (c[k] not in (NEWLINE, RETURN) and not f[k] & NUMBER and _is_joined(c, f, k + 1)):
            k += 1
            while _is_joined(c, f, k):
                k += 1
        elif f[k] & NUMBER:
            k = min(_run_end(f, k, NUMBER), k + 3)
        elif _is_other(f, first, LETTER | NUMBER):
            k = _newlines_end(c, _other_end(f, first, LETTER | NUMBER))
        else:
            k = _space_end(c, f, k, after_newline=True)
        k = max(k, start + 1)
        yield k


def _is_joined(c: _Points, f: _Flags, k: int) -> bool:
    """A letter, a mark or a joiner."""
    return _is(f, k, LETTER | MARK) or (k < len(c) and c[k] in JOINERS)


SPLITTERS: dict[str, CustomSplitter] = {
    "gpt2": gpt2,
    "llama3": llama3,
    "qwen2": qwen2,
    "qwen35": qwen35,
    "kimi_k2": kimi_k2,
    "digit_groups": digit_groups,
    "newlines": newlines,
    "metaspace": metaspace,
    "k2_horizon": k2_horizon,
}
"""The hand-written splitters by the name of their engine, without `custom:`."""

"""Parts of a pattern: what they match, and how often an engine that goes back would try them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from jittok.common.unicode.sets import Ranges, common, merged

MOST_REPEATS = 1_000
LOOKS = ("(?=", "(?!", "(?<=", "(?<!")
"""How a part begins that looks ahead or back."""


class Tries(NamedTuple):
    """How often an engine that goes back tries what follows."""

    loops: int  # repeats without a limit, one after the other: so many times the text's length each
    times: int  # beside these


ONCE = Tries(0, 1)
MOST_TRIES = Tries(1, 64)
LARGE_COUNT = 32
"""Counts that differ by more are as good as without a limit."""


class PatternPart(NamedTuple):
    """A part of a pattern, as `explicit` writes it."""

    text: str
    empty: bool  # can match nothing
    endless: bool  # holds a repeat without a limit
    ways: bool = False  # can match one text in several ways, or texts of several sizes
    again: bool = False  # repeats such a part: an engine that goes back could take exponential time
    size: int = 1  # characters with all repeats written out
    tries: Tries = ONCE  # what an engine goes back to when something after the part fails
    inside: Tries = ONCE  # and when the part itself fails
    chars: Ranges | None = None  # of one character, repeated or not: which it may be
    first: Ranges | None = None  # characters that it may begin with; None: not known
    least: int = 1  # characters that it takes at least,
    sure: bool = True  # and whether nothing else has a say in that: no anchor, nothing that looks around
    words: bool = False  # may take nothing, and then asks where words begin or end
    uneven: bool = False  # of alternatives: one of them takes texts of several sizes


def is_possessive(written_out: str) -> bool:
    """Whether a pattern that `explicit` gave keeps what it has taken: then it may differ from its greedy form."""
    return any(sign in written_out for sign in ("++", "?+", "*+", "}+"))


def single(members: Ranges) -> PatternPart:
    """One character."""
    return PatternPart(written(members), False, False, chars=members, first=members)


def is_look(part: PatternPart) -> bool:
    """Whether a part looks around and takes nothing."""
    return part.text.startswith(LOOKS) and part.empty


def either(tries: list[Tries]) -> Tries:
    """How often one of several parts is tried."""
    return Tries(max(each.loops for each in tries), sum(each.times for each in tries))


def union(firsts: list[Ranges | None]) -> Ranges | None:
    """All characters of several sets, None where one is not known."""
    known = [first for first in firsts if first is not None]
    return merged([pair for first in known for pair in first]) if len(known) == len(firsts) else None


def in_a_row(parts: list[PatternPart]) -> PatternPart:
    """Parts one after the other. What can match nothing and is last never fails, so nothing goes back after it."""
    solid = len(parts)
    while solid and parts[solid - 1].empty and not is_look(parts[solid - 1]):
        solid -= 1
    in_front = [part.tries for part in parts[: max(solid - 1, 0)]]
    inside = [*in_front, parts[solid - 1].inside] if solid else [ONCE]
    loops, times = sum(each.loops for each in inside), math.prod(each.times for each in inside)
    later = [part.inside for part in parts]
    begin = next((k + 1 for k, part in enumerate(parts) if not part.empty or is_look(part)), len(parts))
    return PatternPart(
        "".join(part.text for part in parts), all(part.empty for part in parts), any(part.endless for part in parts),
        any(part.ways for part in parts), any(part.again for part in parts), sum(part.size for part in parts),
        Tries(sum(part.tries.loops for part in parts), math.prod(part.tries.times for part in parts)),
        Tries(max([loops, *(each.loops for each in later)]), max([times, *(each.times for each in later)])),
        None, union([part.first for part in parts[:begin]]), sum(part.least for part in parts),
        all(part.sure for part in parts), any(p.words for p in parts) and not any(p.least for p in parts),
    )  # fmt: skip


def without_keeping(part: PatternPart, after: list[PatternPart]) -> PatternPart:
    """A part that keeps what it has taken, without that where it makes no difference: nothing that is after it
    begins with a character that it would give back."""
    if part.chars is None or not is_possessive(part.text):
        return part
    for each in after:
        if each.first is None or common(merged(part.chars), list(each.first)):
            return part
        if not each.empty or is_look(each):
            break
    return part._replace(text=part.text[:-1])


@lru_cache(maxsize=256)  # a letter is hundreds of ranges, and patterns name it again and again
def written(members: Ranges) -> str:
    """A set as any engine reads it."""
    members = merged(members)
    if not members:
        return r"(?!)"
    if len(members) == 1 and members[0][0] == members[0][1]:
        c = chr(members[0][0])
        return c if c.isalnum() and c.isascii() else _code(members[0][0])
    return "[" + "".join(_code(low) if low == high else f"{_code(low)}-{_code(high)}" for low, high in members) + "]"


def _code(c: int) -> str:
    return rf"\x{c:02x}" if c < 0x100 else rf"\u{c:04x}" if c < 0x10000 else rf"\U{c:08x}"

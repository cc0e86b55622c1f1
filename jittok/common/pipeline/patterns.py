"""Regular expressions of other engines, written out so that any engine gives the same answer.

Oniguruma (tokenizers), fancy-regex (tiktoken) and Rust's regex crate know other characters than Python's engines, and
write some things otherwise. `explicit` reads the part of their syntax that tokenizer files use (`Reader`), and writes
classes as sets of code points of Unicode 16.0 (`PatternCursor`), `(?i:` as sets of both cases, and anchors as what is
on their sides. Anything else is refused, and so is what matches the empty text in a rank file, whose words are its
matches (`check_pattern`).

A text cannot make a search take longer than linear time. Each part of a pattern has a bound for how often a
backtracking engine would try it (`PatternPart`). Patterns of which it could try too much are found by an automaton
instead (`compiled`), and those for which there is none of moderate size are refused.
"""

from __future__ import annotations

import math
import string
from functools import lru_cache
from typing import Any, NamedTuple

from jittok.common.pipeline.known_patterns import GREEDY_CL100K, GREEDY_R50K, greedy
from jittok.common.pipeline.steps import CRATE, ONIG, Pattern
from jittok.common.unicode.libraries import ranges
from jittok.common.unicode.properties import ASCII, HEXADECIMAL, POSIX, loose, posix_ranges, property_ranges
from jittok.common.unicode.sets import LAST, Ranges, common, complement, merged

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


_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b"}
_WITHOUT_CASE = ("Lm", "Lo", "N", "Nd", "P", "S", "Z", "C", "Han")
"""Classes that are the same in the regex crate where case does not matter. Oniguruma leaves all classes as they are."""
_CLASS_ESCAPES = {"s": "space", "d": "digit", "w": "word"}
_FOLDED = {"s": "sS\u017f", "k": "kK\u212a"}
SUPERSCRIPTS: Ranges = ((0xB2, 0xB3), (0xB9, 0xB9), (0xBC, 0xBE))
"""What `\\w` matches in Oniguruma where it is alone, but not within a set."""
EVERY: Ranges = ((0, LAST),)
NOT_A_LINE_FEED: Ranges = ((0, 9), (11, LAST))
_QUALIFIERS = ("sc", "script", "gc", "generalcategory")
"""What may be before `=` in a property's name in the regex crate."""


class PatternError(ValueError):
    """Something in a pattern that is not known here: `found` at character `at`; `expected`."""

    def __init__(self, at: int, found: str, expected: str) -> None:
        super().__init__(f"character {at}: found {found!r}, expected {expected}")
        self.at, self.found, self.expected = at, found, expected


class PatternCursor:
    """A place in a pattern, and what is read there."""

    def __init__(self, pattern: str, engine: str) -> None:
        self.pattern, self.engine, self.at = pattern, engine, 0
        self.sets = 0  # how many are open

    def error(self, expected: str) -> PatternError:
        """What to raise where something else is expected."""
        return PatternError(self.at, self.pattern[self.at : self.at + 12], expected)

    def peek(self, size: int = 1) -> str:
        """The next characters."""
        return self.pattern[self.at : self.at + size]

    def take(self, text: str) -> bool:
        """Whether a text is here, which is then read."""
        if not self.pattern.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def character(self, folded: bool) -> Ranges:
        """The code points of one character outside of a set, or of one escape."""
        c = self.peek()
        self.at += 1
        if c != "\\":
            return _cases(c) if folded else ((ord(c), ord(c)),)
        c = self.peek()
        self.at += 1
        if c and c in "pP":
            return self.property(c == "P", folded)
        if c and c in "sdwhSDWH":
            inside = self.word() if c in "wW" else HEXADECIMAL if c in "hH" else ranges(_CLASS_ESCAPES[c.lower()])
            return inside if c.islower() else complement(inside)
        if self.engine == ONIG and c in ("N", "O") and not self.sets:
            return NOT_A_LINE_FEED if c == "N" else EVERY
        if c in ("x", "u"):
            return self.number(c)
        if c in _ESCAPES:
            return ((ord(_ESCAPES[c]), ord(_ESCAPES[c])),)
        if not c or c in string.ascii_letters + string.digits:
            self.at -= 2
            raise self.error("a known escape")
        return ((ord(c), ord(c)),)

    def word(self) -> Ranges:
        """What `\\w` stands for here."""
        if self.engine == CRATE:
            return ranges("word_crate")
        return ranges("word") if self.sets else merged(ranges("word") + SUPERSCRIPTS)

    def number(self, kind: str) -> Ranges:
        """The character of `\\x..` or `\\u....`."""
        if self.peek() == "{":
            end = self.pattern.find("}", self.at)
            digits, after = self.pattern[self.at + 1 : max(end, self.at)], end + 1
        else:
            size = 2 if kind == "x" else 4
            digits, after = self.peek(size), self.at + size
        if not 1 <= len(digits) <= 6 or set(digits) - set(string.hexdigits) or int(digits, 16) > LAST:
            raise self.error("a hexadecimal number")
        if kind == "x" and int(digits, 16) > 0x7F and self.engine == ONIG and self.peek() != "{":
            raise self.error("a character: in Oniguruma this is a byte")
        self.at = after
        return ((int(digits, 16), int(digits, 16)),)

    def property(self, negated: bool, folded: bool) -> Ranges:
        """The characters of `\\p{..}`."""
        if self.take("{"):
            end = self.pattern.find("}", self.at)
            name, after = self.pattern[self.at : max(end, self.at)], end + 1
        else:
            name, after = self.peek(), self.at + 1
        if name.startswith("^"):
            negated, name = not negated, name[1:]
        found = self._named(name)
        if found is None:
            raise self.error("a general category, a script, or a property such as Alphabetic, Emoji or White_Space")
        if folded and self.engine == CRATE and name not in _WITHOUT_CASE:
            raise self.error("no class with letters of one case, or marks, where case does not matter")
        self.at = after
        return complement(found) if negated else found

    def _named(self, name: str) -> Ranges | None:
        kind, given, value = name.partition("=")
        if given and self.engine == CRATE and loose(kind) in _QUALIFIERS:
            return property_ranges(value)
        return property_ranges(name)

    def set(self, folded: bool) -> Ranges:
        """The code points of a set, with sets within it; && is the intersection of what is on its sides."""
        self.at += 1
        self.sets += 1
        negated, whole = self.take("^"), None
        part: list[tuple[int, int]] = []
        begin = self.at
        while not (self.peek() == "]" and self.at > begin):
            if self.at >= len(self.pattern):
                raise self.error("a closing ]")
            if self.take("&&"):
                whole, part = common(whole, part), []
            elif self.peek(2) == "[:":
                part += self.posix(folded)
            elif self.peek() == "[":
                part += self.set(folded)
            else:
                part += self.member(folded)
        self.at += 1
        self.sets -= 1
        found = common(whole, part)
        return complement(found) if negated else found

    def posix(self, folded: bool) -> Ranges:
        """[:name:] or [:^name:]: of all characters in Oniguruma, of ASCII in the regex crate."""
        end = self.pattern.find(":]", self.at)
        name = self.pattern[self.at + 2 : max(end, self.at)]
        found = posix_ranges(name.removeprefix("^"))
        if found is None:
            raise self.error(f"a POSIX class, one of {', '.join(POSIX)}")
        if folded:
            raise self.error("no POSIX class where case does not matter")
        self.at = end + 2
        if self.engine == CRATE:
            found = common(found, ASCII)
        return complement(found) if name.startswith("^") else found

    def member(self, folded: bool) -> Ranges:
        """A character of a set, a range, or a class."""
        first = self.character(False)
        if self.peek() == "-" and self.peek(2) != "-]" and len(first) == 1 and first[0][0] == first[0][1]:
            self.at += 1
            if self.peek() == "[" or not self.peek():
                raise self.error("the last character of a range")
            last = self.character(False)
            if len(last) != 1 or last[0][0] != last[0][1] or last[0][0] < first[0][0]:
                raise self.error("the last character of a range, not before its first")
            first = ((first[0][0], last[0][1]),)
        if not folded:
            return first
        if sum(last - low + 1 for low, last in first) > 128:
            raise self.error("few characters in a set where case does not matter")
        return tuple(each for low, last in first for c in range(low, last + 1) for each in _cases(chr(c)))


def _cases(c: str) -> Ranges:
    """A character in both cases, and what else folds to it."""
    if not c.isascii():
        raise PatternError(0, c, "ASCII characters where case does not matter")
    found = _FOLDED.get(c.lower(), {c.lower(), c.upper()})
    return tuple(sorted((ord(each), ord(each)) for each in found))


DEEPEST = 20
ANCHORS = ("A", "z", "Z", "b", "B")
"""Escapes that take no character."""
ANY = r"[\x00-\U0010ffff]"
NEVER = r"(?=[^\x00-\U0010ffff])"
"""A look-ahead that holds at no place."""
_JOINED = ("ss", "st", "ff", "fi", "fl")
"""What single letters fold to: Oniguruma finds them too, so such texts are refused where case does not matter."""


class Reader(PatternCursor):
    """A whole pattern."""

    def alternatives(self, depth: int, folded: bool) -> PatternPart:
        """What is between `|`, up to the end of a group. folded: case does not matter."""
        if depth > DEEPEST:
            raise self.error(f"groups at most {DEEPEST} deep")
        folded = self.take("(?i)") or folded
        parts = [self.sequence(depth, folded)]
        while self.take("|"):
            parts.append(self.sequence(depth, folded))
        text, least = "|".join(part.text for part in parts), min(part.least for part in parts)
        return PatternPart(
            text, any(part.empty for part in parts), any(part.endless for part in parts),
            len(parts) > 1 or parts[0].ways, any(part.again for part in parts), sum(part.size for part in parts),
            either([part.tries for part in parts]), either([part.inside for part in parts]),
            None, union([part.first for part in parts]), least, any(p.sure for p in parts if p.least == least),
            any(part.words for part in parts), any(part.ways for part in parts),
        )  # fmt: skip

    def sequence(self, depth: int, folded: bool) -> PatternPart:
        """Parts one after the other."""
        parts, before = [], ""
        while self.at < len(self.pattern) and self.peek() not in "|)":
            if folded and (before + self.peek()).lower() in _JOINED:
                raise self.error("letters that no single character folds to, where case does not matter")
            before = self.peek()
            parts.append(self.repeated(self.atom(depth, folded)))
        if depth == 0:
            parts = [without_keeping(part, parts[k + 1 :]) for k, part in enumerate(parts)]
        return in_a_row(parts)

    def repeated(self, part: PatternPart) -> PatternPart:
        """A part, and how often it is repeated."""
        least, most, sign = 1, 1, self.peek()
        if sign and sign in "*+?":
            self.at += 1
            least, most = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}[sign]
        elif sign == "{":
            start, (least, most) = self.at, self.counts()
            sign = self.pattern[start : self.at]
        else:
            return part
        if most < 0 and part.empty and not is_look(part):
            raise self.error("no unbounded repeat of a part that can match the empty text")
        if is_look(part):
            raise self.error("no repeat of a lookaround")
        after = self.peek()
        if after == "+" and self.engine == ONIG and sign.startswith("{"):  # in Ruby {1,3}+ repeats what is repeated
            inner = self._times(part, least, most, sign)
            self.at += 1
            if inner.empty or self.peek() in ("+", "?", "*", "{"):
                raise self.error("one repeat of a non-empty part")
            return self._times(inner._replace(text=f"(?:{inner.text})", chars=None), 1, -1, "+")
        if after == "+":
            self.at += 1
            sign += "+"
        elif after == "?":
            if sign.startswith("{"):
                raise self.error("no lazy repeat of a count")
            self.at += 1
            sign += "?"
        if self.peek() and self.peek() in "*+?{":
            raise self.error("one repeat")
        return self._times(part, least, most, sign)

    def _times(self, part: PatternPart, least: int, most: int, sign: str) -> PatternPart:
        """A part that is repeated. most: -1 for without a limit."""
        many = most < 0 or most - least > LARGE_COUNT or part.tries.loops > 0
        times = 1 if many or part.ways else most - least + 1
        return PatternPart(
            part.text + sign, part.empty or least == 0, part.endless or most < 0, part.ways or least != most,
            part.again or (part.ways and most != 1), part.size * max(most, least, 1),
            Tries(int(many), times * part.tries.times * (2 if part.ways and least != most else 1)),
            part.inside, part.chars, part.first, part.least * least, part.sure, part.words,
        )  # fmt: skip

    def counts(self) -> tuple[int, int]:
        """(least, most) of `{..}`; -1: without a limit."""
        end = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : max(end, self.at)].partition(",")
        if end < 0 or not low.isascii() or not low.isdigit() or not (high.isdigit() or not high) or len(low + high) > 8:
            raise self.error("{n}, {n,} or {n,m}")
        least = int(low)
        most = (int(high) if high else -1) if comma else least
        if max(least, most) > MOST_REPEATS or 0 <= most < least or most == 0:
            raise self.error(f"counts of up to {MOST_REPEATS}")
        self.at = end + 1
        return least, most

    def atom(self, depth: int, folded: bool) -> PatternPart:
        """A character, a set, an anchor or a group."""
        c = self.peek()
        if c == "(":
            return self.group(depth, folded)
        if c == "[":
            return single(self.set(folded))
        if c in "*+?{":
            raise self.error("something to repeat")
        if c == "]":
            raise self.error("no lone ]")
        if c in ("^", "$") or (c == "\\" and self.peek(2)[1:] in ANCHORS):
            return self.anchor()
        if c == ".":
            self.at += 1
            return single(NOT_A_LINE_FEED)
        return single(self.character(folded))

    def anchor(self) -> PatternPart:
        """`^`, `$`, `\\b` and others, written as look-arounds."""
        name = self.peek(2) if self.peek() == "\\" else self.peek()
        self.at += len(name)
        word = written(self.word())
        first: Ranges | None = None
        if name == "$" and self.engine == ONIG:  # Ruby's is the end of any line
            text, first = r"(?![^\n])", ((10, 10),)
        elif name in ("$", r"\z"):
            text, first = f"(?!{ANY})", ()
        elif name == r"\Z":  # before the last line feed, in fancy-regex of all that end the text
            text = rf"(?=\x0a{'?' if self.engine == ONIG else '*'}(?!{ANY}))"
        elif name == "^" and self.engine == ONIG:  # and the beginning of one, but none after the last line feed
            text = rf"(?=(?<!{ANY})|(?<=\x0a)(?={ANY}))"
        elif name in ("^", r"\A"):
            text = f"(?<!{ANY})"
        elif name == r"\b":
            text = f"(?=(?<={word})(?!{word})|(?<!{word})(?={word}))"
        else:
            text = f"(?=(?<={word})(?={word})|(?<!{word})(?!{word}))"
        return PatternPart(text, True, False, first=first, least=0, sure=False, words=name in (r"\b", r"\B"))

    def group(self, depth: int, folded: bool) -> PatternPart:
        """What is in parentheses."""
        if self.take("(?i:"):
            opening, folded, look = "(?:", True, False
        elif self.take("(?:"):
            opening, look = "(?:", False
        elif look_ := next((each for each in LOOKS if self.take(each)), ""):
            opening, look = look_, True
        elif self.name():
            opening, look = "(?:", False
        elif self.peek(2) == "(?":
            raise self.error("(?:, (?i:, (?=, (?!, (?<=, (?<! or a name")
        else:
            self.at += 1
            opening, look = "(?:", False
        inside = self.alternatives(depth + 1, folded)
        if not self.take(")"):
            raise self.error("a closing )")
        text = f"{opening}{inside.text})"
        if look:  # it is not gone back to
            empty = self.engine == ONIG and opening.startswith("(?<") and inside.least == 0
            if empty and inside.words and inside.uneven:  # at the beginning of a text Oniguruma finds others there
                raise self.error(r"no \b or \B in a look-back that may take nothing or several characters")
            sure = empty and inside.sure
            if sure and opening == "(?<!":  # Oniguruma looks no further, whatever is within
                text = NEVER
            return inside._replace(
                text=text, empty=True, endless=False, tries=ONCE, chars=None, first=None, least=0, sure=sure,
                words=inside.words and not sure,
            )  # fmt: skip
        return inside._replace(text=text, chars=None)

    def name(self) -> bool:
        """Whether a group's name, `(?<name>`, is here, which is then read."""
        opening = "(?P<" if self.engine == CRATE and self.peek(4) == "(?P<" else "(?<"
        end = self.pattern.find(">", self.at)
        given = self.pattern[self.at + len(opening) : max(end, self.at)]
        if self.peek(len(opening)) != opening or not given.isidentifier() or not given.isascii():
            return False
        self.at = end + 1
        return True


__all__ = ["PatternError", "check_pattern", "compiled", "explicit", "matches_empty"]

LONGEST_PATTERN = 10_000
MOST_WRITTEN_OUT = 5000
"""Characters of a pattern with its repeats written out."""
MOST_WALKED = 400
"""The same of a pattern that repeats what matches in several ways."""
MOST_KEPT = 256
"""Patterns that are remembered. A process may read many files, each with a pattern of its own."""


def explicit(pattern: str, engine: str = ONIG) -> str:
    """The pattern for Python's engines, classes written out. Raises PatternError."""
    return _read(greedy(pattern, engine) or pattern, engine).text


@lru_cache(MOST_KEPT)
def _read(pattern: str, engine: str) -> PatternPart:
    if len(pattern) > LONGEST_PATTERN:
        raise PatternError(LONGEST_PATTERN, f"{len(pattern)} characters", f"at most {LONGEST_PATTERN}")
    reader = Reader(pattern, engine)
    part = reader.alternatives(0, False)
    if reader.at < len(pattern):
        raise reader.error("no unmatched )")
    if part.size > MOST_WRITTEN_OUT:
        raise PatternError(0, pattern[:40], f"at most {MOST_WRITTEN_OUT} characters with all repeats expanded")
    if part.again:
        if part.size > MOST_WALKED:
            raise PatternError(0, pattern[:40], f"at most {MOST_WALKED} characters with nested repeats")
        _walked(part.text)
    return part


def check_pattern(pattern: Pattern, empty: bool = False) -> None:
    """PatternError for a pattern that nothing here finds in linear time, and for one that matches the empty text unless
    that may be (`empty`)."""
    if pattern.literal or greedy(pattern.text, pattern.engine):
        return
    part = _read(pattern.text, pattern.engine)
    if part.empty and not empty:
        raise PatternError(0, pattern.text[:40], "a pattern that never matches the empty text")
    _walked(part.text)


def matches_empty(pattern: Pattern) -> bool:
    """Whether a pattern may match the empty text. Raises PatternError."""
    if pattern.literal or not pattern.text:
        return not pattern.text
    return _read(greedy(pattern.text, pattern.engine) or pattern.text, pattern.engine).empty


@lru_cache(MOST_KEPT)
def compiled(pattern: Pattern) -> Any:
    """What finds a pattern in linear time: a `regex.Pattern`, or an automaton where going back could take longer.
    Raises PatternError for one without an automaton."""
    import regex

    if pattern.literal:
        return regex.compile(regex.escape(pattern.text), regex.V0)
    known = greedy(pattern.text, pattern.engine)
    part = _read(known or pattern.text, pattern.engine)
    if known in (GREEDY_R50K, GREEDY_CL100K):
        return regex.compile(part.text, regex.V0)
    found = _walked(part.text)
    tried = part.again or part.inside.loops > MOST_TRIES.loops or part.inside.times > MOST_TRIES.times
    own = tried or part.empty or found.looks_around or not found.linear
    return found if own else regex.compile(part.text, regex.V0)


@lru_cache(MOST_KEPT)
def _walked(written_out: str) -> Any:
    """The automaton of a pattern. Raises PatternError for one that has none, or none of this size."""
    from jittok.kernels.pretokenize.matcher import Matcher

    try:
        if is_possessive(written_out):
            raise ValueError("no possessive repeat that overlaps what follows it (such as a*+a)")
        return Matcher(written_out)
    except ValueError as error:
        raise PatternError(0, str(error), "a pattern with an automaton of moderate size") from None

"""Regular expressions of other engines, written out so that any engine gives the same answer.

Oniguruma (tokenizers), fancy-regex (tiktoken) and Rust's regex crate know other characters than Python's engines, and
write some things otherwise. `explicit` reads what tokenizer files use of their syntax and writes classes as sets of
code points of Unicode 16.0, `(?i:` as sets of both cases, and anchors as look-ahead. What it does not know is refused,
and so is a repeat without a limit within another, and what matches the empty text.

A text cannot make a search take longer than linear time. Patterns of which an engine that goes back could try too much
are found by an automaton instead (`compiled`), and those for which there is none of moderate size are refused.
"""

from __future__ import annotations

import string
from functools import lru_cache
from typing import Any

from jittok.pipeline.known_patterns import GREEDY
from jittok.pipeline.pattern_parts import (
    FEW,
    LAST,
    MOST_REPEATS,
    MOST_TRIES,
    ONCE,
    Part,
    Tries,
    common,
    complement,
    either,
    in_a_row,
    is_possessive,
    merged,
    single,
    union,
    without_keeping,
)
from jittok.pipeline.steps import CRATE, ONIG, Pattern
from jittok.unicode.libraries import CLASSES, Ranges, ranges

LONGEST_PATTERN = 10_000
DEEPEST = 20
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b"}
_WITHOUT_CASE = ("Lm", "Lo", "N", "Nd", "P", "S", "Z", "C", "Han")
"""Classes that are the same in the regex crate where case does not matter. Oniguruma leaves all classes as they are."""
_CLASS_ESCAPES = {"s": "space", "d": "digit", "w": "word"}
_FOLDED = {"s": "sS\u017f", "k": "kK\u212a"}
SUPERSCRIPTS: Ranges = ((0xB2, 0xB3), (0xB9, 0xB9), (0xBC, 0xBE))
"""What `\\w` matches in Oniguruma where it stands alone, but not within a set."""
_JOINED = ("ss", "st", "ff", "fi", "fl")
"""What single letters fold to: Oniguruma finds them too, so such texts are refused where case does not matter."""


MOST_WRITTEN_OUT = 5000
"""Characters of a pattern with its repeats written out."""
MOST_WALKED = 400
"""The same of a pattern that repeats what matches in several ways."""
MOST_KEPT = 256
"""Patterns that are remembered. A process may read many files, each with a pattern of its own."""


class PatternError(ValueError):
    """Something in a pattern that is not known here: `found` at character `at`; `expected`."""

    def __init__(self, at: int, found: str, expected: str) -> None:
        super().__init__(f"character {at}: found {found!r}, expected {expected}")
        self.at, self.found, self.expected = at, found, expected


def explicit(pattern: str, engine: str = ONIG) -> str:
    """The pattern for Python's engines, classes written out. Raises PatternError."""
    return _read(pattern, engine).text


@lru_cache(MOST_KEPT)
def _read(pattern: str, engine: str) -> Part:
    if len(pattern) > LONGEST_PATTERN:
        raise PatternError(LONGEST_PATTERN, f"{len(pattern)} characters", f"at most {LONGEST_PATTERN}")
    reader = _Reader(pattern, engine)
    part = reader.alternatives(0, False)
    if reader.at < len(pattern):
        raise reader.error("nothing: a group ends that did not begin")
    if part.empty:
        raise PatternError(0, pattern[:40], "a pattern that matches no empty text")
    if part.size > MOST_WRITTEN_OUT:
        raise PatternError(0, pattern[:40], f"at most {MOST_WRITTEN_OUT} characters with all repeats written out")
    if part.again:
        if part.size > MOST_WALKED:
            raise PatternError(0, pattern[:40], f"at most {MOST_WALKED} characters where repeats are repeated")
        _walked(part.text)
    return part


def check_pattern(pattern: Pattern) -> None:
    """PatternError for a pattern that nothing here finds in linear time."""
    if not pattern.literal and pattern.text not in GREEDY:
        _walked(_read(pattern.text, pattern.engine).text)


@lru_cache(MOST_KEPT)
def compiled(pattern: Pattern) -> Any:
    """What finds a pattern in linear time: a `regex.Pattern`, or an automaton where going back could take longer.
    Raises PatternError for one without an automaton."""
    import regex

    if pattern.literal:
        return regex.compile(regex.escape(pattern.text), regex.V0)
    part = _read(pattern.text, pattern.engine)
    if pattern.text in GREEDY:
        return regex.compile(part.text, regex.V0)
    found = _walked(part.text)
    tried = part.again or part.inside.loops > MOST_TRIES.loops or part.inside.times > MOST_TRIES.times
    return found if tried or not found.linear else regex.compile(part.text, regex.V0)


@lru_cache(MOST_KEPT)
def _walked(written_out: str) -> Any:
    """The automaton of a pattern. Raises PatternError for one that has none, or none of this size."""
    from jittok.pretokenize.matching import Matching

    try:
        if is_possessive(written_out):
            raise ValueError("a repeat that keeps what could go on with the pattern")
        return Matching(written_out)
    except ValueError as error:
        raise PatternError(0, str(error), "a pattern that an automaton of moderate size can find") from None


class _Reader:
    def __init__(self, pattern: str, engine: str) -> None:
        self.pattern, self.engine, self.at = pattern, engine, 0
        self.sets = 0  # how many are open

    def error(self, expected: str) -> PatternError:
        return PatternError(self.at, self.pattern[self.at : self.at + 12], expected)

    def peek(self, size: int = 1) -> str:
        return self.pattern[self.at : self.at + size]

    def take(self, text: str) -> bool:
        if not self.pattern.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def alternatives(self, depth: int, folded: bool) -> Part:
        if depth > DEEPEST:
            raise self.error(f"groups at most {DEEPEST} deep")
        parts = [self.sequence(depth, folded)]
        while self.take("|"):
            parts.append(self.sequence(depth, folded))
        text = "|".join(part.text for part in parts)
        return Part(
            text, any(part.empty for part in parts), any(part.endless for part in parts),
            len(parts) > 1 or parts[0].ways, any(part.again for part in parts), sum(part.size for part in parts),
            either([part.tries for part in parts]), either([part.inside for part in parts]),
            None, union([part.first for part in parts]),
        )  # fmt: skip

    def sequence(self, depth: int, folded: bool) -> Part:
        parts, before = [], ""
        while self.at < len(self.pattern) and self.peek() not in "|)":
            if folded and (before + self.peek()).lower() in _JOINED:
                raise self.error("letters that no single character folds to, where case does not matter")
            before = self.peek()
            parts.append(self.repeated(self.atom(depth, folded)))
        if depth == 0:
            parts = [without_keeping(part, parts[k + 1 :]) for k, part in enumerate(parts)]
        return in_a_row(parts)

    def repeated(self, part: Part) -> Part:
        least, most, sign = 1, 1, self.peek()
        if sign and sign in "*+?":
            self.at += 1
            least, most = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}[sign]
        elif sign == "{":
            start, (least, most) = self.at, self.counts()
            sign = self.pattern[start : self.at]
        else:
            return part
        if part.endless and most != 1:
            raise self.error("no repeat of what holds a repeat without a limit")
        if part.text.startswith("(?=") or part.text.startswith("(?!"):
            raise self.error("no repeat of a look-ahead")
        after = self.peek()
        if after == "+" and (self.engine != ONIG or not sign.startswith("{")):  # in Ruby {1,3}+ repeats, and is refused
            self.at += 1
            sign += "+"
        elif after == "?":
            raise self.error("no lazy repeat")
        if self.peek() and self.peek() in "*+?{":
            raise self.error("one repeat")
        many = most < 0 or most - least > FEW or part.tries.loops > 0
        times = 1 if many or part.ways else most - least + 1
        return Part(
            part.text + sign, part.empty or least == 0, part.endless or most < 0, part.ways or least != most,
            part.again or (part.ways and most != 1), part.size * max(most, least, 1),
            Tries(int(many), times * part.tries.times * (2 if part.ways and least != most else 1)),
            part.inside, part.chars, part.first,
        )  # fmt: skip

    def counts(self) -> tuple[int, int]:
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

    def atom(self, depth: int, folded: bool) -> Part:
        c = self.peek()
        if c == "(":
            return self.group(depth, folded)
        if c == "[":
            return single(self.set(folded))
        if c in "*+?{":
            raise self.error("something to repeat")
        if c == "$":
            self.at += 1  # Ruby's is the end of any line
            if self.engine == ONIG:
                return Part(r"(?![^\n])", True, False, first=((10, 10),))
            return Part(r"(?![\x00-\U0010ffff])", True, False, first=())
        if c in ("^", "]"):
            raise self.error("no ^ and no lone ]")
        if c == ".":
            self.at += 1
            return single(((0, 9), (11, LAST)))
        return single(self.character(folded))

    def group(self, depth: int, folded: bool) -> Part:
        if self.take("(?i:"):
            opening, folded, look = "(?:", True, False
        elif self.take("(?:"):
            opening, look = "(?:", False
        elif self.peek(3) in ("(?!", "(?="):
            opening, look = self.peek(3), True
            self.at += 3
        elif self.peek(2) == "(?":
            raise self.error("(?:, (?i:, (?! or (?=")
        else:
            self.at += 1
            opening, look = "(?:", False
        inside = self.alternatives(depth + 1, folded)
        if not self.take(")"):
            raise self.error("the end of a group")
        text = f"{opening}{inside.text})"
        if look:  # it is not gone back to
            return inside._replace(text=text, empty=True, endless=False, tries=ONCE, chars=None, first=None)
        return inside._replace(text=text, chars=None)

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
        if c and c in "sdwSDW":
            inside = ranges("word_crate" if c in "wW" and self.engine == CRATE else _CLASS_ESCAPES[c.lower()])
            if c in "wW" and self.engine == ONIG and not self.sets:
                inside = merged(inside + SUPERSCRIPTS)
            return inside if c.islower() else complement(inside)
        if c in ("x", "u"):
            return self.number(c)
        if c in _ESCAPES:
            return ((ord(_ESCAPES[c]), ord(_ESCAPES[c])),)
        if not c or c in string.ascii_letters + string.digits:
            self.at -= 2
            raise self.error("a known escape")
        return ((ord(c), ord(c)),)

    def number(self, kind: str) -> Ranges:
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
        if self.take("{"):
            end = self.pattern.find("}", self.at)
            name, after = self.pattern[self.at : max(end, self.at)], end + 1
        else:
            name, after = self.peek(), self.at + 1
        if name.startswith("^"):
            negated, name = not negated, name[1:]
        if name not in CLASSES or name.islower():
            raise self.error(f"one of {', '.join(c for c in CLASSES if not c.islower())}")
        if folded and self.engine == CRATE and name not in _WITHOUT_CASE:
            raise self.error("no class with letters of one case, or marks, where case does not matter")
        self.at = after
        return complement(ranges(name)) if negated else ranges(name)

    def set(self, folded: bool) -> Ranges:
        """The code points of a set, with sets within it; && is the intersection of what stands on its sides."""
        self.at += 1
        self.sets += 1
        negated, whole = self.take("^"), None
        part: list[tuple[int, int]] = []
        begin = self.at
        while not (self.peek() == "]" and self.at > begin):
            if self.at >= len(self.pattern):
                raise self.error("the end of a set")
            if self.take("&&"):
                whole, part = common(whole, part), []
            elif self.peek(2) == "[:":
                raise self.error("no POSIX class")
            elif self.peek() == "[":
                part += self.set(folded)
            else:
                part += self.member(folded)
        self.at += 1
        self.sets -= 1
        found = common(whole, part)
        return complement(found) if negated else found

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

"""Characters and sets of other engines' regular expressions, as code points of Unicode 16.0."""

from __future__ import annotations

import string

from jittok.common.pipeline.steps import CRATE, ONIG
from jittok.common.unicode.libraries import ranges
from jittok.common.unicode.properties import ASCII, HEXADECIMAL, POSIX, loose, posix_ranges, property_ranges
from jittok.common.unicode.sets import LAST, Ranges, common, complement, merged

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

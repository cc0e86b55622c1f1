"""Patterns of other engines, read part by part and written out so that any engine gives the same answer."""

from __future__ import annotations

from jittok.common.pipeline.pattern_parts import (
    LARGE_COUNT,
    LOOKS,
    MOST_REPEATS,
    ONCE,
    PatternPart,
    Tries,
    either,
    in_a_row,
    is_look,
    single,
    union,
    without_keeping,
    written,
)
from jittok.common.pipeline.pattern_sets import NOT_A_LINE_FEED, PatternCursor
from jittok.common.pipeline.steps import CRATE, ONIG
from jittok.common.unicode.sets import Ranges

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

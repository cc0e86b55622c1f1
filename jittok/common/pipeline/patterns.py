"""Regular expressions of other engines, written out so that any engine gives the same answer.

Oniguruma (tokenizers), fancy-regex (tiktoken) and Rust's regex crate know other characters than Python's engines, and
write some things otherwise. `explicit` reads what tokenizer files use of their syntax and writes classes as sets of
code points of Unicode 16.0, `(?i:` as sets of both cases, and anchors as what is on their sides. What it does not
know is refused, and so is what matches the empty text in a rank file, whose words are its matches (`check_pattern`).

A text cannot make a search take longer than linear time. Patterns of which an engine that goes back could try too much
are found by an automaton instead (`compiled`), and those for which there is none of moderate size are refused.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jittok.common.pipeline.known_patterns import GREEDY_CL100K, GREEDY_R50K, greedy
from jittok.common.pipeline.pattern_parts import MOST_TRIES, PatternPart, is_possessive
from jittok.common.pipeline.pattern_reader import Reader
from jittok.common.pipeline.pattern_sets import PatternError
from jittok.common.pipeline.steps import ONIG, Pattern

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

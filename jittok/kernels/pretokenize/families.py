"""The fast splitters, and the patterns that they cut like.

A pre type of a GGUF names its family in its record (`records`). For other files the table is `_forms`, from a pattern
to its family. Both are settings of the same kernels, but characters have other classes: those of llama.cpp's tables, or
of Unicode 16.0.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from jittok.common.pipeline.known_patterns import GPT2 as GPT2_PATTERN
from jittok.common.pipeline.known_patterns import GREEDY_R50K, O200K, greedy
from jittok.common.pipeline.patterns import explicit
from jittok.common.pipeline.steps import ISOLATED, REMOVED, Cut, Pattern, SpellBytes, Splitter
from jittok.common.unicode.libraries import ranges
from jittok.common.unicode.tables import LETTER, MARK
from jittok.kernels.pretokenize.classes import UNICODE_SIZE
from jittok.kernels.pretokenize.records import SplitterFamily
from jittok.kernels.pretokenize.splitters import GENERAL, GPT2, LINES, LLAMA3, blocks
from jittok.kernels.pretokenize.splitters.blocks import CharacterClasses, class_tables
from jittok.kernels.pretokenize.splitters.llama3 import BOTH_CASES, FOLDED, ONE_CASE, PREFIX, SUFFIX, TRUE_CASE, WITHOUT

SPLITTERS = {"gpt2": GPT2, "llama3": LLAMA3, "lines": LINES}
CONTRACTIONS = {"prefix": PREFIX, "suffix": SUFFIX, "without": WITHOUT}


class FamilyNumbers(NamedTuple):
    """The fields of `BpeArrays` that select a splitter and its settings."""

    family: int
    digits_alone: int
    group: int
    cased: int
    contractions: int
    letters: int  # llama.cpp's flags of the characters that it takes for letters


GENERAL_NUMBERS = FamilyNumbers(GENERAL, 0, 0, 0, WITHOUT, LETTER)
"""The general splitter, which runs the patterns themselves."""


def family_numbers(family: SplitterFamily | None, *, unicode: bool = False) -> FamilyNumbers:
    """The settings of a family's splitter, or of the general splitter without a family. unicode: for `unicode_classes`,
    which know the case of all letters."""
    if family is None or family.splitter == "lines":
        return GENERAL_NUMBERS
    return FamilyNumbers(
        SPLITTERS[family.splitter],
        int(family.digits_alone),
        family.group,
        (TRUE_CASE if unicode else BOTH_CASES) if family.cased else ONE_CASE,
        CONTRACTIONS[family.contractions] | (FOLDED if family.folded else 0),
        LETTER | MARK if family.marks else LETTER,
    )


def cuts_lines(family: SplitterFamily | None) -> bool:
    """Whether the pre-tokens of a family are whole lines."""
    return family is not None and family.splitter == "lines"


# ---- other files than GGUF

SURROGATES = slice(0xD800, 0xE000)
_REST = r"[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_FOLDED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
_SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_BOTH = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|"
_CL100K = r"'(?i:[sdmt]|ll|ve|re)|"
_TAIL, _SHORT_TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+", r"\s*[\r\n]|\s+(?!\S)|\s"
"""Of a run of white space both leave the same, and where `\\s+(?!\\S)` fails a single character is left."""
GPT2_FORMS = (
    GPT2_PATTERN,
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    GREEDY_R50K,
)


def _llama3_forms() -> dict[str, SplitterFamily]:
    found = {}
    for contraction, folded in ((_FOLDED, True), (_CL100K, True), (_BOTH, False)):
        for digits, group in ((r"\p{N}{1,3}", 3), (r"\p{N}", 1)):
            plain = contraction + _REST % digits
            marks = plain.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
            short = plain.replace(_TAIL, _SHORT_TAIL)
            ending = short.replace(r"|\s*[\r\n]|", r"|\s+\z|\s*[\r\n]|")
            family = functools.partial(SplitterFamily, "llama3", group=group, folded=folded)
            found.update({plain: family(), marks: family(marks=True), short: family(), ending: family(ends=True)})
    return found


def _cased_forms() -> dict[str, SplitterFamily]:
    """o200k, and tekken: without contractions, each digit alone."""
    tekken = O200K.replace(_SUFFIX, "").replace(r"\p{N}{1,3}", r"\p{N}")
    o200k = SplitterFamily("llama3", group=3, cased=True, contractions="suffix", folded=True)
    without = SplitterFamily("llama3", group=1, cased=True, contractions="without")
    return {form: family for text, family in ((O200K, o200k), (tekken, without))
            for form in (text, text.replace(_TAIL, _SHORT_TAIL))}  # fmt: skip


@functools.cache
def _forms() -> dict[str, SplitterFamily]:
    return {**{text: SplitterFamily("gpt2") for text in GPT2_FORMS}, **_llama3_forms(), **_cased_forms()}


@functools.cache
def _explicit_forms() -> dict[str, SplitterFamily]:
    return {explicit(text): family for text, family in _forms().items()}


def _family(pattern: Pattern) -> SplitterFamily | None:
    """The fast splitter of a pattern. Most files have one of `_forms`, which all engines match alike; other spellings
    are compared by their classes. PatternError for a pattern that `explicit` does not cover."""
    text = greedy(pattern.text, pattern.engine) or pattern.text
    return _forms().get(text) or _explicit_forms().get(explicit(text, pattern.engine))


def family_of(stages: tuple[Splitter, ...]) -> SplitterFamily | None:
    """The fast splitter that cuts like these stages of a file, None if there is none. A last SpellBytes is left to the
    model, which reads bytes in any case."""
    cuts = stages[:-1] if stages and isinstance(stages[-1], SpellBytes) else stages
    if len(cuts) == 1 and isinstance(cuts[0], Cut) and not cuts[0].pattern.literal and _keeps_all(cuts[0]):
        return _family(cuts[0].pattern)
    return None


def _keeps_all(stage: Cut) -> bool:
    return (stage.behavior == ISOLATED and not stage.invert) or (stage.behavior == REMOVED and stage.invert)


def unicode_classes(family: SplitterFamily | None) -> CharacterClasses:
    """The table of characters of a family, by Unicode 16.0; without a family, that of letters, digits, white space."""
    table = np.zeros(UNICODE_SIZE, np.uint8)
    kinds = [("L", blocks.LETTER), ("N", blocks.DIGIT), ("space", blocks.SPACE)]
    if family and family.marks:
        kinds.append(("M", blocks.LETTER))
    if family and family.cased:
        kinds += [("Lu", blocks.CAPITAL), ("Lt", blocks.CAPITAL), ("Ll", blocks.SMALL), ("M", blocks.MARK)]
    for name, kind in kinds:
        for first, last in ranges(name):
            table[first : last + 1] = kind
    table[SURROGATES] = blocks.BAD
    return class_tables(table)


_CROSSING = re.compile(rb"[\r\n][\t\v\f\x1c-\x20\xc2\xe1-\xe3][^\r\n]*\Z")
"""The bytes after the line end are first bytes of white space, so some other characters match too."""


def crosses(tokens: Iterable[bytes]) -> bool:
    """Whether a token may continue with white space after its last line feed or carriage return. If none does, no merge
    crosses this offset. Then a family that `ends` has the right ids: it cuts white space at the end of a text after its
    last line feed, where its patterns do not."""
    return any(map(_CROSSING.search, tokens))

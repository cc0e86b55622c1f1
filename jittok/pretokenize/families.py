"""The fast splitter of a pre type as the numbers that kernels know: those of BPE and those of training."""

from __future__ import annotations

from typing import NamedTuple

from jittok.pretokenize.records import PreType
from jittok.pretokenize.splitters.llama3 import PREFIX, SUFFIX, WITHOUT
from jittok.unicode.tables import LETTER, MARK

GENERAL, GPT2, LLAMA3, LINES, MARKED = 0, 1, 2, 3, 4
"""MARKED: words stand behind each other with marks, see `splitters.marks`; no pre type has it."""
SPLITTERS = {"gpt2": GPT2, "llama3": LLAMA3, "lines": LINES}
CONTRACTIONS = {"prefix": PREFIX, "suffix": SUFFIX, "without": WITHOUT}


class FamilyNumbers(NamedTuple):
    """The fields of `bpe.Arrays` that say which splitter cuts, and how."""

    family: int
    digits_alone: int
    group: int
    cased: int
    contractions: int
    letters: int  # flags of the characters that it takes for letters


GENERAL_NUMBERS = FamilyNumbers(GENERAL, 0, 0, 0, WITHOUT, LETTER)
"""The general splitter, which runs the patterns themselves."""


def family_numbers(pre: PreType) -> FamilyNumbers:
    """Those of a pre type's record; of the general splitter where the record names no family of splitters for words."""
    family = pre.family
    if family is None or family.splitter == "lines":
        return GENERAL_NUMBERS
    return FamilyNumbers(
        SPLITTERS[family.splitter],
        int(family.digits_alone),
        family.group,
        int(family.cased),
        CONTRACTIONS[family.contractions],
        LETTER | MARK if family.marks else LETTER,
    )


def cuts_lines(pre: PreType) -> bool:
    """Whether the words of this pre type are whole lines of characters."""
    return pre.family is not None and pre.family.splitter == "lines"

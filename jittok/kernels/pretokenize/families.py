"""The fast splitter of a pre type, as numbers for the kernels of BPE and of training."""

from __future__ import annotations

from typing import NamedTuple

from jittok.common.unicode.tables import LETTER, MARK
from jittok.kernels.pretokenize.records import PreTypeFamily
from jittok.kernels.pretokenize.splitters.llama3 import PREFIX, SUFFIX, WITHOUT

GENERAL, GPT2, LLAMA3, LINES, MARKED = 0, 1, 2, 3, 4
"""MARKED: words are already split, with a bitmap of their starts (`splitters.word_bitmap`); no pre type has it."""
SPLITTERS = {"gpt2": GPT2, "llama3": LLAMA3, "lines": LINES}
CONTRACTIONS = {"prefix": PREFIX, "suffix": SUFFIX, "without": WITHOUT}


class FamilyNumbers(NamedTuple):
    """The fields of `bpe.Arrays` that select a splitter and its settings."""

    family: int
    digits_alone: int
    group: int
    cased: int
    contractions: int
    letters: int  # flags of the characters that it takes for letters


GENERAL_NUMBERS = FamilyNumbers(GENERAL, 0, 0, 0, WITHOUT, LETTER)
"""The general splitter, which runs the patterns themselves."""


def family_numbers(family: PreTypeFamily | None) -> FamilyNumbers:
    """The settings of a family's splitter, or of the general splitter without a family."""
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


def cuts_lines(family: PreTypeFamily | None) -> bool:
    """Whether the pre-tokens of a family are whole lines."""
    return family is not None and family.splitter == "lines"

"""Which of the fast splitters cut as which pre types."""

from __future__ import annotations

from jittok.pretokenize.splitters.llama3 import PREFIX, SUFFIX, WITHOUT
from jittok.unicode.tables import LETTER, MARK

GENERAL, GPT2, LLAMA3 = 0, 1, 2
FAMILIES = {
    **dict.fromkeys((5, 7, 12, 19, 31, 40), (GPT2, 0, 0, 0, PREFIX, LETTER)),
    **dict.fromkeys((6, 8, 9, 21, 22, 25, 27, 55), (GPT2, 1, 0, 0, PREFIX, LETTER)),
    **dict.fromkeys((1, 13, 14, 17), (LLAMA3, 0, 3, 0, PREFIX, LETTER)),
    **dict.fromkeys((10, 11, 36, 39, 43), (LLAMA3, 0, 1, 0, PREFIX, LETTER)),
    46: (LLAMA3, 0, 1, 0, PREFIX, LETTER | MARK),
    **dict.fromkeys((29, 41), (LLAMA3, 0, 3, 1, SUFFIX, LETTER)),
    20: (LLAMA3, 0, 1, 1, WITHOUT, LETTER),
    59: (LLAMA3, 0, 1, 0, WITHOUT, LETTER),
}
"""pre type -> (family, digits_alone, group, cased, contractions, flags that make a letter), as in Arrays. All others,
and vocabularies without byte encoding, have the general splitter."""

"""Unigram (GGUF "t5"): the path of tokens with the highest sum of scores.

The best path through normalized text is found by one `lattice`, for every kind of Unigram. Of a GGUF, `compile` builds
the arrays and `kernel` encodes span by span; `rules` has the tables of safe cuts. `files` is for other files, and
`words` for words that are normalized and split already.
"""

from jittok.kernels.models.ugm.compile import (
    UgmArrays,
    UgmWork,
    can_split_at_spaces,
    compile_pipeline,
    make_work,
    regrow,
)
from jittok.kernels.models.ugm.kernel import ODD_TEXT, encode_fragments

IDS_PER_BYTE = 1
"""Usually enough; a character map can make a text longer."""

__all__ = [
    "IDS_PER_BYTE",
    "ODD_TEXT",
    "UgmArrays",
    "UgmWork",
    "can_split_at_spaces",
    "compile_pipeline",
    "encode_fragments",
    "make_work",
    "regrow",
]

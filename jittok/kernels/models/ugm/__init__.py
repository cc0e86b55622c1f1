"""Unigram (GGUF "t5"): the path of tokens with the highest sum of scores.

`compile` builds the arrays and `rules` the tables of safe cuts. `kernel` encodes span by span (see `span`), and
`whole_fragment` encodes fragments that cannot be cut.
"""

from jittok.kernels.models.ugm.compile import (
    UgmArrays,
    UgmWork,
    can_split_at_spaces,
    compile_pipeline,
    make_work,
    regrow,
)
from jittok.kernels.models.ugm.kernel import encode_fragments

IDS_PER_BYTE = 1
"""Usually enough; a character map can make a text longer."""

__all__ = [
    "IDS_PER_BYTE",
    "UgmArrays",
    "UgmWork",
    "can_split_at_spaces",
    "compile_pipeline",
    "encode_fragments",
    "make_work",
    "regrow",
]

"""WordPiece (GGUF "bert"): BERT's normalization by one table, then repeated longest match.

`alphabet` and `compile` build the arrays, `bert` and `files` those of other files, and `kernel` encodes span by span.
`words` encodes words that are normalized and split already.
"""

from jittok.kernels.models.wpm.compile import (
    WpmArrays,
    WpmWork,
    can_split_at_spaces,
    compile_pipeline,
    make_work,
    normal_table,
    regrow,
)
from jittok.kernels.models.wpm.kernel import ODD_TEXT, encode_fragments

IDS_PER_BYTE = 1
"""Usually enough; see `compile.MARKED_BYTE`."""

__all__ = [
    "IDS_PER_BYTE",
    "ODD_TEXT",
    "WpmArrays",
    "WpmWork",
    "can_split_at_spaces",
    "compile_pipeline",
    "encode_fragments",
    "make_work",
    "normal_table",
    "regrow",
]

"""WordPiece (GGUF "bert"): BERT's normalization by one table, then repeated longest match.

`compile` builds the arrays, `kernel` encodes span by span, and `whole_fragment` encodes fragments that cannot be cut.
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
from jittok.kernels.models.wpm.kernel import encode_fragments
from jittok.kernels.models.wpm.span import ODD_TEXT

IDS_PER_BYTE = 1
"""Usually enough; see `compile.SCRATCH_PER_BYTE`."""

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

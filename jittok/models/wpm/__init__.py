"""WordPiece (GGUF "bert"): BERT's normalization by one table, then repeated longest match.

`compile` builds the arrays, `kernel` encodes span by span, and `whole` encodes fragments that cannot be cut.
"""

from jittok.models.wpm.compile import Arrays, Work, compile_pipeline, make_work, may_part, normal_table, regrow
from jittok.models.wpm.kernel import encode_fragments
from jittok.models.wpm.span import ODD_TEXT

IDS_PER_BYTE = 1
"""Usually enough; see `compile.ROOM_PER_BYTE`."""

__all__ = [
    "IDS_PER_BYTE",
    "ODD_TEXT",
    "Arrays",
    "Work",
    "compile_pipeline",
    "encode_fragments",
    "make_work",
    "may_part",
    "normal_table",
    "regrow",
]

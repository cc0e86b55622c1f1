"""WordPiece over words that were normalized and split before (see `pretokenize.splitters.word_bitmap`)."""

from jittok.kernels.models.wpm.words.compile import (
    WordPieceWordArrays,
    can_split_at_spaces,
    compile_pipeline,
    make_work,
    regrow,
)
from jittok.kernels.models.wpm.words.kernel import encode_fragments

IDS_PER_BYTE = 1

__all__ = [
    "IDS_PER_BYTE",
    "WordPieceWordArrays",
    "can_split_at_spaces",
    "compile_pipeline",
    "encode_fragments",
    "make_work",
    "regrow",
]

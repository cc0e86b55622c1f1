"""WordPiece over words that were normalized and split before (see `pretokenize.splitters.marks`)."""

from jittok.models.wpm.words.compile import Arrays, compile_pipeline, make_work, may_part, regrow
from jittok.models.wpm.words.kernel import encode_fragments

IDS_PER_BYTE = 1

__all__ = ["IDS_PER_BYTE", "Arrays", "compile_pipeline", "encode_fragments", "make_work", "may_part", "regrow"]

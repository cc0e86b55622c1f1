"""Which stretch of a text each token stands for.

Ids come from the kernels that encode. Spans are found by walking the ids over the text. If the text is not changed
before it is encoded, spans follow from the lengths of the tokens (`direct_spans`). If it is rewritten, the new text
is mapped to the old one (`rewritten`, `words`, `normalized`, `unigram`). A few cases stay open: these are encoded
once more, step by step (`replay`, the lattice of `unigram`).
"""

from jittok.align.aligner import Aligner
from jittok.align.alignment import UNITS, Alignment, AlignmentBatch
from jittok.align.characters import character_spans

__all__ = ["UNITS", "Aligner", "Alignment", "AlignmentBatch", "character_spans"]

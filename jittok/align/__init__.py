"""Which stretch of a text each token stands for.

Ids come from the kernels that encode; spans are found by walking them over the text. Where a text passes unchanged they
follow from the lengths of the tokens (`direct`); else a text is mapped to what it is rewritten to (`rewritten`,
`words`, `normalized`, `unigram`), and the little that even this leaves open is encoded once more, step by step
(`literal`, the lattice of `unigram`).
"""

from jittok.align.aligner import Aligner
from jittok.align.alignment import UNITS, Alignment, AlignmentBatch
from jittok.align.characters import character_spans

__all__ = ["UNITS", "Aligner", "Alignment", "AlignmentBatch", "character_spans"]

"""Alignment: the span of the text that each token covers.

Encoding kernels return ids only; spans are found afterwards by walking the ids over the text. If the text is encoded
unchanged, spans follow from the lengths of the tokens (`direct_spans`). If it is rewritten first, the rewritten text is
mapped back to the original (`rewritten_text`, `wordpiece`, `unigram_normalizer`, `unigram`). The few remaining cases
are encoded again (`replay` by the reference, the lattice of `unigram`).
"""

from jittok.align.aligner import Aligner
from jittok.align.alignment import UNITS, Alignment, AlignmentBatch
from jittok.align.characters import character_spans

__all__ = ["UNITS", "Aligner", "Alignment", "AlignmentBatch", "character_spans"]

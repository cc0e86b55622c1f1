"""Unigram of files other than GGUF: a tokenizer.json sums scores as doubles, a sentencepiece model as floats.

A sum that rounds depends on all the text before, so ids of spans (see `safe_cuts`) may only be cached if rounding
cannot change the path. `lattice` finds the best path of a span and the margin by which it wins at each offset. If
that is too small, the span is not cached: its path is found again from the sum that the text actually has there.
`normalizer_tables` compiles the steps of a file to one table, `normalizer` runs it, and `kernel` is the loop.
"""

from jittok.kernels.models.ugm.files.arrays import (
    UnigramFileArrays,
    UnigramFileWork,
    can_split_at_spaces,
    make_work,
    optimized_layout,
    regrow,
)
from jittok.kernels.models.ugm.files.kernel import encode_fragments
from jittok.kernels.models.ugm.files.normalizer import ODD_TEXT

IDS_PER_BYTE = 1
"""Usually enough; a character map can make a text longer."""

__all__ = [
    "IDS_PER_BYTE",
    "ODD_TEXT",
    "UnigramFileArrays",
    "UnigramFileWork",
    "can_split_at_spaces",
    "encode_fragments",
    "make_work",
    "optimized_layout",
    "regrow",
]  # fmt: skip

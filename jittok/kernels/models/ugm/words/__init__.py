"""Unigram of a tokenizer.json over words that were normalized and split before (see
`pretokenize.splitters.word_bitmap`).

Sums start at zero in each word, so a word has the same ids everywhere.
"""

from jittok.kernels.models.ugm.words.compile import (
    UnigramWordArrays,
    UnigramWordWork,
    can_split_at_spaces,
    compile_pipeline,
    make_work,
    regrow,
)
from jittok.kernels.models.ugm.words.kernel import encode_fragments

IDS_PER_BYTE = 1

__all__ = [
    "IDS_PER_BYTE",
    "UnigramWordArrays",
    "UnigramWordWork",
    "can_split_at_spaces",
    "compile_pipeline",
    "encode_fragments",
    "make_work",
    "regrow",
]

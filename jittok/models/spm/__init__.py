"""SPM ("llama"): merges of neighbours by the score of what they make. `compile` makes the arrays, `kernel` encodes span
by span, `whole` the fragments that cannot be cut."""

from jittok.models.spm.arrays import Arrays, Work, make_work, regrow
from jittok.models.spm.compile import compile_vocab, may_part, with_chain
from jittok.models.spm.kernel import encode_fragments

IDS_PER_BYTE = 1

__all__ = [
    "IDS_PER_BYTE",
    "Arrays",
    "Work",
    "compile_vocab",
    "encode_fragments",
    "make_work",
    "may_part",
    "regrow",
    "with_chain",
]

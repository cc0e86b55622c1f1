"""Unigram ("t5"): the path of tokens with the highest sum of scores. `compile` makes the arrays, `kernel` uses them."""

from jittok.models.ugm.compile import Arrays, Work, compile_vocab, make_work
from jittok.models.ugm.kernel import IDS_PER_BYTE, encode_fragments

__all__ = ["IDS_PER_BYTE", "Arrays", "Work", "compile_vocab", "encode_fragments", "make_work"]

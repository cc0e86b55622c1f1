"""Unigram ("t5"): the path of tokens with the highest sum of scores.

`compile` makes the arrays, `rules` says where a text may be cut, `kernel` encodes span by span (`span`), `whole` the
fragments that cannot be cut.
"""

from jittok.models.ugm.compile import Arrays, Work, compile_pipeline, make_work, may_part, regrow
from jittok.models.ugm.kernel import encode_fragments

IDS_PER_BYTE = 1
"""Usually enough; a charsmap can grow a text."""

__all__ = ["IDS_PER_BYTE", "Arrays", "Work", "compile_pipeline", "encode_fragments", "make_work", "may_part", "regrow"]

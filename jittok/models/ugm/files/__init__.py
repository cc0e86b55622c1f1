"""Unigram of files other than GGUF: tokenizer.json by sums of doubles, sentencepiece's models by sums of floats.

A sum that rounds depends on all that is before, so spans (`safe_cuts`) may only be looked up where rounding cannot
decide. `paths` finds the best path of a span and how far after the others are at each place of it. Where one is nearly
as good, the span is not kept: its path is found again from the very sum that the text has there. `normalizers` makes
one table of a file's steps, `rewriting` runs it, `kernel` is the loop.
"""

from jittok.models.ugm.files.arrays import Arrays, Work, for_much_text, make_work, may_part, regrow
from jittok.models.ugm.files.kernel import encode_fragments
from jittok.models.ugm.files.rewriting import ODD_TEXT

IDS_PER_BYTE = 1
"""Usually enough; a map can grow a text."""

__all__ = [
    "IDS_PER_BYTE", "ODD_TEXT", "Arrays", "Work", "encode_fragments", "for_much_text", "make_work", "may_part",
    "regrow",
]  # fmt: skip

"""BPE: llama.cpp's models `gpt2`, `gemma4`, `hybriddna` and `whitespace`."""

from jittok.models.bpe.compile import Arrays, compile_vocab
from jittok.models.bpe.kernel import IDS_PER_BYTE, Work, encode_fragments, make_work

__all__ = ["IDS_PER_BYTE", "Arrays", "Work", "compile_vocab", "encode_fragments", "make_work"]

"""BPE: llama.cpp's models `gpt2`, `gemma4`, `hybriddna` and `whitespace`."""

from __future__ import annotations

from typing import Any

from jittok.models.bpe.arrays import GPT2, LLAMA3, Arrays
from jittok.models.bpe.compile import compile_vocab
from jittok.models.bpe.fast import encode_gpt2, encode_llama3
from jittok.models.bpe.general import encode_general
from jittok.models.bpe.work import Work, make_work, regrow

__all__ = ["IDS_PER_BYTE", "Arrays", "Work", "compile_vocab", "encode_fragments", "make_work", "regrow"]

IDS_PER_BYTE = 1

_KERNELS = {GPT2: encode_gpt2, LLAMA3: encode_llama3}


def encode_fragments(model: Arrays, work: Work, *rest: Any) -> int:
    """The kernel of the vocabulary's family; see `jittok.fragments`. Only that one is compiled."""
    return _KERNELS.get(model.family, encode_general)(model, work, *rest)

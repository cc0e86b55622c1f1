"""BPE with DNA sequences ("hybriddna"): between <dna> and </dna> each six letters are a token."""

from __future__ import annotations

from collections.abc import Iterator

from jittok.common.pipeline.steps import Kmers
from jittok.common.unicode.characters import KMER_MARK
from jittok.reference.mapped_text import Mapped, Token
from jittok.vocab import Vocab

BEGIN, END = b"<dna>", b"</dna>"


def stretches(vocab: Vocab, step: Kmers, fragment: Mapped) -> Iterator[Mapped | Token]:
    """The tokens of the marks and of the DNA between them, and the text around.

    Source: llama.cpp, `llm_tokenizer_hybriddna_session`.
    """
    text = bytes(fragment.text)
    at = 0
    while at < len(text):
        start = text.find(BEGIN, at)
        if start < 0:
            yield fragment.part(at, len(text))
            return
        if start > at:
            yield fragment.part(at, start)
        inner = start + len(BEGIN)
        yield fragment.token(step.begin, start, inner)
        stop = text.find(END, inner)
        last = stop if stop >= 0 else len(text)
        for i in range(inner, last, step.size):
            letters = text[i : min(i + step.size, last)]
            kmer = letters.upper().ljust(step.size, b"A") + KMER_MARK
            yield fragment.token(vocab.ids.get(kmer, step.unknown), i, i + len(letters))
        if stop < 0:
            return
        at = stop + len(END)
        yield fragment.token(step.end, stop, at)

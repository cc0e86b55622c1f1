"""BPE with stretches of DNA ("hybriddna"): between <dna> and </dna> each six letters are a token."""

from __future__ import annotations

from collections.abc import Iterator

from jittok.reference import bpe
from jittok.reference.mapped import Mapped, Token
from jittok.unicode.characters import KMER, KMER_MARK
from jittok.vocab import Vocab

BEGIN, END, UNKNOWN = b"<dna>", b"</dna>", b"<oov>"
"""Ends the texts of k-mers in the map from texts to ids."""


def session(vocab: Vocab, fragment: Mapped) -> Iterator[Token]:
    """Tokens of the text between two special tokens. Source: llama.cpp, `llm_tokenizer_hybriddna_session`."""
    begin, end, unknown = (vocab.ids.get(text) for text in (BEGIN, END, UNKNOWN))
    fragment = bpe.escaped(vocab, fragment)
    text = bytes(fragment.text)
    at = 0
    while at < len(text):
        start = text.find(BEGIN, at)
        if start < 0 or begin is None or end is None or unknown is None:
            yield from bpe.session(vocab, fragment.part(at, len(text)))
            return
        if start > at:
            yield from bpe.session(vocab, fragment.part(at, start))
        inner = start + len(BEGIN)
        yield fragment.token(begin, start, inner)
        stop = text.find(END, inner)
        last = stop if stop >= 0 else len(text)
        for i in range(inner, last, KMER):
            letters = text[i : min(i + KMER, last)]
            kmer = letters.upper().ljust(KMER, b"A") + KMER_MARK
            yield fragment.token(vocab.ids.get(kmer, unknown), i, i + len(letters))
        if stop < 0:
            return
        at = stop + len(END)
        yield fragment.token(end, stop, at)

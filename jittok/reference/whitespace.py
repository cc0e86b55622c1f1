"""BPE on each run of characters between white space ("whitespace")."""

from __future__ import annotations

from collections.abc import Iterator

from jittok.errors import EncodingFailed
from jittok.reference import bpe
from jittok.reference.mapped import Mapped, Token
from jittok.unicode.tables import LAST_CODE_POINT, decode, is_whitespace, lower, utf8
from jittok.vocab import Vocab


def session(vocab: Vocab, fragment: Mapped) -> Iterator[Token]:
    """Tokens of the text between two special tokens. Source: llama.cpp, `llm_tokenizer_whitespace_session`."""
    for run in runs(vocab, fragment):
        yield from bpe.session(vocab, run)


def runs(vocab: Vocab, fragment: Mapped) -> list[Mapped]:
    """The runs between white space, in lower case if the vocabulary wants it. EncodingFailed: above U+10FFFF.

    Spaces that become U+2581 are no white space any more.
    """
    fragment, found = bpe.escaped(vocab, fragment), [Mapped()]
    for c, i, j in decode(fragment.text, vocab.shortest_utf8):
        if c > LAST_CODE_POINT:
            raise EncodingFailed(0, fragment.starts[i], f"U+{c:X}", "no code point above U+10FFFF")
        if is_whitespace(c):
            found.append(Mapped())
        else:
            found[-1].put(utf8(lower(c) if vocab.lowercase else c), fragment, i, j)
    return [run for run in found if run.text]

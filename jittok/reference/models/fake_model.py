"""llama.cpp's type for its own tests ("test"): each five bytes are hashed.

>>> from jittok.reference.text import mapped
>>> list(tokens(range(1000), mapped(b"abcdefg", 0, 7)))  # of a vocabulary, only its size counts
[Token(id=395, start=0, stop=5), Token(id=265, start=5, stop=7)]
"""

from __future__ import annotations

from collections.abc import Iterator

from jittok.reference.special import never
from jittok.reference.text import Mapped, Token
from jittok.vocab import Vocab

CHUNK = 5


around = never


def tokens(vocab: Vocab, fragment: Mapped) -> Iterator[Token]:
    """Tokens of the text between two special tokens."""
    for at in range(0, len(fragment.text), CHUNK):
        chunk = fragment.text[at : at + CHUNK]
        value = 0
        for byte in chunk:
            value = value * 31 + byte  # five bytes stay far below 64 bits
        yield fragment.token(value % len(vocab), at, at + len(chunk))

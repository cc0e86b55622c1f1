"""SPM ("llama"): merges adjacent symbols by the score of the resulting token, then single bytes for other symbols.

>>> import jittok
>>> from jittok.reference.text import mapped
>>> vocab = jittok.bundled("mistral").vocab
>>> text = "▁tokenizers".encode()  # U+2581 replaces the space
>>> [symbol.decode() for symbol in merge(vocab, text).pieces()]
['▁token', 'izers']
>>> [token.id for token in tokens(vocab, mapped(text, 0, len(text)))]
[6029, 17916]
"""

from __future__ import annotations

from collections.abc import Iterator

from jittok.errors import EncodingFailed
from jittok.reference import merging
from jittok.reference.special import by_flags
from jittok.reference.text import Mapped, Token
from jittok.reference.vocab_tables import scores
from jittok.vocab import Vocab

around = by_flags


def tokens(vocab: Vocab, text: Mapped) -> Iterator[Token]:
    """Tokens of a text in which U+2581 replaces spaces. EncodingFailed: a byte without a token.

    Source: llama.cpp, `llm_tokenizer_spm_session`.
    """
    at = 0
    for symbol in merge(vocab, bytes(text.text)).pieces():
        for token, size in resegment(vocab, symbol):
            if token is None:
                expected = "a byte that the vocabulary has a token for"
                raise EncodingFailed(0, text.starts[at], bytes(text.text[at : at + 1]), expected)
            yield text.token(token, at, at + size)
            at += size


def merge(vocab: Vocab, text: bytes, observe: merging.Observe | None = None) -> merging.Symbols:
    """Merge until no two adjacent symbols make a token: highest score first, then the leftmost."""
    ids, score = vocab.ids, scores(vocab)

    def join(left: bytes, right: bytes) -> tuple[float, bytes] | None:
        token = ids.get(left + right)
        return None if token is None else (-score[token], left + right)

    return merging.merge(merging.characters(text), join, observe)


def resegment(vocab: Vocab, symbol: bytes) -> list[tuple[int | None, int]]:
    """(id, bytes) of a symbol: its token, else those of its bytes, None for a byte without a token.

    llama.cpp also looks up how the symbol was merged, without effect: every merged symbol is a token.
    """
    token = vocab.ids.get(symbol)
    return [(token, len(symbol))] if token is not None else [(byte_token(vocab, byte), 1) for byte in symbol]


def byte_token(vocab: Vocab, byte: int) -> int | None:
    """The token `<0xHH>`, else the token of this single byte. Source: llama.cpp, `byte_to_token`."""
    return vocab.ids.get(b"<0x%02X>" % byte, vocab.ids.get(bytes([byte])) if byte else None)


def newline_id(vocab: Vocab) -> int:
    """The token of the byte, else the padding token."""
    token = byte_token(vocab, ord("\n"))
    return vocab.default_pad_id if token is None else token

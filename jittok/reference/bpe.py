"""BPE ("gpt2", "gemma4") on one pre-token: merges adjacent symbols by rank, then single bytes for other symbols."""

from __future__ import annotations

from collections.abc import Iterator

from jittok.common.pipeline.models import PairMerges
from jittok.common.unicode.tables import sequence_length
from jittok.errors import EncodingFailed
from jittok.reference.mapped_text import Mapped, Token
from jittok.reference.merging import Observe, Symbols, merge_pairs
from jittok.reference.special import by_flags
from jittok.vocab import Vocab
from jittok.vocab.as_pipeline import model_of

around = by_flags


def tokens(vocab: Vocab, word: Mapped) -> Iterator[Token]:
    """Tokens of one word. A byte without a token disappears.

    EncodingFailed: a space inside a word that is not byte-level.
    Source: llama.cpp, `llm_tokenizer_bpe_session`.
    """
    text = bytes(word.text)
    at = 0
    for symbol in [text] if is_whole(vocab, text) else merge(vocab, checked(word)).pieces():
        token = vocab.ids.get(symbol)
        if token is not None:
            yield word.token(token, at, at + len(symbol))
        else:
            for k, byte in enumerate(symbol, at):
                token = byte_token(vocab, byte)
                if token is not None:
                    yield word.token(token, k, k + 1)
        at += len(symbol)


def is_whole(vocab: Vocab, word: bytes) -> bool:
    """Whether a word is a token that is used directly, without merging."""
    model = model_of(vocab, PairMerges)
    return word in vocab.ids and (model.whole_words or (model.whole_lines and not word.strip(b"\n")))


def checked(word: Mapped) -> bytes:
    """The bytes of a word to be merged. llama.cpp asserts that no symbol of a pair holds a space."""
    text = bytes(word.text)
    space = text.find(b" ")
    if space >= 0 and len(text) > sequence_length(text[0]):
        expected = "no space inside a word (this vocabulary has no rule for it)"
        raise EncodingFailed(0, word.starts[space], text[space : space + 8], expected)
    return text


def merge(vocab: Vocab, word: bytes, observe: Observe | None = None) -> Symbols:
    """Merge until no merge applies: lowest rank first, then the leftmost."""
    ranks = vocab.merges
    return merge_pairs(word, lambda left, right: ranks.get((left, right)), observe)


def byte_token(vocab: Vocab, byte: int) -> int | None:
    """The token of one byte of a symbol without a token: the byte itself, or `<0xHH>` if words are not byte-level."""
    alone = model_of(vocab, PairMerges).byte_alphabet
    return vocab.ids.get(bytes([byte]) if alone else b"<0x%02X>" % byte)

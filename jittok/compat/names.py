"""Names of tokens as tokenizers writes them: bytes in the byte alphabet, `##` inside words of WordPiece."""

from __future__ import annotations

from jittok.common.pipeline import AddedToken, Pipeline
from jittok.common.pipeline.models import Longest, Pieces, Ranks
from jittok.common.unicode.characters import SPACE_MARK
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.tokenizer import Tokenizer
from jittok.vocab import Vocab

ALPHABET = [chr(character) for character in CHARACTER_OF_BYTE]
NORMAL, UNKNOWN, CONTROL = 4, 1, 8
"""Bits of `Tokenizer.attributes`."""


def names_of(tok: Tokenizer) -> dict[int, str]:
    """id -> name, without ids that have no token."""
    vocab = tok.vocab
    if isinstance(vocab, Vocab):
        texts = [text.decode("utf-8", "replace") for text in vocab.tokens]
        if vocab.type != "wpm":
            return dict(enumerate(texts))
        bits = tok.attributes.tolist()
        return {k: _wordpiece(text) if bits[k] & NORMAL else text for k, text in enumerate(texts)}
    spelled = isinstance(vocab.model, Ranks | Longest)
    found = {
        token: text.decode("latin-1").translate(ALPHABET) if spelled else text.decode("utf-8", "replace")
        for token, text in enumerate(vocab.model_tokens)
        if text is not None
    }
    return found | {token.id: token.content for token in vocab.added}


def _wordpiece(text: str) -> str:
    """A token of a GGUF, which has U+2581 where a word begins, as a file has it."""
    return text[1:] if text.startswith(SPACE_MARK) else f"##{text}"


def added_of(tok: Tokenizer, names: dict[int, str]) -> dict[int, AddedToken]:
    """id -> what is cut out of a text before anything else looks at it."""
    vocab = tok.vocab
    if isinstance(vocab, Pipeline) and not isinstance(vocab.model, Pieces):
        return {token.id: token for token in vocab.added}
    bits = tok.attributes.tolist()
    return {
        token: AddedToken(names[token], token, bool(bits[token] & (CONTROL | UNKNOWN)), False, False, False, False)
        for token in sorted(tok.special_ids)
    }

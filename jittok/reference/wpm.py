"""WordPiece ("bert"): BERT's normalization, then the longest token at each offset of a word."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jittok.common.pipeline.models import LongestText
from jittok.common.pipeline.steps import BertWords
from jittok.common.unicode.characters import SPACE_MARK_BYTES
from jittok.common.unicode.tables import (
    CONTROL,
    LAST_CODE_POINT,
    MARK,
    PUNCTUATION,
    REPLACEMENT,
    SYMBOL,
    WHITESPACE,
    decode,
    flags,
    lower,
    nfd,
    utf8,
)
from jittok.errors import EncodingFailed
from jittok.reference.mapped_text import Mapped, Token
from jittok.reference.special import Around
from jittok.vocab import Vocab
from jittok.vocab.as_pipeline import model_of, step_of

IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),  # so in llama.cpp: U+2B820 .. U+2B91F are missing
    (0x2F800, 0x2FA1F),
)
"""Each of these is a word of its own. Source: llama.cpp, `is_chinese_char`."""

Observe = Callable[[int, int, int | None], None]
"""Called with start, stop and token of each part of a word that was looked up."""


def around(vocab: Vocab) -> Around:
    """CLS and SEP, whatever the file's flags say."""
    return (True, "bos", vocab.bos_id), (True, "seperator", vocab.sep_id)


def newline_id(vocab: Vocab) -> int:
    """The padding token: white space is no word."""
    return vocab.default_pad_id


def tokens(vocab: Vocab, word: Mapped) -> Iterator[Token]:
    """Tokens of one word. Source: llama.cpp, `llm_tokenizer_wpm_session`."""
    matches = match(vocab, bytes(word.text))
    if matches is None:
        yield word.token(model_of(vocab, LongestText).unknown, 0, len(word.text))
    else:
        for token, start, stop in matches:
            yield word.token(token, start, stop)


def words(vocab: Vocab, fragment: Mapped) -> list[Mapped]:
    """The words, each with U+2581 before. EncodingFailed: a code point above U+10FFFF.

    Source: llama.cpp, `preprocess`.
    """
    how, found = step_of(vocab, BertWords), list[Mapped]()
    word = None  # the open one
    for c, i, j in decode(fragment.text, how.shortest):
        if how.strip_accents:
            c = nfd(c)  # noqa: PLW2901  llama.cpp goes on with the first code point of the decomposition
        if flags(c) & WHITESPACE:
            word = None
        elif not is_dropped(vocab, c):
            if c > LAST_CODE_POINT:
                raise EncodingFailed(0, fragment.starts[i], f"U+{c:X}", "no code point above U+10FFFF")
            alone = is_alone(c)
            if word is None or alone:
                word = Mapped()
                word.add(SPACE_MARK_BYTES, fragment.starts[i], fragment.starts[i])
                found.append(word)
            word.put(utf8(lower(c) if how.lowercase else c), fragment, i, j)
            if alone:
                word = None
    return found


def is_dropped(vocab: Vocab, c: int) -> bool:
    """Whether a code point other than white space is removed: its neighbors then become adjacent."""
    gone = CONTROL | MARK if step_of(vocab, BertWords).strip_accents else CONTROL
    return c in (0, REPLACEMENT) or bool(flags(c) & gone)


def is_alone(c: int) -> bool:
    """Whether a code point is a word: punctuation, ASCII symbols, ideographs."""
    return (
        bool(flags(c) & PUNCTUATION)
        or (c < 0x7F and bool(flags(c) & SYMBOL))
        or any(first <= c <= last for first, last in IDEOGRAPHS)
    )


def match(vocab: Vocab, word: bytes, observe: Observe | None = None) -> list[Token] | None:
    """(id, start, stop) of the longest tokens from left to right; None if an offset has none."""
    found: list[Token] = []
    at = 0
    while at < len(word):
        for stop in range(min(len(word), at + model_of(vocab, LongestText).longest + 1), at, -1):
            token = vocab.ids.get(word[at:stop])
            if observe:
                observe(at, stop, token)
            if token is not None:
                found.append(Token(token, at, stop))
                at = stop
                break
        else:
            return None
    return found

"""WordPiece: the longest token at each offset of a word; if an offset has none, the whole word is unknown.

In a GGUF ("bert"), BERT's normalization and splitting come first (`words`), and U+2581 marks where a word begins. In a
tokenizer.json, `##` marks a continuation.

>>> import jittok
>>> from jittok.reference.text import mapped
>>> vocab = jittok.bundled("bert").vocab
>>> [word.text.decode() for word in words(vocab, mapped("Tokenizers, née".encode(), 0, 16))]
['▁tokenizers', '▁,', '▁nee']
>>> match(vocab, "▁tokenizers".encode())
[Token(id=19204, start=0, stop=8), Token(id=17629, start=8, stop=12), Token(id=2015, start=12, stop=13)]
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

from jittok.common.pipeline import models
from jittok.common.pipeline.models import NO_TOKEN
from jittok.common.pipeline.pipeline import Pipeline
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
from jittok.reference.models.watch import Model, Part, Watch, byte_offsets, fail, texts_of
from jittok.reference.special import Around
from jittok.reference.text import Mapped, Token
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
        yield word.token(model_of(vocab, models.LongestText).unknown, 0, len(word.text))
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
    most = model_of(vocab, models.LongestText).longest + 1
    return longest_tokens(len(word), most, lambda start, stop: vocab.ids.get(word[start:stop]), observe)


def longest_tokens(
    size: int, most: int, token_at: Callable[[int, int], int | None], observe: Observe | None = None
) -> list[Token] | None:
    """The longest tokens from left to right; None if an offset has none.

    size, most: lengths of the word and of what is looked up; token_at(start, stop): the token of a part of the word.
    """
    found: list[Token] = []
    at = 0
    while at < size:
        for stop in range(min(size, at + most), at, -1):
            token = token_at(at, stop)
            if observe:
                observe(at, stop, token)
            if token is not None:
                found.append(Token(token, at, stop))
                at = stop
                break
        else:
            return None
    return found


# ---- files other than GGUF


def wordpiece_model(pipeline: Pipeline, model: models.WordPiece) -> Model:
    """The model of a tokenizer.json. Source: tokenizers, `WordPiece::tokenize`."""
    ids = texts_of(pipeline)
    lengths = sorted({len(text) for text in ids}, reverse=True)
    most = max(lengths, default=0)

    def unknown(word: str) -> list[Part]:
        if model.unknown == NO_TOKEN:
            fail(word, "a word of the vocabulary: it has no unknown token")
        return [(model.unknown, 0, len(word.encode()))]

    def encode(word: str, watch: Watch | None = None) -> list[Part]:
        if len(word) > model.longest:
            return unknown(word)
        offsets = byte_offsets(word)

        def token_at(start: int, stop: int) -> int | None:
            return ids.get((model.prefix if start else "") + word[start:stop])

        def tried(start: int, stop: int, token: int | None) -> None:
            if watch is not None:
                watch.tried(offsets[start], offsets[stop], token)

        found = longest_tokens(len(word), most, token_at, tried if watch else None)
        return unknown(word) if found is None else [(token, offsets[i], offsets[j]) for token, i, j in found]

    def long(word: str, out: array[int]) -> None:
        known, at = len(out), 0 if len(word) <= model.longest else len(word) + 1
        while at < len(word):
            prefix = model.prefix if at else ""
            stops = (at + length - len(prefix) for length in lengths)  # other lengths are no tokens
            found = ((stop, ids.get(prefix + word[at:stop])) for stop in stops if at < stop <= len(word))
            at, token = next((each for each in found if each[1] is not None), (len(word) + 1, None))
            if token is not None:
                out.append(token)
        if at > len(word):
            del out[known:]
            out.append(unknown(word)[0][0])

    return Model(encode, long)


def words_model(pipeline: Pipeline, model: models.Words) -> Model:
    """A word is a token or unknown. Source: tokenizers, `WordLevel::tokenize`."""
    ids = texts_of(pipeline)

    def encode(word: str, watch: Watch | None = None) -> list[Part]:
        del watch
        token = ids.get(word, model.unknown)
        if token == NO_TOKEN:
            fail(word, "a word of the vocabulary: it has no unknown token")
        return [(token, 0, len(word.encode()))]

    return Model(encode)

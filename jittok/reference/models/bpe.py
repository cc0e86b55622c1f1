"""BPE on one pre-token: merges adjacent symbols by rank.

In a GGUF ("gpt2", "gemma4") a symbol that is no token in the end becomes the tokens of its bytes. A tokenizer.json
begins with the tokens of characters (`merges_model`); tiktoken merges bytes, and the rank of a pair is the id of the
token that it makes (`ranks_model`).

>>> import jittok
>>> from jittok.reference.text import mapped
>>> vocab = jittok.bundled("gpt-2").vocab
>>> word = mapped("Ġtokenizers".encode(), 0, 12)  # Ġ is the space of the byte alphabet
>>> merge(vocab, checked(word)).pieces()
[b'\xc4\xa0token', b'izers']
>>> list(tokens(vocab, word))
[Token(id=11241, start=0, stop=7), Token(id=11341, start=7, stop=12)]
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from jittok.common.pipeline import models
from jittok.common.pipeline.models import MISSING, NO_TOKEN
from jittok.common.pipeline.pipeline import Pipeline
from jittok.common.unicode.tables import sequence_length
from jittok.errors import EncodingFailed
from jittok.reference import merging
from jittok.reference.models.watch import Model, Part, Watch, byte_tokens, fail, shown, texts_of, watching
from jittok.reference.special import by_flags
from jittok.reference.text import Mapped, Token
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
    model = model_of(vocab, models.PairMerges)
    return word in vocab.ids and (model.whole_words or (model.whole_lines and not word.strip(b"\n")))


def checked(word: Mapped) -> bytes:
    """The bytes of a word to be merged. llama.cpp asserts that no symbol of a pair holds a space."""
    text = bytes(word.text)
    space = text.find(b" ")
    if space >= 0 and len(text) > sequence_length(text[0]):
        expected = "no space inside a word (this vocabulary has no rule for it)"
        raise EncodingFailed(0, word.starts[space], text[space : space + 8], expected)
    return text


def merge(vocab: Vocab, word: bytes, observe: merging.Observe | None = None) -> merging.Symbols:
    """Merge until no merge applies: lowest rank first, then the leftmost."""
    ranks = vocab.merges

    def join(left: bytes, right: bytes) -> tuple[int, bytes] | None:
        rank = ranks.get((left, right))
        return None if rank is None else (rank, left + right)

    return merging.merge(merging.characters(word), join, observe)


def byte_token(vocab: Vocab, byte: int) -> int | None:
    """The token of one byte of a symbol without a token: the byte itself, or `<0xHH>` if words are not byte-level."""
    alone = model_of(vocab, models.PairMerges).byte_alphabet
    return vocab.ids.get(bytes([byte]) if alone else b"<0x%02X>" % byte)


# ---- files other than GGUF


def merges_model(pipeline: Pipeline, model: models.Merges) -> Model:
    """The model of a tokenizer.json. Source: tokenizers, `BPE::merge_word`, `Word::merge_all`."""
    ids = texts_of(pipeline)
    rows = zip(model.left.tolist(), model.right.tolist(), model.merged.tolist(), strict=True)
    ranks = {(left, right): (rank, made) for rank, (left, right, made) in enumerate(rows)}

    def join(left: int, right: int) -> tuple[int, int] | None:
        return ranks.get((left, right))

    def encode(word: str, watch: Watch | None = None) -> list[Part]:
        if model.whole_words and word in ids:
            return [(ids[word], 0, len(word.encode()))]
        parts, raw = list(first_symbols(model, ids, word)), word.encode()
        observe = watching(watch, [shown(raw[start:stop]) for _, start, stop in parts]) if watch else None
        left = merging.merged([token for token, _, _ in parts], join, observe)
        return [(token, parts[first][1], parts[stop - 1][2]) for token, first, stop in left]

    def long(word: str, out: array[int]) -> None:
        if model.whole_words and word in ids:
            out.append(ids[word])
        else:
            merging.merged_ids(array("i", (token for token, _, _ in first_symbols(model, ids, word))), join, out)

    return Model(encode, long)


def first_symbols(model: models.Merges, ids: dict[str, int], word: str) -> Iterator[Part]:
    """The tokens of a word's characters, before any is merged.

    An unknown character is pending until the next known one; tokens of bytes in between then have the span of the whole
    unknown run.
    """
    pending: Part | None = None
    between: list[Part] = []  # tokens of bytes since then
    at = 0

    def written() -> list[Part]:
        nonlocal pending
        if pending is None:
            return []
        parts = [*between, pending]
        unit = pending[1], max(stop for _, _, stop in parts)
        pending = None
        between.clear()
        return [(token, *unit) for token, _, _ in parts]

    for k, c in enumerate(word):
        start, at = at, at + len(c.encode())
        text = (model.prefix if k else "") + c + (model.suffix if k == len(word) - 1 else "")
        if text in ids:
            yield from written()
            yield ids[text], start, at
            continue
        parts = byte_tokens(ids, text) if model.byte_fallback else None
        if parts is not None:
            own = len(parts) == at - start  # else prefix or suffix are among them
            spelled = [
                (token, start + j, start + j + 1) if own else (token, start, at) for j, token in enumerate(parts)
            ]
            if pending is None:
                yield from spelled
            else:
                between += spelled
        elif model.unknown == MISSING:
            fail(text, "a character of the vocabulary: the file's unknown token is not in it")
        elif model.unknown != NO_TOKEN:
            if not model.fuse_unknown:
                yield from written()
            pending = model.unknown, start if pending is None else pending[1], at
    yield from written()


def ranks_model(pipeline: Pipeline, _: models.Ranks) -> Model:
    """tiktoken's model. Source: tiktoken, `byte_pair_merge`."""
    ids, tokens = pipeline.vocabulary, pipeline.model_tokens

    def join(left: int, right: int) -> tuple[int, int] | None:
        token = ids.get((tokens[left] or b"") + (tokens[right] or b""))
        return None if token is None else (token, token)

    def encode(word: str, watch: Watch | None = None) -> list[Part]:
        raw = word.encode()
        if raw in ids:
            return [(ids[raw], 0, len(raw))]
        observe = watching(watch, [shown(raw[k : k + 1]) for k in range(len(raw))]) if watch else None
        return merging.merged([ids[raw[k : k + 1]] for k in range(len(raw))], join, observe)

    def long(word: str, out: array[int]) -> None:
        raw = word.encode()
        if raw in ids:
            out.append(ids[raw])
        else:
            merging.merged_ids(array("i", (ids[raw[k : k + 1]] for k in range(len(raw)))), join, out)

    return Model(encode, long)

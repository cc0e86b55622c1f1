r"""RWKV: the longest token at each offset. In a GGUF, escapes in the texts of tokens are resolved first.

>>> unescape(rb"\tcaf\xc3\xa9")
b'\tcaf\xc3\xa9'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jittok.common.pipeline import models
from jittok.common.pipeline.pipeline import Pipeline
from jittok.errors import EncodingFailed
from jittok.reference.models.watch import Model, Part, Watch
from jittok.reference.special import never
from jittok.reference.text import Mapped, Token
from jittok.reference.vocab_tables import per_vocab
from jittok.vocab import Vocab
from jittok.vocab.as_pipeline import model_of

ESCAPES = {ord("t"): 9, ord("n"): 10, ord("r"): 13}
Observe = Callable[[int, int, int | None], None]
"""Called with start, stop and token of each text that is a prefix of some token."""


around = never


def tokens(vocab: Vocab, fragment: Mapped, observe: Observe | None = None) -> Iterator[Token]:
    """Tokens of the text between two special tokens.

    A byte that no token begins with becomes the unknown token, which may be -1.
    EncodingFailed: a token begins with the byte, but none fits, and llama.cpp never returns.
    Source: llama.cpp, `llm_tokenizer_rwkv_session`.
    """
    known, prefixes = tables(vocab)
    text = bytes(fragment.text)
    at = 0
    while at < len(text):
        if text[at : at + 1] not in prefixes:
            yield fragment.token(model_of(vocab, models.LongestEscaped).unknown, at, at + 1)
            at += 1
            continue
        found, stop = at, at + 1
        while stop <= len(text) and text[at:stop] in prefixes:
            if observe:
                observe(at, stop, known.get(text[at:stop]))
            if text[at:stop] in known:
                found = stop
            stop += 1
        if found == at:
            raise EncodingFailed(0, fragment.starts[at], text[at : at + 8], "text that some token is a prefix of")
        yield fragment.token(known[text[at:found]], at, found)
        at = found


@per_vocab
def tables(vocab: Vocab) -> tuple[dict[bytes, int], frozenset[bytes]]:
    """(tokens by their unescaped texts, the last of equals; all prefixes of these texts)."""
    known = {unescape(text): token for token, text in enumerate(vocab.tokens)}
    return known, frozenset(text[:size] for text in known for size in range(1, len(text) + 1))


def unescape(text: bytes) -> bytes:
    """The unescaped bytes of a token: \\t \\n \\r \\xHH; any other byte after a backslash is itself.

    Nothing is checked: digits of \\x may be any bytes, a truncated escape is dropped.
    Source: llama.cpp, `llama_unescape_rwkv_token`.
    """
    out, at = bytearray(), 0
    while at < len(text):
        byte, at = text[at], at + 1
        if byte != ord("\\"):
            out.append(byte)
            continue
        escape, at = text[at : at + 1], at + 1
        if escape == b"x":
            if at + 2 <= len(text):
                out.append((_digit(text[at]) << 4) + _digit(text[at + 1]) & 0xFF)
            at += 2
        elif escape:
            out.append(ESCAPES.get(escape[0], escape[0]))
    return bytes(out)


def _digit(c: int) -> int:
    """Right for 0-9 and a-f only."""
    return c - 87 if ord("a") <= c < 0x80 else c - 48


# ---- files other than GGUF


def longest_model(pipeline: Pipeline, _: models.Longest) -> Model:
    """The model of a rwkv_vocab.txt."""
    ids = pipeline.vocabulary
    most = max(map(len, ids))

    def parts(word: str, watch: Watch | None) -> Iterator[Part]:
        raw, at = word.encode(), 0
        while at < len(raw):
            for size in range(min(most, len(raw) - at), 0, -1):
                if watch is not None:
                    watch.tried(at, at + size, ids.get(raw[at : at + size]))
                if raw[at : at + size] in ids:
                    break
            yield ids[raw[at : at + size]], at, at + size
            at += size

    return Model(
        lambda word, watch=None: list(parts(word, watch)),
        lambda word, out: out.extend(token for token, _, _ in parts(word, None)),
    )

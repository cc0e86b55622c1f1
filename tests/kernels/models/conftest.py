"""Vocabularies drawn in tests, and the two witnesses to ask about them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from jittok.encode.encoder import Encoder
from jittok.errors import EncodingFailed
from jittok.kernels.jit import frozen
from jittok.vocab.vocab import Vocab

NORMAL = 4


def flat(texts: Sequence[bytes]) -> tuple[Any, Any]:
    """(data, offsets) of byte strings."""
    offsets = np.cumsum([0, *map(len, texts)])
    return frozen(np.frombuffer(b"".join(texts), np.uint8), np.uint8), frozen(offsets, np.int64)


@pytest.fixture(scope="session")
def make_vocab() -> Callable[..., Vocab]:
    """make_vocab(type, tokens, scores=None, attributes=None, **settings): a Vocab without special tokens."""

    def make(kind: str, tokens: Sequence[bytes], scores: Any = None, attributes: Any = None, **settings: Any) -> Vocab:
        data, offsets = flat(tokens)
        attributes = frozen([NORMAL] * len(tokens) if attributes is None else attributes, np.int32)
        merges = flat([])
        fields = {
            "charsmap": frozen(np.frombuffer(settings.pop("charsmap", b""), np.uint8), np.uint8),
            "special_tokens": frozen([], np.int32),
            "max_token_length": max(map(len, tokens), default=0),
            **settings,
        }
        scores = frozen([0.0] * len(tokens) if scores is None else scores, np.float32)
        return Vocab(
            "drawn", kind, kind, None, 0, "", "", data, offsets, data, offsets, scores,
            attributes, attributes, attributes, *merges, **fields,
        )  # fmt: skip

    return make


@pytest.fixture(scope="session")
def witnesses() -> Callable[[Vocab, bytes], tuple[Any, Any]]:
    """witnesses(vocab, text): the ids of the kernel and of the reference, or "fails" where text cannot be encoded."""
    from jittok.reference.tokenize import tokenize

    def kernel(vocab: Vocab, text: bytes) -> list[int]:
        encoder = Encoder(vocab)
        return encoder.one(text, encoder.bare_rule()).tolist()

    def asked(answer: Callable[[Vocab, bytes], Any], vocab: Vocab, text: bytes) -> Any:
        try:
            return list(answer(vocab, text))
        except EncodingFailed:
            return "fails"

    return lambda vocab, text: (asked(kernel, vocab, text), asked(tokenize, vocab, text))


@pytest.fixture(scope="session")
def starved() -> Callable[..., tuple[list[int], list[int]]]:
    """starved(model, vocab, fragments): (ids, ends) of bytes or ids; the kernel starts with hardly any memory."""
    from jittok.kernels import fragments as protocol

    def run(model: Any, vocab: Vocab, fragments: Sequence[bytes | int]) -> tuple[list[int], list[int]]:
        data, offsets = flat([f if isinstance(f, bytes) else b"" for f in fragments])
        tokens = frozen([f if isinstance(f, int) else protocol.TEXT_PREFIXED for f in fragments], np.int32)
        starts, stops = frozen(offsets[:-1], np.int64), frozen(offsets[1:], np.int64)
        arrays = model.compile_pipeline(vocab.pipeline)
        ids, ends, report = np.full(1, -7, np.int32), np.zeros(len(fragments), np.int64), np.zeros(4, np.int64)
        work, at, count = model.make_work(arrays, 1), 0, 0
        for _ in range(4 * len(fragments) + 4):
            code = model.encode_fragments(
                arrays, work, data, starts, stops, tokens, at, len(fragments), count, ids, ends, report
            )
            if code >= 0:
                return ids[:code].tolist(), ends.tolist()
            at, need = int(report[protocol.FRAGMENT]), int(report[protocol.NEED])
            count = int(ends[at - 1]) if at else 0
            if code == protocol.OUT_OF_CAPACITY:
                assert count + need > ids.size
                ids = np.concatenate([ids[:count], np.full(need, -7, np.int32)])
            else:
                assert code == protocol.OUT_OF_WORK
                work = model.make_work(arrays, need)
        raise AssertionError("a fragment asks for memory again and again")

    return run

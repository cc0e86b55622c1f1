"""The vocabulary type "test": five bytes at a time, a polynomial hash modulo the vocabulary's size.

llama.cpp's `llm_tokenizer_test_session`, with which it tests the code around tokenizers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import I32, I64, U8, OutI32, OutI64, OutU8, helper, kernel, wide
from jittok.errors import MalformedVocab
from jittok.fragments import FRAGMENT, NEED, OUT_OF_ROOM
from jittok.pipeline import Pipeline
from jittok.vocab.vocab import Vocab

CHUNK = 5
IDS_PER_BYTE = 1
"""Proved, with room to spare: one id a chunk."""


class Arrays(NamedTuple):
    """All that this type knows of its vocabulary."""

    vocab_size: int  # above 0


class Work(NamedTuple):
    """No scratch memory is needed."""

    nothing: OutU8  # [0]


def compile_pipeline(pipeline: Pipeline) -> Arrays:
    """The size of a vocabulary of type "test"."""
    if len(pipeline) == 0:
        raise MalformedVocab(pipeline.source, "tokenizer.ggml.tokens", 0, "one token at least")
    return Arrays(len(pipeline))


def pieces(vocab: Vocab) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(what tokens print, their numbers in hexadecimal digits, one after the other; where they begin and end)."""
    texts = [b"%x" % token for token in range(len(vocab))]
    return np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)], dtype=np.int64)


def make_work(_arrays: Arrays, _longest: int) -> Work:
    """Nothing, for fragments of any length."""
    return Work(np.empty(0, np.uint8))


@kernel
def encode_fragments(
    arrays: Arrays,
    work: Work,  # noqa: ARG001  the protocol of all models
    data: U8,
    starts: I64,
    stops: I64,
    tokens: I32,
    first: int,
    last: int,
    count: int,
    ids: OutI32,
    ends: OutI64,
    report: OutI64,
) -> int:
    """See jittok.fragments. Code: OUT_OF_ROOM. Linear in bytes."""
    for k in range(first, last):
        report[FRAGMENT] = k
        if tokens[k] < 0:
            count = encode_span(arrays, data, wide(starts[k]), wide(stops[k]), ids, count, report)
            if count < 0:
                return count
        elif count < ids.size:
            ids[count] = tokens[k]
            count += 1
        else:
            report[NEED] = 1
            return OUT_OF_ROOM
        ends[k] = count
    return count


@helper
def encode_span(arrays: Arrays, data: U8, start: int, stop: int, ids: OutI32, count: int, report: OutI64) -> int:
    """Ids of data[start:stop] to ids[count:]; the new count or OUT_OF_ROOM."""
    if count + (stop - start + CHUNK - 1) // CHUNK > ids.size:
        report[NEED] = stop - start
        return OUT_OF_ROOM
    for i in range(start, stop, CHUNK):
        digest = wide(0)  # stays below 2 ** 28
        for j in range(i, min(i + CHUNK, stop)):
            digest = digest * 31 + wide(data[j])
        ids[count] = digest % arrays.vocab_size
        count += 1
    return count

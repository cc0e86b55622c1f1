"""The vocabulary type "test": five bytes at a time, a polynomial hash modulo the vocabulary's size.

llama.cpp's `llm_tokenizer_test_session`, with which it tests the code around tokenizers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.errors import MalformedVocab
from jittok.kernels.fragments import FRAGMENT, NEED, OUT_OF_CAPACITY
from jittok.kernels.jit import I32, I64, U8, OutI32, OutI64, OutU8, as_int64, helper, kernel
from jittok.vocab.vocab import Vocab

CHUNK = 5
IDS_PER_BYTE = 1
"""Proved, more than needed: one id a chunk."""


class FakeArrays(NamedTuple):
    """The only fact of the vocabulary that this type needs."""

    vocab_size: int  # above 0


class FakeWork(NamedTuple):
    """Empty: this type needs no scratch memory."""

    nothing: OutU8  # [0]


def compile_pipeline(pipeline: Pipeline) -> FakeArrays:
    """The size of a vocabulary of type "test"."""
    if len(pipeline) == 0:
        raise MalformedVocab(pipeline.source, "tokenizer.ggml.tokens", 0, "at least one token")
    return FakeArrays(len(pipeline))


def pieces(vocab: Vocab) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(the pieces, which are the ids in hexadecimal, concatenated; their offsets)."""
    texts = [b"%x" % token for token in range(len(vocab))]
    return np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)], dtype=np.int64)


def make_work(_arrays: FakeArrays, _longest: int) -> FakeWork:
    """Empty scratch, for fragments of any length."""
    return FakeWork(np.empty(0, np.uint8))


@kernel
def encode_fragments(
    arrays: FakeArrays,
    work: FakeWork,  # noqa: ARG001  the protocol of all models
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
    """See jittok.kernels.fragments. Code: OUT_OF_CAPACITY. Linear in bytes."""
    for k in range(first, last):
        report[FRAGMENT] = k
        if tokens[k] < 0:
            count = encode_span(arrays, data, as_int64(starts[k]), as_int64(stops[k]), ids, count, report)
            if count < 0:
                return count
        elif count < ids.size:
            ids[count] = tokens[k]
            count += 1
        else:
            report[NEED] = 1
            return OUT_OF_CAPACITY
        ends[k] = count
    return count


@helper
def encode_span(arrays: FakeArrays, data: U8, start: int, stop: int, ids: OutI32, count: int, report: OutI64) -> int:
    """Ids of data[start:stop] to ids[count:]; the new count or OUT_OF_CAPACITY."""
    if count + (stop - start + CHUNK - 1) // CHUNK > ids.size:
        report[NEED] = stop - start
        return OUT_OF_CAPACITY
    for i in range(start, stop, CHUNK):
        digest = as_int64(0)  # stays below 2 ** 28
        for j in range(i, min(i + CHUNK, stop)):
            digest = digest * 31 + as_int64(data[j])
        ids[count] = digest % arrays.vocab_size
        count += 1
    return count

"""Sequences in the order of the documents, many at a time: the plain way to read a corpus, or some of its documents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.reading import packing
from jittok.corpus.reading.opening import How, cache_of, opened
from jittok.corpus.reading.parts import BlocksPart, Keeper
from jittok.corpus.reading.rows import OneCorpus, Shape
from jittok.corpus.reading.sequences import Sequences, WithMask
from jittok.corpus.reading.tokens import Tokens
from jittok.corpus.shards.readback import OPEN_BLOCKS, Corpus
from jittok.errors import CorpusError, InWords

HOW = ("split", "whole")
ANY_ID = 1 << 31
"""The size of a vocabulary that is not known."""


class Batch(NamedTuple):
    """int32[size, length] each: `ids`, and `segments`, the documents of a sequence counted from 1, 0 for padding."""

    ids: NDArray[np.int32]
    segments: NDArray[np.int32]


class BatchWithMask(NamedTuple):
    """The same of a corpus that says what is to be learned, with `loss_mask`, uint8[size, length]: 1 for what is."""

    ids: NDArray[np.int32]
    segments: NDArray[np.int32]
    loss_mask: NDArray[np.uint8]


def batches(
    corpus: Corpus | str | os.PathLike[str],
    length: int,
    size: int = 1,
    *,
    documents: str = "split",
    pad_id: int | None = None,
    overlap: int = 0,
    start: int = 0,
) -> Iterator[Batch | BatchWithMask]:
    """Sequences of `length` ids, `size` at a time, in the order of the documents; nothing is shuffled.

    `documents="split"`: documents lie one after the other and are cut where a sequence is full; the ids of sequence k
    are tokens k * (length - overlap) ... of the corpus. `overlap=1` with length n + 1 gives inputs and targets of n.
    `"whole"`: a document is not cut unless it is longer than a sequence; what is left of a sequence is padded.
    The end of the corpus is padded with `pad_id`, or left out (with "split") when there is none; "whole" needs one.
    `start`: sequences to leave out, to continue with a training run. Raises CorpusError for impossible arguments.
    `sequences` gives the same with ranks, shuffling and a state.
    """
    if documents not in HOW:
        raise CorpusError("documents", documents, " or ".join(HOW))
    if length < 1 or size < 1 or start < 0 or not 0 <= overlap < length:
        found = f"length={length}, size={size}, overlap={overlap}, start={start}"
        raise CorpusError("batches", found, "length and size of 1 or more, 0 <= overlap < length, start of 0 or more")
    if documents == "whole" and (pad_id is None or overlap):
        raise CorpusError(
            "documents='whole'", InWords(f"pad_id={pad_id}, overlap={overlap}"), "a pad_id and no overlap"
        )
    if isinstance(corpus, Corpus) and (corpus.where is None or isinstance(corpus.where[0], str)):  # some, or far ones
        tokens, chosen = _chosen(corpus)
    else:
        tokens, chosen = opened([corpus], How(cache=cache_of(None, None))), None
    made = _packed(tokens, chosen, packing.Split(tokens.total, length, length - overlap, pad_id is not None), documents)
    shape = Shape(length, pad_id or 0, False, True)
    return _of(Sequences(OneCorpus(tokens, made, None), shape, 0, ""), size, start)


def _of(found: Sequences, size: int, start: int) -> Iterator[Batch | BatchWithMask]:
    count = len(found)
    for first in range(start, count, size):
        made = found.stream(np.arange(first, min(first + size, count), dtype=np.int64))
        if isinstance(made, WithMask):
            yield BatchWithMask(made.ids, made.segments, made.loss_mask)
        else:
            yield Batch(made.ids, made.segments)


def _chosen(corpus: Corpus) -> tuple[Tokens, packing.Documents | None]:
    """The blocks of an open corpus, and those documents that were chosen of it; None for all."""
    tokens = Tokens(
        repr(corpus), [BlocksPart(corpus.blocks, Keeper(OPEN_BLOCKS))], corpus.manifest["vocab"].get("tokens", ANY_ID)
    )
    if corpus.mask_blocks is not None:
        part = BlocksPart(corpus.mask_blocks, Keeper(OPEN_BLOCKS), tokens.total, np.dtype(np.uint8))
        tokens.learned = Tokens(repr(corpus), [part], 2)
    rows = corpus.rows
    if rows == range(corpus.total):
        return tokens, None
    offsets = np.concatenate([np.zeros(1, np.int64), *(part[1:] for part in tokens.offsets())])
    some = slice(rows.start, rows.stop if rows.stop >= 0 else None, rows.step)
    firsts, counts = offsets[:-1][some], np.diff(offsets)[some]
    return tokens, iter([(firsts[counts > 0], counts[counts > 0])])


def _packed(
    tokens: Tokens, chosen: packing.Documents | None, shape: packing.Split, documents: str
) -> packing.Split | packing.Table:
    if documents == "whole":
        return packing.whole(packing.in_order(tokens) if chosen is None else chosen, shape.length)
    if chosen is None:
        return shape
    some = [*chosen]
    return packing.split(iter(some), shape._replace(tokens=sum(int(counts.sum()) for _, counts in some)))

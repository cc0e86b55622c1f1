"""Documents packed into training sequences of one length."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.readback import Corpus
from jittok.corpus.readback import open as open_corpus
from jittok.errors import CorpusError, InWords

HOW = ("split", "whole")
IDS_PER_READ = 1 << 20
"""Ids that are read at once."""


class Batch(NamedTuple):
    """int32[size, length] each: `ids`, and `segments`, the documents of a sequence counted from 1, 0 for padding."""

    ids: NDArray[np.int32]
    segments: NDArray[np.int32]


def batches(
    corpus: Corpus | str | os.PathLike[str],
    length: int,
    size: int = 1,
    *,
    documents: str = "split",
    pad_id: int | None = None,
    overlap: int = 0,
    start: int = 0,
) -> Iterator[Batch]:
    """Sequences of `length` ids, `size` at a time, in the order of the documents; nothing is shuffled.

    `documents="split"`: documents lie one after the other and are cut where a sequence is full; the ids of sequence k
    are tokens k * (length - overlap) ... of the corpus. `overlap=1` with length n + 1 gives inputs and targets of n.
    `"whole"`: a document is not cut unless it is longer than a sequence; what is left of a sequence is padded.
    The end of the corpus is padded with `pad_id`, or left out (with "split") when there is none; "whole" needs one.
    `start`: sequences to leave out, to continue with a training run. Raises CorpusError for impossible arguments.
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
    opened = corpus if isinstance(corpus, Corpus) else open_corpus(corpus)
    if documents == "split":
        return _gathered(_split(opened, length, overlap, pad_id, start), size)
    return _gathered(_whole(opened, length, pad_id or 0, start), size)


Row = tuple[NDArray[np.int32], NDArray[np.int32]]


def _gathered(rows: Iterator[Row], size: int) -> Iterator[Batch]:
    held: list[Row] = []
    for row in rows:
        held.append(row)
        if len(held) == size:
            yield Batch(np.stack([ids for ids, _ in held]), np.stack([segments for _, segments in held]))
            held = []
    if held:
        yield Batch(np.stack([ids for ids, _ in held]), np.stack([segments for _, segments in held]))


def _split(corpus: Corpus, length: int, overlap: int, pad_id: int | None, start: int) -> Iterator[Row]:
    step, most = length - overlap, max(IDS_PER_READ, length)
    ids, numbers, first, skip = np.zeros(0, np.int32), np.zeros(0, np.int64), 0, start * (length - overlap)
    for block in corpus.unread():
        offsets = block.offsets
        position, end = int(offsets[0]) + skip, int(offsets[-1])
        skip = max(position - end, 0)
        while position < end:  # so many tokens, however long a document is
            upto = min(position + most, end)
            fresh = _documents_of(offsets, position, upto) + first
            ids = np.concatenate([ids, block.ids[position:upto].astype(np.int32)])
            numbers = np.concatenate([numbers, fresh])
            position, at = upto, 0
            while at + length <= ids.size:
                yield ids[at : at + length], _ranks(numbers[at : at + length])
                at += step
            ids, numbers = ids[at:], numbers[at:]
        first += offsets.size - 1
    if pad_id is not None and ids.size > overlap:
        yield _padded(ids, _ranks(numbers), length, pad_id)


def _documents_of(offsets: NDArray[np.int64], position: int, upto: int) -> NDArray[np.int64]:
    """The document of each token from `position` on: documents lie between these offsets."""
    low, high = np.searchsorted(offsets, position, "right") - 1, np.searchsorted(offsets, upto, "left")
    borders = np.clip(offsets[low : high + 1], position, upto)
    return np.repeat(np.arange(low, high), borders[1:] - borders[:-1])


def _ranks(numbers: NDArray[np.int64]) -> NDArray[np.int32]:
    """1 for the first document, 2 for the next: from document numbers that never fall."""
    return np.cumsum(np.diff(numbers, prepend=numbers[:1]) > 0, dtype=np.int32) + np.int32(1)


def _whole(corpus: Corpus, length: int, pad_id: int, start: int) -> Iterator[Row]:
    parts: list[NDArray[np.int32]] = []
    size = number = 0
    for piece in _pieces(corpus, length):
        if size + piece.size > length:
            if number >= start:
                yield _joined(parts, length, pad_id)
            parts, size, number = [], 0, number + 1
        parts.append(piece)
        size += piece.size
    if parts and number >= start:
        yield _joined(parts, length, pad_id)


def _pieces(corpus: Corpus, length: int) -> Iterator[NDArray[np.int32]]:
    """The documents in order, cut where they are longer than `length`; empty ones give none."""
    most = max(IDS_PER_READ // length, 1) * length
    for ids, offsets in corpus.unread():
        low = 0
        while low < offsets.size - 1:
            high = max(int(np.searchsorted(offsets, offsets[low] + most, "right")) - 1, low + 1)
            begin, end = int(offsets[low]), int(offsets[high])
            for at in range(begin, end, most):  # more than once for a single long document alone
                part = ids[at : min(at + most, end)].astype(np.int32)
                borders = np.clip(offsets[low : high + 1] - at, 0, part.size).tolist()
                for first, last in pairwise(borders):
                    yield from (part[k : min(k + length, last)] for k in range(first, last, length))
            low = high


def _joined(parts: list[NDArray[np.int32]], length: int, pad_id: int) -> Row:
    segments = np.repeat(np.arange(1, len(parts) + 1, dtype=np.int32), [part.size for part in parts])
    return _padded(np.concatenate(parts), segments, length, pad_id)


def _padded(ids: NDArray[np.int32], segments: NDArray[np.int32], length: int, pad_id: int) -> Row:
    missing = length - ids.size
    filled = np.concatenate([ids, np.full(missing, pad_id, np.int32)])
    return filled, np.concatenate([segments, np.zeros(missing, np.int32)])

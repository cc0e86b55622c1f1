"""Packing reads so many tokens at a time, however long documents are, and begins where it is told to."""

from __future__ import annotations

import numpy as np
import pytest

from jittok.corpus import batches
from jittok.corpus.formats.base import Block, Lazy
from jittok.corpus.reading import rows
from jittok.corpus.shards.readback import Corpus


class Watched:
    """Ids that remember how many were read at once."""

    def __init__(self, ids):
        self.ids, self.size, self.read = ids, ids.size, []

    def __getitem__(self, part):
        self.read.append(part.stop - part.start)
        return self.ids[part]


def corpus_of(lengths, blocks=3):
    """A Corpus of documents with these lengths, ids counted from 0, and what reads them."""
    watched, parts, first = [], [], 0
    for some in np.array_split(np.array(lengths, np.int64), blocks):
        ids = Watched(np.arange(first, first + some.sum(), dtype=np.uint16))
        first += ids.size
        watched.append(ids)
        offsets = np.concatenate([[0], np.cumsum(some)])
        parts.append(Lazy(some.size, lambda ids=ids, offsets=offsets: Block(ids, offsets)))
    return Corpus({"vocab": {"name": "x"}}, parts), watched


def plain_split(lengths, length, overlap, pad_id):
    owner = np.repeat(np.arange(len(lengths)), lengths)
    rows, at = [], 0
    while at + length <= owner.size:
        part = owner[at : at + length]
        rows.append((list(range(at, at + length)), (np.unique(part, return_inverse=True)[1] + 1).tolist()))
        at += length - overlap
    if pad_id is not None and owner.size - at > overlap:
        part, missing = owner[at:], length - (owner.size - at)
        ranks = (np.unique(part, return_inverse=True)[1] + 1).tolist()
        rows.append(([*range(at, owner.size), *[pad_id] * missing], ranks + [0] * missing))
    return rows


def plain_whole(lengths, length, pad_id):
    rows, held, first = [], [], 0
    for size in lengths:
        pieces = [list(range(k, min(k + length, first + size))) for k in range(first, first + size, length)]
        first += size
        for piece in pieces:
            if sum(map(len, held)) + len(piece) > length:
                rows.append(held)
                held = []
            held.append(piece)
    packed = []
    for row in [*rows, *([held] if held else [])]:
        missing = length - sum(map(len, row))
        ranks = [k for k, piece in enumerate(row, 1) for _ in piece]
        packed.append(([token for piece in row for token in piece] + [pad_id] * missing, ranks + [0] * missing))
    return packed


def rows_of(found):
    return [(i.tolist(), s.tolist()) for batch in found for i, s in zip(batch.ids, batch.segments, strict=True)]


@pytest.mark.parametrize("at_once", [1, 5, 16, 1000])
@pytest.mark.parametrize("seed", range(6))
def test_sequences_are_those_of_a_plain_loop_from_any_start(monkeypatch, at_once, seed):
    monkeypatch.setattr(rows, "AT_ONCE", at_once)
    rng = np.random.default_rng(seed)
    lengths = [*(rng.integers(0, 12, 20) * rng.integers(0, 2, 20)).tolist(), int(rng.integers(0, 200))]
    for length, overlap, pad_id in ((7, 0, None), (7, 0, 9), (8, 1, 9), (5, 4, 9), (40, 3, 9)):
        corpus, _ = corpus_of(lengths)
        wanted = plain_split(lengths, length, overlap, pad_id)
        for start in (0, 1, 3, len(wanted) - 1, len(wanted), len(wanted) + 2):
            found = batches(corpus, length, 4, overlap=overlap, pad_id=pad_id, start=max(start, 0))
            assert rows_of(found) == wanted[max(start, 0) :]
    for length in (3, 8, 50):
        wanted = plain_whole(lengths, length, 9)
        for start in (0, 2, len(wanted)):
            found = batches(corpus_of(lengths)[0], length, 3, documents="whole", pad_id=9, start=start)
            assert rows_of(found) == wanted[start:]


@pytest.mark.parametrize("documents", ["split", "whole"])
def test_a_long_document_is_read_in_parts(documents):
    corpus, watched = corpus_of([3, 5000, 0, 2], blocks=1)
    first = next(batches(corpus, 16, 2, documents=documents, pad_id=0))
    assert first.ids.shape == (2, 16)
    assert sum(watched[0].read) <= 128
    assert len(list(batches(corpus, 16, 2, documents=documents, pad_id=0))) > 150
    assert max(watched[0].read) <= 64


def test_a_later_start_reads_nothing_before_it():
    corpus, watched = corpus_of([1000, 1000, 1000], blocks=3)
    (last,) = batches(corpus, 100, 8, start=29)
    assert last.ids[0].tolist() == list(range(2900, 3000))
    assert [sum(part.read) for part in watched] == [0, 0, 100]


def test_lengths_read_no_ids():
    corpus, watched = corpus_of([4, 0, 7, 1])
    assert corpus.lengths().tolist() == [4, 0, 7, 1]
    assert corpus[::-1].lengths().tolist() == [1, 7, 0, 4]
    assert not any(part.read for part in watched)

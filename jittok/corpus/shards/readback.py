"""Reads a finished corpus directory: documents, read from its files on demand, and training sequences of one length."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from jittok.common.rows import TokenArray
from jittok.common.rows.checks import proven
from jittok.common.rows.ids import Ids
from jittok.corpus.formats import FORMATS, format_class, make_formats
from jittok.corpus.formats.base import Block, Facts, Lazy
from jittok.corpus.shards.manifest import Manifest, read_manifest, with_recorded_release
from jittok.corpus.shards.plan import named
from jittok.errors import CorpusError, InWords

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

OPEN_BLOCKS = 16
"""Blocks that stay open: they cost their offsets, those of Parquet their ids too."""
IDS_PER_READ = 1 << 20
"""Ids that are read at once, unless a single document has more."""


def open(  # noqa: A001  jittok.corpus.open is what one looks for
    folder: str | os.PathLike[str],
    tok: Tokenizer | None = None,
    *,
    format: str | None = None,  # noqa: A002
) -> Corpus:
    """The documents of a finished corpus directory, from one of its formats.

    `tok` is used by `decode`; it must be the vocabulary that the corpus was made with. Raises CorpusError otherwise,
    and if the directory has no manifest or not this format.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    written = manifest["options"]["formats"]
    if format is None:
        known = [name for name in FORMATS if name in written]
        if not known:
            raise CorpusError(
                str(folder), InWords(f"formats {', '.join(written)}"), f"one or more of {', '.join(FORMATS)}"
            )
        format = min(known, key=lambda name: format_class(name).slowness)  # noqa: A001
    if format not in written:
        raise CorpusError(str(folder), InWords(f"formats {', '.join(written)}"), f"{format}, or one of these")
    vocab = manifest["vocab"]
    tok = tok and with_recorded_release(tok, folder)
    if tok is not None and tok.fingerprint != vocab["fingerprint"]:
        given = named({name: getattr(tok, name) for name in ("name", "fingerprint", "llama_cpp")})
        raise CorpusError(str(folder), InWords(f"vocabulary {given}"), f"{named(vocab)}, as it was made with")
    facts = Facts(vocab["tokens"], vocab["name"] or "", vocab["fingerprint"], manifest["options"]["dtype"], ())
    (form,) = make_formats([format], facts)
    blocks: list[Lazy] = []
    for number, shard in enumerate(manifest["shards"]):
        found = form.blocks(folder, number, shard["documents"])
        count = sum(block.documents for block in found)
        if count != shard["documents"]:
            raise CorpusError(
                f"{folder}, {format}, shard {number}", InWords(f"{count} documents"), f"{shard['documents']}"
            )
        blocks += found
    return Corpus(manifest, blocks, tok)


class Corpus:
    """The documents in order: `len`, indexing (a read-only view of ids), slicing (a Corpus), iteration, `decode`."""

    def __init__(self, manifest: Manifest, blocks: list[Lazy], tok: Tokenizer | None = None) -> None:
        self.manifest, self.tok = manifest, tok
        self._blocks = blocks
        self._firsts = np.cumsum([0, *(block.documents for block in blocks)]).tolist()
        self._open: OrderedDict[int, Block] = OrderedDict()
        self._rows = range(self._firsts[-1])

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, row: int) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, row: slice) -> Corpus: ...
    def __getitem__(self, row: int | slice) -> NDArray[Any] | Corpus:
        if isinstance(row, slice):
            part = Corpus(self.manifest, self._blocks, self.tok)
            part._rows = self._rows[row]
            return part
        try:
            document = self._rows[row]
        except IndexError:
            raise IndexError(f"document {row}: expected {-len(self)} <= document < {len(self)}") from None
        return self._one(document)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for ids, offsets in self.stretches():
            for k in range(offsets.size - 1):
                yield ids[offsets[k] : offsets[k + 1]].view(Ids)

    def __repr__(self) -> str:
        return f"Corpus({len(self)} documents, {self.manifest['vocab']['name'] or 'a vocabulary without a name'})"

    def stretches(self) -> Iterator[Block]:
        """The documents, many at a time: ids one after the other and offsets, in order."""
        for ids, offsets in self.unread():
            low, count = 0, offsets.size - 1
            while low < count:
                high = int(np.searchsorted(offsets, offsets[low] + IDS_PER_READ, "right")) - 1
                high = max(high, low + 1)
                yield Block(ids[offsets[low] : offsets[high]], offsets[low : high + 1] - offsets[low])
                low = high

    def unread(self) -> Iterator[Block]:
        """The documents, a block at a time and in order: ids that are read where they are sliced, and the places in
        them where documents begin and the last one ends."""
        if self._rows.step != 1:
            for document in self._rows:
                at = bisect_right(self._firsts, document) - 1
                ids, offsets = self._block(at)
                position = document - self._firsts[at]
                yield Block(ids, offsets[position : position + 2])
            return
        start, stop = self._rows.start, self._rows.stop
        for at in range(max(bisect_right(self._firsts, start) - 1, 0), len(self._blocks)):
            first, last = max(start, self._firsts[at]), min(stop, self._firsts[at + 1])
            if first >= last:
                if self._firsts[at] >= stop:
                    return
                continue
            ids, offsets = self._block(at)
            yield Block(ids, offsets[first - self._firsts[at] : last - self._firsts[at] + 1])

    def _one(self, document: int) -> NDArray[Any]:
        at = bisect_right(self._firsts, document) - 1
        ids, offsets = self._block(at)
        position = document - self._firsts[at]
        return ids[offsets[position] : offsets[position + 1]].view(Ids)

    def lengths(self) -> NDArray[np.int64]:
        """int64[n]: tokens of each document."""
        return np.concatenate([np.zeros(0, np.int64), *(np.diff(block.offsets) for block in self.unread())])

    def to_token_array(self) -> TokenArray:
        """The documents in memory."""
        parts = [TokenArray(np.asarray(ids), offsets) for ids, offsets in self.stretches()]
        return TokenArray.concat(parts) if parts else TokenArray(np.zeros(0, np.int32), [0])

    def decode(self, row: int, *, errors: str = "replace", unparse_special: bool = True, clean: bool = False) -> str:
        """The text of one document: by default, special tokens are included and spaces are not cleaned up. TypeError
        without a tokenizer."""
        if self.tok is None:
            raise TypeError("found a corpus without a tokenizer, expected jittok.corpus.open(folder, tok)")
        return self.tok.decode(self[row], errors=errors, unparse_special=unparse_special, clean=clean)

    def _block(self, at: int) -> Block:
        block = self._open.get(at)
        if block is None:
            block = self._blocks[at].load()
            if isinstance(block.ids, np.ndarray):
                block.ids.flags.writeable = False
            if block.offsets.size != self._blocks[at].documents + 1:
                raise CorpusError(
                    f"block {at}", InWords(f"{block.offsets.size - 1} documents"), f"{self._blocks[at].documents}"
                )
            proven(block.offsets[:-1], block.offsets[1:], block.ids.size, f"the offsets of block {at}")
            self._open[at] = block
            while len(self._open) > OPEN_BLOCKS:
                self._open.popitem(last=False)
        else:
            self._open.move_to_end(at)
        return block


HOW = ("split", "whole")


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
    opened = corpus if isinstance(corpus, Corpus) else open(corpus)
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

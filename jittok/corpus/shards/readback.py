"""Reads a finished corpus directory: documents, read from its files on demand."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from jittok.common.rows import TokenArray
from jittok.common.rows.checks import proven
from jittok.common.rows.ids import Ids
from jittok.corpus.formats import FORMATS, format_class, make_formats
from jittok.corpus.formats.base import Block, Facts, Lazy
from jittok.corpus.shards.manifest import Manifest, label_of, read_manifest, store_of, with_recorded_release
from jittok.corpus.shards.mirror import far_blocks
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
    """The documents of a finished corpus directory, from one of its formats. Of a bucket (s3://, gs://, az://), a shard
    is copied to a temporary folder when one of its documents is first read.

    `tok` is used by `decode`; it must be the vocabulary that the corpus was made with. Raises CorpusError otherwise,
    and if the directory has no manifest or not this format.
    """
    store = store_of(folder)
    manifest = read_manifest(store)
    folder = store.local or store.place
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
    tok = tok and with_recorded_release(tok, store)
    if tok is not None and tok.fingerprint != vocab["fingerprint"]:
        given = named({name: getattr(tok, name) for name in ("name", "fingerprint", "llama_cpp")})
        raise CorpusError(str(folder), InWords(f"vocabulary {given}"), f"{named(vocab)}, as it was made with")
    facts = facts_of(manifest)
    (form,) = make_formats([format], facts)
    masked = manifest["options"].get("learn") is not None
    if store.local is None:
        corpus = Corpus(manifest, far_blocks(store, manifest, form), tok)
        corpus.mask_blocks = far_blocks(store, manifest, form, masks=True) if masked else None
        corpus.where = store.place, format
        return corpus
    folder, blocks, masks = store.local, list[Lazy](), list[Lazy]()
    for number, shard in enumerate(manifest["shards"]):
        found = form.blocks(folder, label_of(shard, number), shard["documents"])
        count = sum(block.documents for block in found)
        if count != shard["documents"]:
            raise CorpusError(
                f"{folder}, {format}, shard {number}", InWords(f"{count} documents"), f"{shard['documents']}"
            )
        blocks += found
        masks += form.masks(folder, label_of(shard, number), shard["documents"]) if masked else []
    corpus = Corpus(manifest, blocks, tok)
    corpus.mask_blocks = masks if masked else None
    corpus.where = folder, format
    return corpus


def facts_of(manifest: Manifest) -> Facts:
    """What formats need to know to read a corpus."""
    vocab = manifest["vocab"]
    return Facts(vocab["tokens"], vocab["name"] or "", vocab["fingerprint"], manifest["options"]["dtype"], ())


class Corpus:
    """The documents in order: `len`, indexing (a read-only view of ids), slicing (a Corpus), iteration, `decode`."""

    def __init__(self, manifest: Manifest, blocks: list[Lazy], tok: Tokenizer | None = None) -> None:
        self.manifest, self.tok = manifest, tok
        self.blocks = blocks
        self._firsts = np.cumsum([0, *(block.documents for block in blocks)]).tolist()
        self._open: OrderedDict[int, Block] = OrderedDict()
        self.rows = range(self._firsts[-1])
        self.total = len(self.rows)  # documents of all blocks
        self.where: tuple[Path | str, str] | None = None  # folder or URL, and format, that all documents are read from
        self.mask_blocks: list[Lazy] | None = None  # of the mask of what is to be learned

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, row: int) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, row: slice) -> Corpus: ...
    def __getitem__(self, row: int | slice) -> NDArray[Any] | Corpus:
        if isinstance(row, slice):
            part = Corpus(self.manifest, self.blocks, self.tok)
            part.rows, part.mask_blocks = self.rows[row], self.mask_blocks
            part.where = self.where if part.rows == self.rows else None
            return part
        try:
            document = self.rows[row]
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
        if self.rows.step != 1:
            for document in self.rows:
                at = bisect_right(self._firsts, document) - 1
                ids, offsets = self._block(at)
                position = document - self._firsts[at]
                yield Block(ids, offsets[position : position + 2])
            return
        start, stop = self.rows.start, self.rows.stop
        for at in range(max(bisect_right(self._firsts, start) - 1, 0), len(self.blocks)):
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

    @property
    def masks(self) -> Corpus | None:
        """Of chats with `Options.learn`: a row of uint8 for each document, 1 for the ids that are to be learned. None
        for other corpora."""
        if self.mask_blocks is None:
            return None
        found = Corpus(self.manifest, self.mask_blocks)
        found.rows = self.rows
        return found

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
            block = self.blocks[at].load()
            if isinstance(block.ids, np.ndarray):
                block.ids.flags.writeable = False
            if block.offsets.size != self.blocks[at].documents + 1:
                raise CorpusError(
                    f"block {at}", InWords(f"{block.offsets.size - 1} documents"), f"{self.blocks[at].documents}"
                )
            proven(block.offsets[:-1], block.offsets[1:], block.ids.size, f"the offsets of block {at}")
            self._open[at] = block
            while len(self._open) > OPEN_BLOCKS:
                self._open.popitem(last=False)
        else:
            self._open.move_to_end(at)
        return block

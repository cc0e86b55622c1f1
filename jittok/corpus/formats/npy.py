"""Two NumPy arrays a shard: `ids.npy`, and `offsets.npy` (int64) with document k at offsets[k]:offsets[k + 1]."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from jittok.corpus.formats.base import (
    LENGTHS,
    NPY_HEADER,
    Block,
    Format,
    Lazy,
    Output,
    Shard,
    Stream,
    npy_header,
    put_header,
    write_offsets,
)
from jittok.corpus.formats.disk_ids import read_array


class Npy(Format):
    """ids as uint16, or int32 for large vocabularies (what PyTorch can index with)."""

    name = "npy"
    slowness = 0
    large = "int32"

    def streams(self) -> list[Stream]:
        """Lengths and ids."""
        return [LENGTHS, self.ids_stream("npy.ids", NPY_HEADER)]

    def finish(self, shard: Shard) -> list[Output]:
        """Header of the ids, and the offsets."""
        ids, offsets = shard.path("npy.ids"), shard.path("npy.offsets")
        put_header(ids, npy_header(self.dtype, shard.tokens))
        write_offsets(offsets, shard)
        return [Output(ids, f"npy/{shard.number:05d}.ids.npy"), Output(offsets, f"npy/{shard.number:05d}.offsets.npy")]

    def blocks(self, folder: Path, number: int, documents: int) -> list[Lazy]:
        """One block a shard."""
        stem = folder / "npy" / f"{number:05d}"
        return [Lazy(documents, partial(with_offsets, self, stem.with_name(f"{stem.name}.ids.npy"), NPY_HEADER))]


def with_offsets(form: Format, ids: Path, header: int) -> Block:
    """Ids after a header, and the .offsets.npy beside them."""
    stem = ids.name.removesuffix(".ids.npy").removesuffix(".bin")
    offsets = read_array(ids.with_name(f"{stem}.offsets.npy"), np.dtype("<i8"), NPY_HEADER)
    return Block(form.ids_of(ids, header), offsets)

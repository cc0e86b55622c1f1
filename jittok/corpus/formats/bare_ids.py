"""Layouts of bare ids in a file, with or without a header, and the offsets of documents in another.

- npy: two NumPy arrays a shard. `ids.npy`, and `offsets.npy` (int64) with document k at offsets[k]:offsets[k + 1].
- nanogpt: no header. Source: nanoGPT, data/*/prepare.py and train.py. The layout knows no documents, so their offsets
  are in a .npy file beside it, which its readers do not look at.
- llmc: 256 int32 (magic, version, number of tokens, zeros), then ids. Source: llm.c, dev/data/data_common.py. The magic
  tells the width: uint16 is its "gpt-2", uint32 its "llama-3". Offsets as for nanogpt.
- datatrove: no header; an index with the end of each document in tokens, and metadata. Source: datatrove,
  pipeline/tokens/tokenizer.py and utils/dataset.py.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from jittok.corpus.formats.base import (
    INT32_MAX,
    LENGTHS,
    NPY_HEADER,
    Block,
    Format,
    Lazy,
    Output,
    Rows,
    Shard,
    Stream,
    npy_header,
    put_header,
    read_array,
    write_offsets,
)
from jittok.errors import CorpusError, InWords


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


class NanoGPT(Format):
    """uint16; forks read uint32 above 65,536 tokens, and must be told."""

    name = "nanogpt"

    def streams(self) -> list[Stream]:
        """Lengths and ids."""
        return [LENGTHS, self.ids_stream("nanogpt.bin")]

    def finish(self, shard: Shard) -> list[Output]:
        """The ids as they are, and the offsets."""
        offsets = shard.path("nanogpt.offsets")
        write_offsets(offsets, shard)
        return [
            Output(shard.path("nanogpt.bin"), f"nanogpt/{shard.number:05d}.bin"),
            Output(offsets, f"nanogpt/{shard.number:05d}.offsets.npy"),
        ]

    def blocks(self, folder: Path, number: int, documents: int) -> list[Lazy]:
        """One block a shard."""
        return [Lazy(documents, partial(with_offsets, self, folder / "nanogpt" / f"{number:05d}.bin", 0))]


HEADER = 1024
MAGIC_AND_VERSION = {2: (20240520, 1), 4: (20240801, 7)}


class LlmC(Format):
    """Fewer than 2^31 tokens a file: the header has no capacity for more."""

    name = "llmc"

    def streams(self) -> list[Stream]:
        """Lengths and ids."""
        return [LENGTHS, self.ids_stream("llmc.bin", HEADER)]

    def check(self, rows: Rows, tokens: int) -> None:  # noqa: ARG002
        """The count in the header is an int32."""
        if tokens > INT32_MAX:
            raise CorpusError(
                "format llmc", InWords(f"{tokens} tokens in a shard"), "fewer than 2^31: a smaller --shard-bytes"
            )

    def finish(self, shard: Shard) -> list[Output]:
        """The header, and the offsets."""
        header = np.zeros(256, "<i4")
        header[:3] = *MAGIC_AND_VERSION[self.dtype.itemsize], shard.tokens
        put_header(shard.path("llmc.bin"), header.tobytes())
        offsets = shard.path("llmc.offsets")
        write_offsets(offsets, shard)
        stem = f"llmc/corpus_train_{shard.number:06d}"
        return [Output(shard.path("llmc.bin"), f"{stem}.bin"), Output(offsets, f"{stem}.offsets.npy")]

    def blocks(self, folder: Path, number: int, documents: int) -> list[Lazy]:
        """One block a shard."""
        return [
            Lazy(documents, partial(with_offsets, self, folder / "llmc" / f"corpus_train_{number:06d}.bin", HEADER))
        ]


class Datatrove(Format):
    """Bare ids; the index has the end of each document in tokens, without a 0 before."""

    name = "datatrove"

    def streams(self) -> list[Stream]:
        """Lengths and ids."""
        return [LENGTHS, self.ids_stream("datatrove.ds")]

    def finish(self, shard: Shard) -> list[Output]:
        """Index and metadata."""
        index, metadata = shard.path("datatrove.index"), shard.path("datatrove.metadata")
        with index.open("wb") as file:
            for ends in shard.ends():
                file.write(ends.astype("<u8").data)
        name = self.facts.vocab_name.replace("|", " ").replace("\n", " ") or "Unknown Tokenizer"
        metadata.write_text(
            f"{name}|{self.dtype.itemsize}\n{shard.tokens}\n{readable(shard.tokens)}", encoding="utf-8", newline="\n"
        )
        stem = f"datatrove/{shard.number:05d}_unshuffled.ds"
        return [
            Output(shard.path("datatrove.ds"), stem),
            Output(index, f"{stem}.index"),
            Output(metadata, f"{stem}.metadata"),
        ]

    def blocks(self, folder: Path, number: int, documents: int) -> list[Lazy]:
        """One block a shard."""
        return [Lazy(documents, partial(self._block, folder / "datatrove" / f"{number:05d}_unshuffled.ds"))]

    def _block(self, path: Path) -> Block:
        ends = read_array(path.with_name(f"{path.name}.index"), "<u8")
        return Block(self.ids_of(path), np.concatenate([np.zeros(1, np.int64), ends.astype(np.int64)]))


def readable(tokens: int) -> str:
    """The count as datatrove writes it: 4419 is `4.42 kT`, fewer than 1000 stand as `T` alone."""
    number, unit = float(tokens), ""
    for larger in "kMGTPE":
        if number < 1000:
            break
        number, unit = number / 1000, larger
    digits = 2 if number < 10 else 1 if number < 100 else 0
    return f"{number:.{digits}f} {unit}T"

"""Layouts of bare ids in a file, with or without a header, and the offsets of documents in another.

- npy: two NumPy arrays a shard. `ids.npy`, and `offsets.npy` (int64) with document k at offsets[k]:offsets[k + 1].
- nanogpt: no header. Source: nanoGPT, data/*/prepare.py and train.py. The layout knows no documents, so their offsets
  are in a .npy file beside it, which its readers do not look at.
- llmc: 256 int32 (magic, version, number of tokens, zeros), then ids. Source: llm.c, dev/data/data_common.py. The magic
  is that of the width: uint16 is its "gpt-2", uint32 its "llama-3". Offsets as for nanogpt.
- datatrove: no header; an index with the end of each document in tokens, and metadata. Source: datatrove,
  pipeline/tokens/tokenizer.py and utils/dataset.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from jittok.corpus.formats.base import (
    INT32_MAX,
    LENGTHS,
    NPY_HEADER,
    Block,
    Format,
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


class WithOffsets(Format):
    """Ids after a header, and the offsets of documents in a .npy file beside them."""

    stem: ClassVar[str]  # of the files of a shard, with its label
    ending: ClassVar[str] = "bin"  # of the file of ids
    header: ClassVar[int] = 0  # bytes

    def head(self, tokens: int) -> bytes:  # noqa: ARG002
        """The header of a shard of so many tokens."""
        return b""

    def streams(self) -> list[Stream]:
        """Lengths and ids."""
        return [LENGTHS, self.ids_stream(f"{self.name}.{self.ending.partition('.')[0]}", self.header)]

    def finish(self, shard: Shard) -> list[Output]:
        """The header of the ids, and the offsets."""
        ids, offsets = shard.path(self.streams()[1].key), shard.path(f"{self.name}.offsets")
        if self.header:
            put_header(ids, self.head(shard.tokens))
        write_offsets(offsets, shard)
        return [Output(path, name) for path, name in zip((ids, offsets), self.names(), strict=True)]

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Ids and offsets."""
        return f"{cls.name}/{cls.stem}.{cls.ending}", f"{cls.name}/{cls.stem}.offsets.npy"

    def ids_file(self, label: str) -> str:
        """The file of ids."""
        return f"{self.stem.format(label)}.{self.ending}"

    def block(self, path: Path) -> Block:
        """The ids and their offsets."""
        offsets = path.with_name(f"{path.name.removesuffix(self.ending)}offsets.npy")
        return Block(self.ids_of(path, self.header), read_array(offsets, np.dtype("<i8"), NPY_HEADER))


class Npy(WithOffsets):
    """ids as uint16, or int32 for large vocabularies (what PyTorch can index with)."""

    name, stem, ending, header = "npy", "{}", "ids.npy", NPY_HEADER
    slowness = 0
    large = "int32"

    def head(self, tokens: int) -> bytes:
        """NumPy's."""
        return npy_header(self.dtype, tokens)


class NanoGPT(WithOffsets):
    """uint16; forks read uint32 above 65,536 tokens, and need that option."""

    name, stem = "nanogpt", "{}"


MAGIC_AND_VERSION = {2: (20240520, 1), 4: (20240801, 7)}


class LlmC(WithOffsets):
    """Fewer than 2^31 tokens a file: the header has no capacity for more."""

    name, stem, header = "llmc", "corpus_train_0{}", 1024

    def check(self, rows: Rows, tokens: int) -> None:  # noqa: ARG002
        """The count in the header is an int32."""
        if tokens > INT32_MAX:
            raise CorpusError(
                "format llmc", InWords(f"{tokens} tokens in a shard"), "fewer than 2^31: a smaller --shard-bytes"
            )

    def head(self, tokens: int) -> bytes:
        """256 int32."""
        header = np.zeros(256, "<i4")
        header[:3] = *MAGIC_AND_VERSION[self.dtype.itemsize], tokens
        return header.tobytes()


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
        paths = shard.path("datatrove.ds"), index, metadata
        return [Output(path, name) for path, name in zip(paths, self.names(), strict=True)]

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Ids, index and metadata."""
        stem = "datatrove/{}_unshuffled.ds"
        return stem, f"{stem}.index", f"{stem}.metadata"

    def ids_file(self, label: str) -> str:
        """The file of ids."""
        return f"{label}_unshuffled.ds"

    def block(self, path: Path) -> Block:
        """The ids, and the ends of documents from the index."""
        ends = read_array(path.with_name(f"{path.name}.index"), "<u8")
        return Block(self.ids_of(path), np.concatenate([np.zeros(1, np.int64), ends.astype(np.int64)]))


def readable(tokens: int) -> str:
    """The count as datatrove writes it: 4419 is `4.42 kT`, fewer than 1000 are `T` alone."""
    number, unit = float(tokens), ""
    for larger in "kMGTPE":
        if number < 1000:
            break
        number, unit = number / 1000, larger
    digits = 2 if number < 10 else 1 if number < 100 else 0
    return f"{number:.{digits}f} {unit}T"

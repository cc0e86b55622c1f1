"""llm.c's .bin: 256 int32 (magic, version, number of tokens, zeros), then ids. Source: llm.c, dev/data/data_common.py.

The magic tells the width: uint16 is its "gpt-2", uint32 its "llama-3". Offsets are next to, as for nanogpt.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from jittok.corpus.formats.base import (
    INT32_MAX,
    LENGTHS,
    Format,
    Lazy,
    Output,
    Rows,
    Shard,
    Stream,
    put_header,
    write_offsets,
)
from jittok.corpus.formats.npy import with_offsets
from jittok.errors import CorpusError, InWords

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

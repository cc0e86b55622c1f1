"""nanoGPT's .bin: bare ids, nothing else. Source: nanoGPT, data/*/prepare.py and train.py.

The layout knows no documents, so their offsets are in a .npy file beside it, which its readers do not look at.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from jittok.corpus.formats.base import LENGTHS, Format, Lazy, Output, Shard, Stream, write_offsets
from jittok.corpus.formats.npy import with_offsets


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

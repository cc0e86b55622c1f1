"""Prefetching of text, one kilobyte ahead. The hardware prefetcher stops at page boundaries, and loses track while the
pre-tokens of a chunk are looked up."""

from __future__ import annotations

from jittok.kernels.jit import inlined
from jittok.kernels.memory import Window, prefetch

PREFETCH_BYTES = 1024
"""Bytes ahead of the block that is read; 512 and 2048 are as fast."""


@inlined
def prefetch_text(text: Window, i: int) -> None:
    """Prefetch the text some blocks after i. It may be beyond the end: a prefetch never faults."""
    prefetch(text, i + PREFETCH_BYTES, 1)

"""Text is asked for before it is read: what a processor foresees alone ends at each page, and is forgotten while
the pieces of a chunk are looked up."""

from __future__ import annotations

from jittok._jit import inlined
from jittok._raw import Window, prefetch

PREFETCH_BYTES = 1024
"""Bytes before the block that is read; 512 and 2048 are as fast."""


@inlined
def prefetch_text(text: Window, i: int) -> None:
    """Prefetch text that is read some blocks after i. There may be none: nothing is read."""
    prefetch(text, i + PREFETCH_BYTES, 1)

"""The default size of a thread's pre-token cache."""

from __future__ import annotations

import os

CACHE_BYTES = 256 << 20
"""As much as corpora of a gigabyte in many languages can use; what a text does not need is never touched."""
CACHE_PART = 32
"""A machine's memory over this is the bound if it is less."""


UNTOLD = 1 << 36
"""The bound if the memory of the machine is unknown."""


def _memory() -> int:
    """Bytes of memory of this machine, 0 if unknown."""
    try:
        return max(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), 0)
    except (AttributeError, OSError, ValueError):
        return 0


def default_cache_bytes() -> int:
    """The default on this machine."""
    return min(CACHE_BYTES, _memory() // CACHE_PART or CACHE_BYTES)


def bounded(cache_bytes: int) -> int:
    """`cache_bytes`, but at most the memory of this machine."""
    return min(cache_bytes, _memory() or UNTOLD)

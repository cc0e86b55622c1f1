"""How much memory the piece cache of one thread may take where nobody says."""

from __future__ import annotations

import os

CACHE_BYTES = 256 << 20
"""As much as corpora of a gigabyte in many languages can use; what a text does not need is never touched."""
CACHE_PART = 32
"""A machine's memory over this is the bound if it is less."""


def default_cache_bytes() -> int:
    """The bound on this machine."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # a system that does not tell
        return CACHE_BYTES
    return min(CACHE_BYTES, memory // CACHE_PART) if memory > 0 else CACHE_BYTES

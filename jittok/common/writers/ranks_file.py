"""Ranks as tiktoken keeps them."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable

from jittok.common.writers.atomic_files import atomic_file


def write_ranks(path: str | os.PathLike[str], rows: Iterable[tuple[bytes, int]]) -> None:
    """A .tiktoken file: base64 of each token's bytes, a space, its rank."""
    with atomic_file(path) as new:
        new.write_bytes(b"".join(base64.b64encode(raw) + b" %d\n" % rank for raw, rank in rows))

"""How far a corpus is."""

from __future__ import annotations

from typing import NamedTuple

from jittok.common.display.progress import Progress


class Counts(NamedTuple):
    """How far a corpus is: what has been written, and bytes of input read for it."""

    documents: int = 0
    tokens: int = 0
    text_bytes: int = 0
    read: int = 0

    def plus(self, other: Counts) -> Counts:
        """The sum of both."""
        return Counts(*(one + two for one, two in zip(self, other, strict=True)))


def progress_of(now: Counts, total: int | None, before: Counts, seconds: float) -> Progress:
    """From counts now and when this run resumed. total: bytes of input, None where no one knows."""
    return Progress(
        "corpus", now.read, total, "bytes", seconds, now.documents, now.tokens, now.text_bytes,
        (before.read, before.text_bytes, before.tokens),
    )  # fmt: skip

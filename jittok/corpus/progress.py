"""Progress of a run, as one line."""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, TextIO

EVERY = 0.2
"""Seconds between two lines."""
SECONDS_BEFORE_FIRST = 1.0
"""Seconds before the first line: a shorter run needs none."""


class Counts(NamedTuple):
    """How far a corpus is: what has been written, and bytes of input read for it."""

    documents: int = 0
    tokens: int = 0
    text_bytes: int = 0
    read: int = 0

    def plus(self, other: Counts) -> Counts:
        """The sum of both."""
        return Counts(*(one + two for one, two in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Progress:
    """Numbers since the start of the corpus; rates since the start of this run."""

    documents: int
    tokens: int
    text_bytes: int
    read: int
    total: int | None  # bytes of input on disk, None when no one knows
    seconds: float
    bytes_per_second: float
    tokens_per_second: float
    seconds_left: float | None

    @classmethod
    def of(cls, now: Counts, total: int | None, before: Counts, seconds: float) -> Progress:
        """From counts now and when this run resumed."""
        seconds = max(seconds, 1e-9)
        speed = (now.read - before.read) / seconds
        left = (total - now.read) / speed if total is not None and speed > 0 else None
        return cls(
            now.documents, now.tokens, now.text_bytes, now.read, total, seconds,
            (now.text_bytes - before.text_bytes) / seconds, (now.tokens - before.tokens) / seconds,
            None if left is None else max(left, 0.0),
        )  # fmt: skip

    def line(self, width: int | None = None) -> str:
        """Percent, documents, tokens, MB/s, tokens/s, time left: in `width` columns, those that fit."""
        left = clock(self.seconds_left) if self.seconds_left is not None else ""
        parts = [
            (0, f"{min(100 * self.read / self.total, 100):3.0f} %" if self.total else ""),
            (3, f"{self.documents:,} documents"),
            (1, f"{self.tokens:,} tokens"),
            (4, f"{self.bytes_per_second / 1e6:.1f} MB/s"),
            (5, f"{self.tokens_per_second / 1e6:.2f} M tokens/s"),
            (2, f"{left} left" if left else ""),
        ]
        parts = [(rank, text) for rank, text in parts if text]
        while width is not None and len(parts) > 1 and len("  ".join(text for _, text in parts)) > width:
            parts.remove(max(parts))
        return "  ".join(text for _, text in parts)[: None if width is None else max(width, 0)]


def clock(seconds: float) -> str:
    """12 s, 3:07, 2:03:07."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def _columns(stream: TextIO) -> int:
    """Columns of the terminal that a stream writes to; standard output may go elsewhere."""
    with suppress(OSError, ValueError, AttributeError):
        if found := os.get_terminal_size(stream.fileno()).columns:
            return found
    return shutil.get_terminal_size().columns


class ProgressLine:
    """Shows progress on one line of a terminal; silent anywhere else."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._shown = self._stream is not None and self._stream.isatty()  # None: closed by the caller
        self._last, self._width = time.monotonic() + SECONDS_BEFORE_FIRST - EVERY, 0

    def __call__(self, progress: Progress) -> None:
        """Redraw the line, a few times a second."""
        now = time.monotonic()
        if self._shown and now - self._last >= EVERY:
            line = progress.line(_columns(self._stream) - 1)  # the last column may wrap
            self._write("\r" + line.ljust(self._width))
            self._last, self._width = now, len(line)

    def close(self) -> None:
        """Clear the line."""
        if self._width:
            self._write("\r" + " " * self._width + "\r")
            self._width = 0

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal may be gone, and the corpus is written all the same
            self._stream.write(text)
            self._stream.flush()

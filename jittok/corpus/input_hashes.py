"""SHA-256 of the inputs, computed up to what has been written: those bytes are still in the page cache."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import IO, Any

from jittok.corpus.sources import STDIN, Source

BYTES_PER_READ = 1 << 20


class InputHasher:
    """Hashes the sources once, in order. The digest of a prefix shows later whether the part that was read is
    unchanged."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        self.source = -1
        self.offset = 0
        self._file: IO[bytes] | None = None
        self._digest: Any = None

    def prefix(self, source: int, offset: int) -> list[Any]:
        """[source, bytes, digest of its first bytes]; the offset never decreases for one source."""
        if source != self.source:
            self._begin(source)
        if self._file is not None:
            while self.offset < offset and (piece := self._file.read(min(BYTES_PER_READ, offset - self.offset))):
                self._digest.update(piece)
                self.offset += len(piece)
        return [source, self.offset, self._digest.hexdigest()]

    def whole(self, source: int) -> tuple[int, str]:
        """Size and digest of one source, read to its end."""
        if source != self.source:
            self._begin(source)
        _, size, digest = self.prefix(source, 1 << 62)
        self.close()
        return size, digest

    def _begin(self, source: int) -> None:
        self.close()
        self._file = self.sources[source].open()
        self.source, self.offset, self._digest = source, 0, hashlib.sha256()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None and self.sources[self.source].path != STDIN:
            self._file.close()
        self._file, self.source = None, -1

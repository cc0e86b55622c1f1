"""Digests of inputs, made of the bytes that are read for documents: no input is read a second time to be hashed.

Each unit of an input has a digest. Of files, SHA-256 of their bytes as they lie on disk: all of the file, or those of
an interval. Of large tables, of which one column is read, SHA-256 over the digests of its texts and of their lengths.
The digest of an input with one unit is that unit's, else SHA-256 over those of its units (32 bytes each, in order).
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable
from itertools import groupby
from typing import IO, Any, NamedTuple, cast

import numpy as np

REST_AT_ONCE = 1 << 20
BYTES, RANGES, TEXTS = "bytes", "ranges", "texts"
"""What the digest of an input is of: its bytes, the digests of its intervals, the texts of its column."""


class Digest(NamedTuple):
    """The digest of a unit of an input."""

    source: int
    part: int
    size: int  # bytes of it that were read
    sha256: str
    of: str = BYTES  # BYTES or TEXTS


class InputDigest(NamedTuple):
    """The digest of an input."""

    size: int
    sha256: str
    of: str


Digests = list[Digest]
"""What `read_unit` adds to: a Digest for each unit, or file of a group, that it has read to its end."""


def joined(rows: Iterable[Digest]) -> dict[int, InputDigest]:
    """The digest of each input, of those of all its units."""
    found = {}
    for source, group in groupby(sorted(rows, key=lambda row: row[:2]), key=lambda row: row.source):
        parts = list(group)
        size, of = sum(part.size for part in parts), parts[0].of
        if len(parts) == 1:
            found[source] = InputDigest(size, parts[0].sha256, of)
        else:
            whole = hashlib.sha256(b"".join(bytes.fromhex(part.sha256) for part in parts))
            found[source] = InputDigest(size, whole.hexdigest(), RANGES if of == BYTES else of)
    return found


class Hashed(io.RawIOBase):
    """A binary file whose bytes are counted as they are read, from the first to the last, and hashed if `wanted`."""

    def __init__(self, file: IO[bytes], wanted: bool = True) -> None:
        super().__init__()
        self._file, self.size = file, 0
        self._digest = hashlib.sha256() if wanted else None

    def read(self, count: int = -1) -> bytes:
        """Up to `count` bytes."""
        piece = self._file.read(count)
        if self._digest is not None:
            self._digest.update(piece)
        self.size += len(piece)
        return piece

    @property
    def file(self) -> IO[bytes]:
        """This, as what reads binary files takes it."""
        return cast("IO[bytes]", self)

    def tell(self) -> int:
        """Bytes read so far."""
        return self.size

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, as far as there are bytes; their number."""
        view = memoryview(buffer).cast("B")
        piece = self.read(len(view))
        view[: len(piece)] = piece
        return len(piece)

    def add_to(self, digests: Digests | None, source: int, part: int) -> None:
        """Add the digest of the whole file, where digests are wanted: what nobody has read is read here."""
        if digests is None or self._digest is None:
            return
        while self.read(REST_AT_ONCE):
            pass
        digests.append(Digest(source, part, self.size, self._digest.hexdigest()))


class HashedRows:
    """The digest of rows of text, however they are cut into arrays."""

    def __init__(self) -> None:
        self._texts, self._lengths, self.size = hashlib.sha256(), hashlib.sha256(), 0
        self._kept: list[HashedRows] = []

    def update(self, rows: Any) -> None:
        """Add the rows of a chunked array of strings or binaries, with offsets of 32 or 64 bits, and fields that are
        kept beside them."""
        kept = getattr(rows, "kept", ())
        self._kept = self._kept or [HashedRows() for _ in kept]
        for hashed, column in zip(self._kept, kept, strict=True):
            hashed._add([column])
        self._add(getattr(rows, "texts", rows).chunks)

    def _add(self, chunks: Iterable[Any]) -> None:
        for chunk in chunks:
            if not len(chunk):
                continue
            _, offsets, data = chunk.buffers()
            width = np.int64 if "large" in str(chunk.type) else np.int32
            places = np.frombuffer(offsets, width)[chunk.offset : chunk.offset + len(chunk) + 1]
            first, last = int(places[0]), int(places[-1])
            if last > first:
                self._texts.update(memoryview(data)[first:last])
            self._lengths.update(np.diff(places).astype("<i8").data)
            self.size += last - first

    def digest(self, source: int, part: int) -> Digest:
        """The digest of all rows."""
        parts = [part for rows in (self, *self._kept) for part in (rows._texts.digest(), rows._lengths.digest())]
        both = hashlib.sha256(b"".join(parts))
        return Digest(source, part, self.size, both.hexdigest(), TEXTS)

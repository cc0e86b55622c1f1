"""Compressed inputs as streams that end in an error when they are cut off: nothing of a document is lost silently."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from typing import IO, Any

from jittok.errors import CorpusError, missing

UNPACKED_AT_ONCE = 64 << 10
"""Compressed bytes passed to bzip2 and xz at once."""
PACKED_BYTES_PER_READ = 4 << 10
"""Compressed bytes passed to zstandard at once: even a block of zeros then unpacks to at most 64 MB."""
LARGEST_WINDOW = 1 << 31
Read = Callable[[int], bytes]


def open_unpacked(raw: IO[bytes], packing: str, path: str) -> Read:
    """A function that reads up to n unpacked bytes, b"" at the end. CorpusError on damaged or cut-off data."""
    if not packing:
        return raw.read
    try:
        read, damage = _OPENERS[packing](raw)
    except ImportError:
        package, extra = ("pyarrow", "corpus") if packing == "lz4" else ("zstandard", "cli")
        raise missing(f"{path}: reading .{packing}", package, extra) from None

    def checked(count: int) -> bytes:
        try:
            return read(count)
        except damage as error:
            raise CorpusError(path, str(error) or type(error).__name__, f"whole .{packing} data") from error

    return checked


def _gz(raw: IO[bytes]) -> tuple[Read, tuple[type[BaseException], ...]]:
    try:
        from isal import igzip, isal_zlib
    except ImportError:  # no wheel for this machine: the same bytes, slower
        return gzip.GzipFile(fileobj=raw).read, (EOFError, OSError, zlib.error)
    file: Any = igzip.IGzipFile(fileobj=raw)  # type: ignore[no-untyped-call]
    return file.read, (EOFError, OSError, zlib.error, isal_zlib.error)  # type: ignore[return-value]  # a class, whatever its hints say


def _bz2(raw: IO[bytes]) -> tuple[Read, tuple[type[BaseException], ...]]:
    return _Streams(raw, bz2.BZ2Decompressor).read, (EOFError, OSError)


def _xz(raw: IO[bytes]) -> tuple[Read, tuple[type[BaseException], ...]]:
    return _Streams(raw, lzma.LZMADecompressor, padding=True).read, (EOFError, lzma.LZMAError)


def _zst(raw: IO[bytes]) -> tuple[Read, tuple[type[BaseException], ...]]:
    import zstandard

    return _Frames(raw).read, (EOFError, zstandard.ZstdError)


def _lz4(raw: IO[bytes]) -> tuple[Read, tuple[type[BaseException], ...]]:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "lz4").read, (EOFError, OSError)


_OPENERS: dict[str, Callable[[IO[bytes]], tuple[Read, tuple[type[BaseException], ...]]]] = {
    "gz": _gz,
    "bz2": _bz2,
    "xz": _xz,
    "zst": _zst,
    "lz4": _lz4,
}


class _Streams:
    """Concatenated streams of bzip2 or xz. Python's own readers skip data after a stream that is not another stream,
    so damage at the start of a stream would silently end the text there.

    `padding`: zeros may follow a stream, as xz writes them.
    """

    def __init__(self, raw: IO[bytes], opened: Callable[[], Any], padding: bool = False) -> None:
        self._raw, self._opened, self._padding = raw, opened, padding
        self._stream: Any = None  # the one under way
        self._packed = b""  # of the next one

    def read(self, count: int) -> bytes:
        """Up to `count` bytes. EOFError when the last stream is truncated."""
        while count > 0:
            if self._stream is None:
                if not self._begins():
                    break
                self._stream, packed = self._opened(), self._packed
            else:
                packed = self._raw.read(UNPACKED_AT_ONCE) if self._stream.needs_input else b""
                if self._stream.needs_input and not packed:
                    raise EOFError("the data ends inside a stream")
            found: bytes = self._stream.decompress(packed, count)
            if self._stream.eof:
                self._packed, self._stream = self._stream.unused_data, None
            if found:
                return found
        return b""

    def _begins(self) -> bool:
        """Whether more data follows, a stream or not: its first bytes are in `_packed` then."""
        while True:
            if self._padding:
                self._packed = self._packed.lstrip(b"\0")
            if self._packed:
                return True
            self._packed = self._raw.read(UNPACKED_AT_ONCE)
            if not self._packed:
                return False


class _Frames:
    """Concatenated Zstandard frames. `zstandard.stream_reader` ends silently inside a truncated frame."""

    def __init__(self, raw: IO[bytes]) -> None:
        import zstandard

        self._raw = raw
        self._context = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
        self._frame: Any = None
        self._packed = b""
        self._ready = bytearray()

    def read(self, count: int) -> bytes:
        """Up to `count` bytes. EOFError when the last frame is truncated."""
        while len(self._ready) < count:
            if not self._packed:
                self._packed = self._raw.read(PACKED_BYTES_PER_READ)
                if not self._packed:
                    if self._frame is not None:
                        raise EOFError("the data ends inside a frame")
                    break
            if self._frame is None:
                self._frame = self._context.decompressobj()
            self._ready += self._frame.decompress(self._packed)
            self._packed = b""
            if self._frame.eof:
                self._packed, self._frame = self._frame.unused_data, None
        out = bytes(self._ready[:count])
        del self._ready[:count]
        return out

"""The shard that is being written: streams in a hidden folder, which become files when the shard is full.

Order of events, on which `docs/corpus.md` builds its argument:
  a range     bytes to every stream; then its line in the ledger, with the place each stream has reached and a checksum
  a shard     files made of the streams; fsync of each; their line in the ledger, fsync; renames; left-over streams go
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jittok.corpus.formats.base import LENGTHS, Format, Rows, Shard, Stream
from jittok.corpus.shards.ledger import LEDGER
from jittok.corpus.store import disk
from jittok.corpus.store.disk import Folder, component, create, file_name, open_regular
from jittok.errors import CorpusError

Positions = dict[str, list[int]]
"""Stream -> [where it ends after a range, checksum of what the range added]."""


@dataclass
class OpenStream:
    """A stream with its file."""

    stream: Stream
    path: Path
    descriptor: int
    end: int
    digest: Any = field(default_factory=hashlib.sha256)

    def append(self, data: Any) -> list[int]:
        """Add to the file; the end, and the checksum of what was added."""
        disk.append(self.descriptor, data)
        self.end += memoryview(data).nbytes
        if self.stream.final:
            self.digest.update(memoryview(data).cast("B"))
        return [self.end, disk.crc_of(data)]


class ShardWriter:
    """One shard after the other, in order. `scratch` is the hidden folder."""

    def __init__(self, work: Path, formats: Sequence[Format], number: int) -> None:
        self.work, self.formats = work, formats
        self.number, self.documents, self.tokens, self.text_bytes, self.ranges = number, 0, 0, 0, 0
        self.streams: dict[str, OpenStream] = {}

    def _kinds(self) -> dict[str, Stream]:
        return {stream.key: stream for form in self.formats for stream in form.streams()}

    def _open(self) -> None:
        for key, stream in self._kinds().items():
            path = self.work / f"{self.number:05d}.{key}"
            descriptor = create(path)
            os.ftruncate(descriptor, stream.header)
            self.streams[key] = OpenStream(stream, path, descriptor, stream.header)

    def resume(self, ranges: Iterable[tuple[Positions, int, int, int]]) -> int:
        """Resume a shard that was under way; returns how many of its ranges are complete. The others are cut off.

        `ranges`: for each range in the ledger its offsets, documents, tokens and bytes of text. A range is complete
        when each of its streams has the bytes that the ledger records. After `kill -9` all are; after a loss of
        power the last ones may not be.
        """
        kinds = self._kinds()
        for key, stream in kinds.items():
            path = self.work / f"{self.number:05d}.{key}"
            descriptor = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            if os.fstat(descriptor).st_size < stream.header:
                os.ftruncate(descriptor, stream.header)
            self.streams[key] = OpenStream(stream, path, descriptor, stream.header)
        for positions, documents, tokens, text_bytes in ranges:
            parts = self._whole(positions)
            if parts is None or not _counted(parts, documents, tokens):
                break
            for key, data in parts.items():
                self.streams[key].end = positions[key][0]
                if self.streams[key].stream.final:
                    self.streams[key].digest.update(data)
            self._count(documents, tokens, text_bytes)
        for opened in self.streams.values():
            os.ftruncate(opened.descriptor, opened.end)
        return self.ranges

    def _whole(self, positions: Positions) -> dict[str, bytes] | None:
        """What a range added to each stream, None when the files do not have it."""
        if positions.keys() != self.streams.keys():
            return None
        parts = {}
        for key, (end, checksum) in positions.items():
            opened = self.streams[key]
            if not opened.end <= end <= os.fstat(opened.descriptor).st_size:
                return None
            data = _read(opened.descriptor, opened.end, end - opened.end)
            if len(data) != end - opened.end or disk.crc_of(data) != checksum:
                return None
            parts[key] = data
        return parts

    def _count(self, documents: int, tokens: int, text_bytes: int) -> None:
        self.documents += documents
        self.tokens += tokens
        self.text_bytes += text_bytes
        self.ranges += 1

    def append(self, rows: Rows, text_bytes: int) -> Positions:
        """The documents of one range, to every stream. CorpusError, before any byte, when a layout cannot hold them."""
        for form in self.formats:
            form.check(rows, self.tokens + rows.ids.size)
        if not self.streams:
            self._open()
        positions = {key: opened.append(opened.stream.data(rows)) for key, opened in self.streams.items()}
        self._count(rows.lengths.size, rows.ids.size, text_bytes)
        return positions

    def finish(self) -> dict[str, Any]:
        """Make the files of this shard, on the disk but not yet under their names; its line for the ledger."""
        if not self.streams:
            self._open()
        shard = Shard(self.number, self.documents, self.tokens, self.work)
        kept = {opened.path.name for opened in self.streams.values()}
        sweep(self.work, {LEDGER, *kept})  # so what is made now is new, and no link is followed
        outputs = [output for form in self.formats for output in form.finish(shard)]
        known = {o.path: o.digest.hexdigest() for o in self.streams.values() if o.stream.final}
        files = []
        for output in outputs:
            disk.sync(output.path)
            digest = known.get(output.path) or digest_of(output.path)
            files.append(
                {"name": output.name, "bytes": output.path.stat().st_size, "sha256": digest, "part": output.path.name}
            )
        disk.sync(self.work)
        self.close()
        return {"shard": self.number, "documents": self.documents, "tokens": self.tokens, "files": files}

    def close(self) -> None:
        """Close the files."""
        for opened in self.streams.values():
            os.close(opened.descriptor)
        self.streams = {}


def _counted(parts: dict[str, bytes], documents: int, tokens: int) -> bool:
    """Whether a range added as many documents and tokens as its line in the ledger has, where lengths are kept."""
    if LENGTHS.key not in parts:
        return True
    lengths = parts[LENGTHS.key]
    return len(lengths) == 8 * documents and int(np.frombuffer(lengths, "<i8").sum()) == tokens


def publish(work: Path, out: Folder, files: Sequence[dict[str, Any]]) -> None:
    """Give the files of a finished shard their names. Done again after a crash: what has its name is left alone."""
    named = [
        (component(file["part"], out.position), *file_name(file["name"], out.position), file["bytes"]) for file in files
    ]
    with ExitStack() as opened:
        folders = {name: out.inner(name) for name in dict.fromkeys(folder for _, folder, _, _ in named)}
        for part, inside, name, size in named:
            folder: Any = folders[inside]
            opened.callback(folder.close)
            if _size_of(work / part) is not None:
                disk.rename(work / part, folder.path / name)
            elif _size_of(folder.path / name) != size:
                found = _size_of(folder.path / name)
                what = "no such file" if found is None else found
                raise CorpusError(str(folder.position / name), what, f"{size} bytes, as its shard was finished with")
        for folder in folders.values():
            disk.sync(folder.path)


def _size_of(path: Path) -> int | None:
    """Bytes of a regular file, None for anything else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def sweep(work: Path, kept: set[str]) -> None:
    """Remove what crashes and finished shards left after."""
    for path in work.iterdir():
        if path.name not in kept and (path.is_symlink() or not path.is_dir()):
            with suppress(FileNotFoundError):
                path.unlink()


def digest_of(path: Path) -> str:
    """SHA-256 of a file, 64 hex digits."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(disk.BYTES_PER_READ):
            digest.update(piece)
    return digest.hexdigest()


def fault_of(folder: Path, file: dict[str, Any]) -> str | None:
    """What is wrong with a file of the manifest of a finished corpus; None if it is as written."""
    path = folder / file["name"]
    if not path.is_file():
        return "the file is not there"
    if path.stat().st_size != file["bytes"]:
        return f"found {path.stat().st_size} bytes, expected {file['bytes']}"
    return "other content than was written (SHA-256)" if digest_of(path) != file["sha256"] else None


def _read(descriptor: int, start: int, count: int) -> bytes:
    parts = []
    while count > 0 and (piece := os.pread(descriptor, count, start)):
        parts.append(piece)
        start, count = start + len(piece), count - len(piece)
    return b"".join(parts)

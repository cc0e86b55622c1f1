"""The shard that is being written: streams and tables that grow in a folder of its task, then files with their digests.

A task that was interrupted is done again from its start, so nothing here resumes. The files get their final names when
the shard is full (`Store.publish`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from jittok.corpus.formats.base import Format, Output, Rows, Shard, Sink, Stream
from jittok.corpus.store import Store, disk

FETCHED_AT_ONCE = 16 << 20


class FileFacts(NamedTuple):
    """A finished file of a shard: where it lies now, its name with {} for the label, its size and digest."""

    path: Path
    name: str
    bytes: int
    sha256: str


class Laid(NamedTuple):
    """A range as it goes to disk: its documents, and the bytes that it adds to each stream."""

    rows: Rows
    streams: dict[str, Any]
    ends: dict[str, Any] | None = None  # of streams in another order: see `shuffling`


def streams_of(formats: Sequence[Format]) -> dict[str, Stream]:
    """The streams of formats; those of equal key are one."""
    return {stream.key: stream for form in formats for stream in form.streams()}


def laid_out(rows: Rows, streams: dict[str, Stream]) -> Laid:
    """The bytes of a range for each stream. Any thread may make them, in any order."""
    return Laid(rows, {key: stream.data(rows) for key, stream in streams.items()})


@dataclass
class _OpenStream:
    """A stream with its file."""

    stream: Stream
    path: Path
    descriptor: int
    digest: Any = field(default_factory=hashlib.sha256)

    def append(self, data: Any) -> None:
        view = memoryview(data).cast("B") if memoryview(data).nbytes else memoryview(b"")
        disk.append(self.descriptor, view)
        if self.stream.final:
            self.digest.update(view)


class ShardWriter:
    """One shard, from its first range to its files."""

    def __init__(self, folder: Path, formats: Sequence[Format]) -> None:
        self.formats, self.shard = formats, Shard(folder)
        self.text_bytes = 0
        self._streams: dict[str, _OpenStream] = {}
        self._sinks: list[Sink] = []
        folder.mkdir(0o700, exist_ok=True)
        try:
            for key, stream in streams_of(formats).items():
                descriptor = disk.create(self.shard.path(key))
                self._streams[key] = _OpenStream(stream, self.shard.path(key), descriptor)
                os.ftruncate(descriptor, stream.header)
            for form in formats:
                sink = form.sink(self.shard)
                if sink is not None:
                    self._sinks.append(sink)
        except BaseException:
            self.close()
            raise

    def append(self, laid: Laid) -> None:
        """The documents of one range. CorpusError, before any byte, when a layout cannot hold them."""
        rows = laid.rows
        for form in self.formats:
            form.check(rows, self.shard.tokens + rows.ids.size)
        for key, opened in self._streams.items():
            opened.append(laid.streams[key])
        for sink in self._sinks:
            sink.append(rows)
        self.shard.documents += rows.lengths.size
        self.shard.tokens += rows.ids.size
        self.text_bytes += rows.text_bytes

    def finish(self) -> list[FileFacts]:
        """Make the files of this shard, which lie in its folder."""
        outputs = [output for form in self.formats for output in form.finish(self.shard)]
        outputs += [output for sink in self._sinks for output in sink.finish()]
        known = {o.path: o.digest.hexdigest() for o in self._streams.values() if o.stream.final}
        self.close()
        order = {form.name: number for number, form in enumerate(self.formats)}
        outputs.sort(key=lambda output: order[output.name.partition("/")[0]])
        return [_facts(output, known.get(output.path, output.sha256)) for output in outputs]

    def close(self) -> None:
        """Close the files."""
        for opened in self._streams.values():
            os.close(opened.descriptor)
        for sink in self._sinks:
            with suppress(OSError):
                sink.close()
        self._streams, self._sinks = {}, []


def _facts(output: Output, digest: str) -> FileFacts:
    return FileFacts(output.path, output.name, output.path.stat().st_size, digest or digest_of(output.path))


def digest_of(path: Path) -> str:
    """SHA-256 of a file, 64 hex digits."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(disk.BYTES_PER_READ):
            digest.update(piece)
    return digest.hexdigest()


def fault_of(store: Store, file: dict[str, Any]) -> str | None:
    """What is wrong with a file of the manifest of a finished corpus; None if it is as written."""
    found = store.head(file["name"])
    if found is None:
        return "the file is not there"
    if found.size != file["bytes"]:
        return f"found {found.size} bytes, expected {file['bytes']}"
    digest = digest_of(store.local / file["name"]) if store.local else _digest_far(store, file["name"], found.size)
    return "other content than was written (SHA-256)" if digest != file["sha256"] else None


def _digest_far(store: Store, name: str, size: int) -> str:
    digest = hashlib.sha256()
    for start in range(0, size, FETCHED_AT_ONCE):
        digest.update(store.read(name, start, start + FETCHED_AT_ONCE))
    return digest.hexdigest()

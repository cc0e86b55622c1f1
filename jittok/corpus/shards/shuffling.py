"""The documents of a shard in a drawn order, in bounded memory: sorted by keys that the seed draws for them.

Each range is sorted by the keys of its documents and written to files beside the shard. When the shard is full, one
interval of keys after the other is read from all of them, sorted, and laid out: a merge of sorted runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.formats.base import UINT16_SIZE, DiskIds, Format, Rows, Shard
from jittok.corpus.formats.fields import Fields
from jittok.corpus.options import Options
from jittok.corpus.shards.writer import FileFacts, Laid, ShardWriter, laid_out, streams_of
from jittok.corpus.store import disk

BUCKETS = 256
"""Intervals of keys that can be read alone: memory is that of one of them, or of AT_ONCE."""
AT_ONCE = 4 << 20
"""Bytes of what is sorted at once: ids, kept fields, and the numbers of each document."""
STEP, FIRST, SECOND = (np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
"""Constants of SplitMix64."""
BORDERS = np.arange(1, BUCKETS, dtype=np.uint64) << np.uint64(64 - (BUCKETS - 1).bit_length())
Keys = NDArray[np.uint64]


def keys_of(name: str, count: int) -> Keys:
    """uint64[count]: numbers that a name draws, by SplitMix64 from its BLAKE2b.

    >>> keys_of("7/0/0/0", 2).tolist()
    [3835787555926549433, 9887933572848019860]
    """
    start = np.uint64(int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little"))
    found = np.arange(1, count + 1, dtype=np.uint64) * STEP + start
    found = (found ^ (found >> np.uint64(30))) * FIRST
    found = (found ^ (found >> np.uint64(27))) * SECOND
    return found ^ (found >> np.uint64(31))


def keys_of_range(seed: int, key: Sequence[int], count: int) -> Keys:
    """The keys of the documents of a range: of its source, part and place."""
    return keys_of(f"{seed}/{key[0]}/{key[1]}/{key[2]}", count)


def drawn(name: str, count: int) -> NDArray[np.int64]:
    """int64[count]: the numbers below `count` in the order that a name draws."""
    return np.argsort(keys_of(name, count), kind="stable").astype(np.int64)


def sorted_rows(rows: Rows, order: NDArray[np.int64]) -> Rows:
    """The documents of a range in another order."""
    lengths = rows.lengths[order]
    starts = (np.cumsum(rows.lengths) - rows.lengths)[order]
    moved = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    moved += np.arange(moved.size)
    return Rows(
        rows.ids[moved], lengths, rows.sources[order], None if rows.places is None else rows.places[order],
        tuple(column.take(order) for column in rows.kept), None if rows.mask is None else rows.mask[moved],
        rows.text_bytes,
    )  # fmt: skip


def spooled(rows: Rows, keys: Keys, width: np.dtype[Any]) -> Laid:
    """A range sorted by its keys, as streams of numbers, and where each interval of keys ends in them."""
    order = np.argsort(keys, kind="stable").astype(np.int64)
    rows, keys = sorted_rows(rows, order), keys[order]
    cuts = np.concatenate([np.zeros(1, np.int64), np.searchsorted(keys, BORDERS), np.full(1, keys.size, np.int64)])
    streams: dict[str, Any] = {"keys": keys, "lengths": rows.lengths, "sources": rows.sources}
    if rows.places is not None:
        streams["places"] = rows.places
    ends = dict.fromkeys(streams, cuts)
    streams["ids"], ends["ids"] = rows.ids.astype(width), _ends(rows.lengths)[cuts]
    if rows.mask is not None:
        streams["mask"], ends["mask"] = rows.mask, ends["ids"]
    for k, column in enumerate(rows.kept):
        sizes, texts = _buffers(column)
        streams |= {f"sizes{k}": sizes, f"texts{k}": texts}
        ends |= {f"sizes{k}": cuts, f"texts{k}": _ends(np.maximum(sizes, 0))[cuts]}
    return Laid(rows, streams, ends)


PER_DOCUMENT = 24
"""Bytes of a document in these files beside its ids and kept fields: key, length, source."""


def id_width(vocab_size: int) -> np.dtype[Any]:
    """The width of ids in these files."""
    return np.dtype(np.uint16 if vocab_size <= UINT16_SIZE else np.int32)


def spool_bytes(documents: float, tokens: float, vocab_size: int, options: Options) -> float:
    """About how many bytes the files of so many documents and tokens have, before they are laid out."""
    per_document = PER_DOCUMENT + (Fields.per_document if options.keep else 0)
    per_token = id_width(vocab_size).itemsize + (options.learn is not None)
    return documents * per_document + tokens * per_token


def _ends(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _buffers(column: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Bytes of each text, -1 for null, and the texts."""
    null = column.is_null().to_numpy(zero_copy_only=False)
    filled = column.fill_null("")
    _, offsets, data = filled.buffers()
    places = np.frombuffer(offsets, np.int64)[filled.offset : filled.offset + len(filled) + 1]
    sizes = np.where(null, -1, np.diff(places)) if places.size else np.zeros(0, np.int64)
    first, last = (int(places[0]), int(places[-1])) if places.size else (0, 0)
    return sizes, np.frombuffer(data, np.uint8)[first:last] if last > first else np.zeros(0, np.uint8)


def _column(sizes: NDArray[np.int64], texts: NDArray[np.uint8]) -> Any:
    import pyarrow as pa

    bits = np.packbits(sizes >= 0, bitorder="little")
    buffers = [pa.py_buffer(part) for part in (bits, _ends(np.maximum(sizes, 0)), np.ascontiguousarray(texts))]
    return pa.LargeStringArray.from_buffers(sizes.size, buffers[1], buffers[2], buffers[0])


class ShuffledWriter:
    """A ShardWriter whose documents come in the order of their keys."""

    def __init__(self, folder: Path, formats: Sequence[Format], check: Callable[[], None]) -> None:
        """`check` raises when the work is not wanted any more."""
        self.formats, self.shard, self.text_bytes = formats, Shard(folder), 0
        self._check, self._tokens = check, 0
        self._files: dict[str, int] = {}
        self._kinds: dict[str, Any] = {}
        self._cuts: dict[str, list[NDArray[np.int64]]] = {}
        self._inner: ShardWriter | None = None
        folder.mkdir(0o700, exist_ok=True)

    def append(self, laid: Laid) -> None:
        """The documents of one range. CorpusError, before any byte, when a layout cannot hold them."""
        assert laid.ends is not None
        self._tokens += laid.rows.ids.size
        for form in self.formats:
            form.check(laid.rows, self._tokens)
        for name, numbers in laid.streams.items():
            if name not in self._files:
                self._files[name] = disk.create(self.shard.path(f"unsorted.{name}"))
                self._cuts[name], self._kinds[name] = [np.zeros(1, np.int64)], numbers.dtype
            disk.append(self._files[name], memoryview(numbers).cast("B") if numbers.size else memoryview(b""))
            self._cuts[name].append(laid.ends[name] + self._cuts[name][-1][-1])
        self.text_bytes += laid.rows.text_bytes

    def finish(self) -> list[FileFacts]:
        """Lay all documents out in their order, and make the files of the shard."""
        self._inner = ShardWriter(self.shard.folder / "sorted", self.formats)
        streams = streams_of(self.formats)
        opened = {name: DiskIds(self.shard.path(f"unsorted.{name}"), self._kinds[name]) for name in self._files}
        for first, last in self._groups():
            self._check()
            self._inner.append(laid_out(self._rows(opened, first, last), streams))
        del opened
        self._remove()
        files, self.shard = self._inner.finish(), self._inner.shard
        return files

    def _groups(self) -> Iterator[tuple[int, int]]:
        """Intervals of keys that are laid out together."""
        sizes = np.zeros(BUCKETS, np.int64)
        for name, parts in self._cuts.items():
            for cuts in parts[1:]:
                sizes += np.diff(cuts) * self._kinds[name].itemsize
        first = 0
        for last in range(1, BUCKETS + 1):
            if last == BUCKETS or sizes[first : last + 1].sum() > AT_ONCE:
                yield first, last
                first = last

    def _rows(self, opened: dict[str, DiskIds], first: int, last: int) -> Rows:
        """The documents of some intervals, sorted."""
        found = {}
        for name, file in opened.items():
            parts = [file[int(cuts[first]) : int(cuts[last])] for cuts in self._cuts[name][1:]]
            found[name] = np.concatenate(parts)
        none = np.zeros(0, np.int64)
        keys, lengths = found.get("keys", np.zeros(0, np.uint64)), found.get("lengths", none)
        kept = sum(name.startswith("sizes") for name in found)
        rows = Rows(
            found.get("ids", np.zeros(0, np.int32)).astype(np.int32), lengths, found.get("sources", none),
            found.get("places"), tuple(_column(found[f"sizes{k}"], found[f"texts{k}"]) for k in range(kept)),
            found.get("mask"),
        )  # fmt: skip
        return sorted_rows(rows, np.argsort(keys, kind="stable").astype(np.int64))

    def close(self) -> None:
        """Close the files."""
        self._remove()
        if self._inner is not None:
            self._inner.close()

    def _remove(self) -> None:
        for name, descriptor in self._files.items():
            os.close(descriptor)
            with suppress(OSError):
                self.shard.path(f"unsorted.{name}").unlink()
        self._files = {}

"""Tables of words on disk: what one thread has counted, cut into slices by the words' hashes.

A run is a header and slices. The header is RUN, then int64[3 * SLICES]: short words, long words and bytes of each
slice. A slice has the slots of short words, those of long ones, and the bytes of these. Slices of all runs are added
one after the other, so no more than one slice of the whole has to be in memory as a table.

Which slice a word is in is the same in every process, as another one may go on: these hashes have no secret. A text can
choose words that are all in one slice, which is as large as the whole then; time is as for others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.shards import disk
from jittok.corpus.shards.disk import create, open_regular
from jittok.errors import CorpusError, InWords
from jittok.kernels.jit import frozen
from jittok.kernels.structures.bytes_table import KEYS
from jittok.train.counting.table import (
    K1,
    K2,
    K3,
    LONGEST_SHORT,
    N_BLOB,
    S29,
    S32,
    S56,
    SLOT,
    WordTable,
    lasting_hashes,
)

RUN = b"jittok words run 1".ljust(24)
SLICES = 64
TOP = np.uint64(58)
SLOTS_PER_STEP = 1 << 16
"""Slots hashed at once."""


def _short_slices(slots: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """uint8[slots]: the slice of each short word, by a hash of its keys."""
    out = np.empty(slots.shape[0], np.uint8)
    for at in range(0, slots.shape[0], SLOTS_PER_STEP):
        a, b = slots[at : at + SLOTS_PER_STEP, 0], slots[at : at + SLOTS_PER_STEP, 1]
        h = (a ^ a >> S32) * K1 ^ (b ^ b >> S29) * K2
        h = (h ^ h >> S32) * K3
        out[at : at + SLOTS_PER_STEP] = (h ^ h >> S29) >> TOP
    return out


def _long_hashes(table: WordTable, slots: NDArray[np.int64]) -> NDArray[np.uint64]:
    """uint64[slots]: hashes of the long words in these slots; their top bits are their slices."""
    out = np.empty(slots.size, np.uint64)
    for at in range(0, slots.size, SLOTS_PER_STEP):
        lasting_hashes(table, frozen(slots[at : at + SLOTS_PER_STEP], np.int64), out[at : at + SLOTS_PER_STEP])
    return out


def write_run(path: Path, table: WordTable) -> int:
    """Write a table; the CRC-32 of the file."""
    short, long = table.short.reshape(-1, SLOT), table.long.reshape(-1, SLOT)
    positions, longs = np.flatnonzero(short[:, 2]), np.flatnonzero(long[:, 2])
    order, bounds = _by_slice(_short_slices(short[positions]))
    positions, hashes = positions[order], _long_hashes(table, longs)
    order, long_bounds = _by_slice((hashes >> TOP).astype(np.uint8))
    longs, hashes = longs[order], hashes[order]
    all_lengths = np.append(0, np.cumsum((long[longs, 3] >> S32).astype(np.int64)))
    sizes = np.column_stack([np.diff(bounds), np.diff(long_bounds), np.diff(all_lengths[long_bounds])])
    crc = 0
    with os.fdopen(create(path), "wb") as file:
        file.write(RUN + sizes.tobytes())
        for k in range(SLICES):
            head = short[positions[bounds[k] : bounds[k + 1]]]
            tail = long[longs[long_bounds[k] : long_bounds[k + 1]]]
            lengths = (tail[:, 3] >> S32).astype(np.int64)
            ends = np.cumsum(lengths)
            blob = table.blob[
                np.repeat(tail[:, 1].astype(np.int64) - ends + lengths, lengths) + np.arange(lengths.sum())
            ]
            tail[:, 0], tail[:, 1] = hashes[long_bounds[k] : long_bounds[k + 1]], ends - lengths
            raw = head.tobytes() + tail.tobytes() + blob.tobytes()
            crc = disk.crc32(raw, crc)
            file.write(raw)
    return disk.crc32(sizes.tobytes(), crc)


def _by_slice(slices: NDArray[np.uint8]) -> tuple[NDArray[np.int64], list[int]]:
    """(an order in which those of a slice are together, as they came; where each slice begins, and the end)."""
    order = np.argsort(slices, kind="stable")
    return order, np.searchsorted(slices[order], np.arange(SLICES + 1)).tolist()


def _open(path: Path) -> BinaryIO:
    """A run to read. No link is followed, and a pipe, which would be waited for, is no run."""
    return os.fdopen(open_regular(path, os.O_RDONLY | getattr(os, "O_BINARY", 0)), "rb")


def _sizes(path: Path, file: BinaryIO) -> NDArray[np.int64]:
    """What the header says. CorpusError if the slices would have other bytes than the file."""
    head = file.read(len(RUN) + 24 * SLICES)
    if head[: len(RUN)] != RUN or len(head) != len(RUN) + 24 * SLICES:
        raise CorpusError(str(path), head[:24], "a run of counted words")
    sizes = np.frombuffer(head[len(RUN) :], np.int64).reshape(SLICES, 3)
    wanted = sum(8 * SLOT * (short + long) + blob for short, long, blob in sizes.tolist())
    found = os.fstat(file.fileno()).st_size - len(head)
    if (sizes < 0).any() or wanted != found:
        raise CorpusError(str(path), InWords(f"slices of {found} bytes"), f"{wanted} bytes, as in its header")
    return sizes


def check_run(path: Path, crc: int) -> bool:
    """Whether a run is there and whole."""
    try:
        with _open(path) as file:
            sizes = _sizes(path, file)
            found = 0
            while piece := file.read(disk.BYTES_PER_READ):
                found = disk.crc32(piece, found)
    except (OSError, CorpusError):
        return False
    return disk.crc32(sizes.tobytes(), found) == crc


def slices_of(paths: Sequence[Path]) -> Iterator[Iterator[WordTable]]:
    """For each slice in turn: the tables of all runs, in their order, one in memory at a time.

    A file is open only while it is read: there may be more runs than files that a process may open.
    """
    sizes = []
    for path in paths:
        with _open(path) as file:
            sizes.append(_sizes(path, file))
    positions = [len(RUN) + size.nbytes for size in sizes]
    for k in range(SLICES):
        yield _tables(paths, [size[k].tolist() for size in sizes], positions)
        positions = [
            position + 8 * SLOT * int(size[k, :2].sum()) + int(size[k, 2])
            for position, size in zip(positions, sizes, strict=True)
        ]


def _tables(paths: Sequence[Path], sizes: list[list[int]], positions: list[int]) -> Iterator[WordTable]:
    for path, size, position in zip(paths, sizes, positions, strict=True):
        with _open(path) as file:
            file.seek(position)
            yield _read_slice(path, file, *size)


def _read_slice(path: Path, file: BinaryIO, short: int, long: int, blob: int) -> WordTable:
    """One slice. CorpusError for one that `write_run` has not written: a kernel believes what it says of places."""

    def read(count: int, dtype: Any) -> Any:
        found = bytearray(file.read(count * np.dtype(dtype).itemsize))
        if len(found) != count * np.dtype(dtype).itemsize:
            raise CorpusError(str(path), InWords("a slice that is cut off"), "a run of counted words")
        return np.frombuffer(found, dtype)

    head, tail = read(SLOT * short, np.uint64), read(SLOT * long, np.uint64)
    words = np.concatenate([read(blob, np.uint8), np.zeros(16, np.uint8)])
    positions, lengths = tail[1::SLOT], tail[3::SLOT] >> S32
    whole = (lengths > LONGEST_SHORT) & (lengths <= blob) & (positions <= blob) & (positions + lengths <= blob)
    if not whole.all() or (head[1::SLOT] >> S56 > LONGEST_SHORT).any():
        raise CorpusError(str(path), InWords("a word that is not all there"), "a run of counted words")
    used = np.zeros(3, np.int64)
    used[N_BLOB] = blob
    return WordTable(head, tail, words, used, np.zeros(0, np.uint64), KEYS)

"""Counted words on disk: what one thread has counted, cut into slices by the hashes of the words.

A run is RUN, then int64[SLICES, 2]: the number of words and their bytes in each slice. A slice has int64 counts, int64
lengths, then the words. Slices of all runs are added one after the other, so no more than one slice of the whole has to
be in memory as a table.

Another process may resume from a run, so the slice of a word is the same in every process: these hashes have no secret.
A text can choose words that are all in one slice, which then is as large as the whole; time is as for others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.store import disk
from jittok.corpus.store.disk import create, open_regular
from jittok.errors import CorpusError, InWords
from jittok.kernels.jit import I64, U8, OutU8, kernel
from jittok.kernels.memory import window
from jittok.kernels.structures.bytes_table import hash_bytes
from jittok.train.counting.table import Listed, WordTable, words_of

RUN = b"jittok words run 2".ljust(24)
SLICES = 64
KEY, FACTOR, TOP = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(58)
WORDS_PER_STEP = 1 << 18


@kernel
def find_slices(words: U8, starts: I64, first: int, last: int, slices: OutU8) -> int:
    """Writes the slice of each word first .. last - 1; `last`. Linear in their bytes."""
    text = window(words)
    for k in range(first, last):
        slices[k] = hash_bytes(text, starts[k], starts[k + 1], KEY, FACTOR) >> TOP
    return last


def write_run(path: Path, table: WordTable) -> int:
    """Write a table; returns the CRC-32 of the file."""
    words, starts, counts = words_of([table])
    slices, done = np.empty(counts.size, np.uint8), 0
    while done < counts.size:
        done = find_slices(words, starts, done, min(done + WORDS_PER_STEP, counts.size), slices)
    order, lengths = np.argsort(slices, kind="stable"), np.diff(starts)
    bounds = np.searchsorted(slices[order], np.arange(SLICES + 1)).tolist()
    ends = np.append(0, np.cumsum(lengths[order]))
    sizes = np.column_stack([np.diff(bounds), np.diff(ends[bounds])])
    crc = 0
    with os.fdopen(create(path), "wb") as file:
        file.write(RUN + sizes.tobytes())
        for k in range(SLICES):
            rows = order[bounds[k] : bounds[k + 1]]
            before = ends[bounds[k] : bounds[k + 1]] - ends[bounds[k]]
            bytes_of = np.repeat(starts[rows] - before, lengths[rows]) + np.arange(sizes[k, 1])
            raw = counts[rows].tobytes() + lengths[rows].tobytes() + words[bytes_of].tobytes()
            crc = disk.crc32(raw, crc)
            file.write(raw)
    return disk.crc32(sizes.tobytes(), crc)


def _open(path: Path) -> BinaryIO:
    """A run to read. No link is followed, and a pipe, which would be waited for, is no run."""
    return os.fdopen(open_regular(path, os.O_RDONLY | getattr(os, "O_BINARY", 0)), "rb")


def _sizes(path: Path, file: BinaryIO) -> NDArray[np.int64]:
    """int64[SLICES, 2]: the header. CorpusError if the slices would have other bytes than the file."""
    head = file.read(len(RUN) + 16 * SLICES)
    if head[: len(RUN)] != RUN or len(head) != len(RUN) + 16 * SLICES:
        raise CorpusError(str(path), head[:24], "a run of counted words")
    sizes = np.frombuffer(head[len(RUN) :], np.int64).reshape(SLICES, 2)
    wanted = sum(16 * words + size for words, size in sizes.tolist())
    found = os.fstat(file.fileno()).st_size - len(head)
    if (sizes < 0).any() or wanted != found:
        raise CorpusError(str(path), InWords(f"slices of {found} bytes"), f"{wanted} bytes, as in its header")
    return sizes


def check_run(path: Path, crc: int) -> bool:
    """Whether a run exists and is undamaged."""
    try:
        with _open(path) as file:
            sizes = _sizes(path, file)
            found = 0
            while piece := file.read(disk.BYTES_PER_READ):
                found = disk.crc32(piece, found)
    except (OSError, CorpusError):
        return False
    return disk.crc32(sizes.tobytes(), found) == crc


def slices_of(paths: Sequence[Path]) -> Iterator[Iterator[Listed]]:
    """For each slice: its words in all runs, in their order, those of one run in memory at a time.

    A file is open only while it is read: there may be more runs than files that a process may open.
    """
    sizes = []
    for path in paths:
        with _open(path) as file:
            sizes.append(_sizes(path, file))
    offsets = [np.append(0, np.cumsum(16 * size[:, 0] + size[:, 1])) + len(RUN) + size.nbytes for size in sizes]
    for k in range(SLICES):
        parts = [(int(offset[k]), *size[k].tolist()) for offset, size in zip(offsets, sizes, strict=True)]
        yield (_read_slice(path, *part) for path, part in zip(paths, parts, strict=True))


def _read_slice(path: Path, offset: int, words: int, size: int) -> Listed:
    """One slice. CorpusError for one that `write_run` has not written: a kernel relies on the lengths."""
    with _open(path) as file:
        file.seek(offset)
        raw = bytearray(file.read(16 * words + size))
    if len(raw) != 16 * words + size:
        raise CorpusError(str(path), InWords("a slice that is cut off"), "a run of counted words")
    counts, lengths = np.frombuffer(raw, np.int64, 2 * words).reshape(2, words)
    starts = np.zeros(words + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    if ((lengths < 1) | (lengths > size) | (counts < 1) | (starts[1:] > size)).any() or starts[-1] != size:
        raise CorpusError(str(path), InWords("words that do not fill the slice"), "a run of counted words")
    return np.frombuffer(raw, np.uint8, size, 16 * words), starts, counts

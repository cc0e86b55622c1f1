"""The lines of a block of JSON Lines, and the texts of the plain ones: `find_fields` over the whole block, where its
machine code is at hand or the block is large enough to wait for it. Every other line is left to the caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.inputs import json_scan
from jittok.corpus.inputs.json_scan import BLANK, LONGEST, OTHER, TEXT, Paths, find_fields
from jittok.kernels.jit import JIT, frozen, has_compiler
from jittok.kernels.jit.interruptible import compiles
from jittok.kernels.jit.pool import NEVER_CANCELLED, Cancellation

__all__ = ["BLANK", "OTHER", "TEXT", "Lines", "lines_of_block"]

WORTH_COMPILING = 1 << 20
"""Bytes of a block from which on the kernel is compiled."""
LINES_AT_ONCE = 1 << 14
"""Lines of a call, at most."""
LINE_FEED = 10


class Lines(NamedTuple):
    """The lines of a block. The text of line k is texts[ends[k - 1]:ends[k]], empty unless it is TEXT. `spans`: where
    the values of other fields lie in the block, field by field, -1 for none."""

    starts: NDArray[np.int64]  # int64[n + 1]: where each begins; then the offset after the last line feed
    codes: NDArray[np.uint8]  # uint8[n]: TEXT, BLANK or OTHER
    ends: NDArray[np.int64]  # int64[n]
    texts: NDArray[np.uint8]
    spans: NDArray[np.int64]  # int64[n * fields * 2]

    def span(self, k: int, size: int) -> tuple[int, int]:
        """[start, stop) of line k in its block of this size, without its line feed."""
        return int(self.starts[k]), min(int(self.starts[k + 1]) - 1, size)


def lines_of_block(block: bytes, name: str, stop: Cancellation = NEVER_CANCELLED, others: Sequence[str] = ()) -> Lines:
    """The lines of a block, with the texts that the kernel finds in a field, and where the values of others lie. A
    field has that very name, else names joined by dots, from the outermost object inward. CancelledError if it is
    stopped."""
    data = np.frombuffer(block, np.uint8)
    paths = paths_of([path_in(block, each) for each in (name, *others)])
    if paths is None or not usable(data.size):
        return _unread(data, len(others))
    return _found(data, paths, stop)


def path_in(block: bytes, name: str) -> list[str]:
    """The names that a field is to be looked for by in a block; what they do not find is left to Python. A name with
    dots is taken as it is where a string like it is in the block; no escape hides another, as the kernel leaves lines
    with such names to Python."""
    if "." not in name or f'"{name}"'.encode("utf-8", "surrogatepass") in block:
        return [name]
    return name.split(".")


def usable(size: int) -> bool:
    """Whether the kernel runs for a block of this size."""
    if not JIT:  # plain Python in place of kernels: a parser in C is a thousand times faster
        return False
    return find_fields.at_hand() or (size >= WORTH_COMPILING and compiles() and has_compiler())


def paths_of(fields: Sequence[Sequence[str]]) -> Paths | None:
    """Fields as arrays. None for names that no valid line has."""
    try:
        names = [name.encode() for path in fields for name in path]
    except UnicodeEncodeError:
        return None
    if len(fields) > json_scan.MOST_FIELDS:
        return None
    return Paths(
        frozen(np.frombuffer(b"".join(names), np.uint8), np.uint8),
        frozen(np.cumsum([0, *map(len, names)]), np.int64),
        frozen(np.cumsum([0, *map(len, fields)]), np.int64),
    )


def _unread(data: NDArray[np.uint8], others: int) -> Lines:
    """The lines of a block that the kernel has not seen."""
    feeds = np.flatnonzero(data == LINE_FEED)
    starts = np.concatenate([np.zeros(1, np.int64), feeds + 1])
    if data.size and (not feeds.size or feeds[-1] + 1 < data.size):
        starts = np.append(starts, data.size + 1)
    count = starts.size - 1
    spans = np.full(2 * count * others, -1)
    return Lines(starts, np.full(count, OTHER, np.uint8), np.zeros(count, np.int64), np.zeros(0, np.uint8), spans)


def _found(data: NDArray[np.uint8], paths: Paths, stop: Cancellation) -> Lines:
    texts, fields = np.empty(data.size, np.uint8), paths.firsts.size - 1
    found: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]] = []
    state = np.zeros(2 * fields, np.int64)
    begin, at, width = 0, 0, 2 * (fields - 1)
    while begin < data.size:
        stop.check()
        starts, ends = np.empty(LINES_AT_ONCE, np.int64), np.empty(LINES_AT_ONCE, np.int64)
        codes, spans = np.empty(LINES_AT_ONCE, np.uint8), np.empty(LINES_AT_ONCE * width, np.int64)
        count = find_fields(data, begin, begin + LONGEST, paths, at, starts, ends, codes, texts, spans, state)
        if count <= 0:
            raise AssertionError(f"find_fields: {count} at offset {begin} of {data.size}")
        begin, at = state[:2].tolist()
        found.append((starts[:count], ends[:count], codes[:count], spans[: count * width]))
    if not found:
        return _unread(data, fields - 1)
    starts, ends, codes, spans = map(np.concatenate, zip(*found, strict=True))
    return Lines(np.append(starts, begin), codes, ends, texts[:at], spans)

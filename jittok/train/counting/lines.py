"""The lines of documents, as sentencepiece's trainers read them: which count, how they are normalized, which is last.

Left out: lines that are empty or too long, and those with U+2585, which replaces characters that are no piece. Spaces
and U+2581 at the end of a line are no text. Characters may be replaced by one of sentencepiece's maps.
"""

from __future__ import annotations

import importlib
from collections import deque
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_BYTES
from jittok.errors import CorpusError, InWords, MalformedVocab
from jittok.kernels.fragments import PAD
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import I64, U8, OutI64, OutU8, as_int64, helper, kernel
from jittok.kernels.memory import window
from jittok.kernels.normalize.charsmap.xcda import NO_MATCH, OUTSIDE, Charsmap, longest_key, read_charsmap
from jittok.kernels.structures.utf8 import well_formed

IDENTITY = "identity"
NORMALIZATIONS = (IDENTITY, "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf")
UNKNOWN = "\u2585".encode()
RETURN = 0x0D


class Lines(NamedTuple):
    """Lines that have text, and how many have none."""

    docs: Documents
    weights: Any
    number: int  # lines that are read, blank ones among them
    blank: NDArray[np.int64]  # which of these are blank
    long: int = 0  # lines that are not read, as they are too long


def lines_of(docs: Documents, weights: Any, longest: int, charsmap: Charsmap | None = None) -> Lines:
    """The lines of documents that have 1 to `longest` bytes."""
    low, high = int(docs.starts.min(initial=docs.data.size)), int(docs.stops.max(initial=0))
    data = docs.data[low : high + PAD]  # that of other documents may be many times as long
    starts, stops = docs.starts - low, docs.stops - low
    ends = np.flatnonzero(data == ord("\n"))
    before = np.searchsorted(ends, starts)
    sizes = np.searchsorted(ends, stops) - before + 1
    rows = np.repeat(np.arange(sizes.size), sizes)
    begin, end = np.empty(rows.size, np.int64), np.empty(rows.size, np.int64)
    firsts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    own = np.arange(rows.size) - firsts[rows] + before[rows]  # the line end that each line ends with
    at_end = firsts[1:][sizes > 0] - 1
    end[:] = ends[np.minimum(own, max(ends.size - 1, 0))] if ends.size else 0
    begin[1:] = end[:-1] + 1
    end[at_end] = stops
    begin[firsts[:-1]] = starts
    _strip(data, begin, end, (bytes([RETURN]),))
    kept = (end > begin) & (end - begin <= longest)
    long = int((end - begin > longest).sum())
    marks = np.flatnonzero(data == UNKNOWN[2])
    marks = marks[marks >= 2]
    marks = marks[(data[marks - 1] == UNKNOWN[1]) & (data[marks - 2] == UNKNOWN[0])]
    if marks.size:
        kept &= np.searchsorted(marks, begin) == np.searchsorted(marks, end)
    begin, end, rows = begin[kept], end[kept], rows[kept]
    if charsmap is not None:
        data, begin, end = normalized(charsmap, data, begin, end)
    _strip(data, begin, end, (bytes([SPACE_BYTE]), SPACE_MARK_BYTES))
    full = end > begin
    number, blank = rows.size, np.flatnonzero(~full)
    if weights is not None and weights.size > 1:
        weights = weights[rows[full]]
    return Lines(Documents(data, begin[full], end[full]), weights, number, blank, long)


def _strip(data: NDArray[np.uint8], begin: NDArray[np.int64], end: NDArray[np.int64], texts: tuple[bytes, ...]) -> None:
    """Take these texts from the ends of lines, as often as they are there; `end` is written in place."""
    rows = np.flatnonzero(end > begin)
    while rows.size:
        size = np.zeros(rows.size, np.int64)
        for text in texts:
            same = end[rows] - begin[rows] >= len(text)
            for k, byte in enumerate(text):
                same &= data[np.maximum(end[rows] - len(text) + k, 0)] == byte
            size[same] = len(text)
        end[rows] -= size
        rows = rows[(size > 0) & (end[rows] > begin[rows])]


@helper
def _character(data: U8, i: int, stop: int) -> int:
    """Bytes of the character that begins here; 0 if none does."""
    size = well_formed(window(data), i, stop, 1)
    return 0 if size == 3 and as_int64(data[i]) == 0xED and as_int64(data[i + 1]) > 0x9F else size  # no surrogates


@kernel
def map_lines(
    charsmap: Charsmap,
    data: U8,
    starts: I64,
    stops: I64,
    state: OutI64,
    out: OutU8,
    out_starts: OutI64,
    out_stops: OutI64,
) -> int:
    """Lines with the longest keys of the map replaced, and U+FFFD for bytes that begin no character.

    state: int64[2], the line and how much is written; 1 when there is no capacity for the line, OUTSIDE for a broken
    map
    """
    while state[0] < starts.size:
        k, at = state[0], state[1]
        i, stop = starts[k], stops[k]
        while i < stop:
            length, value = longest_key(charsmap, data, i, stop)
            if length == OUTSIDE:
                return OUTSIDE
            if length != NO_MATCH and value < charsmap.replacements_end:
                while charsmap.replacements[value] != 0:
                    if at >= out.size:
                        return 1
                    out[at] = charsmap.replacements[value]
                    at += 1
                    value += 1
                i += length
                continue
            if at + 4 > out.size:
                return 1
            size = _character(data, i, stop)
            if size == 0:
                out[at], out[at + 1], out[at + 2] = 0xEF, 0xBF, 0xBD
                at += 3
                i += 1
                continue
            for j in range(size):
                out[at + j] = data[i + j]
            at += size
            i += size
        out_starts[k], out_stops[k] = state[1], at
        state[0], state[1] = k + 1, at
    return 0


def normalized(charsmap: Charsmap, data: Any, starts: Any, stops: Any) -> tuple[Any, Any, Any]:
    """(bytes, starts, stops) of lines with their characters replaced."""
    out = np.empty(int((stops - starts).sum()) * 5 // 4 + 64, np.uint8)
    out_starts, out_stops, state = (
        np.empty(starts.size, np.int64),
        np.empty(starts.size, np.int64),
        np.zeros(2, np.int64),
    )
    while code := map_lines(charsmap, data, starts, stops, state, out, out_starts, out_stops):
        if code == OUTSIDE:
            raise MalformedVocab(
                "normalization", "charsmap", InWords("a link that points outside the map"), "a whole map"
            )
        out = np.concatenate([out, np.empty(out.size, np.uint8)])
    return out, out_starts, out_stops


@cache
def charsmap_bytes(name: str) -> bytes:
    """sentencepiece's own map of this name, by its package. CorpusError for a name it does not have."""
    if name not in NORMALIZATIONS:
        raise CorpusError("--normalization", name, f"one of {', '.join(NORMALIZATIONS)}")
    if name == IDENTITY:
        return b""
    try:
        package: Any = importlib.import_module("sentencepiece")
        messages: Any = importlib.import_module("sentencepiece.sentencepiece_model_pb2")
    except ImportError:
        raise ImportError(
            f"normalization {name}: needs sentencepiece and protobuf, which hold its character map"
        ) from None
    model = messages.ModelProto()
    model.ParseFromString(package.SentencePieceNormalizer(rule_name=name).serialized_model_proto())
    return bytes(model.normalizer_spec.precompiled_charsmap)


@cache
def charsmap_of(name: str) -> Charsmap | None:
    """The map of this name; None for `identity`."""
    raw = charsmap_bytes(name)
    return read_charsmap(np.frombuffer(raw, np.uint8), name) if raw else None


class Tail:
    """Which line is the last one of many parts that are added one after the other.

    sentencepiece replaces a blank line by the line at the end. So of n lines, of which b are blank, the
    last one is line n - b, or the first one after it that has text.
    """

    def __init__(self) -> None:
        self.parts: deque[tuple[int, Lines]] = deque()  # the lines before each, and itself
        self.number = self.blank = self.long = 0

    def add(self, part: Lines | None) -> None:
        """The next lines, if any are cut. Parts that can no longer have the last one are let go."""
        if part is None:
            return
        self.parts.append((self.number, part))
        self.number += part.number
        self.blank += part.blank.size
        self.long += part.long
        while len(self.parts) > 1 and self.parts[1][0] < self.number - self.blank:
            self.parts.popleft()

    def last_run(self) -> bytes:
        """What is after the last space of the last line."""
        wanted = self.number - self.blank - 1
        for before, part in self.parts:
            row = wanted - before
            rows = np.flatnonzero(~np.isin(np.arange(part.number), part.blank))
            found = int(np.searchsorted(rows, row))
            if row < part.number and found < rows.size:
                line = part.docs.data[part.docs.starts[found] : part.docs.stops[found]].tobytes()
                return line[line.rfind(b" ") + 1 :]
        return b""

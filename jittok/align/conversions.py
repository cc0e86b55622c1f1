"""Convert spans: from bytes to characters, and from NFC text back to the text before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.inputs import Documents
from jittok.kernels.jit import I64, U8, OutI64, frozen, helper, kernel
from jittok.kernels.memory import Window, any_bit_mask, get_i64, get_u8, popcount, put_i64, window
from jittok.kernels.normalize.nfc.fragments import Changed


def character_spans(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    offsets: NDArray[np.int64],
    spans: NDArray[np.int64],
) -> NDArray[np.int64]:
    """int64[n, 2]: the spans in characters, read-only. A span that covers part of a character gets all of it.

    data[starts[d]:stops[d]] is document d, valid UTF-8; offsets: int64[documents + 1] its rows in spans: int64[n, 2]
    """
    out = np.empty(spans.shape, np.int64)
    fixed = [frozen(array, np.int64) for array in (starts, stops, offsets, spans.reshape(-1))]
    count_characters(frozen(data, np.uint8), fixed[0], fixed[1], fixed[2], fixed[3], out.reshape(-1))
    out.flags.writeable = False
    return out


@kernel
def count_characters(data: U8, starts: I64, stops: I64, offsets: I64, spans: I64, out: OutI64) -> int:
    """`character_spans` to out: int64[2 * n]; returns n. Linear if neither starts nor ends of spans decrease, which
    holds for nearly all files."""
    text, positions, found = window(data), window(spans), window(out)
    for document in range(starts.size):
        origin, size = starts[document], stops[document] - starts[document]
        for side in range(2):  # a start moves back to the beginning of its character, an end forward to the end
            at, characters = 0, 0  # characters that begin before `at`
            for k in range(2 * offsets[document] + side, 2 * offsets[document + 1], 2):
                position = min(max(get_i64(positions, k), 0), size)
                while at + 64 <= position:
                    follow = any_bit_mask(text, origin + at, 0x80) & ~any_bit_mask(text, origin + at, 0x40)
                    characters += 64 - popcount(follow)
                    at += 64
                while at < position:
                    characters += _begins(text, origin + at)
                    at += 1
                while at > position:
                    at -= 1
                    characters -= _begins(text, origin + at)
                inside = side == 0 and position < size and not _begins(text, origin + position)
                put_i64(found, k, characters - 1 if inside and characters > 0 else characters)
    return spans.size // 2


@helper
def _begins(text: Window, i: int) -> bool:
    """Whether a character begins at byte i."""
    return bool(get_u8(text, i) & 0xC0 != 0x80)


def spans_through_nfc(
    spans_of: Callable[..., NDArray[np.int64]], found: Changed, docs: Documents, first: int, last: int,
    document_ends: NDArray[np.int64], starts: NDArray[np.int64], stops: NDArray[np.int64],
    tokens: NDArray[np.int32], ends: NDArray[np.int64], ids: NDArray[np.int32],
) -> NDArray[np.int64]:  # fmt: skip
    """int64[n, 2]: the spans of fragments that were normalized to NFC before encoding, in bytes of their documents.
    They are found in the normalized text, then mapped back.

    spans_of: the function for fragments that are encoded unchanged; the other arguments are those of `Aligner.spans`
    """
    changed = found.changes >= 0
    counts = np.diff(ends, prepend=0)
    of = np.repeat(np.arange(starts.size), counts)  # the fragment of each id
    spans = np.empty((ids.size, 2), np.int64)
    kept = ~changed
    spans[kept[of]] = spans_of(
        docs, first, last, np.concatenate([[0], np.cumsum(kept)])[document_ends], starts[kept], stops[kept],
        tokens[kept], np.cumsum(counts[kept]), ids[kept[of]],
    )  # fmt: skip
    # as one document that begins at 0, so that spans are offsets into all rewritten bytes
    there = Documents(found.data, frozen([0], np.int64), frozen([found.data.size], np.int64))
    inside = spans_of(
        there, 0, 1, np.array([int(changed.sum())]), found.starts[changed], found.stops[changed], tokens[changed],
        np.cumsum(counts[changed]), ids[changed[of]],
    )  # fmt: skip
    owner = of[changed[of]]
    origins = docs.starts[first:last][np.searchsorted(document_ends, owner, "right")]
    spans[changed[of]] = _before(found, inside, found.stops[owner]) - origins[:, None]
    spans.flags.writeable = False
    return spans


def _before(found: Changed, spans: NDArray[np.int64], after: NDArray[Any]) -> NDArray[np.int64]:
    """Convert spans in the rewritten bytes to spans in the original ones. after: the end of the fragment of each."""
    start, stop = spans.T
    last = np.maximum(stop - 1, 0)
    at_end = start >= after  # an empty span after the last byte
    begins = np.where(at_end, found.map_stops[last], found.map_starts[np.minimum(start, found.map_starts.size - 1)])
    return np.stack([begins, np.where(stop > start, found.map_stops[last], begins)], axis=1)

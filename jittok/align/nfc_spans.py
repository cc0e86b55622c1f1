"""Spans of fragments that were normalized to NFC before encoding: found in the normalized text, then mapped back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.inputs import Documents
from jittok.kernels.jit import frozen
from jittok.kernels.normalize.nfc_fragments import Changed


def spans_through_nfc(
    spans_of: Callable[..., NDArray[np.int64]], found: Changed, docs: Documents, first: int, last: int,
    document_ends: NDArray[np.int64], starts: NDArray[np.int64], stops: NDArray[np.int64],
    tokens: NDArray[np.int32], ends: NDArray[np.int64], ids: NDArray[np.int32],
) -> NDArray[np.int64]:  # fmt: skip
    """int64[n, 2]: the spans, in bytes of their documents. spans_of: the function for fragments that are encoded
    unchanged; the other arguments are those of `Aligner.spans`."""
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

"""Which documents are for training and which for validation, by a hash of their bytes alone, of a chat those of its
rendered text: wherever a document is, in whatever order and however often, it goes to one side, and the sides have
nothing in common."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.options import SIDES
from jittok.kernels.inputs import Documents
from jittok.kernels.jit.pool import NEVER_CANCELLED, Cancellation

if TYPE_CHECKING:
    from jittok.corpus.ranges.encoder import Encoded

BITS = 64
AT_ONCE = 1 << 10
"""Documents between two checks for cancellation."""


def is_training(text: bytes | memoryview, share: float) -> bool:
    """Whether a document is for training: the first 8 bytes of its BLAKE2b (of that size) are, as a number, below this
    share of 2**64.

    >>> is_training(b"Hello", 0.995), is_training(b"Hello", 0.1)
    (True, False)
    """
    return int.from_bytes(blake2b(text, digest_size=BITS // 8).digest(), "big") < int(share * (1 << BITS))


def training(docs: Documents, share: float, stop: Cancellation = NEVER_CANCELLED) -> NDArray[np.bool_]:
    """bool[n]: which documents are for training. CancelledError if it is stopped."""
    raw, found = docs.data.data, np.zeros(docs.starts.size, np.bool_)
    for k, (start, end) in enumerate(zip(docs.starts.tolist(), docs.stops.tolist(), strict=True)):
        if k % AT_ONCE == 0:
            stop.check()
        found[k] = is_training(raw[start:end], share)
    return found


def of_side(encoded: Encoded, side: str) -> Encoded:
    """The documents of a range that are of one side; all where there are no sides."""
    if encoded.training is None or encoded.sizes is None or not side:
        return encoded
    ours = encoded.training if side == SIDES[0] else ~encoded.training
    ids, total = np.repeat(ours, encoded.lengths), int(encoded.sizes.sum())
    # of chats, whose texts are longer than what was read, each side has its share
    size = encoded.text_bytes * int(encoded.sizes[encoded.training].sum()) // max(total, 1)
    return replace(
        encoded, ids=encoded.ids[ids], lengths=encoded.lengths[ours], sources=encoded.sources[ours],
        lines=encoded.lines[ours], text_bytes=size if side == SIDES[0] else encoded.text_bytes - size,
        mask=None if encoded.mask is None else encoded.mask[ids],
        places=None if encoded.places is None else encoded.places[ours],
        kept=tuple(column.filter(ours) for column in encoded.kept), training=None, sizes=None,
    )  # fmt: skip

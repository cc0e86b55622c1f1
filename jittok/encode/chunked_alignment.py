"""Ids and spans of a document with very many fragments, such as one that is mostly special tokens, in chunks.

A fragment takes 28 bytes (start, stop, token, end of its ids). With a token at every second byte, all fragments at once
would take more memory than the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jittok.encode.failures import failure_of
from jittok.kernels.inputs import Documents

if TYPE_CHECKING:
    from jittok.encode.encoder import Encoder
    from jittok.encode.options import EncodeOptions
    from jittok.encode.workspace import Workspace

LEAST_FRAGMENTS = 1 << 17
"""Fragments of a document from which on it is encoded in chunks."""
FRAGMENTS_PER_STEP = 1 << 15
"""Fragments that are done at once."""
SPARE_FRAGMENTS = 64


def align_in_chunks(
    encoder: Encoder, workspace: Workspace, docs: Documents, base: int, document: int, fragments: int,
    rule: EncodeOptions, extra_results: Callable[..., NDArray[np.int64]],
) -> tuple[int, NDArray[np.int64]]:  # fmt: skip
    """Encode one document in chunks. Returns the number of its ids, which are left in the workspace, and int64[n, 2]
    the result of `extra_results` for them (see `batch.stretches`). fragments: those of the document in the workspace.
    Raises EncodingFailed."""
    origin, size = int(docs.starts[document]), docs.size(document, document + 1)
    positions = np.int32 if size < 1 << 31 else np.int64
    far_starts, far_stops, tokens = workspace.detach_fragments(fragments)
    starts = np.subtract(far_starts, origin, dtype=positions, casting="unsafe")
    del far_starts
    stops = np.subtract(far_stops, origin, dtype=positions, casting="unsafe")
    del far_stops
    workspace.grow_fragments(FRAGMENTS_PER_STEP)
    workspace.grow_ids(int(encoder.ids_per_byte * size) + fragments + SPARE_FRAGMENTS, 0)
    spans = np.empty(
        (encoder.model.IDS_PER_BYTE * size + fragments + SPARE_FRAGMENTS, 2), np.int64
    )  # most of it is never touched
    count = 0
    for first in range(0, fragments, FRAGMENTS_PER_STEP):
        number = min(FRAGMENTS_PER_STEP, fragments - first)
        some = slice(first, first + number)
        np.add(starts[some], origin, out=workspace.starts[:number])
        np.add(stops[some], origin, out=workspace.stops[:number])
        workspace.tokens[:number] = tokens[some]
        cut = workspace.read_starts, workspace.read_stops, workspace.read_tokens
        part = int((workspace.stops[:number] - workspace.starts[:number]).sum())
        done = encoder.encode_fragments(workspace, docs, *cut, number, part, rule, count)
        if not isinstance(done, int):
            raise failure_of(docs, base, document, done)
        found = extra_results(
            docs, document, document + 1, np.array([number]), workspace.starts[:number], workspace.stops[:number],
            workspace.tokens[:number], workspace.ends[:number] - count, workspace.ids[count:done],
        )  # fmt: skip
        if done > len(spans):
            spans = np.concatenate([spans[:count], np.empty((2 * (done - count) + len(spans), 2), np.int64)])
        spans[count:done] = found
        count = done
    spans.resize((count, 2), refcheck=False)
    spans.flags.writeable = False
    return count, spans

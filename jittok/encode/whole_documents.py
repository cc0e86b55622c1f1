"""Fragments of documents without special tokens, laid out without the kernel `partition.cut_documents`, which takes a
second to compile: a first text need not wait for it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from jittok.encode.workspace import Workspace
from jittok.kernels.fragments import TEXT_PREFIXED
from jittok.kernels.inputs import Documents
from jittok.kernels.special.tables import SpecialTokens

MOST_DOCUMENTS, MOST_BYTES = 64, 1 << 16
"""Documents, and their bytes, that are looked through for special tokens by NumPy."""


MOST_CALLS = 1 << 14
"""Calls in which Python looks: a second or two of them."""
_calls = itertools.count()


def can_wait(kernel: Any) -> bool:
    """Whether Python should search for special tokens, because the kernel would have to be compiled."""
    return not kernel.at_hand() and next(_calls) < MOST_CALLS


def nothing_to_cut(special: SpecialTokens, documents: Documents, first: int, last: int) -> bool:
    """Whether a quick search shows that documents first .. last - 1 contain no special token; False for much text."""
    if special.ids.size == 0:
        return True
    if last - first > MOST_DOCUMENTS or documents.size(first, last) > MOST_BYTES:
        return False
    positions = zip(documents.starts[first:last].tolist(), documents.stops[first:last].tolist(), strict=True)
    return not any(special.first[np.frombuffer(documents.between(*position), np.uint8)].any() for position in positions)


def whole_document_fragments(
    workspace: Workspace, documents: Documents, first: int, last: int, before: int, after: int
) -> int:
    """Write the fragments of documents first .. last - 1 to the workspace, with `before` and `after` (an id or -1)
    around each. Returns their number."""
    starts, stops = documents.starts[first:last], documents.stops[first:last]
    tokens = np.empty((last - first, 3), np.int32)
    tokens[:] = before, TEXT_PREFIXED, after
    used = tokens >= 0
    used[:, 1] = stops > starts
    count = int(used.sum())
    if count > workspace.starts.size:
        workspace.grow_fragments(count)
    workspace.starts[:count] = np.stack([starts, starts, stops], 1)[used]
    workspace.stops[:count] = np.stack([starts, stops, stops], 1)[used]
    workspace.tokens[:count] = tokens[used]
    workspace.document_ends[: last - first] = used.sum(1).cumsum()
    return count


def whole_text_fragment(workspace: Workspace, size: int, before: int, after: int) -> int:
    """The same for one text of `size` bytes, without arrays."""
    if before < 0 and after < 0:
        workspace.starts[0], workspace.stops[0], workspace.tokens[0] = 0, size, TEXT_PREFIXED
        return 1 if size else 0
    at = 0
    for token in (before, TEXT_PREFIXED, after):
        if token >= 0 or (token == TEXT_PREFIXED and size):
            workspace.starts[at], workspace.stops[at], workspace.tokens[at] = 0, size, token
            at += 1
    return at

"""Copies of documents that kernels cannot read in place: others may write to their memory, or they are `str` with lone
surrogates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jittok.errors import EncodingFailed
from jittok.kernels.inputs import Documents

if TYPE_CHECKING:
    from jittok.encode.encoder import Encoder
    from jittok.encode.options import EncodeOptions
    from jittok.encode.workspace import Workspace


def own(docs: Documents, base: int, first: int, last: int) -> Documents:
    """Documents first .. last - 1 in memory of their own. `base`: number of document 0, for errors."""
    try:
        return docs.own(first, last)
    except EncodingFailed as error:
        raise _numbered(error, base) from None


def copied(
    encoder: Encoder, workspace: Workspace, docs: Documents, base: int, first: int, last: int, rule: EncodeOptions
) -> Documents:
    """The same in the workspace's memory, until the next copy. If several documents cannot be encoded, the error names
    the first."""
    try:
        return workspace.copy(docs, first, last)
    except EncodingFailed as error:
        bad = error
    if bad.document > first:
        before = workspace.copy(docs, first, bad.document)
        count = bad.document - first
        fragments = encoder.cut(workspace, before, 0, count, rule)
        encoder.encode(workspace, before, 0, count, fragments, rule, base + first)
    raise _numbered(bad, base)


def _numbered(error: EncodingFailed, base: int) -> EncodingFailed:
    return EncodingFailed(base + error.document, error.offset, error.found, error.expected)

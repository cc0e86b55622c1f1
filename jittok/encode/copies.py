"""Copies of documents that kernels cannot read where they are: somebody else may write to them, or they are `str` that
are invalid UTF-8."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jittok.errors import EncodingFailed
from jittok.inputs import Documents

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
    """The same in the workspace's memory, until the next copy. Of several documents that cannot be encoded the first
    one is named."""
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

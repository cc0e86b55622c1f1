"""Spans of the tokens of documents: from the lengths of tokens if their texts make up the document, else by alignment.

Alignment of files that are not GGUF runs in plain Python, some 100 KB a second. Most documents do not need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.compare.spelling import SpelledTokens
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import frozen

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer


class Placed(NamedTuple):
    """Documents as tokens. The documents in `left` have no spans yet."""

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    spans: NDArray[np.int64]
    left: NDArray[np.int64]


def spans_of(tok: Tokenizer, docs: Documents, known: SpelledTokens, options: dict[str, Any]) -> Placed:
    """The tokens of documents and all their spans."""
    return with_rest(tok, docs, placed(tok, docs, known, options), options)


def placed(tok: Tokenizer, docs: Documents, known: SpelledTokens, options: dict[str, Any]) -> Placed:
    """The tokens of documents, and the spans that need no slow alignment."""
    if not isinstance(tok.vocab, Pipeline):
        found = tok.align_batch(docs, **options)
        return Placed(found.ids, found.offsets, found.spans, np.empty(0, np.int64))
    rows = tok.encode_batch(docs, **options)
    sizes = known.sizes[rows.ids]
    ends = np.cumsum(sizes)
    spans = np.column_stack([ends - sizes, ends])
    left = []
    for row, (first, last) in enumerate(zip(rows.offsets[:-1].tolist(), rows.offsets[1:].tolist(), strict=True)):
        if first == last:
            continue
        text = docs.between(int(docs.starts[row]), int(docs.stops[row]))
        said = b"".join([known.texts[token] for token in rows.ids[first:last].tolist()])
        front = len(said) - len(text)  # 1 if a space was added before the text
        if front not in (0, 1) or said[front:] != text:
            left.append(row)
            continue
        spans[first:last] -= spans[first, 0] + front
        spans[first, 0] = 0
    return Placed(rows.ids, rows.offsets, spans, np.array(left, np.int64))


def with_rest(tok: Tokenizer, docs: Documents, found: Placed, options: dict[str, Any]) -> Placed:
    """The same with the spans of all documents."""
    if found.left.size:
        rest = Documents(docs.data, frozen(docs.starts[found.left], np.int64), frozen(docs.stops[found.left], np.int64))
        aligned = tok.align_batch(rest, **options)
        for k, row in enumerate(found.left.tolist()):
            first, last = found.offsets[row : row + 2].tolist()
            found.spans[first:last] = aligned.spans[aligned.offsets[k] : aligned.offsets[k + 1]]
    return found._replace(left=np.empty(0, np.int64))

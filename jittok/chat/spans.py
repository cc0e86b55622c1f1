"""The span of each id of texts with literal parts, in bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.encode.literal import GuardedRule, LiteralIds, literal_tokens
from jittok.kernels.inputs import PADDING, Documents
from jittok.kernels.jit import U32, frozen

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

Spans = Callable[[Documents, U32, LiteralIds, bool], NDArray[np.int64]]
"""spans(documents, literal_counts, their ids, mixed_is_text) -> int64[n, 2], in bytes of each document"""


def spans_of(tok: Tokenizer, rule: GuardedRule) -> Spans:
    """What finds the spans of the ids of documents."""

    def spans(docs: Documents, counts: U32, found: LiteralIds, mixed_is_text: bool) -> NDArray[np.int64]:
        count = docs.starts.size
        if rule.options is not None and not isinstance(tok.vocab, Pipeline):
            columns = found.starts, found.stops, found.tokens, found.ends
            return tok._aligner.spans(docs, 0, count, found.document_ends, *columns, found.ids)
        if count == 1:
            return of_one(docs, counts, found, mixed_is_text)
        if rule.options is not None and isinstance(tok.vocab, Pipeline):
            spans = _of_all(tok.vocab, docs, found)
            if spans is not None:
                return spans
        parts = (
            of_one(one, counts[start : stop + 1], its, mixed_is_text) for one, its, start, stop in _apart(docs, found)
        )
        return np.concatenate([np.zeros((0, 2), np.int64), *parts])

    def of_one(docs: Documents, counts: U32, found: LiteralIds, mixed_is_text: bool) -> NDArray[np.int64]:
        if rule.options is None:
            return np.stack([found.starts, found.stops], 1)
        assert isinstance(tok.vocab, Pipeline)
        spans = _by_fragments(tok.vocab, docs, found)
        if spans is not None:
            return spans
        raw = docs.between(int(docs.starts[0]), int(docs.stops[0]))
        marked = np.diff(counts).astype(np.uint8).tobytes()
        tokens = literal_tokens(tok.vocab, raw, rule, marked, mixed_is_text)
        if [token for token, _, _ in tokens] != found.ids.tolist():
            raise AssertionError("the reference gives other ids than the kernels; please report it")
        return np.array([(start, stop) for _, start, stop in tokens], np.int64).reshape(-1, 2)

    return spans


def _of_all(pipeline: Pipeline, docs: Documents, found: LiteralIds) -> NDArray[np.int64] | None:
    """The spans of documents that lie one after the other, if their tokens spell them all; else None."""
    from jittok.align.files import FileAligner, spelled_spans

    spelling = FileAligner(pipeline, False, False).spelling
    if spelling is None or spelling.front or not np.array_equal(docs.starts[1:], docs.stops[:-1]):
        return None
    spans = np.empty((found.ids.size, 2), np.int64)
    raw = docs.between(int(docs.starts[0]), int(docs.stops[-1]))
    if not spelled_spans(spelling, pipeline, raw, found.ids, False, spans):
        return None
    sizes = np.diff(np.concatenate([[0], found.ends])[found.document_ends], prepend=0)
    own: NDArray[np.int64] = spans - np.repeat(docs.starts - docs.starts[0], sizes)[:, None]
    return own


def _apart(docs: Documents, found: LiteralIds) -> Iterator[tuple[Documents, LiteralIds, int, int]]:
    """Each document alone, from offset 0, with its ids, and where it begins and ends in all."""
    fragment = begin = 0
    for k, last in enumerate(found.document_ends.tolist()):
        start, stop, end = int(docs.starts[k]), int(docs.stops[k]), int(found.ends[last - 1]) if last else 0
        raw = np.frombuffer(docs.between(start, stop) + PADDING, np.uint8)
        one = Documents(raw, frozen([0], np.int64), frozen([stop - start], np.int64))
        part = slice(fragment, last)
        yield one, LiteralIds(
            found.ids[begin:end], np.array([last - fragment], np.int64), found.starts[part] - start,
            found.stops[part] - start, found.tokens[part], found.ends[part] - begin,
        ), start, stop  # fmt: skip
        fragment, begin = last, end


def plain_spans(tok: Tokenizer, add_special: bool, text: str, ids: NDArray[np.int32]) -> NDArray[np.int64]:
    """int64[n, 2]: the spans of a text's ids, with all its special tokens."""
    if isinstance(tok.vocab, Pipeline):
        from jittok.align.files import FileAligner, spelled_spans

        spans = np.empty((ids.size, 2), np.int64)
        spelling = FileAligner(tok.vocab, add_special, True).spelling
        if spelling is not None and spelled_spans(spelling, tok.vocab, text.encode(), ids, add_special, spans):
            return spans
    return tok.align(text, add_special=add_special, parse_special=True).spans


def _by_fragments(pipeline: Pipeline, docs: Documents, found: LiteralIds) -> NDArray[np.int64] | None:
    """The spans of a file's ids: of the whole document where its tokens spell it, else fragment by fragment. None where
    only the reference knows."""
    from jittok.align.files import FileAligner, spelled_spans

    aligner = FileAligner(pipeline, False, False)
    spans = np.empty((found.ids.size, 2), np.int64)
    raw = docs.between(int(docs.starts[0]), int(docs.stops[0]))
    if aligner.spelling and spelled_spans(aligner.spelling, pipeline, raw, found.ids, False, spans):
        return spans
    text = np.flatnonzero(found.tokens < 0)
    begins = np.concatenate([[0], found.ends[:-1]])
    cut = found.tokens >= 0
    spans[begins[cut]] = np.stack([found.starts, found.stops], 1)[cut]
    for k in text.tolist():
        start, stop, begin, end = int(found.starts[k]), int(found.stops[k]), int(begins[k]), int(found.ends[k])
        part = Documents(docs.data, frozen([start], np.int64), frozen([stop], np.int64))
        try:
            its = aligner.spans(
                part, 0, 1, np.ones(1, np.int64), part.starts, part.stops, frozen([-1], np.int32),
                np.array([end - begin]), found.ids[begin:end],
            )  # fmt: skip
        except AssertionError:  # a fragment alone has other ids than in its document
            return None
        spans[begin:end] = its + start
    return spans

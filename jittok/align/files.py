"""Spans of texts that a `Pipeline` has encoded.

If the tokens spell the text, each covers its own bytes (`spelled_tokens`). Otherwise the reference encodes the text
again, which is exact and slow; long texts are read in windows, along the ids (`token_walk`) or as tokens (`windows`).

The reference's normalizers keep the source bytes of every character: its own bytes if it is unchanged, all bytes that
were replaced together, and none for added characters. A token covers the source bytes of its characters. If the bytes
of one unchanged character became several tokens, each covers its own bytes.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from jittok.align import token_walk, windows
from jittok.align.characters import character_spans
from jittok.align.mark_order import ordered_document
from jittok.align.spelled_tokens import TokenSpelling, spelled_spans, spelling_of
from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.pipeline import FIRST_TEXT
from jittok.kernels.inputs import Documents
from jittok.reference.pipeline.documents import aligned
from jittok.reference.pipeline.run import runner


class FileAligner:
    """Finds the spans of a Pipeline's ids. Immutable and thread-safe."""

    in_python = True
    """See `encode.batch`."""

    def __init__(self, pipeline: Pipeline, add_special: bool, parse_special: bool) -> None:
        self.pipeline, self.add_special, self.parse_special = pipeline, add_special, parse_special
        self._spelling = _spelling(pipeline)

    def spans(
        self, docs: Documents, first: int, last: int, document_ends: NDArray[np.int64], _starts: NDArray[np.int64],
        _stops: NDArray[np.int64], _tokens: NDArray[np.int32], ends: NDArray[np.int64], ids: NDArray[np.int32],
    ) -> NDArray[np.int64]:  # fmt: skip
        """int64[n, 2]: the span of each id of documents first .. last - 1, in bytes of its document.

        The arrays are those of `Aligner.spans`. AssertionError if the reference is used and gives other ids.
        """
        offsets = _row_offsets(document_ends, ends)
        spans = np.empty((ids.size, 2), np.int64)
        for k, document in enumerate(range(first, last)):
            begin, end = offsets[k : k + 2].tolist()
            raw = docs.between(int(docs.starts[document]), int(docs.stops[document]))
            if self._spelling and spelled_spans(
                self._spelling, self.pipeline, raw, ids[begin:end], self.add_special, spans[begin:end]
            ):
                continue
            if self._by_windows(raw, ids[begin:end], spans[begin:end]):
                continue
            found = aligned(self.pipeline, raw, self.add_special, self.parse_special)
            if [token.id for token in found] != ids[begin:end].tolist():
                raise AssertionError(
                    f"document {document}: the reference gives other ids than the kernels; please report it"
                )
            spans[begin:end] = [(token.start, token.stop) for token in found] or np.empty((0, 2))
        spans.flags.writeable = False
        return spans

    def _by_windows(self, raw: bytes, ids: NDArray[np.int32], spans: NDArray[np.int64]) -> bool:
        """Write the spans of a long document's ids, reading it in windows; returns whether that succeeded."""
        if len(raw) <= 2 * windows.FIRST_WINDOW_BYTES:
            return False
        single = self.pipeline.single if self.add_special else (FIRST_TEXT,)
        first = single.index(FIRST_TEXT)
        last = ids.size - (len(single) - 1 - first)
        spans[:first], spans[last:] = 0, len(raw)
        ids, spans = ids[first:last], spans[first:last]
        found = ordered_document(runner(self.pipeline), raw, self.parse_special)
        if found is None:
            return self._by_windows_of(raw, ids, spans)
        if not self._by_windows_of(found.raw, ids, spans):
            return False
        found.put_back(spans)
        return True

    def _by_windows_of(self, raw: bytes, ids: NDArray[np.int32], spans: NDArray[np.int64]) -> bool:
        walk = token_walk.TokenWalk(self.pipeline, raw, ids, self.parse_special, spans)
        return windows.by_windows(walk, raw) or windows.spans_by_windows(
            self.pipeline, raw, ids, self.parse_special, spans
        )

    def spans_in_characters(
        self, docs: Documents, first: int, last: int, document_ends: NDArray[np.int64], *fragments: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """`spans`, but in characters; the documents are valid UTF-8."""
        spans = self.spans(docs, first, last, document_ends, *fragments)  # type: ignore[arg-type]
        offsets = _row_offsets(document_ends, fragments[3])
        return character_spans(docs.data, docs.starts[first:last], docs.stops[first:last], offsets, spans)


_SPELLINGS: WeakKeyDictionary[Pipeline, TokenSpelling | None] = WeakKeyDictionary()


def _spelling(pipeline: Pipeline) -> TokenSpelling | None:
    """`spelling_of` the pipeline, computed once."""
    if pipeline not in _SPELLINGS:
        _SPELLINGS[pipeline] = spelling_of(pipeline)
    return _SPELLINGS[pipeline]


def _row_offsets(document_ends: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[documents + 1]: the offset of each document's ids; a document without fragments has none."""
    of_documents: NDArray[np.int64] = np.concatenate([[0], ends])[document_ends]
    return np.concatenate([[0], of_documents])

"""Spans of texts that a `Pipeline` has encoded, by its plain way: exact, and slow.

Each normalizer keeps which bytes every character stands for: its own where it has not changed, all that was replaced
together, none for what was put in front. A token stands for what its characters stand for; where bytes of one unchanged
character became several tokens, each has its own bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.align.characters import character_spans
from jittok.inputs import Documents
from jittok.pipeline import Pipeline
from jittok.pipeline.pipeline import FIRST_TEXT
from jittok.reference.pipeline import runner
from jittok.reference.pipeline.normalize import Unit
from jittok.reference.pipeline.run import Token


class PlainText(NamedTuple):
    """A text as the plain way reads it, and the bytes of the document that each character stands for."""

    text: str
    units: list[Unit]


def read_text(raw: bytes) -> PlainText:
    """A document as text. What is no UTF-8 is U+FFFD, one for each stretch that Python's decoder replaces."""
    texts, units, at = list[str](), list[Unit](), 0
    while at < len(raw):
        bad, end = len(raw), len(raw)
        try:
            part = raw[at:].decode()
        except UnicodeDecodeError as error:
            bad, end = at + error.start, at + error.end
            part = raw[at:bad].decode()
        texts.append(part)
        for c in part:
            size = len(c.encode())
            units.append((at, at + size))
            at += size
        if bad < end:
            texts.append("\ufffd")
            units.append((bad, end))
        at = end
    return PlainText("".join(texts), units)


class FileAligner:
    """What finds the spans of a Pipeline's ids. Immutable; safe to share between threads."""

    def __init__(self, pipeline: Pipeline, add_special: bool, parse_special: bool) -> None:
        self.pipeline, self.parse_special = pipeline, parse_special
        single = pipeline.single if add_special else (FIRST_TEXT,)
        at = single.index(FIRST_TEXT)
        self.before, self.after = single[:at], single[at + 1 :]

    def tokens(self, raw: bytes) -> list[Token]:
        """The ids of a document with what stands around it, each with the bytes that it stands for."""
        text, units = read_text(raw)
        found = runner(self.pipeline).align(text, units, raw, self.parse_special)
        end = len(raw)
        return [
            *(Token(token, 0, 0) for token in self.before),
            *found,
            *(Token(token, end, end) for token in self.after),
        ]

    def spans(
        self, docs: Documents, first: int, last: int, document_ends: NDArray[np.int64], _starts: NDArray[np.int64],
        _stops: NDArray[np.int64], _tokens: NDArray[np.int32], ends: NDArray[np.int64], ids: NDArray[np.int32],
    ) -> NDArray[np.int64]:  # fmt: skip
        """int64[n, 2]: where each of the ids of documents first .. last - 1 comes from, in bytes of its document.

        The arrays are those of `Aligner.spans`. AssertionError unless the plain way gives the same ids.
        """
        offsets = _row_offsets(document_ends, ends)
        spans = np.empty((ids.size, 2), np.int64)
        for k, document in enumerate(range(first, last)):
            begin, end = offsets[k : k + 2].tolist()
            found = self.tokens(docs.between(int(docs.starts[document]), int(docs.stops[document])))
            if [token.id for token in found] != ids[begin:end].tolist():
                raise AssertionError(
                    f"document {document}: kernels give other ids than the plain way, please report it"
                )
            spans[begin:end] = [(token.start, token.stop) for token in found] or np.empty((0, 2))
        spans.flags.writeable = False
        return spans

    def spans_in_characters(
        self, docs: Documents, first: int, last: int, document_ends: NDArray[np.int64], *fragments: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """`spans`, in characters of its document, which is valid UTF-8."""
        spans = self.spans(docs, first, last, document_ends, *fragments)  # type: ignore[arg-type]
        offsets = _row_offsets(document_ends, fragments[3])
        return character_spans(docs.data, docs.starts[first:last], docs.stops[first:last], offsets, spans)


def _row_offsets(document_ends: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[documents + 1]: where the ids of each document begin; without a fragment there is no id."""
    of_documents: NDArray[np.int64] = np.concatenate([[0], ends])[document_ends]
    return np.concatenate([[0], of_documents])

"""Spans of texts that a `Pipeline` has encoded.

If the tokens spell the text, each covers its own bytes (`spelled_spans`): nothing is encoded or normalized again. This
requires that every step that adds or removes characters is undone here. Two kinds of files qualify: byte-level ones
without normalizers (or with NFC, for documents that it does not change), with or without a prefixed space; and those
whose only normalizers replace spaces by U+2581 and put one before the text.

Otherwise the ids are walked along the normalized text (`windows`), and where that leaves spans open, the reference
encodes the text again, which is exact and slow.

The reference's normalizers keep the source bytes of every character: its own bytes if it is unchanged, all bytes that
were replaced together, and none for added characters. A token covers the source bytes of its characters. If the bytes
of one unchanged character became several tokens, each covers its own bytes.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from jittok.align import windows
from jittok.align.conversions import character_spans
from jittok.common.pipeline import Pipeline, steps
from jittok.common.pipeline.models import MISSING, NO_TOKEN, Longest, Merges, Ranks
from jittok.common.pipeline.pipeline import FIRST_TEXT
from jittok.common.unicode.characters import SPACE_MARK, SPACE_MARK_BYTES
from jittok.common.unicode.tables import BYTE_OF_CHARACTER
from jittok.kernels.inputs import Documents
from jittok.reference.pipeline import aligned, runner

IDS_PER_STEP = 1 << 16
"""Ids that are compared with the document at a time."""
_BYTE = re.compile(rb"<0x([0-9A-F]{2})>")
NO_TEXT = b"\xff" * 8
"""The text of a token that can spell no document: it is invalid UTF-8."""


class FileAligner:
    """Finds the spans of a Pipeline's ids. Immutable and thread-safe."""

    in_python = True
    """See `threads.batch`."""

    def __init__(self, pipeline: Pipeline, add_special: bool, parse_special: bool) -> None:
        self.pipeline, self.add_special, self.parse_special = pipeline, add_special, parse_special
        self.spelling = _spelling(pipeline)

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
            if self.spelling and spelled_spans(
                self.spelling, self.pipeline, raw, ids[begin:end], self.add_special, spans[begin:end]
            ):
                continue
            if self._walked(raw, ids[begin:end], spans[begin:end]):
                continue
            found = aligned(self.pipeline, raw, self.add_special, self.parse_special)
            if [token.id for token in found] != ids[begin:end].tolist():
                raise AssertionError(
                    f"document {document}: the reference gives other ids than the kernels; please report it"
                )
            spans[begin:end] = [(token.start, token.stop) for token in found] or np.empty((0, 2))
        spans.flags.writeable = False
        return spans

    def _walked(self, raw: bytes, ids: NDArray[np.int32], spans: NDArray[np.int64]) -> bool:
        """Write the spans of a document's ids along the normalized text; returns whether that succeeded."""
        single = self.pipeline.single if self.add_special else (FIRST_TEXT,)
        first = single.index(FIRST_TEXT)
        last = ids.size - (len(single) - 1 - first)
        spans[:first], spans[last:] = 0, len(raw)
        ids, spans = ids[first:last], spans[first:last]
        if len(raw) <= 2 * windows.FIRST_WINDOW_BYTES:
            return windows.walked(self.pipeline, raw, ids, self.parse_special, spans)
        found = windows.ordered_document(runner(self.pipeline), raw, self.parse_special)
        source = raw if found is None else found.raw
        if not windows.walked(self.pipeline, source, ids, self.parse_special, spans) and not windows.spans_by_windows(
            self.pipeline, source, ids, self.parse_special, spans
        ):
            return False
        if found is not None:
            found.put_back(spans)
        return True

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


# ---- tokens that spell a document


class TokenSpelling(NamedTuple):
    """The bytes that each token of a file spells."""

    texts: list[bytes]  # by id
    widths: NDArray[np.int64]  # bytes of a document that each covers
    added: frozenset[int]
    marked: bool  # texts have U+2581 for a space
    front: bytes = b""  # the prefix of a text: U+2581, or a space if the text does not begin with one


def spelling_of(pipeline: Pipeline) -> TokenSpelling | None:
    """The spelling of a pipeline's tokens; None if its steps change documents in other ways."""
    prefixed = isinstance(pipeline.split[0], steps.PrefixSpace) if pipeline.split else False
    stages = pipeline.split[prefixed:]
    if any(not isinstance(stage, steps.Cut | steps.CutClass | steps.CutScripts | steps.SpellBytes) for stage in stages):
        return None
    spelled = any(isinstance(stage, steps.SpellBytes) for stage in stages)
    model, normal = pipeline.model, list(pipeline.normalize)
    if isinstance(model, Merges):
        if model.prefix or model.suffix:
            return None
        if not spelled:
            return None if prefixed else _marked(pipeline, model, normal)
        if model.unknown not in (NO_TOKEN, MISSING) or model.byte_fallback:
            return None
    elif not isinstance(model, Ranks | Longest) or spelled:
        return None
    if normal and not pipeline.composes_alone:
        return None
    own = [_unspelled(text) for text in pipeline.model_tokens] if spelled else pipeline.model_tokens
    return _with_added(pipeline, own, False, b" " if prefixed else b"")


def _marked(pipeline: Pipeline, model: Merges, normal: list[Any]) -> TokenSpelling | None:
    prefixed = bool(normal) and normal[0] == steps.Prepend(SPACE_MARK)
    escapes = normal[prefixed:]
    if len(escapes) != 1 or not isinstance(escapes[0], steps.Replace):
        return None
    pattern, content = escapes[0].pattern, escapes[0].content
    if not pattern.literal or pattern.text != " " or content != SPACE_MARK:
        return None
    if not model.byte_fallback or SPACE_MARK_BYTES not in pipeline.vocabulary:
        return None
    own = [None if text is None else _byte_or(text) for text in pipeline.model_tokens]
    if 0 <= model.unknown < len(own):
        own[model.unknown] = None
    return _with_added(pipeline, own, True, SPACE_MARK_BYTES if prefixed else b"")


def _with_added(pipeline: Pipeline, own: list[bytes | None], marked: bool, front: bytes) -> TokenSpelling:
    texts = [NO_TEXT if text is None else text for text in own] + [NO_TEXT] * (len(pipeline) - len(own))
    mark = SPACE_MARK_BYTES
    for token in pipeline.added:
        takes_spaces = token.lstrip or token.rstrip
        texts[token.id] = NO_TEXT if takes_spaces else token.content.encode()
    widths = [len(text) - 2 * text.count(mark) if marked else len(text) for text in texts]
    added = frozenset(token.id for token in pipeline.added)
    return TokenSpelling(texts, np.array(widths, np.int64), added, marked, front)


def _unspelled(text: bytes | None) -> bytes | None:
    """The bytes of a byte-level text, or None if it is not byte-level."""
    if text is None:
        return None
    try:
        return text.decode().translate(_BYTES).encode("latin-1")
    except UnicodeEncodeError:
        return None


class _ByteOfCharacter(dict[int, str]):
    """The byte alphabet, for `str.translate`; other characters become one that Latin-1 lacks."""

    def __missing__(self, character: int) -> str:
        return "\uffff"


_BYTES = _ByteOfCharacter({character: chr(byte) for character, byte in BYTE_OF_CHARACTER.items()})


def _byte_or(text: bytes) -> bytes:
    found = _BYTE.fullmatch(text)
    return bytes([int(found[1], 16)]) if found else text


def spelled_spans(
    spelling: TokenSpelling, pipeline: Pipeline, raw: bytes, ids: NDArray[np.int32], add_special: bool,
    spans: NDArray[np.int64],
) -> bool:  # fmt: skip
    """Write the spans of a document's ids to `spans`, int64[n, 2], if the ids spell it; returns whether they do."""
    single = pipeline.single if add_special else (FIRST_TEXT,)
    first, last = single.index(FIRST_TEXT), ids.size - (len(single) - 1 - single.index(FIRST_TEXT))
    mark = SPACE_MARK_BYTES
    if spelling.marked and mark in raw:
        return False
    whole = raw.replace(b" ", mark) if spelling.marked else raw
    prefix = spelling.front != b"" and raw != b"" and (spelling.marked or not raw.startswith(spelling.front))
    whole = spelling.front + whole if prefix else whole
    at, done = 0, -1 if prefix else 0
    for begin in range(first, last, IDS_PER_STEP):
        some = ids[begin : min(begin + IDS_PER_STEP, last)]
        numbers = some.tolist()
        text = b"".join([spelling.texts[token] for token in numbers])
        if not whole.startswith(text, at) or (prefix and not spelling.added.isdisjoint(numbers)):
            return False
        at += len(text)
        part = spans[begin : begin + some.size]
        np.cumsum(spelling.widths[some], out=part[:, 1])
        part[:, 1] += done
        part[0, 0], part[1:, 0] = done, part[:-1, 1]
        done = int(part[-1, 1])
    if at != len(whole):
        return False
    np.maximum(spans[first:last], 0, out=spans[first:last])
    spans[:first], spans[last:] = 0, len(raw)
    return True

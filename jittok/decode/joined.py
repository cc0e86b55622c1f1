"""Rows of ids to text by a file's decoder that makes something of each token by itself: pieces that a kernel joins.

What a decoder makes of a token may depend on whether it is the first or the last of a text. So there are pieces for the
tokens in between, and the two at the ends are asked for when they are there. Bytes that are no characters, and what
stands for them, are left to the reference.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import frozen
from jittok.decode.pieces import LENGTH, pieces_of
from jittok.decode.rows import Decoder, Frame
from jittok.fragments import TEXT
from jittok.pipeline import steps
from jittok.pipeline.models import BYTE, CONTROL, UNKNOWN
from jittok.pipeline.models import Pieces as SentencePieces
from jittok.pipeline.pipeline import Pipeline
from jittok.pipeline.steps import JoinPieces
from jittok.reference.pipeline import Runner
from jittok.reference.pipeline.decode import BYTES, PiecesText, decoder, is_byte
from jittok.structures.valid import VALID, first_malformed
from jittok.unicode.characters import SPACE_MARK

EACH = (steps.ReplaceEach, steps.Unmark, steps.StripEach, steps.JoinWords, steps.Unsuffix, steps.Trim)
"""Steps that change texts one by one."""
BY_PLACE = (steps.Unmark, steps.JoinWords, steps.Unsuffix)
"""Those of them that ask for a text's number."""
PLAIN, OF_BYTES, EMPTY = 0, 1, 2
"""Kinds of tokens: a byte; one that prints nothing, but stands between bytes."""
Texts = list[str]


class Way(NamedTuple):
    """The steps of a decoder, by what they see."""

    each: tuple[steps.Decoder, ...]
    bytes_: bool  # then bytes are joined and read as UTF-8
    fallback: bool  # then runs of <0xXX> become characters
    behind: tuple[steps.Decoder, ...]  # of the one text


def way_of(decode: tuple[steps.Decoder, ...]) -> Way | None:
    """How a decoder's steps go; None for one that looks at several tokens at once."""
    at = next((k for k, step in enumerate(decode) if not isinstance(step, EACH)), len(decode))
    each, rest = decode[:at], decode[at:]
    bytes_ = isinstance(rest[0], steps.JoinBytes) if rest else False
    fallback = isinstance(rest[0], steps.JoinFallback) if rest else False
    rest = rest[bytes_ + fallback :]
    fused = isinstance(rest[0], steps.Fuse) if rest else False
    if rest and not (fused or bytes_):
        return None
    behind = rest[fused:]
    return Way(each, bytes_, fallback, behind) if all(isinstance(step, EACH) for step in behind) else None


class JoinedDecoder:
    """The pieces of a file's tokens, joined. Safe to share between threads."""

    def __init__(self, pipeline: Pipeline, run: Runner, way: Way | None) -> None:
        self._pipeline, self._run, self._way = pipeline, run, way
        self._sentencepiece = isinstance(pipeline.model, SentencePieces)
        self._steps = [decoder(step) for step in way.each] if way else []
        self._behind = [decoder(step) for step in way.behind] if way else []
        self._by_place = any(isinstance(step, BY_PLACE) for step in way.each) if way else False
        self._checked = self._sentencepiece or bool(way and (way.bytes_ or way.fallback))
        pieces, self._kinds = self._pieces()
        hidden = np.zeros(len(pipeline), np.uint8)
        hidden[[token for token in run.special if token < hidden.size]] = 1
        self._hidden, self._known = hidden != 0, np.zeros(hidden.size, np.bool_)
        if self._by_place:
            self._known[[*run.texts]] = True
        self._joined = Decoder(pipeline, pieces_of(pieces, frozen(hidden, np.uint8)))  # type: ignore[arg-type]
        self._at_an_end = lru_cache(1 << 12)(self._made_at_an_end)

    def one(self, ids: NDArray[np.int32], skip_special: bool) -> bytes | None:
        """The text of a row of ids of the vocabulary; None where only the reference can tell."""
        if self._splits(ids):
            return None
        if self._sentencepiece:
            raw = self._of_sentencepiece(ids, skip_special)
        elif self._by_place:
            raw = self._with_ends(ids, skip_special)
        else:
            raw = self._between(ids, skip_special)
        if self._checked:
            try:
                raw.decode()
            except UnicodeDecodeError:
                if self._way is None or not self._way.bytes_:
                    return None
                raw = raw.decode("utf-8", "replace").encode()
        if self._behind:
            texts = [raw.decode()]
            for step in self._behind:
                texts = step(texts)
            raw = "".join(texts).encode()
        return raw

    def rows(
        self, ids: NDArray[np.int32], offsets: NDArray[np.int64], skip_special: bool
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]] | None:
        """(the texts of rows behind each other, where they end) by one call; None where rows are to be asked for."""
        if self._sentencepiece or self._by_place or self._behind or self._splits(ids):
            return None
        text, ends = self._joined.rows(frozen(ids, np.int32), offsets, self._frame(skip_special))
        if self._checked:
            stops = frozen(ends, np.int64)
            starts, tokens = np.append(0, ends[:-1]), np.full(ends.size, TEXT, np.int32)
            whole = first_malformed(
                frozen(text, np.uint8), frozen(starts, np.int64), stops, frozen(tokens, np.int32), 0, ends.size
            )
            if whole != VALID:
                return None
        return text, ends

    def _splits(self, ids: NDArray[np.int32]) -> bool:
        """Whether something that prints nothing may stand between bytes of one character."""
        if self._kinds is None:
            return False
        kinds = self._kinds[ids]
        return bool(((kinds[:-1] == OF_BYTES) & (kinds[1:] == EMPTY)).any())

    @staticmethod
    def _frame(skip_special: bool) -> Frame:
        return Frame(0, -1, -1, int(not skip_special), 0)

    def _between(self, ids: NDArray[np.int32], skip_special: bool) -> bytes:
        return self._joined.one(frozen(ids, np.int32), self._frame(skip_special))

    def _with_ends(self, ids: NDArray[np.int32], skip_special: bool) -> bytes:
        shown = self._known & ~self._hidden if skip_special else self._known
        first, last = 0, ids.size
        while first < last and not shown[ids[first]]:
            first += 1
        while first < last and not shown[ids[last - 1]]:
            last -= 1
        if last - first < 2:
            return self._at_an_end(int(ids[first]), True, True) if first < last else b""
        middle = self._between(ids[first + 1 : last - 1], skip_special)
        return self._at_an_end(int(ids[first]), True, False) + middle + self._at_an_end(int(ids[last - 1]), False, True)

    def _made_at_an_end(self, token: int, first: bool, last: bool) -> bytes:
        texts = [*([] if first else [""]), self._run.texts[token], *([] if last else [""])]
        return self._piece(self._each(texts)[0 if first else 1])

    def _of_sentencepiece(self, ids: NDArray[np.int32], skip_special: bool) -> bytes:
        """What a text begins with is trimmed, until something is written: so far id by id."""
        if skip_special:
            ids = ids[~self._hidden[ids]]
        text, out = PiecesText(self._pipeline), []
        for k in range(ids.size):
            out.append(text.push(int(ids[k])))
            if text.begun:
                return "".join(out).encode() + self._between(ids[k + 1 :], False)
        return ("".join(out) + text.finish()).encode()

    # ---- the pieces

    def _each(self, texts: Texts) -> Texts:
        for step in self._steps:
            texts = step(texts)
        return texts

    def _piece(self, text: str) -> bytes:
        assert self._way is not None
        if self._way.bytes_ and all(c in BYTES for c in text):
            return bytes(BYTES[c] for c in text)
        if self._way.fallback and is_byte(text):
            return bytes([int(text[3:5], 16)])
        return text.encode()

    def _pieces(self) -> tuple[list[bytes], NDArray[np.uint8] | None]:
        """The pieces of tokens that stand between others, and what kinds of tokens they are, where that matters."""
        count = len(self._pipeline)
        pieces, kinds = [b""] * count, np.zeros(count, np.uint8)
        if self._sentencepiece:
            _fill_sentencepieces(self._pipeline, pieces, kinds)
            return pieces, kinds
        if self._way is None:
            for token, raw in self._run.raw_texts.items():
                pieces[token] = raw
            return pieces, None
        texts = self._run.texts
        made = self._each(["", *texts.values(), ""])[1:-1]
        for token, text in zip(texts, made, strict=True):
            pieces[token] = self._piece(text)
            kinds[token] = OF_BYTES if is_byte(text) else PLAIN if text else EMPTY
        return pieces, kinds if self._way.fallback else None


def _fill_sentencepieces(pipeline: Pipeline, pieces: list[bytes], kinds: NDArray[np.uint8]) -> None:
    model, (step,) = pipeline.model, pipeline.decode
    assert isinstance(model, SentencePieces)
    assert isinstance(step, JoinPieces)
    for token, kind in enumerate(model.types.tolist()):
        text = pipeline.model_tokens[token] or b""
        if kind == BYTE:
            pieces[token], kinds[token] = bytes([int(text[3:5], 16)]), OF_BYTES
        elif kind == UNKNOWN:
            pieces[token] = step.unknown.encode()
        elif kind != CONTROL:
            pieces[token] = text.replace(SPACE_MARK.encode(), b" ")
        if not pieces[token]:
            kinds[token] = EMPTY


def _fits(pipeline: Pipeline) -> bool:
    """Whether all pieces together are shorter than one may be, whatever the file writes in place of characters."""
    size = pipeline.token_bytes.size + len(pipeline)  # and a space in front of each
    for step in pipeline.decode:
        if isinstance(step, steps.ReplaceEach):
            size *= max(1, len(step.content.encode()))
        elif isinstance(step, JoinPieces):
            size += len(step.unknown.encode())
    return size <= LENGTH


def joined_decoder(pipeline: Pipeline, run: Runner) -> JoinedDecoder | None:
    """The decoder of a file whose tokens become pieces; None for any other."""
    if not _fits(pipeline):
        return None
    if isinstance(pipeline.model, SentencePieces):
        fits = len(pipeline.decode) == 1 and isinstance(pipeline.decode[0], JoinPieces)
        return JoinedDecoder(pipeline, run, None) if fits else None
    if any(isinstance(step, steps.JoinRaw) for step in pipeline.decode):
        return JoinedDecoder(pipeline, run, None)
    way = way_of(pipeline.decode)
    return None if way is None else JoinedDecoder(pipeline, run, way)

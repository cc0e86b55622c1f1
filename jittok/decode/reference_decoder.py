"""Ids to text by a file's own decoder: by the reference, and for much text by joined pieces (`piece_decoder`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.locks import once
from jittok.common.pipeline.pipeline import FIRST_TEXT, SPECIAL, Pipeline
from jittok.common.pipeline.steps import (
    Ctc,
    Decoder,
    JoinRaw,
    JoinRawBetweenSpecial,
    JoinWords,
    Pattern,
    ReplaceEach,
)
from jittok.common.rows import TokenArray
from jittok.common.rows.checks import is_held, own
from jittok.decode.file_stream import FileStream
from jittok.decode.stream import StreamDecoder
from jittok.errors import EncodingFailed, InvalidToken
from jittok.reference.pipeline import runner

if TYPE_CHECKING:
    from jittok.decode.piece_decoder import PieceDecoder

IDS_PER_STEP = 1 << 14
"""Ids that are decoded at once,"""
WORTH_PIECES = 1 << 14
"""and ids after which a decoder makes the pieces of all tokens: tenths of a second."""


def as_written(pipeline: Pipeline) -> Pipeline:
    """A Pipeline whose decoder does not clean spaces; the same one if it does not do so anyway."""
    if not pipeline.cleans_spaces:
        return pipeline
    decode: list[Decoder] = []
    for step in pipeline.decode:
        decode.append(step._replace(cleanup=False) if isinstance(step, JoinWords | Ctc) else step)
        if isinstance(step, Ctc) and step.cleanup and step.delimiter:  # the delimiter becomes a space even so
            decode.append(ReplaceEach(Pattern(step.delimiter, literal=True), " "))
    return pipeline._replace(decode=tuple(decode))


class ReferenceDecodeFrame(NamedTuple):
    """Which ids of a row are left out."""

    around: bool  # those that the file's template adds around a text
    special: bool


class ReferenceDecoder:
    """Ids to text by the file's decoder."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.vocab = pipeline
        self._decoded = 0  # number of ids so far, of all threads

    @once
    def _joined(self) -> PieceDecoder | None:
        from jittok.decode.piece_decoder import make_piece_decoder

        return make_piece_decoder(self.vocab, runner(self.vocab))

    def _with_pieces(self, count: int) -> PieceDecoder | None:
        """The decoder that joins pieces, once `count` more ids make building it worthwhile; else None."""
        self._decoded += count
        return self._joined if self._decoded > WORTH_PIECES else None

    def _checked(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Ids of the vocabulary that no one else can change: they are read several times. Raises InvalidToken."""
        ids = ids if is_held(ids) else own(ids)
        if ids.size and ids.view(np.uint32).max() >= len(self.vocab):  # as those below 0
            raise InvalidToken(int(ids[np.argmax((ids < 0) | (ids >= len(self.vocab)))]), len(self.vocab))
        return ids

    def frame(self, remove_special: bool, unparse_special: bool) -> ReferenceDecodeFrame:
        """The options of one call."""
        return ReferenceDecodeFrame(bool(remove_special), not unparse_special)

    def one(self, ids: NDArray[np.int32], frame: ReferenceDecodeFrame) -> bytes:
        """The text of one row."""
        joined = self._with_pieces(ids.size)
        return self._one(ids if joined is None else self._checked(ids), frame, joined)

    def parts(
        self, ids: NDArray[np.int32], frame: ReferenceDecodeFrame, errors: str, at_once: int
    ) -> tuple[Iterator[bytes], str]:
        """(the text of one row as parts of `at_once` ids, the `errors` argument for decoding them)."""
        joined = self._with_pieces(ids.size)
        ids = self._inside(ids, frame)
        slices = (self._checked(ids[at : at + at_once]) for at in range(0, ids.size, at_once))
        if joined is not None:
            return joined.parts(slices, frame.special), joined.reads or errors
        return self._by_steps(slices, frame), errors if self._raw else "replace"

    @property
    def _raw(self) -> bool:
        """Whether tokens are bytes, which the caller decodes."""
        return any(isinstance(step, JoinRaw) for step in self.vocab.decode)

    def _by_steps(self, slices: Iterable[NDArray[np.int32]], frame: ReferenceDecodeFrame) -> Iterator[bytes]:
        """The text of one row in parts, by the steps of the decoder: Python's lists of ids and texts take tens of bytes
        for each id."""
        if self._raw:
            run = runner(self.vocab)
            yield from (run.decode(some.tolist(), frame.special) for some in slices)
            return
        stream = self.stream("replace", False, not frame.special)
        for some in slices:
            for at in range(0, some.size, IDS_PER_STEP):
                yield "".join(map(stream.push, some[at : at + IDS_PER_STEP].tolist())).encode()
        yield stream.finish().encode()

    def _inside(self, ids: NDArray[np.int32], frame: ReferenceDecodeFrame) -> NDArray[np.int32]:
        """A row without the ids around its text, if the frame drops them."""
        if not frame.around:
            return ids
        at = self.vocab.single.index(FIRST_TEXT)
        before, after = list(self.vocab.single[:at]), list(self.vocab.single[at + 1 :])
        ids = ids[len(before) :] if before and ids[: len(before)].tolist() == before else ids
        return ids[: -len(after)] if after and ids[-len(after) :].tolist() == after else ids

    def _one(self, ids: NDArray[np.int32], frame: ReferenceDecodeFrame, joined: PieceDecoder | None) -> bytes:
        ids = self._inside(ids, frame)
        if joined is not None:
            return joined.one(ids, frame.special)
        if ids.size <= IDS_PER_STEP:
            return runner(self.vocab).decode(self._checked(ids).tolist(), skip_special=frame.special)
        slices = (self._checked(ids[at : at + IDS_PER_STEP]) for at in range(0, ids.size, IDS_PER_STEP))
        return b"".join(self._by_steps(slices, frame))

    def rows(
        self, ids: NDArray[np.int32], offsets: NDArray[np.int64], frame: ReferenceDecodeFrame
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """(the texts of rows, concatenated, their ends)."""
        ids = self._checked(ids)
        joined = self._with_pieces(ids.size)
        found = None if joined is None or frame.around else joined.rows(ids, offsets, frame.special)
        if found is not None:
            return found
        texts = [
            self._row(k, ids[start:stop], frame, joined) for k, (start, stop) in enumerate(pairwise(offsets.tolist()))
        ]
        return np.frombuffer(b"".join(texts), np.uint8), np.cumsum([len(text) for text in texts], dtype=np.int64)

    def _row(self, row: int, ids: NDArray[np.int32], frame: ReferenceDecodeFrame, joined: PieceDecoder | None) -> bytes:
        try:
            return self._one(ids, frame, joined)
        except EncodingFailed as error:
            raise EncodingFailed(row, error.offset, error.found, error.expected) from None

    @once
    def _tied(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]] | None:
        """(which tokens are special, which begin inside a character); None unless there are both."""
        vocab = self.vocab
        if not any(isinstance(step, JoinRawBetweenSpecial) for step in vocab.decode):
            return None
        special, inside = np.zeros(len(vocab), np.bool_), np.zeros(len(vocab), np.bool_)
        special[vocab.added_ids[(vocab.added_flags & SPECIAL) != 0]] = True
        starts, some = vocab.token_offsets[:-1], np.diff(vocab.token_offsets) > 0
        inside[some] = (vocab.token_bytes[starts[some]] & 0xC0) == 0x80
        return special, inside

    def cuts(self, ids: NDArray[np.int32]) -> NDArray[np.int64]:
        """Indices where ids must be cut so that each part is decoded as UTF-8 separately, as the library does it.

        It does so after each special token. That only matters before a byte inside a character.
        Raises InvalidToken.
        """
        tied, found = self._tied, list[NDArray[np.int64]]()
        if tied is None:
            return np.zeros(0, np.int64)
        special, inside = tied
        for at in range(0, ids.size - 1, IDS_PER_STEP):
            some = self._checked(ids[at : at + IDS_PER_STEP + 1])
            found.append(np.flatnonzero(special[some[:-1]] & inside[some[1:]]) + (at + 1))
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def cut_rows(self, rows: TokenArray) -> tuple[TokenArray, NDArray[np.int64]] | None:
        """(the parts of rows, the number of the first part of each row and of the end); None if no row is cut.

        Only the first part of a row begins with a special token, and only special tokens are around a text.
        """
        cuts, offsets = self.cuts(rows.ids), rows.offsets
        cuts = cuts[~np.isin(cuts, offsets)]
        if not cuts.size:
            return None
        parts = TokenArray(rows.ids, np.sort(np.concatenate([offsets, cuts])))
        return parts, np.arange(offsets.size) + np.searchsorted(cuts, offsets)

    def piece(self, token: int, lstrip: int = 0) -> bytes:
        """The text of a single id, without up to `lstrip` leading spaces."""
        piece = runner(self.vocab).decode_bytes([token])
        return piece[min(max(lstrip, 0), len(piece) - len(piece.lstrip(b" "))) :]

    def stream(self, errors: str, remove_special: bool, unparse_special: bool) -> StreamDecoder:
        """Text from ids one at a time."""
        return FileStream(self.vocab, errors, remove_special, not unparse_special)

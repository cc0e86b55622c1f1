"""Rows of ids to text by a file's decoder whose steps see tokens one at a time: pieces that a kernel joins.

The text of a token may depend on whether it is the first or the last of a row. So there is a table of pieces for the
tokens in between, and the two at the ends are computed on demand. Byte tokens form characters together. While all of
these are valid UTF-8, byte tokens are pieces, too; otherwise each run of bytes is decoded separately. Ids may come in
parts, and so does the text.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import steps
from jittok.common.pipeline.growth import needs_measuring
from jittok.common.pipeline.models import BYTE, CONTROL, UNKNOWN
from jittok.common.pipeline.models import Pieces as SentencePieces
from jittok.common.pipeline.pipeline import Pipeline
from jittok.common.pipeline.steps import JoinPieces
from jittok.common.unicode.characters import SPACE_MARK
from jittok.decode.decoder_shape import BAD, BY_POSITION, DecoderShape, decoder_shape, may_begin_a_byte
from jittok.decode.decoder_steps import TextPart, finished, stream_step, through
from jittok.decode.pieces import LENGTH, pieces_of
from jittok.decode.rows import DecodeFrame, Decoder
from jittok.kernels.fragments import TEXT
from jittok.kernels.jit import frozen
from jittok.kernels.structures.utf8_check import VALID, first_malformed
from jittok.reference.pipeline import Runner
from jittok.reference.pipeline.decode import BYTES, PiecesText, decoder, is_byte, unmarked

PLAIN, EMPTY, OF_BYTES, UNSEEN = 0, 1, 2, 3
"""Kinds of tokens: one that prints nothing, but is between bytes; a byte; one that the decoder never sees."""
ESCAPED = re.compile("[\udc80-\udcff]")
"""A byte that is part of no character."""
Texts = list[str]
Ids = NDArray[np.int32]


class PieceDecoder:
    """The pieces of a file's tokens, joined. Safe to share between threads."""

    def __init__(self, pipeline: Pipeline, run: Runner, way: DecoderShape | None) -> None:
        self._pipeline, self._run, self._way = pipeline, run, way
        self._sentencepiece = isinstance(pipeline.model, SentencePieces)
        self._steps = [decoder(step) for step in way.each] if way else []
        self._behind = [decoder(step) for step in way.after] if way else []
        self._later = way.later if way else None
        self._mark = b"" if self._later is None else self._later.mark.encode()
        self._by_position = way is not None and (
            way.spaced or self._later is not None or any(isinstance(step, BY_POSITION) for step in way.each)
        )
        count = len(pipeline)
        hidden = np.zeros(count, np.uint8)
        hidden[[token for token in run.special if token < count]] = 1
        self._hidden = hidden != 0
        known = np.zeros(count, np.bool_)
        if way is not None:
            known[[*run.texts]] = True
        self._shown = {False: known, True: known & ~self._hidden}
        pieces, self._bytes, kinds = self._pieces()
        self._kinds = None if kinds is None else {
            skip: kinds if self._sentencepiece else np.where(shown, kinds, UNSEEN).astype(np.uint8)
            for skip, shown in self._shown.items()
        }  # fmt: skip
        self._joined = Decoder(pipeline, pieces_of(pieces, frozen(hidden, np.uint8)))  # type: ignore[arg-type]
        self._at_an_end = lru_cache(1 << 12)(self._made_at_an_end)

    @property
    def reads(self) -> str | None:
        """The `errors` argument for decoding the bytes of `parts`; None if the text is the bytes themselves."""
        return None if self._way is None and not self._sentencepiece else "replace"

    def one(self, ids: Ids, skip_special: bool) -> bytes:
        """The text of a row of ids of the vocabulary."""
        way = self._way
        if self._kinds is not None and self._splits(self._kinds[skip_special][ids]):
            return b"".join(self.parts((ids,), skip_special))
        if self._sentencepiece:
            raw = self._of_sentencepiece(ids, skip_special)
        elif self._by_position:
            raw = self._at_once(ids, skip_special)
        else:
            raw = self._between(ids, skip_special)
        if self._kinds is not None or (way is not None and way.bytes_):
            try:
                raw.decode()
            except UnicodeDecodeError:
                if way is None or not way.bytes_:
                    return b"".join(self.parts((ids,), skip_special))
                raw = raw.decode("utf-8", "replace").encode()
        if self._mark and self._mark in raw:
            return b"".join(self.parts((ids,), skip_special))
        if self._behind:
            texts = [raw.decode()]
            for step in self._behind:
                texts = step(texts)
            raw = "".join(texts).encode()
        return raw

    def _at_once(self, ids: Ids, skip_special: bool) -> bytes:
        """A row by one call of the kernel for the middle, and the pieces at its ends."""
        shown, first, last = self._shown[skip_special], 0, ids.size
        while first < last and not shown[ids[first]]:
            first += 1
        while first < last and not shown[ids[last - 1]]:
            last -= 1
        if last - first < 2:
            return self._at_an_end(int(ids[first]), True, True) if first < last else b""
        middle = self._between(ids[first + 1 : last - 1], skip_special)
        return self._at_an_end(int(ids[first]), True, False) + middle + self._at_an_end(int(ids[last - 1]), False, True)

    def _of_sentencepiece(self, ids: Ids, skip_special: bool) -> bytes:
        """A row by the rules of sentencepiece, if its runs of bytes are valid UTF-8."""
        parts = self._from_the_beginning(iter((ids,)), skip_special)
        return b"".join(part if isinstance(part, bytes) else self._between(part, False) for part in parts)

    def parts(self, slices: Iterable[Ids], skip_special: bool) -> Iterator[bytes]:
        """Yields the text of a row in parts, from slices of its ids. If the decoder joins bytes, these are not decoded
        as UTF-8 yet: see `reads`."""
        skip, items = skip_special, iter(slices)  # ids, or the text of a token at an end
        if self._sentencepiece:
            made, skip = self._from_the_beginning(items, skip), False
        elif self._by_position:
            made = self._with_ends(items, skip)
        else:
            made = items
        if self._kinds is not None:
            parts = self._by_runs(made, skip)
        else:
            parts = (item if isinstance(item, bytes) else self._between(item, skip) for item in made)
        return self._of_one_text(parts) if self._way is not None and self._way.after else parts

    def rows(
        self, ids: Ids, offsets: NDArray[np.int64], skip_special: bool
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]] | None:
        """(the texts of rows, concatenated, their ends) by one call; None if rows have to be decoded one by one."""
        way = self._way
        if self._sentencepiece or self._by_position or (way and way.after):
            return None
        if self._kinds is not None and self._splits(self._kinds[skip_special][ids]):
            return None
        text, ends = self._joined.rows(frozen(ids, np.int32), offsets, self._frame(skip_special))
        if way and (way.bytes_ or way.fallback):
            stops = frozen(ends, np.int64)
            starts, tokens = np.append(0, ends[:-1]), np.full(ends.size, TEXT, np.int32)
            whole = first_malformed(
                frozen(text, np.uint8), frozen(starts, np.int64), stops, frozen(tokens, np.int32), 0, ends.size
            )
            if whole != VALID:
                return None
        return text, ends

    @staticmethod
    def _frame(skip_special: bool) -> DecodeFrame:
        return DecodeFrame(0, -1, -1, int(not skip_special), 0)

    def _between(self, ids: Ids, skip_special: bool) -> bytes:
        return self._joined.one(frozen(ids, np.int32), self._frame(skip_special))

    # ---- the tokens at the ends

    def _with_ends(self, slices: Iterator[Ids], skip_special: bool) -> Iterator[Ids | bytes]:
        shown, held, begun = self._shown[skip_special], -1, False  # held: the last token so far
        for ids in slices:
            first = _first_shown(shown, ids)
            if first == ids.size:
                continue
            last = ids.size - 1 - _first_shown(shown, ids[::-1])
            if held < 0 and first == last:
                held = int(ids[last])
                continue
            middle = ids[first:last]
            if held >= 0:
                middle = np.append(np.int32(held), middle)
            if not begun:
                yield self._end(int(middle[0]), True, False)
                middle, begun = middle[1:], True
            yield middle
            held = int(ids[last])
        if held >= 0:
            yield self._end(held, not begun, True)

    def _end(self, token: int, first: bool, last: bool) -> Ids | bytes:
        """The text of a token at an end; the id itself for a byte, which is decoded with the bytes next to it."""
        if self._kinds is not None and self._kinds[False][token] == OF_BYTES:
            return np.array([token], np.int32)
        return self._at_an_end(token, first, last)

    def _made_at_an_end(self, token: int, first: bool, last: bool) -> bytes:
        texts = [*([] if first else [""]), self._run.texts[token], *([] if last else [""])]
        text = self._each(texts)[0 if first else 1]
        if self._way is not None and self._way.spaced and not first:
            text = " " + text
        return self._piece(text, not first)

    def _from_the_beginning(self, slices: Iterator[Ids], skip_special: bool) -> Iterator[Ids | bytes]:
        """sentencepiece trims the start of a text: ids one by one until something is written, then slices as they
        are."""
        text, begun = PiecesText(self._pipeline), False
        assert self._kinds is not None
        kinds = self._kinds[False]
        for part in slices:
            ids, at = part[~self._hidden[part]] if skip_special else part, 0
            while not begun and at < ids.size:
                if kinds[ids[at]] == OF_BYTES:
                    begun = True
                    break
                made = text.push(int(ids[at]))
                begun, at = text.begun, at + 1
                if made:
                    yield made.encode()
            if at < ids.size:
                yield ids[at:]

    # ---- runs of bytes

    def _by_runs(self, items: Iterator[Ids | bytes], skip_special: bool) -> Iterator[bytes]:
        """Yields the texts of ids. Bytes at the end of a slice are held until the next one."""
        run, first = bytearray(), True  # bytes of a run that has not ended; whether it is at the start of the text
        assert self._kinds is not None
        for item in items:
            its = None if isinstance(item, bytes) else self._kinds[skip_special][item]
            others = None if its is None else its < OF_BYTES
            if others is not None and not others.any():
                run += self._bytes[item[its == OF_BYTES]].tobytes()
                continue
            start = 0 if others is None else int(others.argmax())
            if its is not None:
                run += self._bytes[item[:start][its[:start] == OF_BYTES]].tobytes()
            if run:
                yield self._characters(bytes(run), first)
                run.clear()
            first = False
            if isinstance(item, bytes):
                yield item
                continue
            assert its is not None
            assert others is not None
            stop = others.size - int(others[::-1].argmax())
            yield from self._middle(item[start:stop], its[start:stop], skip_special)
            run += self._bytes[item[stop:][its[stop:] == OF_BYTES]].tobytes()
        if run:
            yield self._characters(bytes(run), first)

    def _middle(self, ids: Ids, its: NDArray[np.uint8], skip_special: bool) -> Iterator[bytes]:
        """The text of ids that neither begin nor end with a byte: at once, if that equals the text run by run."""
        raw = self._between(ids, skip_special)
        if its.max() < OF_BYTES:
            yield raw
            return
        if not self._splits(its) and not (self._mark and self._mark in raw):
            try:
                raw.decode()
            except UnicodeDecodeError:
                pass
            else:
                yield raw
                return
        seen, of_bytes = np.flatnonzero(its != UNSEEN), its == OF_BYTES
        edges = seen[1:][of_bytes[seen[1:]] != of_bytes[seen[:-1]]]
        for k, (start, stop) in enumerate(pairwise([0, *edges.tolist(), ids.size])):
            part = ids[start:stop]
            if k % 2:
                yield self._characters(self._bytes[part[of_bytes[start:stop]]].tobytes(), False)
            else:
                yield self._between(part, skip_special)

    @staticmethod
    def _splits(its: NDArray[np.uint8]) -> bool:
        """Whether a token that prints nothing may be between the bytes of one character."""
        if (its == UNSEEN).any():
            its = its[its != UNSEEN]
        return bool(((its[:-1] == OF_BYTES) & (its[1:] == EMPTY)).any())

    def _characters(self, run: bytes, first: bool) -> bytes:
        """The text of a run of bytes."""
        if self._sentencepiece:  # bytes that are part of no character are replaced one by one
            return ESCAPED.sub(BAD, run.decode("utf-8", "surrogateescape")).encode()
        try:
            text = run.decode()
        except UnicodeDecodeError:
            return BAD.encode() * len(run)
        return run if self._later is None else unmarked(text, self._later, 0 if first else 1).encode()

    # ---- the joined text

    def _of_one_text(self, parts: Iterator[bytes]) -> Iterator[bytes]:
        """Yields all parts as one text after the steps that see it."""
        assert self._way is not None
        chain, known, begins = [stream_step(step) for step in self._way.after], getincrementaldecoder("utf-8"), True
        reader = known("replace")
        for part in parts:
            yield "".join(made.text for made in through(chain, [TextPart(reader.decode(part), begins, False)])).encode()
            begins = False
        last = [*through(chain, [TextPart(reader.decode(b"", True), begins, True)]), *finished(chain)]
        yield "".join(made.text for made in last).encode()

    # ---- the pieces

    def _each(self, texts: Texts) -> Texts:
        for step in self._steps:
            texts = step(texts)
        return texts

    def _piece(self, text: str, number: int = 1) -> bytes:
        """The piece of a token's text, or the byte that it stands for. number: 0 for the first token of a row."""
        assert self._way is not None
        if self._way.bytes_ and all(c in BYTES for c in text):
            return bytes(BYTES[c] for c in text)
        if self._way.fallback and is_byte(text):
            return bytes([int(text[3:5], 16)])
        return (text if self._later is None else unmarked(text, self._later, number)).encode()

    def _pieces(self) -> tuple[list[bytes], NDArray[np.uint8], NDArray[np.uint8] | None]:
        """(the pieces of tokens between others, the values of byte tokens, the kinds of tokens); the latter two only
        where bytes are joined."""
        count = len(self._pipeline)
        pieces, kinds, its = [b""] * count, np.zeros(count, np.uint8), np.zeros(count, np.uint8)
        if self._sentencepiece:
            _fill_sentencepieces(self._pipeline, pieces, kinds)
        elif self._way is None:
            for token, raw in self._run.raw_texts.items():
                pieces[token] = raw
            return pieces, its, None
        else:
            texts = self._run.texts
            made = self._each(["", *texts.values(), ""])[1:-1]
            for token, text in zip(texts, made, strict=True):
                pieces[token] = self._piece(" " + text if self._way.spaced else text)
                kinds[token] = OF_BYTES if is_byte(text) else PLAIN if pieces[token] else EMPTY
            if not self._way.fallback:
                return pieces, its, None
        of_bytes = np.flatnonzero(kinds == OF_BYTES)
        its[of_bytes] = [pieces[token][0] for token in of_bytes.tolist()]
        return pieces, its, kinds


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


def _first_shown(shown: NDArray[np.bool_], ids: Ids) -> int:
    """The index of the first id that the decoder sees, or the number of ids."""
    if ids.size and shown[ids[0]]:
        return 0  # the usual case
    its = shown[ids]
    return int(its.argmax()) if its.any() else ids.size


def _fits(pipeline: Pipeline) -> bool:
    """Whether all pieces together are within the limit for one piece, whatever the decoder writes for characters."""
    size = pipeline.token_bytes.size + len(pipeline)  # and a space before each
    for step in pipeline.decode:
        if isinstance(step, steps.ReplaceEach):
            size = (size + len(pipeline)) * (1 + len(step.content.encode()))
        elif isinstance(step, JoinPieces):
            size += len(step.unknown.encode())
    return size <= LENGTH


def make_piece_decoder(pipeline: Pipeline, run: Runner) -> PieceDecoder | None:
    """The decoder of a file whose tokens become pieces; None for any other file, and for one whose text has to be
    measured after each step."""
    if not _fits(pipeline) or needs_measuring(pipeline.decode):
        return None
    if isinstance(pipeline.model, SentencePieces):
        fits = len(pipeline.decode) == 1 and isinstance(pipeline.decode[0], JoinPieces)
        return PieceDecoder(pipeline, run, None) if fits else None
    if any(isinstance(step, steps.JoinRaw) for step in pipeline.decode):
        return PieceDecoder(pipeline, run, None)
    way = decoder_shape(pipeline.decode)
    return None if way is None or may_begin_a_byte(way, run) else PieceDecoder(pipeline, run, way)

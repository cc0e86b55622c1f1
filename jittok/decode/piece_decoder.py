"""Rows of ids to text by a file's decoder whose steps see tokens one at a time: pieces that a kernel joins.

The text of a token may depend on whether it is the first or the last of a row. So there is a table of pieces for the
tokens in between, and the two at the ends are computed on demand. Byte tokens form characters together: while these are
valid UTF-8, byte tokens are pieces, too. What is not is decoded by the steps themselves (`jittok.reference`). Ids may
come in parts, and so does the text.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import steps
from jittok.common.pipeline.growth import needs_measuring
from jittok.common.pipeline.models import BYTE, CONTROL, UNKNOWN
from jittok.common.pipeline.models import Pieces as SentencePieces
from jittok.common.pipeline.pipeline import Pipeline
from jittok.common.pipeline.steps import JoinPieces
from jittok.common.unicode.characters import SPACE_MARK
from jittok.decode.file_stream import TextPart, finished, stream_step, through
from jittok.decode.pieces import LENGTH, pieces_of
from jittok.decode.rows import DecodeFrame, Decoder
from jittok.kernels.fragments import TEXT
from jittok.kernels.jit import frozen
from jittok.kernels.structures.utf8_check import VALID, first_malformed
from jittok.reference.decode import BYTES, PiecesText, decoder, is_byte, unmarked
from jittok.reference.pipeline import Runner

PLAIN, EMPTY, OF_BYTES, UNSEEN = 0, 1, 2, 3
"""Kinds of tokens: one that prints nothing, but is between bytes; a byte; one that the decoder never sees."""
FEW_IDS = 32
"""Ids that the steps decode, where pieces do not."""
Texts = list[str]
Ids = NDArray[np.int32]
PER_TEXT_STEPS = (steps.ReplaceEach, steps.Unmark, steps.StripEach, steps.JoinWords, steps.Unsuffix, steps.Trim)
"""Steps that change texts one by one."""
BY_POSITION = (steps.Unmark, steps.JoinWords, steps.Unsuffix)
"""Those of them whose result depends on a text's position."""
BAD = "\ufffd"
"""The replacement for a byte that is part of no character."""


class DecoderShape(NamedTuple):
    """The steps of a decoder, grouped by their input."""

    each: tuple[steps.Decoder, ...]
    spaced: bool  # whether there is a space between texts
    bytes_: bool  # whether bytes are joined and read as UTF-8
    fallback: bool  # whether runs of <0xXX> become characters
    later: steps.Unmark | None  # for each text after that, decoded runs included
    after: tuple[steps.Decoder, ...]  # for the joined text


def decoder_shape(decode: tuple[steps.Decoder, ...]) -> DecoderShape | None:
    """The shape of a decoder; None for one with a step that sees several tokens at once."""
    at = next((k for k, step in enumerate(decode) if not isinstance(step, PER_TEXT_STEPS)), len(decode))
    each, rest = decode[:at], decode[at:]
    if len(rest) == 1 and isinstance(rest[0], steps.Spaced):
        return DecoderShape(each, True, False, False, None, ())
    bytes_ = isinstance(rest[0], steps.JoinBytes) if rest else False
    fallback = isinstance(rest[0], steps.JoinFallback) if rest else False
    rest = rest[bytes_ + fallback :]
    later = rest[0] if fallback and rest and isinstance(rest[0], steps.Unmark) else None
    rest = rest[later is not None :]
    fused = isinstance(rest[0], steps.Fuse) if rest else False
    if rest and not (fused or bytes_):
        return None
    if fallback and any(isinstance(step, BY_POSITION) and not isinstance(step, steps.Unmark) for step in each):
        return None  # whether a text is a byte would depend on its position
    if later is not None and later.mark == BAD:
        return None
    after = rest[fused:]
    way = DecoderShape(each, False, bytes_, fallback, later, after)
    return way if all(isinstance(step, PER_TEXT_STEPS) for step in after) else None


def may_begin_a_byte(way: DecoderShape, run: Runner) -> bool:
    """Whether some text is a byte only at the start, where its marks are removed: `<0x4▁1>`."""
    marks = [step.mark for step in way.each if isinstance(step, steps.Unmark)]
    if not (way.fallback and marks):
        return False
    marked = [text for text in run.texts.values() if any(mark in text for mark in marks)]
    made = [decoder(step) for step in way.each]
    for text in marked:
        texts, kept = [text], ["", text]
        for step in made:
            texts, kept = step(texts), step(kept)
        if is_byte(texts[0]) != is_byte(kept[1]):
            return True
    return False


class PieceDecoder:
    """The pieces of a file's tokens, joined. Safe to share between threads."""

    def __init__(self, pipeline: Pipeline, run: Runner, way: DecoderShape | None) -> None:
        self._pipeline, self._run, self._way = pipeline, run, way
        self._sentencepiece = isinstance(pipeline.model, SentencePieces)
        self._steps = [decoder(step) for step in way.each] if way else []
        self._after = [decoder(step) for step in way.after] if way else []
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
        pieces, kinds = self._pieces()
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
        if self._sentencepiece:
            items = self._from_the_beginning((ids,), skip_special)
            return b"".join(
                item if isinstance(item, bytes) else self._chunk(item, False, False, True) for item in items
            )
        raw = self._chunk(ids, skip_special, True, True)
        if self._way is not None and self._way.bytes_:
            try:
                raw.decode()
            except UnicodeDecodeError:
                raw = raw.decode("utf-8", "replace").encode()
        if self._after:
            texts = [raw.decode()]
            for step in self._after:
                texts = step(texts)
            raw = "".join(texts).encode()
        return raw

    def parts(self, slices: Iterable[Ids], skip_special: bool) -> Iterator[bytes]:
        """Yields the text of a row in parts, from slices of its ids. If the decoder joins bytes, these are not decoded
        as UTF-8 yet: see `reads`."""
        if self._sentencepiece:
            return self._chunks(self._from_the_beginning(slices, skip_special), False, False)
        parts = self._chunks(slices, skip_special, True)
        return self._of_one_text(parts) if self._after else parts

    def rows(
        self, ids: Ids, offsets: NDArray[np.int64], skip_special: bool
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]] | None:
        """(the texts of rows, concatenated, their ends) by one call; None if rows have to be decoded one by one."""
        way = self._way
        if self._sentencepiece or self._by_position or (way and way.after):
            return None
        if self._kinds is not None and _splits(self._kinds[skip_special][ids]):
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

    # ---- chunks of a row

    def _chunks(self, items: Iterable[Ids | bytes], skip_special: bool, first: bool) -> Iterator[bytes]:
        """Yields the texts of the chunks that ids are cut into, before tokens that are no bytes: so no chunk changes
        another. What is text already stays. `first`: the first chunk begins the row."""
        shown = self._shown[skip_special]
        held = [np.zeros(0, np.int32)]  # concatenated once: a run of bytes may take many slices
        for item in items:
            if isinstance(item, bytes):
                yield item
                continue
            cut = self._last_plain(item, skip_special)
            if cut < 0 or cut == sum(map(len, held)) == 0:
                held.append(item)
                continue
            ids = np.concatenate([*held, item[:cut]])
            yield self._chunk(ids, skip_special, first, False)
            first = first and not shown[ids].any()
            held = [item[cut:]]
        yield self._chunk(np.concatenate(held), skip_special, first, True)

    def _last_plain(self, ids: Ids, skip_special: bool) -> int:
        """The index of the last id that the decoder sees and that is no byte, -1 if there is none. Where neither bytes
        nor ends matter, the number of ids."""
        if self._kinds is not None:
            plain = self._kinds[skip_special][ids] < OF_BYTES
        elif self._by_position:
            plain = self._shown[skip_special][ids]
        else:
            return ids.size
        return ids.size - 1 - int(plain[::-1].argmax()) if plain.any() else -1

    def _chunk(self, ids: Ids, skip_special: bool, first: bool, last: bool) -> bytes:
        """The text of ids. `first`, `last`: they begin, they end the row."""
        if self._kinds is not None and _splits(self._kinds[skip_special][ids]):
            return self._by_steps(ids, skip_special, first, last)
        if self._by_position and (first or last):
            raw = self._with_ends(ids, skip_special, first, last)
        else:
            raw = self._between(ids, skip_special)
        if self._kinds is not None:
            try:
                raw.decode()
            except UnicodeDecodeError:
                return self._by_steps(ids, skip_special, first, last)
            if self._mark and self._mark in raw:
                return self._by_steps(ids, skip_special, first, last)
        return raw

    def _with_ends(self, ids: Ids, skip_special: bool, first: bool, last: bool) -> bytes:
        """The text of ids by one call of the kernel for the middle, and the pieces at the ends of the row."""
        shown, start, stop, before, after = self._shown[skip_special], 0, ids.size, b"", b""
        while start < stop and not shown[ids[start]]:
            start += 1
        while start < stop and not shown[ids[stop - 1]]:
            stop -= 1
        if start == stop:
            return b""
        if first:
            before = self._at_an_end(int(ids[start]), True, last and stop - start < 2)
            start += 1
        if last and start < stop:
            stop -= 1
            after = self._at_an_end(int(ids[stop]), False, True)
        return before + self._between(ids[start:stop], skip_special) + after if start < stop else before + after

    def _made_at_an_end(self, token: int, first: bool, last: bool) -> bytes:
        texts = [*([] if first else [""]), self._run.texts[token], *([] if last else [""])]
        text = self._each(texts)[0 if first else 1]
        if self._way is not None and self._way.spaced and not first:
            text = " " + text
        return self._piece(text, not first)

    def _by_steps(self, ids: Ids, skip_special: bool, first: bool, last: bool) -> bytes:
        """The text of ids by the steps themselves: with bytes that are invalid UTF-8, or whose runs tokens without text
        separate. Many ids are cut into halves, so that few are decoded in this way."""
        cut = self._last_plain(ids[: ids.size // 2], skip_special) if ids.size > FEW_IDS else 0
        if cut:
            begun = not first or bool(self._shown[skip_special][ids[:cut]].any())
            return self._chunk(ids[:cut], skip_special, first, False) + self._chunk(
                ids[cut:], skip_special, not begun, last
            )
        if self._way is None:
            pieces = PiecesText(self._pipeline, written=True)
            return ("".join(map(pieces.push, ids.tolist())) + pieces.finish()).encode()
        known = ids[self._shown[skip_special][ids]].tolist()
        # an empty text is where the row continues
        texts = self._each([*([] if first else [""]), *(self._run.texts[k] for k in known), *([] if last else [""])])
        for step in (steps.JoinFallback(), self._later):
            texts = texts if step is None else decoder(step)(texts)
        return "".join(texts).encode()

    def _from_the_beginning(self, slices: Iterable[Ids], skip_special: bool) -> Iterator[Ids | bytes]:
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

    def _pieces(self) -> tuple[list[bytes], NDArray[np.uint8] | None]:
        """The pieces of tokens between others; and the kinds of tokens, where bytes are joined."""
        count = len(self._pipeline)
        pieces, kinds = [b""] * count, np.zeros(count, np.uint8)
        if self._sentencepiece:
            _fill_sentencepieces(self._pipeline, pieces, kinds)
        elif self._way is None:
            for token, raw in self._run.raw_texts.items():
                pieces[token] = raw
        else:
            texts = self._run.texts
            made = self._each(["", *texts.values(), ""])[1:-1]
            for token, text in zip(texts, made, strict=True):
                pieces[token] = self._piece(" " + text if self._way.spaced else text)
                kinds[token] = OF_BYTES if is_byte(text) else PLAIN if pieces[token] else EMPTY
        return pieces, kinds if self._sentencepiece or (self._way is not None and self._way.fallback) else None


def _splits(kinds: NDArray[np.uint8]) -> bool:
    """Whether a token that prints nothing may be between the bytes of one character."""
    if (kinds == UNSEEN).any():
        kinds = kinds[kinds != UNSEEN]
    return bool(((kinds[:-1] == OF_BYTES) & (kinds[1:] == EMPTY)).any())


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

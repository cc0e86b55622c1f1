"""Pieces of a text with the places that they cover: what sentencepiece returns as protocol buffers, as plain records.

Places are bytes of the text's UTF-8, or characters. A special piece that is added, and all but the last byte of a
character, cover nothing.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from jittok.common.pipeline.models import BYTE, CONTROL, UNKNOWN, WORD
from jittok.common.unicode.characters import SPACE_MARK
from jittok.compat.missing import not_there
from jittok.reference.models.sentencepiece import SentencePieceEncoder

if TYPE_CHECKING:
    from jittok.common.pipeline.models import Pieces
    from jittok.common.pipeline.steps import JoinPieces

REPLACEMENT = "\ufffd".encode()
VARINT, BYTES, FLOAT = 0, 2, 5
"""Wire types of protocol buffers."""


class Piece(NamedTuple):
    """One piece. `surface`: what it covers of the text."""

    piece: str
    id: int
    surface: str
    begin: int
    end: int
    has_surface: bool = True  # not so: all but the last byte of a character that is encoded as bytes

    def SerializeToString(self) -> bytes:  # noqa: N802  as protocol buffers have it
        """The same as a message `SentencePieceText.SentencePiece`."""
        surface = _field(3, self.surface.encode()) if self.has_surface else b""
        return b"".join(
            [_field(1, self.piece.encode()), _number(2, self.id), surface, _number(4, self.begin), _number(5, self.end)]
        )


class PieceText(NamedTuple):
    """A text and its pieces; `score`: the sum of their scores, of n-best answers, else 0."""

    text: str
    pieces: list[Piece]
    score: float = 0.0
    has_score: bool = False

    def SerializeToString(self) -> bytes:  # noqa: N802  as protocol buffers have it
        """The same as a message `SentencePieceText`, whose places are those of this record."""
        score = struct.pack("<Bf", 3 << 3 | FLOAT, self.score) if self.has_score else b""
        pieces = (_field(2, piece.SerializeToString()) for piece in self.pieces)
        return b"".join([_field(1, self.text.encode()), *pieces, score])


class NBest(NamedTuple):
    """The n best ways to write a text."""

    nbests: list[PieceText]

    def SerializeToString(self) -> bytes:  # noqa: N802  as protocol buffers have it
        """The same as a message `NBestSentencePieceText`."""
        return b"".join(_field(1, each.SerializeToString()) for each in self.nbests)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3 | VARINT) + _varint(number)


def _field(field: int, raw: bytes) -> bytes:
    return _varint(field << 3 | BYTES) + _varint(len(raw)) + raw


class Spelled(NamedTuple):
    """A piece of an encoded text, in bytes."""

    piece: bytes
    id: int
    begin: int
    end: int
    has_surface: bool = True


def spelled(
    reference: SentencePieceEncoder, names: Sequence[str], coded: bytes, places: Sequence[int],
    tokens: Iterable[tuple[int, int, int]],
) -> Iterator[Spelled]:  # fmt: skip
    """The pieces of a text. coded: the normalized text; places: where each of its bytes, and its end, is from; tokens:
    ids with their bytes of the normalized text."""
    types = reference.types
    if reference.model.byte_fallback and reference.model.kind == WORD:
        not_there("the places of bytes of words", "write tok.align(text)")
    start_of = 0
    for token, start, stop in tokens:
        if types[token] == BYTE and stop == start + 1 and reference.model.byte_fallback:
            first = start == 0 or not 0x80 <= coded[start] < 0xC0
            start_of = start if first else start_of
            ends = stop == len(coded) or not 0x80 <= coded[stop] < 0xC0
            begin = places[start_of]
            yield Spelled(names[token].encode(), token, begin, places[stop] if ends else begin, ends)
        else:
            yield Spelled(coded[start:stop], token, places[start], places[stop])


def decoded(
    model: Pieces, step: JoinPieces, names: Sequence[str], items: Iterable[tuple[int, str]],
) -> tuple[bytes, list[Spelled], list[bytes]]:  # fmt: skip
    """The text of pieces, the pieces, and what each prints. items: (id, its text)."""
    types, text, rows, run = model.types.tolist(), bytearray(), list[Spelled](), list[tuple[int, str]]()
    shown, first, trimmed = list[bytes](), True, False

    def put(token: int, piece: str, raw: bytes) -> None:
        rows.append(Spelled(piece.encode(), token, len(text), len(text) + len(raw)))
        shown.append(raw)
        text.extend(raw)

    def flush() -> None:
        raw, at = bytes(int(piece[3:5], 16) for _, piece in run), 0
        while at < len(raw):
            size = next((n for n in range(1, 5) if _is_character(raw[at : at + n], n)), 0)
            for k in range(max(size, 1)):
                last = k == size - 1
                put(*run[at + k], REPLACEMENT if not size else raw[at : at + size] if last else b"")
            at += max(size, 1)
        run.clear()

    for token, piece in items:
        if types[token] == BYTE:
            run.append((token, piece))
            continue
        flush()
        first = first and not (trimmed or text)
        trimmed = False
        if types[token] == CONTROL:
            raw = ""
        elif types[token] == UNKNOWN:
            raw = step.unknown if piece == names[token] else piece
        elif first and step.trim_first and piece.startswith(SPACE_MARK):
            raw, trimmed = piece[len(SPACE_MARK) :].replace(SPACE_MARK, " "), not step.squeezed
        else:
            raw = piece.replace(SPACE_MARK, " ")
        put(token, piece, raw.encode())
    flush()
    return bytes(text), rows, shown


def _is_character(raw: bytes, size: int) -> bool:
    try:
        return len(raw) == size and len(raw.decode()) == 1
    except UnicodeDecodeError:
        return False


def record(
    text: bytes, rows: Iterable[Spelled], surfaces: Sequence[bytes], score: float | None, characters: bool
) -> PieceText:
    """The record of pieces; `score`: of n-best answers; `characters`: places count characters."""
    ends = _ends(text) if characters else None

    def place(at: int) -> int:
        return at if ends is None else bisect_right(ends, at)

    pieces = [
        Piece(
            row.piece.decode(),
            row.id,
            surface.decode("utf-8", "replace"),
            place(row.begin),
            place(row.end),
            row.has_surface,
        )
        for row, surface in zip(rows, surfaces, strict=True)
    ]
    return PieceText(text.decode("utf-8", "replace"), pieces, score or 0.0, score is not None)


def mapping(text: bytes, rows: Sequence[Spelled], as_bytes: bool) -> dict[str, Any]:
    """What sentencepiece calls offset_mapping: ids, pieces, offsets; in bytes, or as str and in characters."""
    ids = [row.id for row in rows]
    if as_bytes:
        return {"ids": ids, "pieces": [r.piece for r in rows], "offsets": [(r.begin, r.end) for r in rows]}
    ends = _ends(text)
    offsets = [(bisect_right(ends, row.begin), bisect_right(ends, row.end)) for row in rows]
    return {"ids": ids, "pieces": [row.piece.decode() for row in rows], "offsets": offsets}


def _ends(text: bytes) -> list[int]:
    """Where each character of a text ends, in bytes."""
    return [*accumulate(len(c.encode()) for c in text.decode("utf-8", "replace"))]

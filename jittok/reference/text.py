r"""Texts with the span of the document that each byte or character comes from.

Normalizing is then the same for ids, for the spans of tokens, and for the offset where a text cannot be encoded.
llama.cpp's steps rewrite bytes, which need not be UTF-8 (`Mapped`); those of other libraries rewrite characters
(`Piece`). What a step leaves as it is keeps its own span, a replacement has the span of all that it replaces, an added
text has an empty span.

>>> source = mapped(b"a b", 0, 3)
>>> out = Mapped()
>>> out.add(b"_", 0, 0)  # a prefix
>>> for k, byte in enumerate(source.text):
...     out.put(b"_" if byte == ord(" ") else bytes([byte]), source, k, k + 1)
>>> bytes(out.text), out.starts, out.stops
(b'_a_b', [0, 0, 1, 2], [0, 1, 2, 3])
>>> out.token(7, 2, 4)
Token(id=7, start=1, stop=3)
>>> read_text("né".encode()).byte_units()
[(0, 1), (1, 2), (2, 3)]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

Unit = tuple[int, int]
"""data[start:stop], bytes of a document."""


class Token(NamedTuple):
    """An id and the bytes of the document that it covers."""

    id: int
    start: int
    stop: int


class Mapped:
    """`text`, whose byte k comes from document[starts[k]:stops[k]]; starts and stops are ascending."""

    def __init__(self) -> None:
        self.text = bytearray()
        self.starts: list[int] = []
        self.stops: list[int] = []

    def add(self, out: bytes, start: int, stop: int) -> None:
        """Append bytes that together come from document[start:stop]."""
        self.text += out
        self.starts += [start] * len(out)
        self.stops += [stop] * len(out)

    def put(self, out: bytes, source: Mapped, i: int, j: int) -> None:
        """Append the replacement of source[i:j]: byte for byte if nothing has changed, else as one unit."""
        if out == source.text[i:j]:
            self.text += out
            self.starts += source.starts[i:j]
            self.stops += source.stops[i:j]
        else:
            self.add(out, *source.span(i, j))

    def span(self, i: int, j: int) -> Unit:
        """The span of bytes i .. j - 1 in the document; j > i."""
        return min(self.starts[i:j]), max(self.stops[i:j])

    def part(self, i: int, j: int) -> Mapped:
        """Bytes i .. j - 1."""
        part = Mapped()
        part.put(bytes(self.text[i:j]), self, i, j)
        return part

    def token(self, token: int, i: int, j: int) -> Token:
        """A token that covers bytes i .. j - 1."""
        return Token(token, *self.span(i, j))

    def byte_units(self) -> list[Unit]:
        """The span of each byte."""
        return [*zip(self.starts, self.stops, strict=True)]


def mapped(document: bytes, start: int, stop: int) -> Mapped:
    """document[start:stop], unchanged."""
    source = Mapped()
    source.text += document[start:stop]
    source.starts += range(start, stop)
    source.stops += range(start + 1, stop + 1)
    return source


class Piece(NamedTuple):
    """Characters, and for each the offset in the document that it comes from, as its library counts."""

    text: str
    positions: list[int] | None = None  # None if no step needs them
    units: list[Unit] | None = None  # the span of each character, if spans are wanted
    source: bytes = b""  # the document that `units` count in

    def part(self, start: int, stop: int) -> Piece:
        """Characters start .. stop - 1."""
        if start == 0 and stop == len(self.text):
            return self
        units = None if self.units is None else self.units[start:stop]
        positions = None if self.positions is None else self.positions[start:stop]
        return self._replace(text=self.text[start:stop], positions=positions, units=units)

    def byte_units(self) -> list[Unit]:
        """The span of each byte of the text's UTF-8."""
        assert self.units is not None
        return [unit for c, of in zip(self.text, self.units, strict=True) for unit in self._of_bytes(c.encode(), of)]

    def _of_bytes(self, raw: bytes, unit: Unit) -> list[Unit]:
        start, stop = unit
        if self.source[start:stop] == raw:
            return [(at, at + 1) for at in range(start, stop)]
        return [unit] * len(raw)


def read_text(raw: bytes) -> Piece:
    """A document as text, each character with its span. Invalid UTF-8 becomes U+FFFD, one for each malformed sequence
    that Python's decoder replaces."""
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
    text = "".join(texts)
    return Piece(text, [*range(len(text))], units, raw)


def joined(units: list[Unit], start: int, stop: int) -> Unit:
    """The span of characters start .. stop - 1; empty, at their offset, if there are none."""
    if start < stop:
        return units[start][0], units[stop - 1][1]
    position = units[start][0] if start < len(units) else units[-1][1] if units else 0
    return position, position


def rewritten(units: Iterable[Unit]) -> list[list[int]]:
    """[first byte, end, source start, source end] of each part that was rewritten as one unit."""
    found: list[list[int]] = []
    for k, (start, stop) in enumerate(units):
        if found and found[-1][2:] == [start, stop] and found[-1][1] == k:
            found[-1][1] = k + 1
        else:
            found.append([k, k + 1, start, stop])
    return found

"""Bytes that remember which stretch of the document each of them stands for.

Normalizing is then one thing whether ids are wanted, spans of tokens, or the place where a text cannot be encoded.
"""

from __future__ import annotations

from typing import NamedTuple


class Token(NamedTuple):
    """An id and the bytes of the document that it covers."""

    id: int
    start: int
    stop: int


class Mapped:
    """`text`, whose byte k stands for document[starts[k]:stops[k]]; starts and stops never fall."""

    def __init__(self) -> None:
        self.text = bytearray()
        self.starts: list[int] = []
        self.stops: list[int] = []

    def add(self, out: bytes, start: int, stop: int) -> None:
        """Append bytes that stand together for document[start:stop]."""
        self.text += out
        self.starts += [start] * len(out)
        self.stops += [stop] * len(out)

    def put(self, out: bytes, source: Mapped, i: int, j: int) -> None:
        """Append what source[i:j] has become: byte for byte if nothing has changed, else as one unit."""
        if out == source.text[i:j]:
            self.text += out
            self.starts += source.starts[i:j]
            self.stops += source.stops[i:j]
        else:
            self.add(out, *source.span(i, j))

    def span(self, i: int, j: int) -> tuple[int, int]:
        """The stretch of the document that bytes i .. j - 1 stand for; j > i."""
        return min(self.starts[i:j]), max(self.stops[i:j])

    def part(self, i: int, j: int) -> Mapped:
        """Bytes i .. j - 1."""
        part = Mapped()
        part.put(bytes(self.text[i:j]), self, i, j)
        return part

    def token(self, token: int, i: int, j: int) -> Token:
        """A token that covers bytes i .. j - 1."""
        return Token(token, *self.span(i, j))


def mapped(document: bytes, start: int, stop: int) -> Mapped:
    """document[start:stop], each byte standing for itself."""
    source = Mapped()
    source.text += document[start:stop]
    source.starts += range(start, stop)
    source.stops += range(start + 1, stop + 1)
    return source

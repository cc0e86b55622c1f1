"""Bytes with the span of the document that each of them comes from.

Normalizing is then the same for ids, for spans of tokens, and for the offset where a text cannot be encoded.
"""

from __future__ import annotations

from typing import NamedTuple


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

    def span(self, i: int, j: int) -> tuple[int, int]:
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


def mapped(document: bytes, start: int, stop: int) -> Mapped:
    """document[start:stop], unchanged."""
    source = Mapped()
    source.text += document[start:stop]
    source.starts += range(start, stop)
    source.stops += range(start + 1, stop + 1)
    return source

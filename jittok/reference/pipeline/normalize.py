"""Normalizers: a piece of text to another, with the place in the document that each character comes from."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from jittok.pipeline import steps
from jittok.pipeline.patterns import compiled
from jittok.unicode.libraries import Form, characters, mapping, normal_form
from jittok.unicode.tables import CHARACTER_OF_BYTE

ALPHABET = [chr(c) for c in CHARACTER_OF_BYTE]
SHORT_CLUSTER = 6
"""Bytes of a grapheme cluster from which on it is not looked up as a whole."""


class Piece(NamedTuple):
    """Characters, and for each the place in the document that it comes from."""

    text: str
    places: list[int]


def normalizer(step: steps.Normalizer) -> Callable[[Piece], Piece]:
    """What one step does to a piece."""
    makers: dict[type, Callable[[Any], Callable[[Piece], Piece]]] = {
        steps.Map: lambda s: lambda piece: _mapped(piece, mapping(s.name)),
        steps.Compose: lambda s: lambda piece: _composed(piece, s.form),
        steps.Clusters: _clusters,
        steps.Replace: lambda s: lambda piece: replaced(piece, s.pattern, s.content),
        steps.Prepend: lambda s: lambda piece: prepended(piece, s.text),
        steps.Strip: lambda s: lambda piece: _stripped(piece, s.left, s.right),
        steps.SpellBytes: lambda _: spelled,
    }
    return makers[type(step)](step)


def prepended(piece: Piece, text: str) -> Piece:
    """A text in front of a piece that is not empty."""
    return Piece(text + piece.text, piece.places[:1] * len(text) + piece.places) if piece.text else piece


def replaced(piece: Piece, pattern: steps.Pattern, content: str) -> Piece:
    """All matches replaced, from the left."""
    texts, places, done = [], [], 0
    for match in compiled(pattern).finditer(piece.text):
        start, stop = match.span()
        texts += [piece.text[done:start], content]
        places += piece.places[done:start] + [piece.places[max(stop - 1, 0)]] * len(content)
        done = stop
    return Piece("".join([*texts, piece.text[done:]]), places + piece.places[done:])


def spelled(piece: Piece) -> Piece:
    """Each byte as a character of the byte alphabet."""
    texts, places = [], []
    for c, place in zip(piece.text, piece.places, strict=True):
        raw = c.encode()
        texts += [ALPHABET[byte] for byte in raw]
        places += [place] * len(raw)
    return Piece("".join(texts), places)


def _mapped(piece: Piece, table: dict[int, str]) -> Piece:
    text = piece.text.translate(table)
    if len(text) == len(piece.text) and not any(len(table.get(ord(c), c)) != 1 for c in piece.text):
        return Piece(text, piece.places)
    places = [
        place for c, place in zip(piece.text, piece.places, strict=True) for _ in range(len(table.get(ord(c), c)))
    ]
    return Piece(text, places)


def _composed(piece: Piece, form: Form) -> Piece:
    text = normal_form(form, piece.text)
    if text == piece.text:
        return piece
    places = list(piece.places)  # right where the lengths agree; a normal form moves places only near its changes
    places += places[-1:] * max(0, len(text) - len(places))
    return Piece(text, places[: len(text)])


def _stripped(piece: Piece, left: bool, right: bool) -> Piece:
    white, start, stop = characters("whitespace"), 0, len(piece.text)
    while left and start < stop and piece.text[start] in white:
        start += 1
    while right and stop > start and piece.text[stop - 1] in white:
        stop -= 1
    return Piece(piece.text[start:stop], piece.places[start:stop])


class CharacterMap:
    """sentencepiece's precompiled character map: the size of its trie, the trie, replacements that end with NUL."""

    def __init__(self, data: bytes) -> None:
        size = int.from_bytes(data[:4], "little")
        self.units = [int.from_bytes(data[at : at + 4], "little") for at in range(4, 4 + size, 4)]
        self.strings = data[4 + size :]

    def keys(self, text: bytes) -> list[tuple[int, int]]:
        """(length, place of the replacement) of the keys that a text begins with, shortest first."""
        found, units = [], self.units
        node = _offset(units[0])
        for i, byte in enumerate(text):
            node ^= byte
            if byte == 0 or node >= len(units):
                break
            unit = units[node]
            if unit & (1 << 31 | 0xFF) != byte:
                break
            node ^= _offset(unit)
            if unit >> 8 & 1 and node < len(units):
                found.append((i + 1, units[node] & (1 << 31) - 1))
        return found

    def replacement(self, at: int) -> str:
        """The text that stands at a place."""
        end = self.strings.find(b"\0", at)
        return self.strings[at : end if end >= 0 else None].decode("utf-8", "replace")


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 1 << 9) >> 6)


def _clusters(step: steps.Clusters) -> Callable[[Piece], Piece]:
    import regex

    charsmap, cluster = CharacterMap(step.charsmap.tobytes()), regex.compile(r"\X")

    @cache
    def whole(text: str) -> str | None:
        """What a text becomes by the shortest key it begins with, None where there is none."""
        keys = charsmap.keys(text.encode())
        return charsmap.replacement(keys[0][1]) if keys else None

    def run(piece: Piece) -> Piece:
        texts, places, at = [], [], 0
        for part in cluster.findall(piece.text):
            new = whole(part) if len(part.encode()) < SHORT_CLUSTER else None
            if new is not None:
                texts.append(new)
                places += [piece.places[at]] * len(new)
            else:
                for k, c in enumerate(part):
                    mapped = whole(c)
                    mapped = c if mapped is None else mapped
                    texts.append(mapped)
                    places += [piece.places[at + k]] * len(mapped)
            at += len(part)
        return Piece("".join(texts), places)

    return run

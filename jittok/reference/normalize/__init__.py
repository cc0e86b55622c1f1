"""Normalizers: a text to another, with the offset in the document that each character comes from.

Those of files other than GGUF are here and rewrite characters; llama.cpp's are `nfc`, `xcda` and those of
`jittok.reference.steps`, which rewrite bytes.

>>> from jittok.common.pipeline.steps import Pattern, Prepend, Replace
>>> from jittok.reference.text import read_text
>>> piece = read_text(b"a b")
>>> for step in (Prepend("_"), Replace(Pattern(" ", literal=True), "_")):
...     piece = normalizer(step)(piece)
>>> piece.text, piece.units
('_a_b', [(0, 0), (0, 1), (1, 2), (2, 3)])
"""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any

from jittok.common.pipeline import steps
from jittok.common.pipeline.patterns import compiled
from jittok.common.unicode.libraries import Form, characters, mapping, normal_form
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.reference.normalize.xcda import character_map
from jittok.reference.text import Piece, Unit, joined

ALPHABET = [chr(c) for c in CHARACTER_OF_BYTE]
SHORT_CLUSTER = 6
"""Bytes of a grapheme cluster from which on the library does not look it up as a whole."""


def normalizer(step: steps.Normalizer) -> Callable[[Piece], Piece]:
    """The function that applies one step to a piece."""
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
    """A text before a non-empty piece. The library writes the first character again after it, which is then at offset 0
    of the document if nothing was written before it."""
    if not piece.text:
        return piece
    positions = piece.positions and piece.positions[:1] * len(text) + piece.positions
    if positions and not text:
        positions = [0, *positions[1:]]
    units = piece.units and [joined(piece.units, 0, 0)] * len(text) + piece.units
    return piece._replace(text=text + piece.text, positions=positions, units=units)


def replaced(piece: Piece, pattern: steps.Pattern, content: str) -> Piece:
    """All matches replaced, from the left. The replacement of an empty match at the start comes from offset 0."""
    if not piece.text:
        return piece
    if pattern.literal and pattern.text and piece.positions is None and piece.units is None:
        return piece._replace(text=piece.text.replace(pattern.text, content))
    text, positions, units, done, found = io.StringIO(), list[int](), list[Unit](), 0, False
    for match in compiled(pattern).finditer(piece.text):
        found = True
        start, stop = match.span()
        text.write(piece.text[done:start])
        text.write(content)
        if piece.positions is not None:
            positions += piece.positions[done:start] + [piece.positions[stop - 1] if stop else 0] * len(content)
        if piece.units is not None:
            units += piece.units[done:start] + [joined(piece.units, start, stop)] * len(content)
        done = stop
    if not found:
        return piece
    text.write(piece.text[done:])
    return piece._replace(
        text=text.getvalue(),
        positions=None if piece.positions is None else positions + piece.positions[done:],
        units=None if piece.units is None else units + piece.units[done:],
    )


def spelled(piece: Piece) -> Piece:
    """Each byte as a character of the byte alphabet."""
    positions = piece.positions and [
        position for c, position in zip(piece.text, piece.positions, strict=True) for _ in range(len(c.encode()))
    ]
    units = None if piece.units is None else piece.byte_units()
    return piece._replace(
        text=piece.text.encode().decode("latin-1").translate(ALPHABET), positions=positions, units=units
    )


def _mapped(piece: Piece, table: dict[int, str]) -> Piece:
    text = piece.text.translate(table)
    if piece.positions is None and piece.units is None:
        return piece._replace(text=text)
    if len(text) == len(piece.text) and not any(len(table.get(ord(c), c)) != 1 for c in piece.text):
        return piece._replace(text=text)
    sizes = [len(table.get(ord(c), c)) for c in piece.text]
    positions = piece.positions and [
        position for position, size in zip(piece.positions, sizes, strict=True) for _ in range(size)
    ]
    units = piece.units and [unit for unit, size in zip(piece.units, sizes, strict=True) for _ in range(size)]
    return piece._replace(text=text, positions=positions, units=units)


def _composed(piece: Piece, form: Form) -> Piece:
    text = normal_form(form, piece.text)
    if text == piece.text:
        return piece
    units = None if piece.units is None else _composed_units(piece.text, text, piece.units, form)
    positions = None if piece.positions is None else _composed_positions(piece.text, piece.positions, text, form)
    return piece._replace(text=text, positions=positions, units=units)


@lru_cache(maxsize=1 << 16)
def _parts(c: str, form: Form) -> int:
    """Characters that one is split into."""
    return len(normal_form("NFKD" if "K" in form else "NFD", c))


def _composed_positions(before: str, own: list[int], after: str, form: Form) -> list[int]:
    """The offsets of a piece in a normal form: parts of a split character have its offset, a composition has that of
    its first character."""
    apart = [position for c, position in zip(before, own, strict=True) for _ in range(_parts(c, form))]
    positions, at = list[int](), 0
    for c in after:
        positions.append(apart[min(at, len(apart) - 1)])
        at += _parts(c, form) if form.endswith("C") else 1
    return positions


def _composed_units(before: str, after: str, units: list[Unit], form: Form) -> list[Unit]:
    """The units of a text in a normal form: unchanged characters keep theirs, each changed part is one unit."""
    out, written = list[Unit](), list[str]()
    for start, stop in stretches(before, form):
        new = normal_form(form, before[start:stop])
        written.append(new)
        begin, end = alike(before[start:stop], new)
        changed = joined(units, start + begin, stop - end)
        out += units[start : start + begin] + [changed] * (len(new) - begin - end) + units[stop - end : stop]
    return out if "".join(written) == after else [joined(units, 0, len(units))] * len(after)


def alike(before: str, after: str) -> tuple[int, int]:
    """How many characters two texts have in common at the start, and of the rest at the end."""
    most, begin, end = min(len(before), len(after)), 0, 0
    while begin < most and before[begin] == after[begin]:
        begin += 1
    while end < most - begin and before[-1 - end] == after[-1 - end]:
        end += 1
    return begin, end


def stretches(text: str, form: Form) -> Iterator[tuple[int, int]]:
    """Segments that a normal form rewrites independently: each begins with a character that neither changes nor is
    changed by anything before it."""
    start = 0
    for k, c in enumerate(text):
        if k == start or unicodedata.combining(unicodedata.normalize("NFKD", c)[0]):
            continue
        if normal_form(form, text[start : k + 1]) == normal_form(form, text[start:k]) + normal_form(form, c):
            yield start, k
            start = k
    if text:
        yield start, len(text)


def _stripped(piece: Piece, left: bool, right: bool) -> Piece:
    white, start, stop = characters("whitespace"), 0, len(piece.text)
    while left and start < stop and piece.text[start] in white:
        start += 1
    while right and stop > start and piece.text[stop - 1] in white:
        stop -= 1
    return piece.part(start, stop)


@cache
def _not_extending() -> dict[int, str]:
    """Maps characters that extend grapheme clusters only in later versions of Unicode to one that begins a cluster."""
    import regex

    known = characters("extending")
    everything = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    found = regex.findall(r"[\p{GCB=Extend}\p{GCB=SpacingMark}\p{GCB=ZWJ}]", everything)
    return {ord(c): "\U00010000" for c in found if c not in known}


def _clusters(step: steps.Clusters) -> Callable[[Piece], Piece]:
    import regex

    charsmap, cluster = character_map(step.charsmap.tobytes(), lenient=True), regex.compile(r"\X")
    newer = _not_extending()

    @cache
    def whole(text: str) -> str | None:
        """The replacement of a text by the shortest key that it begins with, None if there is none."""
        keys = charsmap.keys(text.encode())
        return charsmap.text(keys[0][1]) if keys else None

    def run(piece: Piece) -> Piece:
        texts, positions, units, at, gone = list[str](), list[int](), list[Unit](), 0, 0
        written = False

        def put(new: str, start: int, stop: int) -> None:
            nonlocal gone, written
            written |= new != ""
            if not written:
                gone = stop  # the library loses the offsets of text that is removed before anything is written
            texts.append(new)
            if piece.positions is not None:
                positions.extend([piece.positions[start - gone]] * len(new))
            if piece.units is not None:
                units.extend([joined(piece.units, start, stop)] * len(new))

        for match in cluster.finditer(piece.text.translate(newer)):
            part = piece.text[match.start() : match.end()]
            new = whole(part) if len(part.encode()) < SHORT_CLUSTER else None
            if new is not None:
                put(new, at, at + len(part))
            else:
                for k, c in enumerate(part, at):
                    mapped = whole(c)
                    put(c if mapped is None else mapped, k, k + 1)
            at += len(part)
        return piece._replace(
            text="".join(texts),
            positions=None if piece.positions is None else positions,
            units=None if piece.units is None else units,
        )

    return run

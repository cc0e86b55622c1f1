"""Readable bytes: visible white space, escaped control characters and lone bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MARKS = {" ": "·", "\n": "↵", "\t": "⇥", "\r": "␍", "\u00a0": "⍽", "\u2581": "▁"}
"""The marks shown for white space."""
OPEN, CLOSE = "⟨", "⟩"
"""Around hex digits of bytes that are not characters."""


class CharacterRun(NamedTuple):
    """A run of a text: `kind` is "text", "space" (a mark), "escape" or "bytes" (hex digits)."""

    kind: str
    text: str


def parts(raw: bytes) -> list[CharacterRun]:
    """The runs to show for bytes."""
    found: list[CharacterRun] = []
    for c in raw.decode("utf-8", "surrogateescape"):
        part = _part(c)
        if found and found[-1].kind == part.kind and part.kind in ("text", "space", "bytes"):
            gap = " " if part.kind == "bytes" else ""
            found[-1] = CharacterRun(part.kind, found[-1].text + gap + part.text)
        else:
            found.append(part)
    return [CharacterRun(p.kind, f"{OPEN}{p.text}{CLOSE}") if p.kind == "bytes" else p for p in found]


def _part(c: str) -> CharacterRun:
    if c in MARKS:
        return CharacterRun("space", MARKS[c])
    if "\udc80" <= c <= "\udcff":
        return CharacterRun("bytes", f"{ord(c) - 0xDC00:02X}")
    if c.isprintable():
        return CharacterRun("text", c)
    return CharacterRun("escape", c.encode("unicode_escape").decode())


def readable(raw: bytes) -> str:
    """The same as one str."""
    return "".join(part.text for part in parts(raw))


def shares(pieces: Sequence[bytes]) -> list[str]:
    """For each of the pieces of a text: which bytes of which character it holds, "" if all its characters are whole."""
    whole = b"".join(pieces)
    owners: list[tuple[int, int]] = []  # of each byte: the start and the end of its character
    for c in whole.decode("utf-8", "surrogateescape"):
        size = len(c.encode("utf-8", "surrogateescape"))
        owners += [(len(owners), len(owners) + size)] * size
    told, at = [], 0
    for piece in pieces:
        end = at + len(piece)
        cut = dict.fromkeys(owner for owner in owners[at:end] if owner[0] < at or owner[1] > end)
        told.append(
            ", ".join(
                f"{min(end, last) - max(at, first)} of the {last - first} bytes of {whole[first:last].decode()}"
                for first, last in cut
            )
        )
        at = end
    return told

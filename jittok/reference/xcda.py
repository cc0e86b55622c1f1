"""The character map of Unigram vocabularies: byte sequences and their replacements, in an XOR-compressed double array.

A unit is 32 bits: 0-7 the label by which it is reached, 8 leaf, 9 wide, 10-31 the base. In a unit that holds a value,
bit 31 is set and the other bits are the value, an offset in the replacements. Source: llama.cpp, `xcda_array_view` and
`normalize_prefix`; the format is sentencepiece's precompiled_charsmap.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from jittok.errors import EncodingFailed
from jittok.reference.vocab_tables import per_vocab
from jittok.vocab import Vocab

LABEL = 0x800000FF


class Charsmap(NamedTuple):
    """A character map as read from a file; `units` is empty if there is none."""

    units: tuple[int, ...]
    replacements: bytes  # strings that end with NUL

    def unit(self, node: int, at: int) -> int:
        """A unit. at: offset in the text, for the message of EncodingFailed."""
        if node >= len(self.units):
            raise EncodingFailed(
                0, at, f"unit {node}", f"a character map whose links stay inside its {len(self.units)} units"
            )
        return self.units[node]


class UnitStep(NamedTuple):
    """One byte of a walk."""

    byte: int
    node: int  # the unit that the byte leads to
    label: int  # of that unit; the walk stops here if it is another byte
    leaf: bool = False  # a key ends here
    base: int = 0
    then: int = 0  # node ^ base: where the next byte is applied; of a leaf also the unit of the value
    value: int | None = None  # of a leaf


@per_vocab
def charsmap(vocab: Vocab) -> Charsmap:
    """The vocabulary's character map."""
    blob = vocab.charsmap.tobytes()
    if not blob:
        return Charsmap((), b"")
    size = struct.unpack_from("<I", blob)[0]
    return Charsmap(struct.unpack_from(f"<{size // 4}I", blob, 4), blob[4 + size :])


def base(unit: int) -> int:
    """The base of a unit."""
    return unit >> 10 << (8 if unit & 0x200 else 0)


def walk(chars: Charsmap, text: bytes | bytearray, at: int) -> Iterator[UnitStep]:
    """The steps from text[at] on; the last one may not match. EncodingFailed: a link leads outside."""
    if not chars.units:
        return
    node = base(chars.unit(0, at))
    for i in range(at, len(text)):
        byte = text[i]
        if byte == 0:
            return
        node ^= byte
        unit = chars.unit(node, at)
        if unit & LABEL != byte:
            yield UnitStep(byte, node, unit & LABEL)
            return
        then, leaf = node ^ base(unit), bool(unit & 0x100)
        value = chars.unit(then, at) & 0x7FFFFFFF if leaf else None
        yield UnitStep(byte, node, byte, leaf, base(unit), then, value)
        node = then


def longest_key(chars: Charsmap, text: bytes | bytearray, at: int) -> tuple[int, int]:
    """(bytes, value) of the longest key that text[at:] begins with; (0, 0) if there is none."""
    found = (0, 0)
    for size, step in enumerate(walk(chars, text, at), 1):
        if step.value is not None:
            found = size, step.value
    return found


def replacement(chars: Charsmap, value: int, at: int) -> bytes:
    """The bytes that a key is replaced by. EncodingFailed: they lie outside or have no end."""
    stop = chars.replacements.find(b"\0", value)
    if value >= len(chars.replacements) or stop < 0:
        raise EncodingFailed(0, at, f"replacement {value}", "a character map whose replacements stay inside it")
    return chars.replacements[value:stop]

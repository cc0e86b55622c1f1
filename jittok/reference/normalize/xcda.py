"""Character maps: byte sequences and their replacements, in an XOR-compressed double array.

A unit is 32 bits: 0-7 the label by which it is reached, 8 leaf, 9 wide, 10-31 the base. In a unit that holds a value,
bit 31 is set and the other bits are the value, an offset in the replacements. Source: llama.cpp, `xcda_array_view` and
`normalize_prefix`; the format is sentencepiece's precompiled_charsmap.

>>> import jittok
>>> chars = charsmap(jittok.bundled("t5").vocab)
>>> text = "ﬁne".encode()  # begins with the ligature U+FB01
>>> [(f"{step.byte:02x}", step.node, step.leaf) for step in chars.walk(text, 0)]  # 6e is no child of 40441
[('ef', 206, False), ('ac', 39288, False), ('81', 40441, True), ('6e', 40139, False)]
>>> size, value = chars.longest_key(text, 0)
>>> size, chars.replacement(value, 0)
(3, b'fi')
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from jittok.errors import EncodingFailed
from jittok.reference.vocab_tables import per_vocab
from jittok.vocab import Vocab

LABEL = 0x800000FF


class UnitStep(NamedTuple):
    """One byte of a walk."""

    byte: int
    node: int  # the unit that the byte leads to
    label: int  # of that unit; the walk stops here if it is another byte
    leaf: bool = False  # a key ends here
    base: int = 0
    then: int = 0  # node ^ base: where the next byte is applied; of a leaf also the unit of the value
    value: int | None = None  # of a leaf


class CharacterMap(NamedTuple):
    """A character map as read from a file; `units` is empty if there is none.

    lenient: a link that leads outside ends a walk, and a replacement without an end goes to the end of the map, as in
    other files than GGUF; llama.cpp reads outside there, and EncodingFailed is raised.
    """

    units: tuple[int, ...]
    replacements: bytes  # strings that end with NUL
    lenient: bool = False

    def unit(self, node: int, at: int) -> int:
        """A unit. at: offset in the text, for the message of EncodingFailed."""
        if node >= len(self.units):
            raise EncodingFailed(
                0, at, f"unit {node}", f"a character map whose links stay inside its {len(self.units)} units"
            )
        return self.units[node]

    def walk(self, text: bytes | bytearray, at: int) -> Iterator[UnitStep]:
        """The steps from text[at] on; the last one may not match. EncodingFailed: a link leads outside."""
        if not self.units:
            return
        count = len(self.units)
        node = base(self.unit(0, at))
        for i in range(at, len(text)):
            byte = text[i]
            if byte == 0:
                return
            node ^= byte
            if self.lenient and node >= count:
                return
            unit = self.unit(node, at)
            if unit & LABEL != byte:
                yield UnitStep(byte, node, unit & LABEL)
                return
            then, leaf = node ^ base(unit), bool(unit & 0x100) and not (self.lenient and node ^ base(unit) >= count)
            value = self.unit(then, at) & 0x7FFFFFFF if leaf else None
            yield UnitStep(byte, node, byte, leaf, base(unit), then, value)
            node = then

    def keys(self, text: bytes | bytearray, at: int = 0) -> list[tuple[int, int]]:
        """(bytes, value) of the keys that text[at:] begins with, shortest first."""
        steps = enumerate(self.walk(text, at), 1)
        return [(size, step.value) for size, step in steps if step.value is not None]

    def longest_key(self, text: bytes | bytearray, at: int) -> tuple[int, int]:
        """The last of `keys`; (0, 0) if there is none."""
        keys = self.keys(text, at)
        return keys[-1] if keys else (0, 0)

    def replacement(self, value: int, at: int = 0) -> bytes:
        """The bytes that a key is replaced by. EncodingFailed: they lie outside or have no end."""
        stop = self.replacements.find(b"\0", value)
        if self.lenient:
            return self.replacements[value : stop if stop >= 0 else None]
        if value >= len(self.replacements) or stop < 0:
            raise EncodingFailed(0, at, f"replacement {value}", "a character map whose replacements stay inside it")
        return self.replacements[value:stop]

    def text(self, value: int) -> str:
        """The same as a str."""
        return self.replacement(value).decode("utf-8", "replace")


def base(unit: int) -> int:
    """The base of a unit."""
    return unit >> 10 << (8 if unit & 0x200 else 0)


def character_map(blob: bytes, lenient: bool = False) -> CharacterMap:
    """The map in a file: the size of its units in bytes, the units, the replacements."""
    if not blob:
        return CharacterMap((), b"", lenient)
    size = int.from_bytes(blob[:4], "little")
    return CharacterMap(struct.unpack_from(f"<{size // 4}I", blob, 4), blob[4 + size :], lenient)


@per_vocab
def charsmap(vocab: Vocab) -> CharacterMap:
    """The vocabulary's character map."""
    return character_map(vocab.charsmap.tobytes())

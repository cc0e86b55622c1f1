"""Protocol buffers, read field by field; every length is checked against the remaining bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from jittok.errors import InWords, MalformedVocab

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types; groups, 3 and 4, are in no file of ours."""
WIRE = {VARINT: "a varint", FIXED64: "8 bytes", BYTES: "a length and bytes", FIXED32: "4 bytes"}


class Message:
    """A message: bytes start .. stop - 1 of a file. `place` is its name."""

    def __init__(self, file: str, location: str, data: bytes, start: int, stop: int) -> None:
        self.file, self.position, self.data, self.start, self.stop = file, location, data, start, stop

    def bad(self, at: int, found: object, expected: str) -> MalformedVocab:
        """The error of what is at byte `at`."""
        return MalformedVocab(self.file, f"{self.position} (byte {at})", found, expected)

    def fields(self) -> Iterator[tuple[int, int, int, int]]:
        """(number, wire type, value, place) of each field: of bytes the value is where they begin, and they end at the
        place of what follows, which comes fourth."""
        data, at, stop = self.data, self.start, self.stop
        while at < stop:
            key, start, at = data[at], at, at + 1
            if key > 127:
                key, at = self.varint(start)
            wire = key & 7
            if wire == VARINT:
                value, at = self.varint(at)
            elif wire == BYTES:
                if at < stop and data[at] < 128:
                    size, at = data[at], at + 1
                else:
                    size, at = self.varint(at)
                if size > stop - at:
                    raise self.bad(
                        start, InWords(f"a field of {size} bytes"), f"at most the {stop - at} remaining bytes"
                    )
                value, at = at, at + size
            elif wire in (FIXED32, FIXED64):
                size = 4 if wire == FIXED32 else 8
                if size > stop - at:
                    raise self.bad(start, InWords(f"{stop - at} bytes"), f"the {size} bytes of a number")
                value, at = int.from_bytes(data[at : at + size], "little"), at + size
            else:
                raise self.bad(start, InWords(f"wire type {wire}"), "0, 1, 2 or 5")
            if key >> 3 == 0:
                raise self.bad(start, InWords("field number 0"), "1 or more")
            yield key >> 3, wire, value, at

    def varint(self, at: int) -> tuple[int, int]:
        """(number, place after it)."""
        value, start = 0, at
        for shift in range(0, 70, 7):
            if at >= self.stop:
                raise self.bad(start, InWords("the end of the message"), "the rest of a varint")
            byte = self.data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value & (1 << 64) - 1, at
        raise self.bad(start, InWords("a varint of more than ten bytes"), "at most ten")

    def expect(self, wire: int, wanted: int, at: int, name: str) -> None:
        """MalformedVocab where a field has another wire type."""
        if wire != wanted:
            raise self.bad(at, InWords(f"{name} as {WIRE.get(wire, wire)}"), WIRE[wanted])


def single(number: int) -> float:
    """The float of 4 bytes read as an integer."""
    return float(struct.unpack("<f", struct.pack("<I", number))[0])

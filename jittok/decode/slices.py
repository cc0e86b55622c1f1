"""Text of very many ids, a slice at a time: else all bytes and all characters would be in memory at once."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from jittok.decode.stream import certain, cleaned
from jittok.kernels.jit import I32, interruptible_if_long
from jittok.vocab import NO_TOKEN

if TYPE_CHECKING:
    from jittok.decode.rows import DecodeFrame, Decoder

MOST_SLICES = 64
"""Slices of a row: where Python copies a text that grows, a text is copied so many times at most."""
MOST_HELD = 1 << 24
"""Bytes that may be held until cleaning can be cut; beyond that all ids are decoded at once."""
BY_PART = frozenset({"backslashreplace", "ignore", "replace", "strict", "surrogateescape"})
"""Ways to treat bytes that are no characters, which look at these bytes alone."""


def text_of(parts: Iterable[bytes | None], errors: str) -> str | None:
    """The text of parts of bytes. None if it has to be decoded as a whole: for cleaning, or for the error about invalid
    UTF-8. Raises InvalidToken."""
    if errors not in BY_PART:
        return None
    known, text = codecs.getincrementaldecoder("utf-8")(errors), ""
    try:
        for part in parts:
            if part is None:
                return None
            text += known.decode(part)  # in place, as there is no other reference to this str
        text += known.decode(b"", True)
    except UnicodeDecodeError:
        return None
    return text


def size_of_slices(count: int, at_once: int) -> int:
    """The number of ids, of `count`, that are decoded at once: `at_once` or more."""
    return max(at_once, count // MOST_SLICES, 1)


def parts_of(decoder: Decoder, ids: I32, frame: DecodeFrame, at_once: int) -> Iterator[bytes | None]:
    """Yields the bytes of one row, part by part; None if they cannot be cut."""
    raw, last = bytearray(), ids.size - 1
    for at in range(0, ids.size, at_once):
        some = ids[at : at + at_once]
        first, ends = at == 0, at + at_once > last
        own = frame._replace(
            strip=frame.strip * first,
            bos=frame.bos if first else NO_TOKEN,
            eos=frame.eos if ends else NO_TOKEN,
            clean=0,
        )
        known = len(raw)
        raw += interruptible_if_long(ids.nbytes)(decoder.one, some, own)
        cut = certain(raw, known) if frame.clean and not ends else len(raw)
        if len(raw) - cut > MOST_HELD:
            yield None
        yield cleaned(raw[:cut]) if frame.clean else bytes(raw)
        del raw[:cut]

"""Text from ids one at a time: whole characters as soon as nothing that follows can change them."""

from __future__ import annotations

import codecs
from collections.abc import Callable

import numpy as np

from jittok.decode.rows import CLEANED_NEAR, Frame, clean_spaces
from jittok.unicode.characters import SPACE_BYTE


class StreamDecoder:
    """Takes ids, gives text. What `push` and `finish` give, joined, is what `decode` gives for all ids at once."""

    def __init__(self, piece: Callable[[int], bytes], frame: Frame, errors: str) -> None:
        self._piece = piece
        self._frame = frame
        self._strip = bool(frame.strip)
        self._started = False
        self._held: int | None = None  # an EOS that is dropped if it is the last id
        self._raw = b""  # bytes whose cleaning depends on what follows
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors)

    def push(self, token: int) -> str:
        """The text that is certain after one more id, perhaps none. Raises InvalidToken, and then nothing changed."""
        piece = self._piece(token)
        if not self._started:
            self._started = True
            if token == self._frame.bos >= 0:
                self._strip = False
                return ""
        before = b"" if self._held is None else self._printed(self._piece(self._held))
        self._held = None
        if token == self._frame.eos >= 0:
            self._held = int(token)
            return self._give(before)
        return self._give(before + self._printed(piece))

    def finish(self) -> str:
        """The rest. The decoder is then as new."""
        text = self._decoder.decode(cleaned(self._raw), final=True)
        self._decoder.reset()
        self._raw, self._held, self._started, self._strip = b"", None, False, bool(self._frame.strip)
        return text

    def _printed(self, piece: bytes) -> bytes:
        strip, self._strip = self._strip, False
        return piece[1:] if strip and piece[:1] == b" " else piece

    def _give(self, new: bytes) -> str:
        if self._frame.clean:
            self._raw += new
            cut = certain(self._raw)
            new, self._raw = cleaned(self._raw[:cut]), self._raw[cut:]
        return self._decoder.decode(new)


def cleaned(raw: bytes) -> bytes:
    """Raw text as `clean_spaces` leaves it."""
    if not raw:
        return raw
    text = np.frombuffer(raw, np.uint8).copy()
    return text[: clean_spaces(text)].tobytes()


def certain(raw: bytes) -> int:
    """The last place where raw text can be cut so that both halves, cleaned alone, are the whole, cleaned.

    The rule is that of `decode.can_cut`.
    """
    cut = len(raw)
    while cut > 0:
        if raw[cut - 1] == SPACE_BYTE:
            cut -= 1
            continue
        quote = raw.rfind(b"'", max(0, cut - CLEANED_NEAR), cut)
        if quote < 0:
            return cut
        cut = quote
    return 0

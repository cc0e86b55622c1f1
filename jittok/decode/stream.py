"""Text from ids one at a time: whole characters, as soon as no later id can change them."""

from __future__ import annotations

import codecs
from collections.abc import Callable

import numpy as np

from jittok.common.unicode.characters import SPACE_BYTE
from jittok.decode.rows import CLEANED_NEAR, DecodeFrame, clean_spaces

SPACES = b"   "
SHORT = 1 << 12
"""Bytes of raw text that are cleaned in plain Python where the kernel would have to be compiled."""


class StreamDecoder:
    """Ids in, text out. The results of `push` and `finish`, joined, equal that of `decode` for all ids at once."""

    def __init__(self, piece: Callable[[int], bytes], frame: DecodeFrame, errors: str) -> None:
        self._piece = piece
        self._frame = frame
        self._strip = bool(frame.strip)
        self._started = False
        self._held: int | None = None  # an EOS that is dropped if it is the last id
        self._raw = bytearray()  # bytes whose cleaning depends on what follows
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors)

    def push(self, token: int) -> str:
        """The text that is certain after one more id; may be empty. Raises InvalidToken, and then changes nothing."""
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
        """The rest of the text. Resets the decoder."""
        text = self._decoder.decode(cleaned(self._raw), final=True)
        self._decoder.reset()
        self._raw, self._held, self._started, self._strip = bytearray(), None, False, bool(self._frame.strip)
        return text

    def _printed(self, piece: bytes) -> bytes:
        strip, self._strip = self._strip, False
        return piece[1:] if strip and piece[:1] == b" " else piece

    def _give(self, new: bytes) -> str:
        if self._frame.clean:
            known = len(self._raw)
            self._raw += new
            cut = certain(self._raw, known)
            new = cleaned(self._raw[:cut])
            del self._raw[:cut]
        return self._decoder.decode(new)


def cleaned(raw: bytes | bytearray) -> bytes:
    """Raw text after `clean_spaces`. A short one does not wait for the kernel to be compiled."""
    if len(raw) <= SHORT and not clean_spaces.at_hand():
        from jittok.reference import decode

        return decode.clean_spaces(bytearray(raw))
    text = np.frombuffer(raw, np.uint8).copy()
    return text[: clean_spaces(text)].tobytes()


def certain(raw: bytes | bytearray, known: int = 0) -> int:
    """The last offset where raw text can be cut so that both halves, cleaned separately, equal the cleaned whole; 0 if
    there is none. The first `known` bytes are known to have none.

    The rule is that of `rows.can_cut`, and one more: the first of three spaces cannot be removed by what follows, so
    that a long run of spaces is not held back. (What follows removes two spaces at most: in " ' re" one for the
    apostrophe, then one for the contraction.)
    """
    cut = len(raw)
    while cut > known:
        if raw[cut - 1] == SPACE_BYTE:
            if raw[max(cut - 3, 0) : cut] == SPACES:
                return cut - 2
            cut -= 1
            continue
        quote = raw.rfind(b"'", max(0, cut - CLEANED_NEAR), cut)
        if quote < 0:
            return cut
        cut = quote
    return 0

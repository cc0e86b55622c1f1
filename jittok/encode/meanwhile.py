"""Short first texts, encoded by the plain reference as long as their kernel is not compiled.

Compiling takes seconds, and the reference a millisecond for a line of text. So whoever encodes a few texts where no
machine code is shipped or kept does not wait for the compiler. The first longer text or batch, or `WORTH_COMPILING`
bytes of short ones, compile the kernel. `JITTOK_COMPILE_FIRST=1`: the first text does, whatever its size.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok._jit import CHECKED, has_compiler
from jittok.errors import JittokError
from jittok.inputs import Documents, to_bytes
from jittok.models.kinds import kind_of

if TYPE_CHECKING:
    from jittok.encode.encoder import Encoder
    from jittok.rows import TokenArray
    from jittok.vocab import Vocab

COMPILE_FIRST = os.environ.get("JITTOK_COMPILE_FIRST", "0") not in ("", "0")
"""Whether no text is left to the reference."""
LONGEST = 1 << 13
"""Bytes of the longest text, or batch of texts, that the reference encodes: about the tenth of a second."""
WORTH_COMPILING = 1 << 16
"""Bytes of such texts in a process: about a second, a tenth of what compiling takes."""
EACH = 64
"""What a text counts for, beside its bytes."""

_spent = 0


def waits(size: int) -> bool:
    """Whether text that counts for `size` bytes may do without a kernel that would have to be compiled."""
    return not (COMPILE_FIRST or CHECKED or size > LONGEST + EACH or _spent >= WORTH_COMPILING) and has_compiler()


def spend(size: int) -> None:
    """So much was done without a kernel. Threads may miss each other's sums: they are a guess."""
    global _spent  # noqa: PLW0603
    _spent += size


def ids_meanwhile(encoder: Encoder, text: bytes, add_special: bool, parse_special: bool) -> NDArray[np.int32] | None:
    """int32[n]: the ids of a short text of a GGUF vocabulary whose kernel would have to be compiled. None where the
    kernel is to encode it: it is at hand, there is too much text, or the kernel has to say what is wrong with it."""
    rows = _rows(encoder, [text], add_special, parse_special)
    return None if rows is None else rows[0]


def rows_meanwhile(
    encoder: Encoder, texts: Any, add_special: bool, parse_special: bool, *, replace: bool
) -> TokenArray | None:
    """The same for a few texts: a list, a tuple or `Documents`. Anything else is left to the kernel."""
    if isinstance(texts, Documents):
        places = zip(texts.starts.tolist(), texts.stops.tolist(), strict=True)
        if not waits(int((texts.stops - texts.starts).sum()) + EACH * texts.starts.size):
            return None
        raw = [texts.between(start, stop) for start, stop in places]
    elif type(texts) in (list, tuple) and all(type(text) in (str, bytes) for text in texts):
        if not waits(sum(map(len, texts)) + EACH * len(texts)):
            return None
        try:
            raw = [to_bytes(text, replace) for text in texts]
        except JittokError:
            return None
    else:
        return None
    rows = _rows(encoder, raw, add_special, parse_special)
    if rows is None:
        return None
    from jittok.rows import TokenArray

    ends = np.cumsum([0, *(row.size for row in rows)])
    return TokenArray(np.concatenate([np.zeros(0, np.int32), *rows]), ends)


def newline_of(vocab: Vocab, encoder: Encoder | None, may_wait: bool) -> int:
    """The id of a newline, NO_TOKEN if there is none. `may_wait`: the kernel need not be compiled for it."""
    if encoder is None or not may_wait or not waits(EACH) or _first_kernel(encoder).at_hand():
        return kind_of(vocab).newline_id(vocab, encoder)
    from jittok.reference.tokenize import newline_id

    spend(EACH)
    return newline_id(vocab)


def _rows(
    encoder: Encoder, texts: list[bytes], add_special: bool, parse_special: bool
) -> list[NDArray[np.int32]] | None:
    size = sum(map(len, texts)) + EACH * len(texts)
    if not waits(size) or _first_kernel(encoder).at_hand():
        return None
    from jittok.reference.tokenize import tokenize

    spend(size)
    try:
        found = [tokenize(encoder.vocab, text, add_special=add_special, parse_special=parse_special) for text in texts]
    except JittokError:
        return None
    return [np.array(ids, np.int32) for ids in found]


def _first_kernel(encoder: Encoder) -> Any:
    """The kernel that the model calls first."""
    if encoder.one_kernel:
        return encoder.model.encode_fragments
    called: list[Any] = []

    def note(kernel: Any, *_args: Any) -> int:
        called.append(kernel)
        return 0

    encoder.model.encode_fragments(encoder.arrays, *[None] * 11, run=note)
    return called[0]

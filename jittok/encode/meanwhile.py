"""Short first texts, encoded by the plain reference as long as their kernel is not compiled.

Compiling takes seconds, and the reference a millisecond for a line of text. So whoever encodes a few texts where no
machine code is shipped or kept does not wait for the compiler. The first longer text, batch, or `WORTH_COMPILING` bytes
of short texts compile the kernel. `JITTOK_COMPILE_FIRST=1`: the first text does, whatever its size.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok._jit import CHECKED, has_compiler
from jittok.errors import JittokError

if TYPE_CHECKING:
    from jittok.encode.encoder import Encoder

COMPILE_FIRST = os.environ.get("JITTOK_COMPILE_FIRST", "0") not in ("", "0")
"""Whether no text is left to the reference."""
LONGEST = 1 << 10
"""Bytes of the longest text that the reference encodes: some 20 ms."""
WORTH_COMPILING = 1 << 14
"""Bytes of such texts in a process: about the third of a second, a thirtieth of what compiling takes."""
EACH = 64
"""What a text counts for, beside its bytes."""

_spent = 0


def ids_meanwhile(encoder: Encoder, text: bytes, add_special: bool, parse_special: bool) -> NDArray[np.int32] | None:
    """int32[n]: the ids of a short text of a GGUF vocabulary whose kernel would have to be compiled. None where the
    kernel is to encode it: it is at hand, there is too much text, or the kernel has to say what is wrong with it."""
    global _spent  # noqa: PLW0603  threads may miss each other's sums: they are a guess
    if COMPILE_FIRST or CHECKED or len(text) > LONGEST or _spent >= WORTH_COMPILING:
        return None
    if _first_kernel(encoder).at_hand() or not has_compiler():  # without a compiler the first text says so
        return None
    from jittok.reference.tokenize import tokenize

    _spent += len(text) + EACH
    try:
        ids = tokenize(encoder.vocab, text, add_special=bool(add_special), parse_special=bool(parse_special))
    except JittokError:
        return None
    return np.array(ids, np.int32)


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

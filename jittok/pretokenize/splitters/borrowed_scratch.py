"""Scratch of the general splitter in memory that is written after it: the capacity for ids, or for words.

Once pieces are cut only the cuts are read. A malformed byte becomes three bytes and up to three ids, so of a long text
the classes, and what cutters and matchers read, would be as much memory as the ids, and both would be there at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jittok._jit import JIT, helper
from jittok._raw import FAST, PAD, Window, as_bytes, as_halves
from jittok.pretokenize.splitters.general import BLOCK, CUTTER, Splitter, SplitWindow, SplitWork

LEAST_BYTES = 1 << 16
"""Bytes of a text from which on this is worth asking for room."""
_ARRAYS = 3


@helper
def _array_words(size: int) -> int:
    """Elements of int32 that one of the arrays takes for a text of so many bytes."""
    return ((size + 1 + PAD) // BLOCK + 1) * (BLOCK // 4)


@helper
def borrowed_words(size: int) -> int:
    """Elements of int32 that `borrow` takes for a text of so many bytes: less than its ids may."""
    return _ARRAYS * _array_words(size)


@helper
def _borrow(split: SplitWindow, words: Window, at: int, size: int) -> SplitWindow:
    """The same cuts, and all other arrays in an int32 window from element `at` on."""
    each = _array_words(size)
    return SplitWindow(
        as_bytes(words, at, each),
        as_bytes(words, at + each, each),
        as_bytes(words, at + 2 * each, each),
        as_halves(words, at + 2 * each, each),
        split.cuts,
        split.notes,
    )


@helper
def _keep(split: SplitWindow, _words: Window, _at: int, _size: int) -> SplitWindow:
    return split


borrow = _borrow if FAST or not JIT else _keep
"""Compiled code that checks has no views of arrays; there the scratch's own are used."""


def borrowed_from(words: NDArray[np.uint8], work: SplitWork, splitter: Splitter) -> SplitWork:
    """The same work, and one of its arrays in the capacity for words: what a lone cutter reads, which asks for no
    `resume`, else `resume`. Words are written when all cuts of a text are known, from classes and cuts alone. Nothing
    may be in the room before that, so this is for one text only."""
    if splitter.kinds.tolist() != [CUTTER]:
        return work._replace(begun=words[: work.begun.size])
    pairs = words[: work.flags.size].view(np.uint16)
    return work._replace(pairs=pairs, flags=pairs.view(np.uint8))

"""Scratch of the general splitter in memory that is only written after it: the buffer of ids, or of pre-tokens.

After splitting, only the cuts are read. The buffer of ids is large, as a malformed byte becomes up to three ids. For a
long text, the scratch of cutters and matchers would take as much memory again, at the same time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import JIT, helper
from jittok.kernels.memory import FAST, PAD, Window, as_bytes, as_halves
from jittok.kernels.pretokenize.splitters.general import BLOCK, CUTTER, Splitter, SplitWindow, SplitWork

LEAST_BYTES = 1 << 16
"""Bytes of a text from which on borrowing pays."""
_ARRAYS = 3


@helper
def _array_words(size: int) -> int:
    """int32 elements that each of the arrays takes for a text of `size` bytes."""
    return ((size + 1 + PAD) // BLOCK + 1) * (BLOCK // 4)


@helper
def borrowed_words(size: int) -> int:
    """int32 elements that `borrow` takes for a text of `size` bytes: fewer than its ids may take."""
    return _ARRAYS * _array_words(size)


@helper
def _borrow(split: SplitWindow, words: Window, at: int, size: int) -> SplitWindow:
    """`split` with the same cuts and notes, and all other arrays in an int32 window from element `at` on."""
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
"""Compiled code with bounds checks has no views of arrays: it uses the scratch's own."""


def borrowed_from(words: NDArray[np.uint8], work: SplitWork, splitter: Splitter) -> SplitWork:
    """`work` with one of its arrays in the buffer of words: `pairs` and `flags` for a single cutter, which does not use
    `begun`, else `begun`. Words are written when all cuts of a text are known, from classes and cuts alone. The buffer
    must be empty until then, so this is for a single text only."""
    if splitter.kinds.tolist() != [CUTTER]:
        return work._replace(begun=words[: work.begun.size])
    pairs = words[: work.flags.size].view(np.uint16)
    return work._replace(pairs=pairs, flags=pairs.view(np.uint8))

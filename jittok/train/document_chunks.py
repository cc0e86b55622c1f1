"""Long documents in pieces, whose words are those of the whole: so counting needs no memory for a whole document.

A piece ends at the first place after a given number of bytes where the text may be parted (`pretokenize.ascii_cuts`)
and four ASCII characters are before, so that no malformed character reaches across. Places depend on the text alone. A
text without any is one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.limits import Limit
from jittok.pretokenize.ascii_cuts import ASCII, ascii_cuts
from jittok.train.word_splitter import WordSplitter

CHUNK_BYTES = 1 << 20
"""Bytes of a piece of a document that is in memory."""
SEARCH_BYTES = 1 << 14
ASCII_BEFORE = 4
NOWHERE = -1
NEWLINE = ord("\n")


class DocumentChunks:
    """Where documents may be cut that `word_splitter` splits."""

    def __init__(self, cutter: WordSplitter, special: Sequence[str] = (), lines: bool = False) -> None:
        """special: texts that must not be cut, as they are searched for in the document; lines: words are cut in lines,
        and documents after any of these."""
        self._cutter, self._special, self._lines = cutter, special, lines
        self._table: NDArray[np.bool_] | None = None

    def first(self, data: NDArray[np.uint8], low: int, high: int) -> int:
        """The first place in low .. high - 1 where data may be cut, or NOWHERE. Linear."""
        table = self.table
        for at in range(max(low, ASCII_BEFORE), high, SEARCH_BYTES):
            end = min(at + SEARCH_BYTES, high)
            front = data[at - ASCII_BEFORE : end - 1]
            left, right = front[ASCII_BEFORE - 1 :], data[at:end]
            found = table[left.astype(np.uint16) << 8 | right]
            if not self._lines:
                wide = front >= ASCII
                for k in range(ASCII_BEFORE - 1):
                    found &= ~wide[k : k + found.size]
            if found.any():
                return at + int(found.argmax())
        return NOWHERE

    @property
    def table(self) -> NDArray[np.bool_]:
        """bool[65536] whether a text may be cut between two bytes, the one before times 256 and the one after."""
        if self._table is None:
            pairs = np.zeros((256, 256), np.bool_)
            if self._lines:
                pairs[NEWLINE] = True
            else:
                pairs[:ASCII, :ASCII] = _pairs_of(self._cutter)
                for text in self._special:
                    raw = np.frombuffer(text.encode(), np.uint8)
                    pairs[raw[:-1], raw[1:]] = False
            self._table = pairs.reshape(-1)
        return self._table

    def positions(self, data: NDArray[np.uint8], size: int) -> list[int]:
        """Where a document of `size` bytes, which begins at data[0], is cut: pieces have PIECE bytes or some more."""
        found, at = [0], 0
        while size - at > 2 * CHUNK_BYTES and (at := self.first(data, at + CHUNK_BYTES, size)) != NOWHERE:
            found.append(at)
        return found

    def read(self, read: Callable[[int], bytes], step: int, limit: Limit) -> Iterator[tuple[int, bytes]]:
        """(offset, bytes) of the pieces of a document, of `step` bytes or some more; one at least. CorpusError for a
        document that is too long."""
        held, offset, searched, ended = bytearray(), 0, step, False
        while not ended:
            piece = _filled(read, step)
            ended = len(piece) < step
            held += piece
            limit.check(offset + len(held))
            while (cut := self.first(np.frombuffer(held, np.uint8), searched, len(held))) != NOWHERE:
                yield offset, bytes(held[:cut])
                del held[:cut]
                offset, searched = offset + cut, step
            searched = max(searched, len(held))
        yield offset, bytes(held)


_known: dict[Any, NDArray[np.bool_]] = {}


def _pairs_of(cutter: WordSplitter) -> NDArray[np.bool_]:
    key = cutter.patterns or cutter.stages
    if key not in _known:
        _known[key] = ascii_cuts(cutter.automata())
    return _known[key]


def _filled(read: Callable[[int], bytes], size: int) -> bytes:
    """So many bytes, fewer only at the end."""
    parts = []
    while size and (piece := read(size)):
        parts.append(piece)
        size -= len(piece)
    return b"".join(parts)

"""Counted words cut into smaller ones, which are counted again: a few thousand words at a time, by a kernel.

What trainers of characters learn from are words that no pair of symbols can reach across. There are far fewer of them
than runs between spaces, above all in code: `count(words[k])` has five parts that other runs have too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok._jit import I64, U8, OutI32, OutI64, OutU8, as_int64, helper, kernel
from jittok.train.characters import CharacterWords, all_text, blocks, characters_of, texts_of
from jittok.train.counter import Counter, flat_words
from jittok.train.counts import Counts, of_table
from jittok.train.word_splitter import WordSplitter
from jittok.unicode.tables import UNICODE_SIZE

BLOCK = 1 << 18
"""Bytes of the words that are cut at once."""
CLASS_SHIFT = 21
CODE = (1 << CLASS_SHIFT) - 1
ANY, GONE, ENDS, BEGINS, ALONE, SAME = 0, 251, 252, 253, 254, 255
"""Classes of characters: one that stays with all others, one that is left out, one that ends a word and is left out,
one before which a word begins, one that is a word of its own, and again one that stays with all others. Characters
of two other classes are cut apart."""
UNSEEN, MET = -1, -2
Classify = Callable[[NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""(the class of each code point, the code point that it becomes)."""


@helper
def _is_open(kind: int) -> bool:
    """Whether a character of this class stays with those of all others."""
    return kind == ANY or kind == SAME  # noqa: PLR1714  kernels have no tuples of these


@helper
def _put(out: OutU8, at: int, c: int) -> int:
    """Write a character as UTF-8; where the next one goes."""
    if c < 0x80:
        out[at] = c
        return at + 1
    if c < 0x800:
        out[at], out[at + 1] = 0xC0 | c >> 6, 0x80 | c & 0x3F
        return at + 2
    if c < 0x10000:
        out[at], out[at + 1], out[at + 2] = 0xE0 | c >> 12, 0x80 | c >> 6 & 0x3F, 0x80 | c & 0x3F
        return at + 3
    out[at], out[at + 1], out[at + 2], out[at + 3] = (
        0xF0 | c >> 18, 0x80 | c >> 12 & 0x3F, 0x80 | c >> 6 & 0x3F, 0x80 | c & 0x3F,
    )  # fmt: skip
    return at + 4


@kernel
def cut_words(
    table: OutI32, words: U8, starts: I64, counts: I64, state: OutI64, new: OutI32, out: OutU8, out_starts: OutI64,
    out_counts: OutI64,
) -> int:  # fmt: skip
    """Cut words, which are UTF-8. How many characters the table does not know: what is written counts if there are
    none.

    table: int32[code points] class << CLASS_SHIFT | what the character becomes, or UNSEEN; state: int64[1] the parts
    new, out_counts: [bytes of the words]; out_starts: one more, from 0 on; out: four times as many
    """
    parts, unseen = 0, 0
    for k in range(counts.size):
        begin = out_starts[parts]
        at, last, i = begin, SAME, starts[k]
        while i < starts[k + 1]:
            a = as_int64(words[i])
            if a < 0x80:
                c, size = a, 1
            elif a < 0xE0:
                c, size = (a & 0x1F) << 6 | as_int64(words[i + 1]) & 0x3F, 2
            elif a < 0xF0:
                c, size = (a & 0xF) << 12 | (as_int64(words[i + 1]) & 0x3F) << 6 | as_int64(words[i + 2]) & 0x3F, 3
            else:
                c = (a & 7) << 18 | (as_int64(words[i + 1]) & 0x3F) << 12
                c, size = c | (as_int64(words[i + 2]) & 0x3F) << 6 | as_int64(words[i + 3]) & 0x3F, 4
            i += size
            found = as_int64(table[c])
            if found < 0:
                if found == UNSEEN:
                    table[c], new[unseen] = MET, c
                    unseen += 1
                continue
            kind = found >> CLASS_SHIFT
            if kind == GONE:
                continue
            apart = last != kind and not (_is_open(last) or _is_open(kind) or last == BEGINS)
            if (apart or last == ALONE or ENDS <= kind <= ALONE) and at > begin:
                parts += 1
                out_starts[parts], out_counts[parts - 1] = at, counts[k]
                begin = at
            last = SAME
            if kind != ENDS:
                at, last = _put(out, at, found & CODE), kind
        if at > begin:
            parts += 1
            out_starts[parts], out_counts[parts - 1] = at, counts[k]
    state[0] = parts
    return unseen


class _Room(NamedTuple):
    """What the parts of words are written to; see `cut_words`."""

    new: NDArray[np.int32]
    out: NDArray[np.uint8]
    out_starts: NDArray[np.int64]
    out_counts: NDArray[np.int64]


class WordParts:
    """Counts the parts of words."""

    def __init__(self, classify: Classify) -> None:
        self._classify = classify
        self._table = np.full(UNICODE_SIZE, UNSEEN, np.int32)
        # nothing is cut by it
        self._counter = Counter(WordSplitter("", None, lambda: 0, False))  # type: ignore[arg-type]
        self._capacity = _room(BLOCK)

    def add(self, words: NDArray[np.uint8], starts: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Word k is words[starts[k]:starts[k + 1]]; what is invalid UTF-8 is U+FFFD."""
        for first, last in blocks(starts, BLOCK):
            low = int(starts[first])
            self._add(words[low : int(starts[last])], starts[first : last + 1] - low, counts[first:last])

    def _add(self, words: NDArray[np.uint8], starts: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        if not all_text(words, starts):
            words, starts = flat_words(text.encode() for text in texts_of(words, starts))
        if self._capacity.out_counts.size < words.size:
            self._capacity = _room(words.size)
        capacity, state = self._capacity, np.zeros(1, np.int64)
        while unseen := cut_words(self._table, words, starts, counts, state, *capacity):
            points = capacity.new[:unseen].astype(np.int64)
            kinds, others = self._classify(points)
            self._table[points] = kinds << CLASS_SHIFT | others
        number = int(state[0])
        starts = capacity.out_starts[: number + 1]
        self._counter.add_words(capacity.out[: int(starts[-1])], starts, capacity.out_counts[:number])

    def points(self) -> NDArray[np.int64]:
        """The characters that words have."""
        return np.flatnonzero(self._table >= 0)

    def found(self) -> Counts:
        """All parts."""
        return of_table(self._counter.table)

    def characters(self) -> CharacterWords:
        """All parts as code points."""
        return characters_of(self.found())


def _room(size: int) -> _Room:
    """For words of so many bytes."""
    ends = np.zeros(size + 1, np.int64)
    return _Room(np.empty(size, np.int32), np.empty(4 * size, np.uint8), ends, np.empty(size, np.int64))

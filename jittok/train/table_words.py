"""The words of one table, or of those of several threads, as flat arrays.

A word that an earlier table has is added to its count there, and gone from the later one. No word changes its place,
and each word of a table is in it once. So several threads can search for the words of one table at the same time:
no two of them write to one slot. Then all words that are left are copied, again by several threads, each of which
knows how many words and bytes are before its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok._jit import OutI64, OutU8, helper, kernel
from jittok._raw import Window, get_u64, get_word, put_u8, put_u64, put_word, window
from jittok.corpus.cancellation import Cancellation, stoppable_pool
from jittok.train.table import NONE, S32, S56, SLOT, WordTable, hash_short, open_table, same_words

BYTE = np.uint64(0xFF)
GONE = np.uint64(0xFFFFFFFFFFFFFFFF)
"""In place of the count of a word that an earlier table has. No count is as large."""
SLOTS_PER_STEP = 1 << 17
"""Slots that a kernel looks at before it answers: a few milliseconds."""
WORDS, BYTES, LIMIT = range(3)
"""Places in what `list_words` is told: words and bytes before, and the byte after the last one of this part."""


@helper
def not_there(count: np.uint64) -> bool:
    """Whether a slot has no word, or one that is gone."""
    return count == NONE or count == GONE  # noqa: PLR1714  kernels have no tuples of these


@helper
def _added(slots: Window, i: int, others: Window, k: int) -> int:
    """Add the count in slot k of others to that of the same word in slot i, where it is gone from the others then; 0
    if slot i is free, else 1."""
    had = get_u64(slots, SLOT * i + 2)
    if had == NONE:
        return 0
    put_u64(slots, SLOT * i + 2, had + get_u64(others, SLOT * k + 2))
    put_u64(others, SLOT * k + 2, GONE)
    return 1


@kernel
def add_found(own: WordTable, other: WordTable, first: int, last: int) -> int:
    """Add the counts of words in the slots first .. last - 1 of another table (its short ones, then its long ones) to
    those of this one, where it has them; they are then gone from the other. How many."""
    table, source = open_table(own), open_table(other)
    shorts, found = other.short.size // SLOT, 0
    for k in range(first, min(last, shorts)):
        count = get_u64(source.short, SLOT * k + 2)
        if not_there(count):
            continue
        a, b = get_u64(source.short, SLOT * k), get_u64(source.short, SLOT * k + 1)
        i = np.int64(hash_short(a, b, table.key, table.factor) & table.short_mask)
        had = get_u64(table.short, SLOT * i + 2)
        while had != NONE and (get_u64(table.short, SLOT * i) != a or get_u64(table.short, SLOT * i + 1) != b):
            i = i + 1 & np.int64(table.short_mask)
            had = get_u64(table.short, SLOT * i + 2)
        found += _added(table.short, i, source.short, k)
    for k in range(max(first - shorts, 0), last - shorts):
        count = get_u64(source.long, SLOT * k + 2)
        if not_there(count):
            continue
        h, size = get_u64(source.long, SLOT * k), np.int64(get_u64(source.long, SLOT * k + 3) >> S32)
        position = np.int64(get_u64(source.long, SLOT * k + 1))
        i = np.int64(h & table.long_mask)
        had = get_u64(table.long, SLOT * i + 2)
        while had != NONE:
            here, its = np.int64(get_u64(table.long, SLOT * i + 1)), np.int64(get_u64(table.long, SLOT * i + 3) >> S32)
            if (
                get_u64(table.long, SLOT * i) == h
                and its == size
                and same_words(table.blob, here, source.blob, position, size)
            ):
                break
            i = i + 1 & np.int64(table.long_mask)
            had = get_u64(table.long, SLOT * i + 2)
        found += _added(table.long, i, source.long, k)
    return found


@kernel
def list_words(
    table: WordTable, first: int, last: int, write: int, words: OutU8, starts: OutI64, counts: OutI64, at: OutI64
) -> int:
    """Words of the slots first .. last - 1 (short ones, then long ones) one after the other; how many bytes they have.

    at: int64[3], see WORDS; the first two move. Nothing is written but `at` unless `write` is 1.
    """
    own, out = open_table(table), window(words)
    shorts, word, position, limit = table.short.size // SLOT, at[WORDS], at[BYTES], at[LIMIT]
    begin = position
    for k in range(first, min(last, shorts)):
        count = get_u64(own.short, SLOT * k + 2)
        if not_there(count):
            continue
        b = get_u64(own.short, SLOT * k + 1)
        size = np.int64(b >> S56)
        if write == 1:
            a = get_u64(own.short, SLOT * k)
            if position + 16 <= limit:
                put_word(out, position, a)
                put_word(out, position + 8, b)
            else:
                for i in range(size):
                    put_u8(out, position + i, (a if i < 8 else b) >> np.uint64(8 * (i & 7)) & BYTE)
            starts[word + 1], counts[word] = position + size, np.int64(count)
        word += 1
        position += size
    for k in range(max(first - shorts, 0), last - shorts):
        count = get_u64(own.long, SLOT * k + 2)
        if not_there(count):
            continue
        size = np.int64(get_u64(own.long, SLOT * k + 3) >> S32)
        if write == 1:
            source = np.int64(get_u64(own.long, SLOT * k + 1))
            for i in range(0, size - 7, 8):
                put_word(out, position + i, get_word(own.blob, source + i))
            put_word(out, position + size - 8, get_word(own.blob, source + size - 8))
            starts[word + 1], counts[word] = position + size, np.int64(count)
        word += 1
        position += size
    at[WORDS], at[BYTES] = word, position
    return position - begin


Listed = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]
"""Words one after the other, int64[words + 1] where each begins, int64[words] counts."""


def words_of(tables: Sequence[WordTable], threads: int = 1) -> Listed:
    """The words of tables, which are written to: give them up, but for one that is alone."""
    if threads == 1:
        return _words_of(tables, map)
    list_words(tables[0], 0, 0, 0, *_EMPTY, np.zeros(3, np.int64))  # compiled here, as Ctrl-C waits for other threads
    add_found(tables[0], tables[0], 0, 0)
    with stoppable_pool(threads, Cancellation()) as pool:
        return _words_of(tables, pool.map)


_EMPTY = np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64)
_Map = Callable[..., Any]


def _ranges(table: WordTable) -> list[tuple[int, int]]:
    slots = (table.short.size + table.long.size) // SLOT
    return list(pairwise([*range(0, slots, SLOTS_PER_STEP), slots]))


def _words_of(tables: Sequence[WordTable], each: _Map) -> Listed:
    for k, later in enumerate(tables):
        for own in tables[:k]:
            list(each(lambda part, own=own, later=later: add_found(own, later, *part), _ranges(later)))
    parts = [(table, *part) for table in tables for part in _ranges(table)]

    def measure(part: tuple[WordTable, int, int]) -> NDArray[np.int64]:
        at = np.zeros(3, np.int64)
        list_words(*part, 0, *_EMPTY, at)
        return at

    sums = np.concatenate([np.zeros((1, 3), np.int64), *(at[None] for at in each(measure, parts))]).cumsum(0)
    number, size = int(sums[-1, WORDS]), int(sums[-1, BYTES])
    words, starts, counts = np.empty(size, np.uint8), np.empty(number + 1, np.int64), np.empty(number, np.int64)
    starts[0] = 0

    def write(k: int) -> int:
        at = np.array([sums[k, WORDS], sums[k, BYTES], sums[k + 1, BYTES]])
        return list_words(*parts[k], 1, words, starts, counts, at)

    list(each(write, range(len(parts))))
    return words, starts, counts

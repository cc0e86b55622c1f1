"""The hash table in which words are counted.

A word of up to 15 bytes is its own key, as in the pre-token cache: its bytes, with their number on top, are two words
of a slot. So counting a known one touches one cache line. A longer one is found by a hash of 64 bits and compared in
the blob, where long words are one after the other. Words come in batches: all of a batch are hashed and their slots
prefetched, then they are compared.

Words are hashed with a secret of the process, which is in the table: a text cannot choose words that all want one slot,
which would take time in the square of their number. No count depends on it. Other processes may read runs on disk, so
they are cut by hashes without a secret (see `runs`).

A slot is four words of 64 bits, a count of 0 an empty one:

    short   bytes 0..7 | bytes 8..14 and the length in the top byte | count | the last document it was met in
    long    hash | offset in the blob | count | length << 32 and the last document

Documents are numbered from 1; their numbers are only kept where a word counts once a document.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.jit import I64, U8, U64, OutI64, OutU8, OutU64, helper, kernel
from jittok.kernels.jit.pool import Cancellation, stoppable_pool
from jittok.kernels.memory import (
    Window,
    add,
    get_i32,
    get_i64,
    get_u64,
    get_word,
    multiply,
    prefetch,
    put_i64,
    put_u8,
    put_u64,
    put_word,
    window,
)
from jittok.kernels.pretoken_cache.long_table import same_bytes
from jittok.kernels.pretoken_cache.tables import LONGEST_SHORT
from jittok.kernels.structures.bytes_table import KEYS, folded

SLOT = 4
BATCH = 64
RESERVED = 1 << 21
"""Slots that a table may grow to without being moved."""
LINE = 8
"""Words of a cache line."""
NEED_SHORT, NEED_LONG, NEED_BLOB = -1, -2, -3
"""There is too little of this for the next batch; nothing of it has been counted."""
N_SHORT, N_LONG, N_BLOB = range(3)
"""Indices of `WordTable.used`."""
MIX = np.uint64(0x165667B19E3779F9)
NONE, ONE = np.uint64(0), np.uint64(1)
S29, S32, S56 = np.uint64(29), np.uint64(32), np.uint64(56)
LOW = np.uint64(0xFFFFFFFF)
BYTE = np.uint64(0xFF)
GONE = np.uint64(0xFFFFFFFFFFFFFFFF)
"""Replaces the count of a word that an earlier table has. No count is as large."""
SLOTS_PER_STEP = 1 << 17
"""Slots of one call of a kernel: a few milliseconds."""
WORDS, BYTES, LIMIT = range(3)
"""Indices of the state of `list_words`: words and bytes before, and the byte after the last one of this part."""


class WordTable(NamedTuple):
    """Words with their counts. Slots are a power of two, and no more than five in eight are full."""

    short: OutU64  # [SLOT * slots]
    long: OutU64  # [SLOT * slots]
    blob: OutU8  # [bytes] long words, with 16 bytes of capacity after them
    used: OutI64  # [3] short words, long words, bytes of the blob
    keys: OutU64  # [3 * BATCH] scratch: the keys and slots of one batch
    secret: U64  # [2] see `bytes_table.KEYS`; tables whose words are compared have the same


class WordTableWindow(NamedTuple):
    """The same as windows."""

    short: Window
    long: Window
    blob: Window
    used: Window
    keys: Window
    short_mask: np.uint64
    long_mask: np.uint64
    short_limit: int
    long_limit: int
    blob_size: int
    key: np.uint64
    factor: np.uint64


def make_table(slots: int = 1 << 14, blob: int = 1 << 16) -> WordTable:
    """An empty table; `slots` is a power of two, 128 or more."""
    return WordTable(
        _slots(slots),
        _slots(slots),
        np.empty(blob, np.uint8),
        np.zeros(3, np.int64),
        np.zeros(3 * BATCH, np.uint64),
        KEYS,
    )


def table_bytes(table: WordTable) -> int:
    """Bytes of a table, but for its scratch."""
    return table.short.nbytes + table.long.nbytes + table.blob.nbytes


@helper
def open_table(table: WordTable) -> WordTableWindow:
    """Windows onto the arrays."""
    short, long, secret = table.short.size // SLOT, table.long.size // SLOT, window(table.secret)
    return WordTableWindow(
        window(table.short),
        window(table.long),
        window(table.blob),
        window(table.used),
        window(table.keys),
        np.uint64(short - 1),
        np.uint64(long - 1),
        short * 5 // 8,
        long * 5 // 8,
        table.blob.size,
        get_u64(secret, 0),
        get_u64(secret, 1),
    )


@helper
def hash_short(a: np.uint64, b: np.uint64, key: np.uint64, factor: np.uint64) -> np.uint64:
    """The hash of a short word's two keys with a secret, of which both numbers are odd.

    Keys of which one half is the same never meet in all bits. Others do where they differ in the highest bits alone, if
    a secret that nobody knows happens to be so: of n chosen words no more than about the root of n / 1000.
    """
    h = multiply(a ^ a >> S32, key) ^ multiply(b ^ b >> S29, factor)
    h = multiply(h ^ h >> S32, MIX)
    return h ^ h >> S29


@helper
def _hash_long(text: Window, at: int, size: int, key: np.uint64, factor: np.uint64) -> np.uint64:
    """The hash of a long word with a secret."""
    h = add(np.uint64(size), key)
    i = 0
    while i + 8 < size:
        h = add(folded(h ^ get_word(text, at + i), factor), key)
        i += 8
    h = multiply(folded(h ^ get_word(text, at + size - 8), factor), MIX)
    return h ^ h >> S32


@helper
def _add_short(table: WordTableWindow, i: int, a: np.uint64, b: np.uint64, weight: np.uint64, mark: np.uint64) -> None:
    """`weight` more of a short word, to be searched for from slot i on; none if it has the mark already."""
    while True:
        count = get_u64(table.short, SLOT * i + 2)
        if count == NONE:
            put_u64(table.short, SLOT * i, a)
            put_u64(table.short, SLOT * i + 1, b)
            put_u64(table.short, SLOT * i + 2, weight)
            put_u64(table.short, SLOT * i + 3, mark)
            put_i64(table.used, N_SHORT, get_i64(table.used, N_SHORT) + 1)
            return
        if get_u64(table.short, SLOT * i) == a and get_u64(table.short, SLOT * i + 1) == b:
            if mark != NONE:
                if get_u64(table.short, SLOT * i + 3) == mark:
                    return
                put_u64(table.short, SLOT * i + 3, mark)
            put_u64(table.short, SLOT * i + 2, count + weight)
            return
        i = i + 1 & np.int64(table.short_mask)


@helper
def _add_long(
    table: WordTableWindow, h: np.uint64, text: Window, at: int, size: int, weight: np.uint64, mark: np.uint64
) -> None:
    """`weight` more of the long word text[at:at + size] with hash h; none if it has the mark already."""
    i = np.int64(h & table.long_mask)
    while True:
        count = get_u64(table.long, SLOT * i + 2)
        if count == NONE:
            position = get_i64(table.used, N_BLOB)
            for k in range(0, size - 7, 8):
                put_word(table.blob, position + k, get_word(text, at + k))
            put_word(table.blob, position + size - 8, get_word(text, at + size - 8))
            put_u64(table.long, SLOT * i, h)
            put_u64(table.long, SLOT * i + 1, np.uint64(position))
            put_u64(table.long, SLOT * i + 2, weight)
            put_u64(table.long, SLOT * i + 3, np.uint64(size) << S32 | mark)
            put_i64(table.used, N_BLOB, position + size)
            put_i64(table.used, N_LONG, get_i64(table.used, N_LONG) + 1)
            return
        if get_u64(table.long, SLOT * i) == h:
            found = get_u64(table.long, SLOT * i + 3)
            position = np.int64(get_u64(table.long, SLOT * i + 1))
            if np.int64(found >> S32) == size and same_bytes(table.blob, position, text, at, size):
                if mark != NONE:
                    if (found & LOW) == mark:
                        return
                    put_u64(table.long, SLOT * i + 3, np.uint64(size) << S32 | mark)
                put_u64(table.long, SLOT * i + 2, count + weight)
                return
        i = i + 1 & np.int64(table.long_mask)


@helper
def has_room(table: WordTableWindow, words: int, size: int) -> int:
    """0 if there is capacity for so many words of so many bytes in all, else what there is too little of."""
    if get_i64(table.used, N_SHORT) + words > table.short_limit:
        return NEED_SHORT
    if get_i64(table.used, N_LONG) + min(words, size // (LONGEST_SHORT + 1)) > table.long_limit:
        return NEED_LONG
    if get_i64(table.used, N_BLOB) + size + 16 > table.blob_size:
        return NEED_BLOB
    return 0


@helper
def _keys(text: Window, at: int, size: int) -> tuple[np.uint64, np.uint64]:
    """The two keys of text[at:at + size]; what they are for a long word means nothing."""
    a, b = get_word(text, at), get_word(text, at + 8)
    if size < 8:
        a &= (ONE << np.uint64(8 * size)) - ONE
        b = NONE
    else:
        b &= (ONE << np.uint64(8 * (size & 7))) - ONE
    return a, b | np.uint64(size & 0xFF) << S56


@helper
def count_batch(
    table: WordTableWindow, text: Window, begin: int, positions: Window, first: int, number: int, weight: np.uint64,
    mark: np.uint64,
) -> int:  # fmt: skip
    """Count words first .. first + number - 1, at most BATCH.

    Word k begins at text[begin + positions[k]] and ends where the next one begins; 16 bytes are readable from each
    begin. Returns 0, or the code of what there is too little of (see `has_room`).
    """
    code = has_room(table, number, get_i32(positions, first + number) - get_i32(positions, first))
    if code != 0:
        return code
    for k in range(number):
        at = get_i32(positions, first + k)
        size = get_i32(positions, first + k + 1) - at
        a, b = _keys(text, begin + at, size)
        slot = hash_short(a, b, table.key, table.factor) & table.short_mask
        put_u64(table.keys, 3 * k, a)
        put_u64(table.keys, 3 * k + 1, b)
        put_u64(table.keys, 3 * k + 2, slot)
        prefetch(table.short, np.int64(slot) * SLOT, 8)
    for k in range(number):
        at = get_i32(positions, first + k)
        size = get_i32(positions, first + k + 1) - at
        if size <= LONGEST_SHORT:
            slot = np.int64(get_u64(table.keys, 3 * k + 2))
            _add_short(table, slot, get_u64(table.keys, 3 * k), get_u64(table.keys, 3 * k + 1), weight, mark)
        else:
            h = _hash_long(text, begin + at, size, table.key, table.factor)
            _add_long(table, h, text, begin + at, size, weight, mark)
    return 0


@kernel
def add_words(table: WordTable, words: U8, starts: I64, counts: I64, state: OutI64) -> int:
    """Adds words with counts: word k is words[starts[k]:starts[k + 1]], with 16 readable bytes after the last one.

    state: int64[1] the word to continue from, 0 at first. Returns 0, or NEED_*.
    """
    own, text = open_table(table), window(words)
    k = state[0]
    while k < counts.size:
        at, size = starts[k], starts[k + 1] - starts[k]
        code = has_room(own, 1, size)
        if code != 0:
            state[0] = k
            return code
        weight = np.uint64(counts[k])
        if weight != NONE and size > LONGEST_SHORT:
            _add_long(own, _hash_long(text, at, size, own.key, own.factor), text, at, size, weight, NONE)
        elif weight != NONE and size > 0:
            a, b = _keys(text, at, size)
            h = hash_short(a, b, own.key, own.factor)
            _add_short(own, np.int64(h & own.short_mask), a, b, weight, NONE)
        k += 1
    state[0] = k
    return 0


@kernel
def spread_slots(slots: OutU64, secret: U64, long: int) -> int:
    """The words in the first half of the slots, all others of which are empty, move to their slots in the whole table.

    From the first empty slot on, around: a word moves to a slot that no later one is before, if not to its
    own. For of the words before it no more can be in its way than were before.
    """
    table, half = window(slots), slots.size // SLOT // 2
    mask, first, moved = np.int64(2 * half - 1), 0, 0
    while get_u64(table, SLOT * first + 2) != NONE:
        first += 1
    for n in range(half):
        k = first + n & half - 1
        count = get_u64(table, SLOT * k + 2)
        if count == NONE:
            continue
        a, b, last = get_u64(table, SLOT * k), get_u64(table, SLOT * k + 1), get_u64(table, SLOT * k + 3)
        i = np.int64((a if long != 0 else hash_short(a, b, secret[0], secret[1])) & np.uint64(mask))
        put_u64(table, SLOT * k + 2, NONE)
        while get_u64(table, SLOT * i + 2) != NONE:
            i = i + 1 & mask
        put_u64(table, SLOT * i, a)
        put_u64(table, SLOT * i + 1, b)
        put_u64(table, SLOT * i + 2, count)
        put_u64(table, SLOT * i + 3, last)
        moved += i != k
    return moved


def _slots(number: int) -> NDArray[np.uint64]:
    """So many empty slots, with memory after them, of which pages are taken only when a table has grown so far."""
    return _on_lines(SLOT * max(number, RESERVED))[: SLOT * number]


def _on_lines(size: int) -> NDArray[np.uint64]:
    """So many zeros that begin where a cache line does: no slot lies on two of them."""
    whole = np.zeros(size + LINE, np.uint64)
    front = -(whole.ctypes.data // whole.itemsize) % LINE
    return whole[front : front + size]


def _twice(slots: NDArray[np.uint64], secret: U64, long: int) -> NDArray[np.uint64]:
    """The same words in twice as many slots."""
    more, size = slots[:0], 2 * slots.size
    if isinstance(slots.base, np.ndarray):
        front = (slots.ctypes.data - slots.base.ctypes.data) // slots.itemsize
        more = slots.base[front : front + size]
    if more.size < size:
        more = _on_lines(2 * size)[:size]
        more[: slots.size] = slots
    spread_slots(more, secret, long)
    return more


def grown(table: WordTable, code: int, size: int = 0) -> WordTable:
    """The table with more of what `code` asks for; `size`: bytes that the blob must take."""
    if code == NEED_SHORT:
        return table._replace(short=_twice(table.short, table.secret, 0))
    if code == NEED_LONG:
        return table._replace(long=_twice(table.long, table.secret, 1))
    used = int(table.used[N_BLOB])
    blob = np.empty(max(2 * table.blob.size, used + size + 1024), np.uint8)
    blob[:used] = table.blob[:used]
    return table._replace(blob=blob)


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
                and same_bytes(table.blob, here, source.blob, position, size)
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

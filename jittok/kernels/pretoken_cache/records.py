"""Records: the input of the loop over pre-tokens (`lookup`), one per pre-token and one where fragments end.

A record has the key, and the position of the cache line that it will be compared with. The line is prefetched, so that
it is in the processor's cache when the loop reaches the record.

By hand for the pre-token " the" at offset 7 of the text, which is short:

    word 0   line << LINE | KIND_SHORT    line = `short_line(hash_short(low, high), bits)`, in words of the short table
    word 1   0x0000_0000_6568_7420        low: the bytes 20 74 68 65, the first one lowest, zero-padded
    word 2   0x0400_0000_0000_0000        high: bytes 8 to 14, and the length, 4, in byte 15
    word 3   7                            where it begins: a miss is encoded from there

Words 1 and 2 are also the first two words of its slot, so a hit is two comparisons. " the\0" has the same text words,
but length 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.kernels.jit import OutU64, helper, inlined
from jittok.kernels.memory import (
    Window,
    get_i32,
    get_u64,
    get_word,
    prefetch,
    put_i32,
    put_i64,
    put_key,
    put_u8,
    put_u64,
    put_word,
)
from jittok.kernels.pretoken_cache.long_table import hash_long
from jittok.kernels.pretoken_cache.tables import (
    LONGEST_MIDDLE,
    LONGEST_SHORT,
    CacheWindow,
    hash_middle,
    hash_short,
    middle_slot,
    short_line,
)

BATCH = 128
RECORD = 4
"""Words a record: position << LINE | HEADED | kind, then the key (or hash and length), then the offset of the text. Of
an END: the first fragment that ends, then the number of those that do: after the first one only tokens."""
LINE = 3
"""The shift that makes an index of a word its offset in bytes."""
KIND_SHORT, KIND_MIDDLE, KIND_LONG, KIND_END = 0, 1, 2, 3
KINDS, HEADED = 3, 4
"""Bits of a record's first word: the kind; whether a byte is before the pre-token that is not in the text there."""
_8, _56, _ALL_BUT_LENGTH = np.uint64(8), np.uint64(56), np.uint64((1 << 56) - 1)


def make_records() -> OutU64:
    """Scratch for one batch."""
    return np.zeros(RECORD * BATCH, np.uint64)


class RunWindow(NamedTuple):
    """The additional state for records of several fragments."""

    head: Window  # bytes: a pre-token with `first` before it
    first: int  # the byte that is before HEADED pieces
    tokens: Window  # int32: the fragments' tokens, see `jittok.kernels.fragments`
    ends: Window  # int64: the ends of each fragment's ids
    state: Window  # int64[RUN_STATE]


DONE, BARRED, RUN_STATE = range(3)
"""Indices of RunWindow.state: the last fragment whose END was reached; the last one that must not be in a run."""


@helper
def end_fragments(run: RunWindow, first: int, last: int, ids: Window, count: int) -> int:
    """Write the tokens and the ends of fragments first .. last - 1. Returns the new count."""
    for fragment in range(first, last):
        token = get_i32(run.tokens, fragment)
        put_i32(ids, count, token)
        count += token >= 0
        put_i64(run.ends, fragment, count)
    put_i64(run.state, DONE, last - 1)
    return count


@inlined
def put_head(head: Window, first: int, text: Window, start: int, stop: int) -> None:
    """Copy `first` and text[start:stop] to `head`. Up to seven bytes after them are read and written."""
    put_u8(head, 0, first)
    for k in range(0, stop - start, 8):
        put_word(head, 1 + k, get_word(text, start + k))


@inlined
def _put_line(
    cache: CacheWindow, records: Window, record: int, low: np.uint64, high: np.uint64, short: int, kind: int
) -> None:
    """Write the first word of a short pre-token's record, and prefetch its line."""
    line = short_line(hash_short(low, high), short)
    prefetch(cache.short, line, 8)
    put_u64(records, record, np.uint64(line << LINE | kind))


@inlined
def put_record(
    cache: CacheWindow, records: Window, record: int, text: Window, start: int, stop: int, short: int, middle: int
) -> None:
    """Write the record of text[start:stop], and prefetch the slots that it will be compared with. short, middle: bits
    of the tables."""
    n = stop - start
    if n <= LONGEST_SHORT:
        low, high = put_key(records, record + 1, text, start, cache.masks, n)
        _put_line(cache, records, record, low, high, short, KIND_SHORT)
    elif n <= LONGEST_MIDDLE:
        c, d = put_key(records, record + 1, text, start + 16, cache.masks, n)
        slot = middle_slot(hash_middle(get_word(text, start), get_word(text, start + 8), c, d), middle)
        prefetch(cache.middle, slot, 8)
        put_u64(records, record, np.uint64(slot << LINE | KIND_MIDDLE))
    else:
        put_u64(records, record, np.uint64(KIND_LONG))
        put_u64(records, record + 1, hash_long(text, start, n))
        put_u64(records, record + 2, np.uint64(n))
    put_u64(records, record + 3, np.uint64(start))


@inlined
def put_headed_record(
    cache: CacheWindow,
    records: Window,
    record: int,
    run: RunWindow,
    text: Window,
    start: int,
    stop: int,
    short: int,
    middle: int,
) -> None:
    """The same with run.first before text[start:stop].

    A short key is shifted in registers: a store that is read back at another offset would stall.
    """
    n = stop - start
    if n < LONGEST_SHORT:
        low, high = put_key(records, record + 1, text, start, cache.masks, n)
        high = (high << _8 | low >> _56) & _ALL_BUT_LENGTH | np.uint64(n + 1) << _56
        low = low << _8 | np.uint64(run.first)
        put_u64(records, record + 1, low)
        put_u64(records, record + 2, high)
        _put_line(cache, records, record, low, high, short, KIND_SHORT | HEADED)
    else:
        put_head(run.head, run.first, text, start, stop)
        put_record(cache, records, record, run.head, 0, n + 1, short, middle)
        put_u64(records, record, get_u64(records, record) | np.uint64(HEADED))
    put_u64(records, record + 3, np.uint64(start))

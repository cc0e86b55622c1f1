"""Cutting texts around special tokens: documents to fragments, by one rule for all vocabulary types.

llama.cpp searches the whole text for the longest special token, then the rest for the next, and so on. This is *not*
leftmost-longest: with tokens `ab` and `bcd`, `abcd` is `a` + [bcd]. Here one scan finds the occurrences (a double array
has the longest token at each offset). Occurrences that touch each other form a *cluster*, and clusters do not influence
each other. In a cluster the occurrences are tried in llama.cpp's order (rank of the token, then offset) and accepted
if their bytes are free. Source: llama.cpp, `tokenizer_st_partition`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.kernels.fragments import FOUND, MIXED_TOKEN, NEED, OFFSET, OUT_OF_CAPACITY, OUT_OF_WORK, TEXT_PREFIXED
from jittok.kernels.jit import I64, U8, U32, OutI32, OutI64, frozen, helper, inlined, kernel
from jittok.kernels.memory import Window, get_i32, get_i64, get_u8, put_i32, put_i64
from jittok.kernels.special.documents import (
    Output,
    make_cut_documents,
    open_output,
    open_search,
    put_fragment,
    put_id,
)
from jittok.kernels.special.search import (
    MIXED,
    NOTHING_LITERAL,
    REFUSED,
    SearchWindow,
    is_alone,
    judged,
    longest_admitted,
    longest_of_run,
    next_occurrence,
    run_end,
)
from jittok.kernels.special.tables import STRIPS_LEFT, STRIPS_RIGHT, SpecialTokens
from jittok.kernels.structures.double_array import BASE, NO_VALUE, PARENT, ROOT, UNIT, VALUE
from jittok.kernels.structures.long_keys import LONG, NONE, long_value, next_long

FREE, STRIPPED = -1, -2
"""Owners of a byte in a cluster that are no rank: no one, and a token that strips the blanks beside it."""
RANK_SHIFT = 40
PLACE_MASK = (1 << RANK_SHIFT) - 1
"""A key is rank << 40 | offset in the document, so keys compare in llama.cpp's order."""
SPARE = 3
"""Fragments of a document besides its tokens and the texts before them: the ids around it, and its last text."""


NO_LITERAL = frozen([0], np.uint32)
"""`PartitionWork.literal` where no byte is literal."""


class PartitionWork(NamedTuple):
    """Scratch of one thread, for clusters of up to keys.size occurrences in owners.size bytes, and for texts of up to
    long.size bytes in which long tokens are searched for."""

    keys: OutI64  # [occurrences]
    heap: OutI64  # [occurrences]
    owners: OutI32  # [bytes]
    long: OutI32  # [bytes] the long tokens that begin at each offset, see `structures.long_keys`
    later: OutI32  # [bytes] the same for a second search
    begun: OutI64  # [2] the starts of the texts that these two are of
    literal: U32  # [bytes of the data + 1] how many bytes before each offset are literal; empty if none is
    mixed: int  # what a guarded token is that is literal in part: MIXED_FAILS or MIXED_IS_TEXT; or NOTHING_LITERAL


def make_work(size: int, long: int = 0) -> PartitionWork:
    """Scratch for clusters of up to `size` bytes, and texts of up to `long` bytes in which long tokens may be."""
    return PartitionWork(
        np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int32), np.empty(long, np.int32),
        np.empty(long, np.int32), np.zeros(2, np.int64), NO_LITERAL, NOTHING_LITERAL,
    )  # fmt: skip


@helper
def _blank(byte: int) -> bool:
    """ASCII whitespace, C's isspace."""
    return byte == 32 or 9 <= byte <= 13


@helper
def _longest_free(w: SearchWindow, at: int, length: int, offset: int) -> int:
    """Rank of the longest admitted token at `at`, shorter than `length`, whose last byte is free and which literal text
    does not refuse, or NO_VALUE.

    owners[offset] belongs to data[at], and the cluster reaches to data[at + length - 1].
    """
    node, rank, last = ROOT, NO_VALUE, length - 1
    if w.long.count != 0 and length > LONG:
        long = get_i32(w.long_at, at - get_i64(w.begun, w.slot))
        while long != NONE:
            rank, size = long_value(w.long, long)
            if size < length and get_i32(w.owners, offset + size - 1) == FREE and judged(w, at, rank) != REFUSED:
                return rank
            long = next_long(w.long, long)
        rank, last = NO_VALUE, min(last, LONG)
    for i in range(last):
        position = get_i32(w.units, UNIT * node + BASE) ^ get_u8(w.data, at + i)
        if get_i32(w.units, UNIT * position + PARENT) != node:
            break
        node = position
        here = get_i32(w.units, UNIT * node + VALUE)
        if here != NO_VALUE and get_i32(w.owners, offset + i) == FREE and judged(w, at, here) != REFUSED:
            rank = here
    return rank


@helper
def _blanks_around(data: Window, at: int, start: int, stop: int) -> tuple[int, int]:
    """The longest run of blanks data[low:high] inside data[start:stop] with low <= at <= high."""
    low, high = at, at
    while low > start and _blank(get_u8(data, low - 1)):
        low -= 1
    while high < stop and _blank(get_u8(data, high)):
        high += 1
    return low, high


@helper
def _push(heap: Window, size: int, key: int) -> int:
    """Add a key to a binary min-heap with capacity for it. Returns the new size."""
    at = size
    while at > 0 and get_i64(heap, (at - 1) // 2) > key:
        put_i64(heap, at, get_i64(heap, (at - 1) // 2))
        at = (at - 1) // 2
    put_i64(heap, at, key)
    return size + 1


@helper
def _pop(heap: Window, size: int) -> int:
    """Remove the least key of a non-empty heap. Returns the new size."""
    size -= 1
    key, at = get_i64(heap, size), 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and get_i64(heap, below + 1) < get_i64(heap, below):
            below += 1
        if get_i64(heap, below) >= key:
            break
        put_i64(heap, at, get_i64(heap, below))
        at = below
    put_i64(heap, at, key)
    return size


@helper
def _sort(keys: Window, heap: Window, count: int) -> None:
    """Sort keys[:count] with a heap of that size; linear if they are sorted already, as for runs of one character."""
    k = 1
    while k < count and get_i64(keys, k - 1) <= get_i64(keys, k):
        k += 1
    if k >= count:
        return
    size = 0
    for k in range(count):
        size = _push(heap, size, get_i64(keys, k))
    for k in range(count):
        put_i64(keys, k, get_i64(heap, 0))
        size = _pop(heap, size)


@helper
def _resolve(w: SearchWindow, origin: int, start: int, stop: int, count: int, report: OutI64) -> bool:
    """Assign an owner to each byte of the cluster data[start:stop]. keys[:count]: its occurrences, the longest at each
    offset. False if a token is literal in part, with its place and id in the report.

    origin: the start of the document. An offset is tried again, through the heap, with its next shorter token that may
    still be free, so n bytes with d tokens at each offset cost far less than n * d. All occurrences are inside the
    cluster, so the offsets are in bounds; an offset is in the keys or once in the heap, so the heap cannot overflow.
    """
    for k in range(stop - start):
        put_i32(w.owners, k, FREE)
    _sort(w.keys, w.heap, count)
    at, size = 0, 0
    while at < count or size > 0:
        if size == 0 or (at < count and get_i64(w.keys, at) < get_i64(w.heap, 0)):
            key = get_i64(w.keys, at)
            at += 1
        else:
            key = get_i64(w.heap, 0)
            size = _pop(w.heap, size)
        rank, position = key >> RANK_SHIFT, origin + (key & PLACE_MASK)
        offset, length = position - start, get_i32(w.lengths, rank)
        if get_i32(w.owners, offset) != FREE:
            continue
        if get_i32(w.owners, offset + length - 1) != FREE:
            rank = _longest_free(w, position, length, offset)
            if rank != NO_VALUE:
                size = _push(w.heap, size, rank << RANK_SHIFT | (position - origin))
            continue
        if judged(w, position, rank) == MIXED:
            report[OFFSET], report[FOUND] = position, get_i32(w.ids, rank)
            return False
        for k in range(offset, offset + length):
            put_i32(w.owners, k, rank)
        strips = get_u8(w.strips, rank)
        k = offset - 1
        while strips & STRIPS_LEFT and k >= 0 and get_i32(w.owners, k) == FREE and _blank(get_u8(w.data, start + k)):
            put_i32(w.owners, k, STRIPPED)
            k -= 1
        k = offset + length
        while (
            strips & STRIPS_RIGHT and k < stop - start
            and get_i32(w.owners, k) == FREE and _blank(get_u8(w.data, start + k))
        ):  # fmt: skip
            put_i32(w.owners, k, STRIPPED)
            k += 1
    return True


@helper
def _put(out: Output, at: int, start: int, stop: int, token: int) -> int:
    """Write fragment number `at`, unless it is an empty text. Returns the number of fragments."""
    if token < 0 and start >= stop:
        return at
    return put_fragment(out, at, start, stop, token)


@inlined
def _put_run(w: SearchWindow, out: Output, at: int, text: int, start: int, end: int) -> tuple[int, int, int]:
    """Write the text from `text` on and the tokens of the run data[start:end]. Returns (the number of fragments, the
    start of the text after the last token, `end`)."""
    byte = get_u8(w.data, start)
    most = get_i32(w.runs, byte)
    at = _put(out, at, text, start, TEXT_PREFIXED)
    longest = get_i32(w.ids, longest_of_run(w, byte, most))
    while end - start >= most:
        at, start = _put(out, at, start, start + most, longest), start + most
    rank = longest_of_run(w, byte, end - start)
    while rank != NO_VALUE:
        after = start + get_i32(w.lengths, rank)
        at = _put(out, at, start, after, get_i32(w.ids, rank))
        start, rank = after, longest_of_run(w, byte, end - after)
    return at, start, end


@helper
def _emit(w: SearchWindow, out: Output, text: int, start: int, stop: int, at: int) -> tuple[int, int]:
    """Write the fragments of the resolved cluster data[start:stop], and before them the text from `text` on.

    Returns the number of fragments and the start of the text after the last token.
    """
    k = 0
    while k < stop - start:
        rank = get_i32(w.owners, k)
        if rank == FREE:
            k += 1
            continue
        at = _put(out, at, text, start + k, TEXT_PREFIXED)
        length = 1
        if rank != STRIPPED:
            length = get_i32(w.lengths, rank)
            at = _put(out, at, start + k, start + k + length, get_i32(w.ids, rank))
        k += length
        text = start + k
    return at, text


class _Rule(NamedTuple):
    """What cutting a text needs besides the windows."""

    special: SpecialTokens
    work: PartitionWork


@helper
def _lacks(out: Output, need: int, report: OutI64) -> bool:
    """Whether there is no capacity for so many fragments; then report[NEED] is set."""
    if need > out.capacity:
        report[NEED] = need
        return True
    return False


@inlined
def _next_admitted(w: SearchWindow, i: int, stop: int, block: int, mask: np.uint64) -> tuple[int, int, int, np.uint64]:
    """`next_occurrence`, but for tokens that are refused there."""
    while True:
        i, rank, block, mask = next_occurrence(w, i, stop, block, mask)
        if rank == NO_VALUE or judged(w, i, rank) != REFUSED:
            return i, rank, block, mask
        rank = longest_admitted(w, i, get_i32(w.lengths, rank))
        if rank != NO_VALUE:
            return i, rank, block, mask
        i += 1


@helper
def _cut_text(
    own: _Rule, w: SearchWindow, out: Output, at: int, start: int, stop: int, _spare: int, report: OutI64
) -> int:
    """The fragments of one text; see `make_cut_documents`."""
    special, work = own.special, own.work
    text, i = start, start if special.ids.size else stop
    count, low, high = 0, start, start  # occurrences of the open cluster, its bytes
    ahead, ahead_stop = start - 1, start - 1  # the blanks looked at last before an occurrence,
    following, behind_stop = start - 1, start - 1  # and after one
    block, mask = start - 64, np.uint64(0)
    while True:
        i, rank, block, mask = _next_admitted(w, i, stop, block, mask)
        left, right = i, i
        if rank != NO_VALUE:
            right += get_i32(w.lengths, rank)
            if special.any_strips:  # what may be stripped belongs to the cluster, on both sides
                if not ahead <= left <= ahead_stop:
                    ahead, ahead_stop = _blanks_around(w.data, left, start, stop)
                if not following <= right <= behind_stop:
                    following, behind_stop = _blanks_around(w.data, right, start, stop)
                left, right = ahead, behind_stop
        if count and (rank == NO_VALUE or left >= high):
            if _lacks(out, at + 2 * count + 3, report):
                return OUT_OF_CAPACITY
            if high - low > work.owners.size:
                report[NEED] = high - low
                return OUT_OF_WORK
            if not _resolve(w, start, low, high, count, report):
                return MIXED_TOKEN
            at, text = _emit(w, out, text, low, high, at)
            count = 0
        if rank == NO_VALUE:
            break
        if count == 0 and get_i32(w.runs, get_u8(w.data, i)) > 0:
            # every token that begins in this run is of its byte: the longest that fits is the next, until none does
            end, most = run_end(w, i, stop), get_i32(w.runs, get_u8(w.data, i))
            # after the longest ones fewer than `most` bytes are left
            if _lacks(out, at + min(end - i, (end - i) // most + most) + 4, report):
                return OUT_OF_CAPACITY
            at, text, i = _put_run(w, out, at, text, i, end)
            continue
        if count == 0 and not special.any_strips and is_alone(w, i, rank, block, mask):
            if _lacks(out, at + 5, report):
                return OUT_OF_CAPACITY
            if judged(w, i, rank) == MIXED:
                report[OFFSET], report[FOUND] = i, get_i32(w.ids, rank)
                return MIXED_TOKEN
            at = _put(out, at, text, i, TEXT_PREFIXED)
            at = _put(out, at, i, right, get_i32(w.ids, rank))
            text = i = right
            continue
        if count == work.keys.size:
            report[NEED] = min(4 * count + 64, stop - start)  # more than `count`, as no place comes twice
            return OUT_OF_WORK
        put_i64(w.keys, count, rank << RANK_SHIFT | (i - start))
        low = left if count == 0 else low
        count, high, i = count + 1, max(high, right), i + 1
    return _put(out, at, text, stop, TEXT_PREFIXED)


_cut_documents = make_cut_documents(_cut_text, put_id)


@kernel
def cut_documents(
    special: SpecialTokens, work: PartitionWork, data: U8, starts: I64, stops: I64, first: int, last: int,
    before: int, after: int, out_starts: OutI64, out_stops: OutI64, out_tokens: OutI32, ends: OutI64, report: OutI64,
) -> int:  # fmt: skip
    """The fragments of documents first .. last - 1, document k being data[starts[k]:stops[k]].

    before, after: ids around each document, or -1
    out_starts, out_stops: int64[capacity], out_tokens: int32[capacity] the fragments, see `jittok.kernels.fragments`
    ends: int64[last - first] number of fragments up to the end of each document
    report: int64[4]

    Returns the number of fragments, or OUT_OF_CAPACITY or OUT_OF_WORK, with a size in report[NEED] that suffices for
    document report[FRAGMENT] where it stopped, or MIXED_TOKEN. Linear in bytes, except for overlapping occurrences that
    are out of order, which are sorted.
    """
    w, out = open_search(special, work, data, False), open_output(out_starts, out_stops, out_tokens)
    own = _Rule(special, work)
    return _cut_documents(own, w, out, starts, stops, first, last, before, after, SPARE, ends, report)

"""Pairs of neighboring symbols: where they are, how often, and the queue of the best.

All words are in one array, separators between them, sorted by count, highest first, so that a word's count is found
by its offset among few levels. A symbol of length n at offset p has its id at p and at p + n - 1, GONE between. So the
symbol before p ends at p - 1 and the one after it begins at p + n: no links are needed.

An occurrence of a pair is the offset of its left symbol. Nothing is ever removed from a pair's list of offsets. An
offset is stale when `symbols[p] != left or symbols[p + lengths[left]] != right`. Ids and lengths alone decide this,
because a symbol at an offset only grows.

Kernels over all words take STEP offsets a call, so that Python can handle signals. Each is linear in the offsets that
it visits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jittok.kernels.jit import I32, I64, U8, U64, OutI32, OutI64, OutU64, as_int64, helper, kernel
from jittok.kernels.memory import Window, get_i32, get_i64, get_u64, leading_zeros, multiply, put_i32, put_i64, window

SEPARATOR, GONE = -1, -2
ABSENT = -1
S32 = np.uint64(32)
PAIR_SHIFT = 32
LOW = 0xFFFFFFFF
ANY, SAME, BYTE = 0, 255, 255
"""Scripts: one that goes with all, and that of what is before."""
STEP = 8 << 20
DENSE = 256
"""First symbols that are this many ids or fewer are counted by pairs in a table of DENSE * DENSE."""
DONE, NEED_POOL, NEED_PAIRS, NEED_TABLE, NEED_QUEUE, BELOW, WATCH, PAUSE = range(8)
"""Codes of kernels. BELOW: no pair reaches the threshold. WATCH: the pair state[BEST] may make a text that exists; the
caller writes to state[ID] which id it makes, or -1 for none (the pair is then dropped), and calls again. NEED_*: there
is too little capacity of this."""


class Line(NamedTuple):
    """The words. `symbols` begins and ends with a separator."""

    symbols: OutI32  # [offsets] ids, SEPARATOR, GONE
    lengths: OutI32  # [ids] first symbols of each id
    level_at: I64  # [levels + 1] where the words of each count begin; the last one is after all offsets
    level_count: I64  # [levels] falling


class PairCounts(NamedTuple):
    """Pairs of at least some count. Slots of the table are a power of two, at most half of them full."""

    table: OutI32  # [slots] number of a pair, or ABSENT
    keys: OutI64  # [pairs] left << 32 | right
    counts: OutI64  # [pairs] never rising
    at: OutI64  # [pairs] where its list begins in the pool
    size: OutI64  # [pairs] length of its list, stale offsets included
    pool: OutI32  # [offsets] lists of offsets, each rising
    secret: U64  # [2] see `bytes_table.KEYS`: neither ids nor texts can choose pairs that all want one slot


class Queue(NamedTuple):
    """A heap of four children; counts that fell are put down when they come up."""

    counts: OutI64  # [capacity] the count a pair had when it was put in
    pairs: OutI32  # [capacity]


class SymbolTexts(NamedTuple):
    """What the order of equal counts and the rules of valid pieces need beside ids; empty for BPE's rule."""

    at: OutI64  # [ids + 1] where the text of each id begins
    ranks: OutI32  # [symbols] its first symbols, by rank
    hashes: OutU64  # [ids] of these
    known: OutI32  # [slots] ids by the hash of their texts, or ABSENT
    kinds: OutI32  # [ids] alone << 17 | script at the end << 9 | script at the beginning << 1 | begins with a mark
    longest: int  # symbols of the longest text


class PairCountsWindow(NamedTuple):
    """All of it as windows."""

    symbols: Window
    lengths: Window
    level_at: Window
    level_count: Window
    levels: int
    table: Window
    mask: np.uint64
    keys: Window
    counts: Window
    at: Window
    size: Window
    pool: Window
    heap_counts: Window
    heap_pairs: Window
    text_at: Window
    ranks: Window
    hashes: Window
    known: Window
    known_mask: np.uint64
    kinds: Window
    longest: int  # lengths of a new pair's symbols must add up to less
    factor: np.uint64
    shift: np.uint64


class Rules(NamedTuple):
    """What may be merged, and when it ends."""

    least: int  # pairs of lower counts have no entry
    longest: int
    target: int  # ids in all
    forced: I32  # [2 * merges] pairs to merge first, in this order
    watched: U8  # [lengths] 1: a merge of this length may make a text that exists already


class Training(NamedTuple):
    """All arrays of one training."""

    line: Line
    pairs: PairCounts
    queue: Queue
    texts: SymbolTexts
    rules: Rules


@helper
def open_pairs(arrays: Training) -> PairCountsWindow:
    """Windows onto the arrays."""
    line, pairs, queue, texts = arrays.line, arrays.pairs, arrays.queue, arrays.texts
    return PairCountsWindow(
        window(line.symbols),
        window(line.lengths),
        window(line.level_at),
        window(line.level_count),
        line.level_count.size,
        window(pairs.table),
        np.uint64(pairs.table.size - 1),
        window(pairs.keys),
        window(pairs.counts),
        window(pairs.at),
        window(pairs.size),
        window(pairs.pool),
        window(queue.counts),
        window(queue.pairs),
        window(texts.at),
        window(texts.ranks),
        window(texts.hashes),
        window(texts.known),
        np.uint64(texts.known.size - 1),
        window(texts.kinds),
        arrays.rules.longest,
        get_u64(window(pairs.secret), 1),
        shift_of(pairs.table.size),
    )


@helper
def key_of(left: int, right: int) -> int:
    """The key of a pair."""
    return left << PAIR_SHIFT | right


@helper
def shift_of(size: int) -> np.uint64:
    """What leaves the highest bits of a product as a slot of a table, whose size is a power of two above 1."""
    return np.uint64(leading_zeros(np.uint64(size)) + 1)


@helper
def slot_of(key: int, factor: np.uint64, shift: np.uint64) -> int:
    """Where a key is searched for first. Of the highest bits of a product with a secret odd factor, any two keys have
    the same with a chance of at most two in the number of slots (Dietzfelbinger et al. 1997)."""
    return np.int64(multiply(np.uint64(key), factor) >> shift)


@helper
def find(own: PairCountsWindow, key: int) -> int:
    """The number of a pair, or -1 - the free slot for it."""
    i = slot_of(key, own.factor, own.shift)
    while True:
        e = get_i32(own.table, i)
        if e == ABSENT:
            return -1 - i
        if get_i64(own.keys, e) == key:
            return e
        i = i + 1 & np.int64(own.mask)


@helper
def level_of(own: PairCountsWindow, level: int, position: int) -> int:
    """The level of an offset, at or after `level`: by steps that double, then by halving."""
    if position < get_i64(own.level_at, level + 1):
        return level
    step, low = 1, level + 1
    high = low + 1
    while high < own.levels and get_i64(own.level_at, high) <= position:
        low = high
        step *= 2
        high = min(low + step, own.levels)
    while high - low > 1:
        middle = (low + high) >> 1
        if get_i64(own.level_at, middle) <= position:
            low = middle
        else:
            high = middle
    return low


# ---- which of two pairs is merged first


@helper
def before_by_id(own: PairCountsWindow, count: int, pair: int, other_count: int, other: int) -> bool:
    """Highest count; of these the smallest left id, then the smallest right id."""
    if count != other_count:
        return count > other_count
    return get_i64(own.keys, pair) < get_i64(own.keys, other)


@helper
def before_by_text(own: PairCountsWindow, count: int, pair: int, other_count: int, other: int) -> bool:
    """Highest count; of these the shortest text, then the smallest one (sentencepiece's rule)."""
    if count != other_count:
        return count > other_count
    key, other_key = get_i64(own.keys, pair), get_i64(own.keys, other)
    a, b, x, y = key >> PAIR_SHIFT, key & LOW, other_key >> PAIR_SHIFT, other_key & LOW
    cut, other_cut = get_i32(own.lengths, a), get_i32(own.lengths, x)
    size, other_size = cut + get_i32(own.lengths, b), other_cut + get_i32(own.lengths, y)
    if size != other_size:
        return size < other_size
    for k in range(size):
        c, d = rank_at(own, a, b, cut, k), rank_at(own, x, y, other_cut, k)
        if c != d:
            return c < d
    return key < other_key


@helper
def rank_at(own: PairCountsWindow, a: int, b: int, cut: int, k: int) -> int:
    """Symbol k of the text of a and b, a having `cut` symbols."""
    if k < cut:
        return get_i32(own.ranks, get_i64(own.text_at, a) + k)
    return get_i32(own.ranks, get_i64(own.text_at, b) + k - cut)


# ---- which pairs may be merged


@helper
def allowed_by_length(own: PairCountsWindow, a: int, b: int) -> bool:
    """Whether the merge is not too long; one of two single symbols never is."""
    size = get_i32(own.lengths, a) + get_i32(own.lengths, b)
    return size < own.longest or size == 2


@helper
def allowed_as_piece(own: PairCountsWindow, a: int, b: int) -> bool:
    """Whether the text is a valid piece. It is not too long, has no mark inside, and no symbol that is alone. It
    has one script: b begins with the script that a ends with, or one of the two goes with any script, or takes the
    script of its neighbor."""
    if get_i32(own.lengths, a) + get_i32(own.lengths, b) >= own.longest:
        return False
    left, right = get_i32(own.kinds, a), get_i32(own.kinds, b)
    if right & 1 != 0 or (left | right) >> 17 != 0:
        return False
    last, first = left >> 9 & BYTE, right >> 1 & BYTE
    return last == first or last == ANY or first == ANY or last == SAME or first == SAME  # noqa: PLR1714


@helper
def joined_kind(left: int, right: int) -> int:
    """The kind of a text that is joined of two."""
    first, last = left >> 1 & BYTE, right >> 9 & BYTE
    if first == SAME:
        first = right >> 1 & BYTE
    if last == SAME:
        last = left >> 9 & BYTE
    return last << 9 | first << 1 | left & 1


def make_queue(before: Any) -> tuple[Any, Any]:
    """(push, sink) of a heap in which `before` says what comes first."""

    @helper
    def push(own: PairCountsWindow, size: int, count: int, pair: int) -> int:
        """The size with (count, pair) put in."""
        i = size
        while i > 0:
            up = (i - 1) >> 2
            if not before(own, count, pair, get_i64(own.heap_counts, up), get_i32(own.heap_pairs, up)):
                break
            put_i64(own.heap_counts, i, get_i64(own.heap_counts, up))
            put_i32(own.heap_pairs, i, get_i32(own.heap_pairs, up))
            i = up
        put_i64(own.heap_counts, i, count)
        put_i32(own.heap_pairs, i, pair)
        return size + 1

    @helper
    def sink(own: PairCountsWindow, size: int, count: int, pair: int) -> None:
        """Puts (count, pair) in place of the top."""
        i = 0
        while True:
            child = 4 * i + 1
            if child >= size:
                break
            best = child
            best_count, best_pair = get_i64(own.heap_counts, child), get_i32(own.heap_pairs, child)
            for k in range(child + 1, min(child + 4, size)):
                other_count, other = get_i64(own.heap_counts, k), get_i32(own.heap_pairs, k)
                if before(own, other_count, other, best_count, best_pair):
                    best, best_count, best_pair = k, other_count, other
            if not before(own, best_count, best_pair, count, pair):
                break
            put_i64(own.heap_counts, i, best_count)
            put_i32(own.heap_pairs, i, best_pair)
            i = best
        put_i64(own.heap_counts, i, count)
        put_i32(own.heap_pairs, i, pair)

    return push, sink


@helper
def same_text(own: PairCountsWindow, token: int, a: int, b: int) -> bool:
    """Whether an id's text is that of a and b."""
    cut = get_i32(own.lengths, a)
    size = cut + get_i32(own.lengths, b)
    start = get_i64(own.text_at, token)
    if get_i64(own.text_at, token + 1) - start != size:
        return False
    for k in range(size):
        if get_i32(own.ranks, start + k) != rank_at(own, a, b, cut, k):
            return False
    return True


@helper
def hash_of(own: PairCountsWindow, a: int, b: int) -> np.uint64:
    """The hash of the text of a and b: its symbols from the left, see `mixed`."""
    h = get_u64(own.hashes, a)
    start = get_i64(own.text_at, b)
    for k in range(get_i32(own.lengths, b)):
        h = mixed(h, get_i32(own.ranks, start + k), own.factor)
    return h


@helper
def mixed(h: np.uint64, rank: int, factor: np.uint64) -> np.uint64:
    """The hash with one more symbol."""
    h = multiply(h ^ np.uint64(rank + 1), factor)
    return h ^ h >> S32


@helper
def known_slot(own: PairCountsWindow, h: np.uint64, a: int, b: int) -> int:
    """The id whose text is that of a and b, or -1 - the free slot for it."""
    i = np.int64(h & own.known_mask)
    while True:
        token = get_i32(own.known, i)
        if token == ABSENT:
            return -1 - i
        if get_u64(own.hashes, token) == h and same_text(own, token, a, b):
            return token
        i = i + 1 & np.int64(own.known_mask)


# ---- laying out, counting and listing


@kernel
def weigh_bytes(words: U8, starts: I64, counts: I64, sums: OutI64, first: int, end: int) -> int:
    """Adds to sums (int64[256]) how often each byte occurs in words first .. end - 1; how many words there were."""
    for k in range(first, end):
        for i in range(starts[k], starts[k + 1]):
            sums[words[i]] += counts[k]
    return end - first


@kernel
def lay_out(
    words: U8, ids: I32, symbols: I32, starts: I64, order: I64, counts: I64, out: OutI32, level_at: OutI64,
    level_count: OutI64,
) -> int:  # fmt: skip
    """Words in `order` (counts fall) to the line `out`; the number of levels.

    Word k is starts[k]:starts[k + 1] of `words`, bytes whose symbols are ids[byte], or, where `ids` is empty, of
    `symbols`. A negative symbol separates.
    out: int32[symbols + words + 1]; level_at, level_count: [distinct counts + 1], [distinct counts]
    """
    at, levels, last = 1, 0, np.int64(-1)
    out[0] = SEPARATOR
    for n in range(order.size):
        k = order[n]
        if counts[k] != last:
            last = counts[k]
            level_at[levels], level_count[levels] = at, last
            levels += 1
        for i in range(starts[k], starts[k + 1]):
            symbol = as_int64(ids[words[i]]) if ids.size > 0 else as_int64(symbols[i])
            out[at] = max(symbol, SEPARATOR)
            at += 1
        out[at] = SEPARATOR
        at += 1
    level_at[levels] = at + 1
    return levels


@kernel
def count_dense(line: Line, low: int, sums: OutI64, numbers: OutI64, begin: int, end: int) -> int:
    """Counts, and numbers of offsets, of pairs of first symbols low .. low + DENSE - 1 that begin at begin .. end - 1.

    sums, numbers: int64[DENSE * DENSE], by (left - low) * DENSE + right - low. Returns the offset to continue from.
    """
    end = min(end, line.symbols.size - 1)
    level = 0
    while level < line.level_count.size and line.level_at[level + 1] <= begin:
        level += 1
    last = np.int64(line.symbols[begin])
    at = begin + 1
    while at <= end:
        while line.level_at[level + 1] < at:
            level += 1
        stop = min(end + 1, line.level_at[level + 1])
        weight = line.level_count[level]
        while at < stop:
            symbol = np.int64(line.symbols[at])
            if symbol >= 0 and last >= 0:
                k = (last - low) * DENSE + symbol - low
                sums[k] += weight
                numbers[k] += 1
            last = symbol
            at += 1
        level = min(level + 1, line.level_count.size - 1)
    return end


@kernel
def list_dense(line: Line, low: int, positions: OutI64, pool: OutI32, begin: int, end: int) -> int:
    """Offsets of pairs to the pool: those of pair k from positions[k] on, which moves; a pair with -1 is left out."""
    end = min(end, line.symbols.size - 1)
    last = np.int64(line.symbols[begin])
    for at in range(begin + 1, end + 1):
        symbol = np.int64(line.symbols[at])
        if symbol >= 0 and last >= 0:
            k = (last - low) * DENSE + symbol - low
            if positions[k] >= 0:
                pool[positions[k]] = at - 1
                positions[k] += 1
        last = symbol
    return end


@helper
def pair_at(own: PairCountsWindow, p: int) -> tuple[int, int, int]:
    """(left, right, offset of the right one) of the pair whose left symbol is at offset p; left or right is negative if
    there is no pair. The third value is the offset to continue from in any case."""
    a = get_i32(own.symbols, p)
    if a < 0:
        return a, a, p + 1
    q = p + get_i32(own.lengths, a)
    return a, get_i32(own.symbols, q), q


@helper
def _allowed(own: PairCountsWindow, a: int, b: int, pieces: int) -> bool:
    return allowed_as_piece(own, a, b) if pieces != 0 else allowed_by_length(own, a, b)


@kernel
def sum_pairs(arrays: Training, pieces: int, sums: OutI64, state: OutI64) -> int:
    """Adds the counts of all pairs by their hash, STEP offsets a call: no pair counts more than its sum.

    sums: int64[a power of two], 0 at first; pieces, state: see `count_pairs`
    """
    own = open_pairs(arrays)
    p, level, shift = state[0], 0, shift_of(sums.size)
    end = min(p + STEP, arrays.line.symbols.size - 1)
    while p < end:
        a, b, q = pair_at(own, p)
        if b >= 0 and _allowed(own, a, b, pieces):
            level = level_of(own, level, p)
            sums[slot_of(key_of(a, b), own.factor, shift)] += get_i64(own.level_count, level)
        p = q
    state[0] = p
    return DONE


@kernel
def count_pairs(arrays: Training, pieces: int, numbers: OutI64, sums: I64, least: int, state: OutI64) -> int:
    """Enters all pairs with their counts but those that are below `least` by `sums` (see `sum_pairs`), STEP offsets a
    call. DONE, or NEED_PAIRS, NEED_TABLE, after which the next call begins at the same offset.

    pieces: 1 for the rules of valid pieces; numbers: int64[pairs] of offsets
    state: int64[2] the offset to continue from (1 at first), pairs so far
    """
    own = open_pairs(arrays)
    p, pairs, level, shift, code = state[0], state[1], 0, shift_of(sums.size), DONE
    end = min(p + STEP, arrays.line.symbols.size - 1)
    while p < end:
        a, b, q = pair_at(own, p)
        if b >= 0 and _allowed(own, a, b, pieces):
            key = key_of(a, b)
            if sums[slot_of(key, own.factor, shift)] < least:
                p = q
                continue
            e = find(own, key)
            if e < 0:
                if pairs + 1 > arrays.pairs.keys.size:
                    code = NEED_PAIRS
                    break
                if 2 * pairs >= arrays.pairs.table.size:
                    code = NEED_TABLE
                    break
                put_i32(own.table, -1 - e, pairs)
                e = pairs
                put_i64(own.keys, e, key)
                put_i64(own.counts, e, 0)
                numbers[e] = 0
                pairs += 1
            level = level_of(own, level, p)
            put_i64(own.counts, e, get_i64(own.counts, e) + get_i64(own.level_count, level))
            numbers[e] += 1
        p = q
    state[0], state[1] = p, pairs
    return code


@kernel
def list_pairs(arrays: Training, state: OutI64) -> int:
    """Appends the offsets of all pairs that are in the table to their lists, whose `size` is 0 at first."""
    own = open_pairs(arrays)
    p = state[0]
    end = min(p + STEP, arrays.line.symbols.size - 1)
    while p < end:
        a, b, q = pair_at(own, p)
        if b >= 0:
            e = find(own, key_of(a, b))
            if e >= 0:
                size = get_i64(own.size, e)
                put_i32(own.pool, get_i64(own.at, e) + size, p)
                put_i64(own.size, e, size + 1)
        p = q
    state[0] = p
    return 0


@kernel
def compact(line: Line, pairs: PairCounts, count: int) -> int:
    """Drops stale offsets from the lists of pairs 0 .. count - 1, whose `at` rise; returns what is used of the pool."""
    out = 0
    for e in range(count):
        begin, size = pairs.at[e], pairs.size[e]
        pairs.at[e] = out
        if size <= 0 or pairs.counts[e] <= 0:
            pairs.size[e] = 0
            continue
        a, b = pairs.keys[e] >> PAIR_SHIFT, pairs.keys[e] & LOW
        length = np.int64(line.lengths[a])
        for k in range(begin, begin + size):
            p = np.int64(pairs.pool[k])
            if line.symbols[p] == a and line.symbols[p + length] == b:
                pairs.pool[out] = p
                out += 1
        pairs.size[e] = out - pairs.at[e]
    return out


@kernel
def enter_pairs(pairs: PairCounts, count: int) -> int:
    """Enters pairs 0 .. count - 1 into the table, which is emptied first."""
    pairs.table[:] = ABSENT
    mask, factor, shift = pairs.table.size - 1, pairs.secret[1], shift_of(pairs.table.size)
    for e in range(count):
        i = slot_of(np.int64(pairs.keys[e]), factor, shift)
        while pairs.table[i] != ABSENT:
            i = i + 1 & mask
        pairs.table[i] = e
    return count


_push_by_id, _ = make_queue(before_by_id)
_push_by_text, _ = make_queue(before_by_text)


@kernel
def fill_queue(arrays: Training, pieces: int, count: int) -> int:
    """Puts pairs 0 .. count - 1 into the empty queue; its size."""
    own, size = open_pairs(arrays), 0
    for e in range(count):
        if arrays.pairs.counts[e] < arrays.rules.least:
            continue
        if pieces != 0:
            size = _push_by_text(own, size, arrays.pairs.counts[e], e)
        else:
            size = _push_by_id(own, size, arrays.pairs.counts[e], e)
    return size

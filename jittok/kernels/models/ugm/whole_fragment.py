"""Unigram on a whole fragment: normalize it, then find the best path. For fragments that cannot be cut, and in tests a
check of the others.

The fragment is normalized in chunks. In each, `find_path` finds the last offset that every best path passes through.
The path before that offset is decided: its ids are written, and the rest is moved to the front, with the sum so far.
"""

from __future__ import annotations

import numpy as np

from jittok.kernels.fragments import (
    CHARSMAP_NODE,
    CHARSMAP_REPLACEMENT,
    FOUND,
    NEED,
    OFFSET,
    OUT_OF_CAPACITY,
    OUT_OF_WORK,
)
from jittok.kernels.jit import U8, OutI32, OutI64, as_int64, helper
from jittok.kernels.memory import window
from jittok.kernels.models.ugm.compile import BYTES_PER_BYTE, UgmArrays, UgmWork
from jittok.kernels.models.ugm.decided_prefix import LOWEST, PLACE, decided_offset
from jittok.kernels.normalize.spaces import OUTSIDE as OUTSIDE_WORD
from jittok.kernels.normalize.spaces import put_byte, put_space
from jittok.kernels.normalize.xcda import OUTSIDE, longest_key
from jittok.kernels.structures.double_array import NO_NODE, NO_VALUE, ROOT, child, score_at, value_at
from jittok.kernels.structures.long_keys import LONG, NONE, find_long, long_score, long_value, next_long, open_long
from jittok.kernels.structures.utf8 import lead_length, well_formed

CHUNK_BYTES = 1 << 15
"""Bytes of normalized text in a chunk, unless too little is decided in one."""
SUMS_KEPT = 1 << 14
"""Offsets whose sums are kept at a time."""
MOST_CHARACTER = 4
_32 = np.uint64(32)


@helper
def encode_whole(
    arrays: UgmArrays, work: UgmWork, data: U8, start: int, stop: int, ids: OutI32, count: int, report: OutI64
) -> int:
    """Ids of the whole fragment data[start:stop] to ids[count:]; the new count or a code."""
    i, size, state, begin, capacity = start, as_int64(0), OUTSIDE_WORD, count, work.text.size
    limit, joined = min(CHUNK_BYTES, capacity // 2), False  # the last replacement of a chunk may exceed the limit
    total = 0.0
    while True:
        i, size, state = normalize(arrays, work, data, i, stop, state, size, limit, report)
        if i < 0:
            return i
        last = i == stop
        if last and arrays.spaces.append:
            size = put_space(arrays.spaces, work.text, size)
        if size > capacity:
            report[NEED] = max(size, 2 * capacity) // BYTES_PER_BYTE + 1
            return OUT_OF_WORK
        work.sums[0] = total
        decided, after_decided = find_path(arrays, work, size, last)
        if last and after_decided == LOWEST:  # no path reaches the end: the whole fragment is one unknown token
            count, joined = begin, False
        if decided > 0:
            after = write_path(arrays, work, decided, ids, count, joined)
            if after < 0:  # extrapolate what the rest needs
                report[NEED] = (count - begin - after) * (1 + (stop - start) // (i - start + 1)) + 1
                return OUT_OF_CAPACITY
            count, joined = after, _token(work, decided) == arrays.unk_id
        if last:
            return count
        if decided > 0:
            for k in range(decided, size):
                work.text[k - decided] = work.text[k]
            total = after_decided
            size -= decided
        if 2 * size > limit:  # little was decided: double the chunk, so that bytes are not read again and again
            if limit == capacity:
                report[NEED] = 2 * capacity // BYTES_PER_BYTE + 1
                return OUT_OF_WORK
            limit = min(2 * limit, capacity)


@helper
def normalize(
    arrays: UgmArrays, work: UgmWork, data: U8, i: int, stop: int, state: int, at: int, limit: int, report: OutI64
) -> tuple[int, int, int]:
    """Write the normalized bytes of data[i:stop] to work.text[at:], until there are `limit`; (offset in the data or a
    code, end of the normalized bytes, state of the spaces)."""
    while i < stop and at < limit:
        # A path in the trie of user-defined tokens is copied unchanged, whether or not a token ends there.
        end, node = i, ROOT
        while end < stop:
            node = child(arrays.user, node, as_int64(data[end]))
            if node == NO_NODE:
                break
            end += 1
        if end == i:
            length, value = longest_key(arrays.charsmap, data, i, stop)
            if length == OUTSIDE:
                report[OFFSET], report[FOUND] = i, value
                return CHARSMAP_NODE, at, state
            if length:
                if value >= arrays.charsmap.replacements_end:
                    report[OFFSET], report[FOUND] = i, value
                    return CHARSMAP_REPLACEMENT, at, state
                while arrays.charsmap.replacements[value]:
                    state, at = put_byte(
                        arrays.spaces, state, as_int64(arrays.charsmap.replacements[value]), work.text, at
                    )
                    value += 1
                i += length
                continue
            end = i + well_formed(data, i, stop, arrays.shortest)
        if end == i:  # an invalid byte becomes U+FFFD
            for byte in (0xEF, 0xBF, 0xBD):
                state, at = put_byte(arrays.spaces, state, byte, work.text, at)
            i += 1
        while i < end:
            state, at = put_byte(arrays.spaces, state, as_int64(data[i]), work.text, at)
            i += 1
    return i, at, state


@helper
def find_path(arrays: UgmArrays, work: UgmWork, size: int, last: bool) -> tuple[int, float]:
    """Fill the arcs of work.text[:size]; offset 0 has its sum already. Returns (how many bytes are decided, the sum
    after them): all bytes of the `last` chunk, else those up to the last offset that every best path passes through.

    Only the sums from offset `begin` on are kept, as tokens can still reach these.
    """
    begin, known_to, p, decided, total = as_int64(0), as_int64(0), as_int64(0), as_int64(0), 0.0
    reach = max(arrays.longest, MOST_CHARACTER)
    stop = size if last else size - reach  # no token that begins before it ends after the text
    if arrays.long.count != 0 and size > LONG:
        find_long(open_long(arrays.long), window(work.text), 0, size, window(work.found), 0)
    while p < stop:
        until = min(begin + max(SUMS_KEPT, reach), stop)
        for k in range(known_to + 1, min(until + reach, size) + 1):
            work.sums[k - begin], work.arcs[k] = LOWEST, _arc(arrays.unk_id, 0)
        known_to = min(until + reach, size)
        p = _walk(arrays, work, size, begin, p, until)
        if not last:
            common = decided_offset(window(work.sums), window(work.arcs), begin, p, known_to)
            if common > 0:
                decided, total = common, float(work.sums[common - begin])
        for k in range(p, known_to + 1):  # few, or the last round
            work.sums[k - p] = work.sums[k - begin]
        begin = p
    return (size, float(work.sums[0])) if last else (decided, total)


@helper
def _walk(arrays: UgmArrays, work: UgmWork, size: int, begin: int, p: int, until: int) -> int:
    """Extend paths from the offsets p .. until - 1; the next offset. sums[0] is the sum at offset `begin`."""
    while p < until:
        after = min(p + lead_length(as_int64(work.text[p])), size)
        here, whole, node, stop = float(work.sums[p - begin]), False, ROOT, size
        if arrays.long.count != 0 and size > LONG:
            stop = min(p + LONG, size)
            _challenge_long(arrays, work, p, begin, here)
        for end in range(p + 1, stop + 1):
            node = child(arrays.trie, node, as_int64(work.text[end - 1]))
            if node == NO_NODE:
                break
            token = value_at(arrays.trie, node)
            if token != NO_VALUE:
                whole = whole or end == after
                _challenge(work, token, p, end, begin, here + score_at(arrays.trie, node))
        if not whole:
            _challenge(work, arrays.unk_id, p, after, begin, here + arrays.unk_score)
        p = after
    return p


@helper
def _challenge_long(arrays: UgmArrays, work: UgmWork, p: int, begin: int, here: float) -> None:
    """Extend paths by the long tokens that begin at p."""
    long = open_long(arrays.long)
    node = as_int64(work.found[p])
    while node != NONE:
        token, length = long_value(long, node)
        _challenge(work, token, p, p + length, begin, here + long_score(long, node))
        node = next_long(long, node)


@helper
def _arc(token: int, start: int) -> np.uint64:
    return np.uint64(token & 0xFFFFFFFF) << _32 | np.uint64(start)


@helper
def _token(work: UgmWork, p: int) -> int:
    """The last token on the best path to offset p; it may be -1."""
    return as_int64(np.int32(work.arcs[p] >> _32))


@helper
def _challenge(work: UgmWork, token: int, start: int, end: int, begin: int, total: float) -> None:
    """Record an arc if its sum is strictly higher: of equal sums the first stays, and NaN never wins."""
    if total > work.sums[end - begin]:
        work.sums[end - begin], work.arcs[end] = total, _arc(token, start)


@helper
def write_path(arrays: UgmArrays, work: UgmWork, size: int, ids: OutI32, count: int, joined: bool) -> int:
    """Write the ids of the best path to offset `size` to ids[count:]. A run of unknown tokens is one id. joined: a run
    at the beginning belongs to the unknown id before. Returns the new count, or minus the number of ids if they do not
    fit."""
    found = as_int64(0)
    p, unknown = size, False
    while p > 0:
        behind_unknown = unknown
        unknown = _token(work, p) == arrays.unk_id
        found += 0 if unknown and behind_unknown else 1
        p = np.int64(work.arcs[p] & PLACE)
    if joined and unknown:
        found -= 1
    if count + found > ids.size:
        return -found
    at = count + found
    p, behind_unknown = size, False
    while p > 0:
        token = _token(work, p)
        unknown = token == arrays.unk_id
        if not (unknown and behind_unknown):
            at -= 1
            if at >= count:
                ids[at] = token
        p, behind_unknown = np.int64(work.arcs[p] & PLACE), unknown
    return count + found

"""Unigram on a whole fragment: normalize it, then the best path through it. For what cannot be cut, and a second
witness for what can.

llama.cpp's `llm_tokenizer_ugm_session`, in pieces, so that no text takes much memory. The time is linear in the bytes
(times the longest key and token). Each byte of the normalized text has a cell: the best sum of scores up to there, the
last token of that path, and where this token starts.
"""

from __future__ import annotations

import numpy as np

from jittok._jit import U8, OutI32, OutI64, helper, wide
from jittok.fragments import (
    CHARSMAP_NODE,
    CHARSMAP_REPLACEMENT,
    FOUND,
    NEED,
    OFFSET,
    OUT_OF_ROOM,
    OUT_OF_WORK,
)
from jittok.models.ugm.compile import GROWTH, Arrays, Work
from jittok.normalize.spaces import OUTSIDE as OUTSIDE_WORD
from jittok.normalize.spaces import put_byte, put_space
from jittok.normalize.xcda import OUTSIDE, longest_key
from jittok.structures.double_array import NO_NODE, NO_VALUE, ROOT, child, score_at, value_at
from jittok.structures.utf8 import lead_length, well_formed

AT_ONCE = 1 << 15
"""Bytes of normalized text that are looked at together, if no token reaches across all of their places."""
LOWEST = -float(np.finfo(np.float64).max)
"""The sum of a place that nothing reaches. Adding any float32 gives it again, so nothing is reached from there."""


@helper
def encode_whole(
    arrays: Arrays, work: Work, data: U8, start: int, stop: int, ids: OutI32, count: int, report: OutI64
) -> int:
    """Ids of the whole fragment data[start:stop] to ids[count:]; the new count or a code.

    One piece at a time is normalized. `find_path` looks for the last place in it that no token reaches across. What
    stands in front of that place is decided: its ids are written. The rest is moved to the front, with the sum so far.
    """
    i, size, state, begin, room = start, wide(0), OUTSIDE_WORD, count, work.text.size
    limit, joined = min(AT_ONCE, room), False
    work.sums[0] = 0.0
    while True:
        i, size, state = normalize(arrays, work, data, i, stop, state, size, limit, report)
        if i < 0:
            return i
        last = i == stop
        if last and arrays.spaces.append:
            size = put_space(arrays.spaces, work.text, size)
        if size > room:
            report[NEED] = max(size, 2 * room) // GROWTH + 1
            return OUT_OF_WORK
        decided = find_path(arrays, work, size, last)
        if last and work.sums[size] == LOWEST:  # nothing reaches the end: the unknown token stands for all
            count, joined = begin, False
        if decided > 0:
            after = write_path(arrays, work, decided, ids, count, joined)
            if after < 0:  # room for the rest by what has been done
                report[NEED] = (count - begin - after) * (1 + (stop - start) // (i - start + 1)) + 1
                return OUT_OF_ROOM
            count, joined = after, wide(work.tokens[decided]) == arrays.unk_id
        if last:
            return count
        if decided > 0:
            for k in range(decided, size):
                work.text[k - decided] = work.text[k]
            work.sums[0] = work.sums[decided]
            size -= decided
        if 2 * size > limit:  # so that no byte is looked at more than twice as often as there are pieces
            if limit == room:
                report[NEED] = 2 * room // GROWTH + 1
                return OUT_OF_WORK
            limit = min(2 * limit, room)


@helper
def normalize(
    arrays: Arrays, work: Work, data: U8, i: int, stop: int, state: int, at: int, limit: int, report: OutI64
) -> tuple[int, int, int]:
    """The normalized bytes of data[i:stop] to work.text[at:], as many as fit, until there are `limit`: (place in the
    data or a code, how many there are, state of the spaces)."""
    while i < stop and at < limit:
        # A path in the trie of user-defined tokens passes as it is, whether or not a token ends there.
        end, node = i, ROOT
        while end < stop:
            node = child(arrays.user, node, wide(data[end]))
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
                    state, at = put_byte(arrays.spaces, state, wide(arrays.charsmap.replacements[value]), work.text, at)
                    value += 1
                i += length
                continue
            end = i + well_formed(data, i, stop, arrays.shortest)
        if end == i:  # a bad byte becomes U+FFFD
            for byte in (0xEF, 0xBF, 0xBD):
                state, at = put_byte(arrays.spaces, state, byte, work.text, at)
            i += 1
        while i < end:
            state, at = put_byte(arrays.spaces, state, wide(data[i]), work.text, at)
            i += 1
    return i, at, state


@helper
def find_path(arrays: Arrays, work: Work, size: int, last: bool) -> int:
    """Fill the cells of work.text[:size]; the first already has its sum. Returns how many bytes are decided. These are
    all if this is the `last` part. Else they end at the last place that no token reaches across: every path comes
    through this place."""
    for p in range(1, size + 1):
        work.sums[p], work.tokens[p], work.origins[p] = LOWEST, arrays.unk_id, 0
    p, reach, decided = wide(0), wide(0), wide(0)
    while p < size:
        if p == reach and work.sums[p] > LOWEST:
            decided = p
        after, open_end = p + lead_length(wide(work.text[p])), True
        if after > size and not last:
            return decided
        after = min(after, size)
        reach = max(reach, after)
        here, whole, node = float(work.sums[p]), False, ROOT
        for end in range(p + 1, size + 1):
            node = child(arrays.trie, node, wide(work.text[end - 1]))
            if node == NO_NODE:
                open_end = False
                break
            token = value_at(arrays.trie, node)
            if token != NO_VALUE:
                whole = whole or end == after
                reach = max(reach, end)
                _challenge(work, token, p, end, here + score_at(arrays.trie, node))
        if open_end and not last:
            return decided
        if not whole:
            _challenge(work, arrays.unk_id, p, after, here + arrays.unk_score)
        p = after
    return size if last else decided


@helper
def _challenge(work: Work, token: int, start: int, end: int, total: float) -> None:
    """Only a strictly larger sum wins, so of equal ones the first stays; NaN never wins."""
    if total > work.sums[end]:
        work.sums[end], work.tokens[end], work.origins[end] = total, token, start


@helper
def write_path(arrays: Arrays, work: Work, size: int, ids: OutI32, count: int, joined: bool) -> int:
    """Write the ids of the best path to cell `size` to ids[count:]. A run of unknown tokens is one id. `joined`: a run
    at the beginning belongs to the unknown id in front. Returns the new count; minus the number of ids if there is no
    room."""
    found = wide(0)
    p, unknown = size, False
    while p > 0:
        behind_unknown = unknown
        unknown = wide(work.tokens[p]) == arrays.unk_id
        found += 0 if unknown and behind_unknown else 1
        p = wide(work.origins[p])
    if joined and unknown:
        found -= 1
    if count + found > ids.size:
        return -found
    at = count + found
    p, behind_unknown = size, False
    while p > 0:
        token = wide(work.tokens[p])
        unknown = token == arrays.unk_id
        if not (unknown and behind_unknown):
            at -= 1
            if at >= count:
                ids[at] = token
        p, behind_unknown = wide(work.origins[p]), unknown
    return count + found

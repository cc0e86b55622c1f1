"""Unigram on a whole fragment: normalize it, then the best path through it. For what cannot be cut, and a second
witness for what can.

llama.cpp's `llm_tokenizer_ugm_session`. Everything is linear in the bytes (times the longest key and token): a cell a
byte of the normalized text holds the best sum of scores up to there, its last token and where that starts.
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

LOWEST = -float(np.finfo(np.float64).max)
"""The sum of a place that nothing reaches. Adding any float32 gives it again, so nothing is reached from there."""


@helper
def encode_whole(
    arrays: Arrays, work: Work, data: U8, start: int, stop: int, ids: OutI32, count: int, report: OutI64
) -> int:
    """Ids of the whole fragment data[start:stop] to ids[count:]; the new count or a code."""
    size = normalize(arrays, work, data, start, stop, report)
    if size < 0:
        return size
    if size > work.text.size:
        report[NEED] = size // GROWTH + 1
        return OUT_OF_WORK
    find_path(arrays, work, size)
    return write_path(arrays, work, size, ids, count, report)


@helper
def normalize(arrays: Arrays, work: Work, data: U8, start: int, stop: int, report: OutI64) -> int:
    """The normalized bytes of data[start:stop] to work.text, as many as fit; how many there are, or a code."""
    i, at, state = start, wide(0), OUTSIDE_WORD
    while i < stop:
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
                return CHARSMAP_NODE
            if length:
                if value >= arrays.charsmap.replacements_end:
                    report[OFFSET], report[FOUND] = i, value
                    return CHARSMAP_REPLACEMENT
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
    return put_space(arrays.spaces, work.text, at) if arrays.spaces.append else at


@helper
def find_path(arrays: Arrays, work: Work, size: int) -> None:
    """Fill cells 0 .. size for work.text[:size]."""
    for p in range(size + 1):
        work.sums[p], work.tokens[p], work.origins[p] = LOWEST, arrays.unk_id, 0
    work.sums[0] = 0.0
    p = wide(0)
    while p < size:
        after = min(p + lead_length(wide(work.text[p])), size)
        here, whole, node = float(work.sums[p]), False, ROOT
        for end in range(p + 1, size + 1):
            node = child(arrays.trie, node, wide(work.text[end - 1]))
            if node == NO_NODE:
                break
            token = value_at(arrays.trie, node)
            if token != NO_VALUE:
                whole = whole or end == after
                _challenge(work, token, p, end, here + score_at(arrays.trie, node))
        if not whole:
            _challenge(work, arrays.unk_id, p, after, here + arrays.unk_score)
        p = after


@helper
def _challenge(work: Work, token: int, start: int, end: int, total: float) -> None:
    """Only a strictly larger sum wins, so of equal ones the first stays; NaN never wins."""
    if total > work.sums[end]:
        work.sums[end], work.tokens[end], work.origins[end] = total, token, start


@helper
def write_path(arrays: Arrays, work: Work, size: int, ids: OutI32, count: int, report: OutI64) -> int:
    """Ids of the best path to cell `size` to ids[count:], runs of the unknown token as one; the new count or a code."""
    found = wide(0)
    p, behind_unknown = size, False
    while p > 0:
        unknown = wide(work.tokens[p]) == arrays.unk_id
        found += 0 if unknown and behind_unknown else 1
        p, behind_unknown = wide(work.origins[p]), unknown
    if count + found > ids.size:
        report[NEED] = found
        return OUT_OF_ROOM
    at = count + found
    p, behind_unknown = size, False
    while p > 0:
        token = wide(work.tokens[p])
        unknown = token == arrays.unk_id
        if not (unknown and behind_unknown):
            at -= 1
            ids[at] = token
        p, behind_unknown = wide(work.origins[p]), unknown
    return count + found

"""Find the tokens that begin at several offsets of a text by interleaved trie walks.

Which tokens match does not depend on sums. A step through a large trie waits for memory, and the end of a walk is
unpredictable. So the walks from OFFSETS offsets take turns, and their cache misses overlap.
"""

from __future__ import annotations

import numpy as np

from jittok.kernels.jit import helper
from jittok.kernels.memory import Window, get_i32, get_u8, prefetch, put_i32
from jittok.kernels.structures.double_array import BASE, PARENT, ROOT, SCORE, UNIT, VALUE
from jittok.kernels.structures.utf8 import lead_length

OFFSETS = 64
"""Offsets whose walks are interleaved."""
DEPTH = 16
"""Steps of each walk; a longer one is left to the caller."""
MASK, NODE, NEXT, AT, TURN = (k * OFFSETS for k in range(5))
"""The parts of `found`, indexed by the number k of an offset. MASK: bit r for a token of r + 1 bytes, bit DEPTH if the
walk continues; NODE: the node reached; NEXT: the node to test; AT: the offset; TURN: the active walks."""
TOKENS = 5 * OFFSETS
"""From here on: the token of r + 1 bytes at the k-th offset and the bits of its score, at 2 * (DEPTH * k + r)."""
BUFFER_SIZE = TOKENS + 2 * DEPTH * OFFSETS
_UNIT_BYTES = 4 * UNIT


@helper
def find_tokens(units: Window, text: Window, found: Window, p: int, until: int, size: int) -> int:
    """Find the tokens that begin at the characters from offset p up to `until`, at most OFFSETS; returns their number.

    found: int32[BUFFER_SIZE]. DEPTH bytes after text[:size] are readable; the caller ignores tokens that end there.
    """
    positions, depth, first = 0, 0, get_i32(units, UNIT * ROOT + BASE)
    while positions < OFFSETS and p < until:
        position = first ^ get_u8(text, p)
        prefetch(units, position, _UNIT_BYTES)
        put_i32(found, MASK + positions, 0)
        put_i32(found, NODE + positions, ROOT)
        put_i32(found, NEXT + positions, position)
        put_i32(found, AT + positions, p)
        put_i32(found, TURN + positions, positions)
        p = min(p + lead_length(get_u8(text, p)), size)
        positions += 1
    active = positions
    while active > 0 and depth < DEPTH:
        kept = 0
        for j in range(active):
            k = get_i32(found, TURN + j)
            node = get_i32(found, NEXT + k)
            there = get_i32(units, UNIT * node + PARENT) == get_i32(found, NODE + k)
            token = get_i32(units, UNIT * node + VALUE)
            row = TOKENS + 2 * (DEPTH * k + depth)
            put_i32(found, row, token)
            put_i32(found, row + 1, get_i32(units, UNIT * node + SCORE))
            put_i32(found, MASK + k, get_i32(found, MASK + k) | np.int64(there & (token >= 0)) << depth)
            position = get_i32(units, UNIT * node + BASE) ^ get_u8(text, get_i32(found, AT + k) + depth + 1)
            prefetch(units, position, _UNIT_BYTES)
            put_i32(found, NODE + k, node)
            put_i32(found, NEXT + k, position)
            put_i32(found, TURN + kept, k)
            kept += np.int64(there)
        active = kept
        depth += 1
    for j in range(active):
        k = get_i32(found, TURN + j)
        put_i32(found, MASK + k, get_i32(found, MASK + k) | 1 << DEPTH)
    return positions

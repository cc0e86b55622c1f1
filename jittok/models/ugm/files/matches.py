"""The tokens that begin at some places of a text, found side by side.

Which token ends where does not depend on sums. A step of a walk through a large trie waits for memory, and where a walk
ends cannot be foreseen. So the walks from PLACES places take their steps in turns: the processor waits for all at once.
"""

from __future__ import annotations

import numpy as np

from jittok._jit import helper
from jittok._raw import Window, get_i32, get_u8, prefetch, put_i32
from jittok.structures.double_array import BASE, PARENT, ROOT, SCORE, UNIT, VALUE
from jittok.structures.utf8 import lead_length

PLACES = 64
"""Places whose walks take turns."""
DEPTH = 16
"""Steps of each; one that goes on is left to the caller."""
MASK, NODE, NEXT, AT, TURN = (k * PLACES for k in range(5))
"""Where the numbers of place k are: bit r says that a token has r + 1 bytes, bit DEPTH that the walk continues; the
node that was reached and the one to look at; where the place is; whose turn it is."""
TOKENS = 5 * PLACES
"""From here on: the token of r + 1 bytes at place k and the bits of its score, at 2 * (DEPTH * k + r)."""
ROOM = TOKENS + 2 * DEPTH * PLACES
_UNIT_BYTES = 4 * UNIT


@helper
def find_tokens(units: Window, text: Window, found: Window, p: int, until: int, size: int) -> int:
    """Search for the tokens that begin at the characters from p on, `until` apart, PLACES at most: how many places.

    found: int32[ROOM]. DEPTH bytes after text[:size] are readable: tokens found there are no tokens of the text.
    """
    places, depth, first = 0, 0, get_i32(units, UNIT * ROOT + BASE)
    while places < PLACES and p < until:
        place = first ^ get_u8(text, p)
        prefetch(units, place, _UNIT_BYTES)
        put_i32(found, MASK + places, 0)
        put_i32(found, NODE + places, ROOT)
        put_i32(found, NEXT + places, place)
        put_i32(found, AT + places, p)
        put_i32(found, TURN + places, places)
        p = min(p + lead_length(get_u8(text, p)), size)
        places += 1
    active = places
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
            place = get_i32(units, UNIT * node + BASE) ^ get_u8(text, get_i32(found, AT + k) + depth + 1)
            prefetch(units, place, _UNIT_BYTES)
            put_i32(found, NODE + k, node)
            put_i32(found, NEXT + k, place)
            put_i32(found, TURN + kept, k)
            kept += np.int64(there)
        active = kept
        depth += 1
    for j in range(active):
        k = get_i32(found, TURN + j)
        put_i32(found, MASK + k, get_i32(found, MASK + k) | 1 << DEPTH)
    return places

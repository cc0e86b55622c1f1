"""Parts of one step of Unigram's normalization, over windows, shared by encoding and alignment.

They read without bounds checks: `charsmap_keys` has walked the whole map, so all links are in bounds, and it has a
root. `xcda.longest_key`, which checks each link, walks a map that `charsmap_keys` refuses.
"""

from __future__ import annotations

from jittok.kernels.jit import helper
from jittok.kernels.memory import Window, get_i32, get_u8, get_u32
from jittok.kernels.normalize.charsmap.xcda import CHECK, ENDS, VALUE, base_of
from jittok.kernels.structures.double_array import BASE, NO_VALUE, PARENT, ROOT, UNIT
from jittok.kernels.structures.double_array import VALUE as PIECE
from jittok.kernels.structures.long_keys import LONG, NONE, AheadWindow, LongWindow, long_at, long_value


@helper
def user_path(user: Window, text: Window, start: int, stop: int) -> tuple[int, int]:
    """(where the longest match with a prefix of a user-defined token ends; where the longest user-defined token at
    `start` ends, or `start`)."""
    node, i, found = ROOT, start, start
    while i < stop:
        position = get_i32(user, UNIT * node + BASE) ^ get_u8(text, i)
        if get_i32(user, UNIT * position + PARENT) != node:
            break
        node = position
        i += 1
        if get_i32(user, UNIT * node + PIECE) != NO_VALUE:
            found = i
    return i, found


@helper
def user_end(user: Window, long: LongWindow, ahead: AheadWindow, text: Window, start: int, stop: int) -> int:
    """Where the longest text of a user-defined token at `start` ends, or `start`. Walks end after LONG bytes where a
    text is longer than that; ahead: see `long_at`, of text[:stop]."""
    if long.count == 0:
        return user_path(user, text, start, stop)[1]
    reached, end = user_path(user, text, start, min(stop, start + LONG))
    if reached == start + LONG:
        node = long_at(long, ahead, text, start, stop)
        if node != NONE:
            end = start + long_value(long, node)[1]
    return end


@helper
def longest_known_key(units: Window, size: int, root: int, text: Window, start: int, stop: int) -> tuple[int, int]:
    """(bytes of the longest key at `start` or 0, offset of its replacement). size: units of the map, 0 for none; root:
    see `xcda.root_base`."""
    length, value = 0, 0
    if size == 0:
        return length, value
    i, node = start, root
    while i < stop:
        byte = get_u8(text, i)
        if byte == 0:
            break
        node ^= byte
        unit = get_u32(units, node)
        if unit & CHECK != byte:
            break
        node ^= base_of(unit)
        i += 1
        if unit & ENDS:
            length, value = i - start, get_u32(units, node) & VALUE
    return length, value

"""WordPiece on a whole fragment, code point by code point as in llama.cpp: for fragments that cannot be cut."""

from __future__ import annotations

from jittok.common.unicode.characters import SPACE_MARK_BYTES, SPACE_MARK_CODE
from jittok.common.unicode.tables import LAST_CODE_POINT
from jittok.kernels.fragments import BEYOND_UNICODE, FOUND, NEED, OFFSET, OUT_OF_CAPACITY, OUT_OF_WORK
from jittok.kernels.jit import U8, OutI32, OutI64, OutU8, as_int64, helper
from jittok.kernels.memory import window
from jittok.kernels.models.wpm.alphabet import ALONE, DROPPED, LETTER
from jittok.kernels.models.wpm.compile import IMAGE, KIND, SCRATCH_PER_BYTE, WpmArrays
from jittok.kernels.structures.double_array import NO_NODE, NO_VALUE, ROOT, child, value_at
from jittok.kernels.structures.long_keys import LONG, NONE, find_long, long_value, open_long
from jittok.kernels.structures.utf8 import decode, encode

_MARKED = len(SPACE_MARK_BYTES)


@helper
def encode_whole(
    arrays: WpmArrays,
    word: OutU8,
    positions: OutI32,
    data: U8,
    start: int,
    stop: int,
    ids: OutI32,
    count: int,
    report: OutI64,
) -> int:
    """Ids of data[start:stop], where no word crosses either end, to ids[count:]; the new count or a code."""
    if 2 * (stop - start) + 8 > word.size:
        report[NEED] = stop - start
        return OUT_OF_WORK
    report[NEED] = SCRATCH_PER_BYTE * (stop - start)
    encode(SPACE_MARK_CODE, word, 0)  # every word begins with it
    i, size = start, _MARKED
    while i < stop:
        code, length = decode(data, i, stop, arrays.shortest)
        if code > LAST_CODE_POINT:
            report[OFFSET], report[FOUND] = i, code
            return BEYOND_UNICODE
        i += length
        entry = as_int64(arrays.entries[as_int64(arrays.pages[code >> 8]) << 8 | code & 0xFF])
        kind = entry >> KIND
        if kind == LETTER:
            size = encode(code ^ entry & IMAGE, word, size)
        elif kind != DROPPED:
            if size > _MARKED:
                count = _encode_word(arrays, word, positions, size, ids, count)
            if kind == ALONE and count >= 0:
                size = encode(code ^ entry & IMAGE, word, _MARKED)
                count = _encode_word(arrays, word, positions, size, ids, count)
            if count < 0:
                return count
            size = _MARKED
    return _encode_word(arrays, word, positions, size, ids, count) if size > _MARKED else count


@helper
def _encode_word(arrays: WpmArrays, word: OutU8, positions: OutI32, size: int, ids: OutI32, count: int) -> int:
    """Ids of word[:size], which begins with U+2581, by longest match, or the unknown token; the new count or
    OUT_OF_CAPACITY. Walks end after LONG bytes where there are longer tokens."""
    at, long, apart, stop = count, open_long(arrays.long), arrays.long.count != 0 and size > LONG, size
    node, found, end, j = arrays.marker_node, arrays.marker_value, arrays.marker_length, _MARKED
    if node == NO_NODE:  # no token continues after U+2581
        j = size
    if apart:
        find_long(long, window(word), 0, size, window(positions), 0)
        stop = min(LONG, size)
        if positions[0] != NONE:
            found, end = long_value(long, as_int64(positions[0]))
            j = stop
    while True:
        while j < stop:
            node = child(arrays.trie, node, as_int64(word[j]))
            if node == NO_NODE:
                break
            j += 1
            value = value_at(arrays.trie, node)
            if value != NO_VALUE:
                found, end = value, j
        if found == NO_VALUE:
            found, at, end = arrays.unk_id, count, size
        if at >= ids.size:
            return OUT_OF_CAPACITY
        ids[at] = found
        at += 1
        if end == size:
            return at
        node, found, j, stop = ROOT, NO_VALUE, end, size
        if apart:
            stop = min(end + LONG, size)
            if positions[end] != NONE:
                found, bytes_ = long_value(long, as_int64(positions[end]))
                end, stop = end + bytes_, j

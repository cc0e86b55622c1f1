"""Encode one pre-token (a *word* here, as in llama.cpp): the part of BPE that all sessions and splitters share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.common.unicode.characters import NEWLINE, SPACE_BYTE
from jittok.kernels.fragments import LONG_WORD, SPACE_IN_SYMBOL
from jittok.kernels.jit import as_int64, helper
from jittok.kernels.memory import Window, get_i32, get_i64, get_u8, get_u64, get_word, put_i32, put_u64, window
from jittok.kernels.merging.left_to_right import (
    BUILD_ON_DEMAND,
    LENGTH,
    LONG_WORD_SYMBOLS,
    NONE,
    READY,
    ROW,
    Merger,
    merge_list,
    merge_text,
)
from jittok.kernels.merging.queue import SCAN_SYMBOLS, SIXTEEN, clear_sixteen, merge_found, merge_noted, note_pair
from jittok.kernels.models.bpe.arrays import BpeArrays
from jittok.kernels.structures.bytes_table import ABSENT, BytesWindow, find_bytes, open_bytes_table
from jittok.kernels.structures.char_table import CharWindow, find_character, open_char_table
from jittok.kernels.structures.pair_table import NO_PAIR
from jittok.kernels.structures.utf8 import lead_length

MARK_BYTES = np.uint64(0x8196E2)
"""The UTF-8 of U+2581, its first byte lowest."""
CHUNK_BYTES = 1 << 16
"""A long word is merged this many bytes at a time."""
OVERLAP_SYMBOLS = 64
"""The last symbols of a stretch that are merged again with the next one."""
_1 = np.uint64(1)


class BpeWordWindow(NamedTuple):
    """The arrays of the vocabulary that encoding a word reads, as windows."""

    tokens: int
    byte_encode: int
    ignore_merges: int
    newlines_whole: int
    byte_symbols: Window
    byte_pairs: Window
    virtual_ids: Window
    virtual_at: Window
    byte_ids: Window
    whole_ids: Window
    characters: CharWindow
    whole: BytesWindow


@helper
def open_words(model: BpeArrays) -> BpeWordWindow:
    """Windows onto the arrays."""
    return BpeWordWindow(
        model.tokens,
        model.byte_encode,
        model.ignore_merges,
        model.newlines_whole,
        window(model.byte_symbols),
        window(model.byte_pairs),
        window(model.virtual_ids),
        window(model.virtual_at),
        window(model.byte_ids),
        window(model.whole_ids),
        open_char_table(model.characters),
        open_bytes_table(model.whole),
    )


@helper
def encode_word(
    words: BpeWordWindow, merge: Merger, text: Window, start: int, stop: int, ids: Window, count: int
) -> int:
    """Ids of one word to ids[count:], at most two a byte; the new count, SPACE_IN_SYMBOL or LONG_WORD. The caller
    guarantees the capacity for ids, and that of the scratch: `stop - start` symbols."""
    token = whole_word(words, text, start, stop)
    if token != ABSENT:
        put_i32(ids, count, token)
        return count + 1
    return merge_word(words, merge, text, start, stop, ids, count)


@helper
def whole_word(words: BpeWordWindow, text: Window, start: int, stop: int) -> int:
    """The token that a word becomes regardless of merges, or ABSENT."""
    if words.ignore_merges != 0 or (words.newlines_whole != 0 and get_u8(text, start) == NEWLINE):
        row = find_bytes(words.whole, text, start, stop)
        if row != ABSENT:
            return get_i32(words.whole_ids, row)
    return ABSENT


@helper
def merge_word(
    words: BpeWordWindow, merge: Merger, text: Window, start: int, stop: int, ids: Window, count: int
) -> int:
    """`encode_word` for a word that `whole_word` does not find."""
    if words.byte_encode != 0 and merge.chain.state == READY and stop - start > CHUNK_BYTES:
        return merge_stretches(words, merge, text, start, stop, ids, count, CHUNK_BYTES, OVERLAP_SYMBOLS)
    if words.byte_encode != 0:
        symbols = merge_bytes(words, merge, text, start, stop)
    else:
        symbols = _merge_characters(words, merge, text, start, stop)
    if symbols < 0:
        return symbols
    for k in range(symbols):
        symbol = get_i32(merge.queue.symbols, k)
        if words.byte_encode != 0 or 0 <= symbol < words.tokens:
            count = put_symbol(words, symbol, ids, count)
        else:
            for i in range(start + get_i32(merge.queue.positions, k), start + get_i32(merge.queue.positions, k + 1)):
                token = get_i32(words.byte_ids, get_u8(text, i))
                if token != ABSENT:
                    put_i32(ids, count, token)
                    count += 1
    return count


@helper
def merge_stretches(
    words: BpeWordWindow,
    merge: Merger,
    text: Window,
    start: int,
    stop: int,
    ids: Window,
    count: int,
    size: int,
    again: int,
) -> int:
    """The same for words of up to megabytes: byte-level, left to right, in overlapping stretches of `size` bytes.

    Each stretch begins with one of the last `again` symbols of the one before. If that symbol comes out again, each
    pair of adjacent symbols is a pair of one of the two stretches, so the result is that of the whole word (see
    `merging.left_to_right`). If not, everything is done again with stretches of twice the size.
    """
    at, written, length, first = start, count, size, as_int64(NONE)
    while True:
        end = min(at + length, stop)
        symbols = merge_text(merge, text, at, end)
        if first != NONE and get_i32(merge.queue.symbols, 0) != first:
            size *= 2
            at, written, length, first = start, count, size, as_int64(NONE)
            continue
        kept = symbols if end == stop else max(symbols - again, 0)
        for k in range(kept):
            written = put_symbol(words, get_i32(merge.queue.symbols, k), ids, written)
        if end == stop:
            return written
        if kept == 0:  # of very long symbols
            length *= 2
            continue
        at, length, first = end, size, as_int64(get_i32(merge.queue.symbols, kept))
        for k in range(kept, symbols):
            at -= get_i32(merge.chain.rows, ROW * get_i32(merge.queue.symbols, k) + LENGTH)


@helper
def put_symbol(words: BpeWordWindow, symbol: int, ids: Window, count: int) -> int:
    """Write the ids of a symbol to ids[count:]; the new count. If not byte-level, it must be a token."""
    if 0 <= symbol < words.tokens:
        put_i32(ids, count, symbol)
        return count + 1
    virtual = symbol - words.tokens
    for at in range(get_i64(words.virtual_at, virtual), get_i64(words.virtual_at, virtual + 1)):
        put_i32(ids, count, get_i32(words.virtual_ids, at))
        count += 1
    return count


@helper
def merge_bytes(words: BpeWordWindow, merge: Merger, text: Window, start: int, stop: int) -> int:
    """Byte-level: merge the bytes text[start:stop]; returns how many symbols are left in queue.symbols, or LONG_WORD.
    Their offsets are not kept."""
    before = get_u8(text, start)
    if 1 < stop - start <= SIXTEEN:
        clear_sixteen(merge.queue)
        put_i32(merge.queue.symbols, 0, get_i32(words.byte_symbols, before))
        for k in range(1, stop - start):
            byte = get_u8(text, start + k)
            put_i32(merge.queue.symbols, k, get_i32(words.byte_symbols, byte))
            f = get_u64(words.byte_pairs, before << 8 | byte)
            if f != NO_PAIR:
                note_pair(merge.queue, f, k - 1)
            before = byte
        return merge_noted(merge.queue, stop - start)
    if merge.chain.state == READY and stop - start > SCAN_SYMBOLS:
        return merge_text(merge, text, start, stop)
    if stop - start > merge.queue.capacity or (
        merge.chain.state == BUILD_ON_DEMAND and stop - start > LONG_WORD_SYMBOLS
    ):
        return LONG_WORD
    put_i32(merge.queue.symbols, 0, get_i32(words.byte_symbols, before))
    put_i32(merge.queue.positions, 0, 0)
    for i in range(start + 1, stop):
        byte = get_u8(text, i)
        put_i32(merge.queue.symbols, i - start, get_i32(words.byte_symbols, byte))
        put_i32(merge.queue.positions, i - start, i - start)
        put_u64(merge.queue.found, i - start - 1, get_u64(words.byte_pairs, before << 8 | byte))
        before = byte
    put_i32(merge.queue.positions, stop - start, stop - start)
    return merge_found(merge.queue, stop - start)


@helper
def _merge_characters(words: BpeWordWindow, merge: Merger, text: Window, start: int, stop: int) -> int:
    """Not byte-level: the same over characters, with offsets in queue.positions; or SPACE_IN_SYMBOL or LONG_WORD."""
    symbols, i, space = 0, start, False
    while i < stop:
        byte, size = get_u8(text, i), 1
        if byte < 0x80:
            space = space or byte == SPACE_BYTE
            put_i32(merge.queue.symbols, symbols, get_i32(words.byte_symbols, byte))
        else:
            size = min(lead_length(byte), stop - i)
            key = get_word(text, i) & ((_1 << np.uint64(8 * size)) - _1)
            put_i32(merge.queue.symbols, symbols, find_character(words.characters, key))
        put_i32(merge.queue.positions, symbols, i - start)
        symbols += 1
        i += size
    if space and symbols > 1:
        return SPACE_IN_SYMBOL
    put_i32(merge.queue.positions, symbols, stop - start)
    return merge_list(merge, symbols)

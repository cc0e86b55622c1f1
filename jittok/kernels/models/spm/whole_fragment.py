"""SPM on a whole fragment, as llama.cpp does it: for fragments that cannot be cut, and in tests a check of the others.

Adjacent symbols that together are a token merge, best score first. Merging needs one number for each pair of symbols
that makes a token: the rank of the token's score among all scores.
"""

from __future__ import annotations

from jittok.common.unicode.characters import SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2
from jittok.kernels.fragments import FOUND, NEED, NO_BYTE_TOKEN, OFFSET, OUT_OF_CAPACITY, OUT_OF_WORK
from jittok.kernels.jit import U8, OutI32, OutI64, OutU8, as_int64, helper
from jittok.kernels.memory import get_i32, get_u8, put_i32, put_u8, window
from jittok.kernels.merging.left_to_right import Merger, merge_list
from jittok.kernels.models.spm.arrays import BYTES_PER_BYTE, SpmArrays, SpmWork
from jittok.kernels.structures.bytes_table import ABSENT, find_bytes, open_bytes_table


@helper
def character_length(byte: int) -> int:
    """The length of a character by its first byte alone, as in llama.cpp's unicode_len_utf8."""
    return 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4


@helper
def encode_whole(
    model: SpmArrays,
    work: SpmWork,
    merge: Merger,
    data: U8,
    start: int,
    stop: int,
    prefix: int,
    count: int,
    ids: OutI32,
    report: OutI64,
) -> int:
    """Ids of the fragment data[start:stop] to ids[count:]; the new count or a code. O(n log n) in its bytes."""
    if BYTES_PER_BYTE * (stop - start) + 16 > work.escaped.size:
        report[NEED] = stop - start
        return OUT_OF_WORK
    length = _escape(work.escaped, data, start, stop, prefix)
    if count + length > ids.size:
        report[NEED] = length
        return OUT_OF_CAPACITY
    count = _encode_text(model, merge, work.escaped, length, count, ids, report)
    if count == NO_BYTE_TOKEN:
        report[OFFSET] = _source(data, start, stop, prefix, report[OFFSET])
    return count


@helper
def _escape(text: OutU8, data: U8, start: int, stop: int, prefix: int) -> int:
    """Write data[start:stop] with U+2581 for each space, and one more before if `prefix`; returns the length."""
    out, at = window(text), 0
    source = window(data)
    for i in range(start - prefix, stop):
        byte = 0x20
        if i >= start:
            byte = get_u8(source, i)
        if byte == 0x20:
            put_u8(out, at, SPACE_MARK_0)
            put_u8(out, at + 1, SPACE_MARK_1)
            put_u8(out, at + 2, SPACE_MARK_2)
            at += 3
        else:
            put_u8(out, at, byte)
            at += 1
    return at


@helper
def _source(data: U8, start: int, stop: int, prefix: int, position: int) -> int:
    """The offset in `data` of an offset in the escaped text."""
    at = 3 * prefix
    i = start
    while i < stop:
        at += 3 if data[i] == 0x20 else 1
        if at > position:
            break
        i += 1
    return i


@helper
def _encode_text(
    model: SpmArrays, merge: Merger, text: OutU8, length: int, count: int, ids: OutI32, report: OutI64
) -> int:
    """Ids of the escaped text[:length], at most one a byte; the new count, NO_BYTE_TOKEN or LONG_WORD."""
    source, texts = window(text), open_bytes_table(model.texts)
    symbols, i = 0, 0
    while i < length:
        byte = get_u8(source, i)
        j = min(i + character_length(byte), length)
        symbol = as_int64(model.ascii[byte]) if byte < 0x80 else find_bytes(texts, source, i, j)
        put_i32(merge.queue.symbols, symbols, symbol)
        put_i32(merge.queue.positions, symbols, i)
        symbols += 1
        i = j
    put_i32(merge.queue.positions, symbols, length)
    symbols = merge_list(merge, symbols)
    if symbols < 0:
        return symbols
    for k in range(symbols):
        symbol = get_i32(merge.queue.symbols, k)
        if 0 <= symbol < model.tokens:
            ids[count] = symbol
            count += 1
            continue
        for at in range(get_i32(merge.queue.positions, k), get_i32(merge.queue.positions, k + 1)):
            token = model.byte_ids[get_u8(source, at)]
            if token == ABSENT:
                report[OFFSET], report[FOUND] = at, get_u8(source, at)
                return NO_BYTE_TOKEN
            ids[count] = token
            count += 1
    return count
